#include "schedule/intrinsics/intrinsic.h"

#include <map>
#include <mutex>

#include "ir/parse.h"
#include "ir/verify.h"
#include "support/check.h"

namespace tilewright {

bool TensorIntrinsic::on(const Target& target) const {
  for (const std::string& feature : features) {
    bool any = false;
    for (size_t begin = 0; begin <= feature.size();) {
      const size_t end = std::min(feature.find('|', begin), feature.size());
      any = any || target.has(std::string_view(feature).substr(begin, end - begin));
      begin = end + 1;
    }
    if (!any) return false;
  }
  return true;
}

std::string TensorIntrinsic::needs() const {
  std::string out;
  for (const std::string& feature : features) {
    if (!out.empty()) out += ", ";
    for (char c : feature) out += c == '|' ? " or " : std::string(1, c);
  }
  return out;
}

namespace {

FunctionRef parse_function(const std::string& text, const std::string& name) {
  auto parsed = parse_program(text, "intrinsic " + name);
  TW_CHECK(parsed, "intrinsic {}: {}", name, render_text(parsed.error().at(0)));
  TW_CHECK(parsed->program->functions.size() == 1 && parsed->program->functions[0]->root(),
           "intrinsic {} is not one function with blocks", name);
  return parsed->program->functions[0];
}

}  // namespace

const IntrinsicPrograms* intrinsic_programs(const std::string& name) {
  static std::mutex lock;
  static std::map<std::string, IntrinsicPrograms> parsed;
  std::lock_guard guard(lock);
  if (auto it = parsed.find(name); it != parsed.end()) return &it->second;
  const TensorIntrinsic* intrinsic = Registry<TensorIntrinsic>::instance().find(name);
  if (!intrinsic) return nullptr;
  IntrinsicPrograms programs{parse_function(intrinsic->desc, name), parse_function(intrinsic->body, name)};
  TW_CHECK(programs.desc->params.size() == programs.body->params.size(),
           "intrinsic {}: desc and body have different parameters", name);
  return &parsed.emplace(name, std::move(programs)).first->second;
}

}  // namespace tilewright
