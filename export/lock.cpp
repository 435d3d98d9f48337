#include "export/lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/parse.h"
#include "lowering/options.h"
#include "support/reflect_json.h"
#include "support/schema.h"

namespace tilewright {

namespace {

constexpr const char* lock_id = "tilewright/lock@1";
const Register<Schema> schema_entry{"lock", "the lock file of a production build", {lock_schema}};

}  // namespace

const LockedKernel* Lock::find(std::string_view name) const {
  auto it = std::find_if(kernels.begin(), kernels.end(), [&](const LockedKernel& k) { return k.name == name; });
  return it == kernels.end() ? nullptr : &*it;
}

void Lock::put(LockedKernel kernel) {
  auto at = std::lower_bound(kernels.begin(), kernels.end(), kernel.name,
                             [](const LockedKernel& k, const std::string& name) { return k.name < name; });
  if (at != kernels.end() && at->name == kernel.name)
    *at = std::move(kernel);
  else
    kernels.insert(at, std::move(kernel));
}

Result<Lock> parse_lock(std::string_view text, const std::string& file) {
  Json json = Json::parse(text, nullptr, false);
  auto schema = json.is_object() ? json.find("schema") : json.end();
  if (!json.is_object() || schema == json.end() || *schema != lock_id)
    return refuse(lock_invalid, fmt::format("{}: expected a JSON object with \"schema\": \"{}\"", file, lock_id));
  Lock lock;
  if (Status read = reflect_json::read(json, lock, ""); !read)
    return refuse(lock_invalid, fmt::format("{}: {}", file, read.error().diagnostic().message));
  return lock;
}

std::string to_text(const Lock& lock) {
  Json json = {{"schema", lock_id}};
  json.update(reflect_json::write(lock));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string lock_schema() {
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"$id", lock_id}};
  out.update(reflect_json::schema<Lock>());
  return out.dump(2);
}

Result<ExportRequest> request_of(const LockedKernel& kernel) {
  std::string program;
  for (const std::string& line : kernel.program) program += line + "\n";
  auto parsed = parse_program(program, kernel.name);
  if (!parsed)
    return refuse(lock_invalid,
                  fmt::format("the program of {} cannot be read: {}", kernel.name, parsed.error().front().message));
  TW_TRY(Target target, parse_target(kernel.target));
  ExportRequest request;
  request.name = kernel.name;
  request.title = kernel.task;
  request.program = parsed->program;
  request.trace = kernel.trace;
  request.target = std::move(target);
  if (auto lower = kernel.measured_on.find("lower"); lower != kernel.measured_on.end())
    request.lower = lowering::LowerOptions::split(lower->second);
  request.record = kernel.record;
  request.measured = kernel.measured;
  return request;
}

}  // namespace tilewright
