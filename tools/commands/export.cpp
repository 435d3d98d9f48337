// tilewright export: files for a production build, from a run's winners, one trial, or a program with a trace. export/
// makes them.
#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "codegen/codegen.h"
#include "export/lock.h"
#include "ir/print.h"
#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "workloads/operator.h"

namespace tilewright::tools {
namespace {

TW_REFUSAL_CODE(lock_changed, "lock-changed", "an exported file is not the one that its lock file knows");
TW_REFUSAL_CODE(export_unverified, "export-unverified", "only results that passed every check are exported");

/// "gemm 512x512x512 float32" → gemm_512x512x512_float32
std::string identifier(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "kernel_");
  return out;
}

/// One kernel to export; `locked` if it was measured: what a lock file says of it.
struct Item {
  ExportRequest request;
  std::optional<LockedKernel> locked;
};
using Items = std::vector<Item>;

Result<Item> item_of(const Subject& s) {
  if (!s.valid())
    return refuse(export_unverified, fmt::format("{} is {}: only verified results are exported", s.name,
                                                 s.blocked                              ? "blocked, it was wrong once"
                                                 : s.status == TrialStatus::unspecified ? "not settled"
                                                 : s.status == TrialStatus::ok          ? "not verified"
                                                                                        : to_string(s.status)));
  if (s.trace.empty() && s.name == s.record)
    return refuse(export_unverified, fmt::format("the trace of {} was pruned", s.name));
  LockedKernel k;
  k.name = identifier(s.task);
  k.task = s.task;
  for (size_t line = 0; line < s.program.size();) {
    size_t end = std::min(s.program.find('\n', line), s.program.size());
    k.program.push_back(s.program.substr(line, end - line));
    line = end + 1;
  }
  k.trace = s.trace;
  k.measured_on = s.target;
  k.target = k.measured_on.at("target");
  k.measured_on.erase("target");
  k.mode = s.space.mode;
  k.record = s.record;
  k.median_ns = s.median_ns, k.ci_lo_ns = s.ci_lo_ns, k.ci_hi_ns = s.ci_hi_ns, k.n = s.n;
  k.stage = to_string(s.stage);
  auto device = k.measured_on.find("device");
  k.measured =
      fmt::format("{} on {} ({})", nice_time(s.median_ns), device == k.measured_on.end() ? s.device : device->second,
                  s.name == s.record ? "record " + s.name : "trial " + s.name);
  TW_TRY(ExportRequest request, request_of(k));
  return Item{std::move(request), std::move(k)};
}

Result<Items> items_of(const std::vector<Subject>& subjects) {
  Items out;
  for (const Subject& s : subjects) {
    TW_TRY(Item item, item_of(s));
    out.push_back(std::move(item));
  }
  return out;
}

/// A run: the best of each task; RUN:TRIAL or a record: that one.
Result<Items> items_of_run(Tool& tool, const std::string& what) {
  if (names_record(what) || what.find(':') != std::string::npos) {
    TW_TRY(Subject subject, find_subject(tool, what));
    return items_of({subject});
  }
  TW_TRY(std::string directory, find_run(what));
  TW_TRY(RunState state, replay_run(directory));
  std::vector<Diagnostic> without;
  TW_TRY(std::vector<Subject> winners, winners_of(directory, state, without));
  tool.diagnose(without);
  return items_of(winners);
}

Result<Items> items_of_lock(const std::string& file) {
  TW_TRY(std::string text, read_file(file));
  TW_TRY(Lock lock, parse_lock(text, file));
  Items out;
  for (LockedKernel& kernel : lock.kernels) {
    TW_TRY(ExportRequest request, request_of(kernel));
    out.push_back({std::move(request), std::move(kernel)});
  }
  return out;
}

/// --best: of each workload that `words` name (operators, or parts of names; none: all) the fastest record for the
/// target.
Result<Items> items_of_database(const Tool& tool, const std::vector<std::string>& words) {
  TW_TRY(auto database, existing_database(tool));
  TW_TRY(Target target, parse_target(tool.globals().target));
  std::map<Key128, Subject> best;
  TW_TRY(std::vector<Subject> all, best_of(*database));
  for (Subject& s : all)
    if (s.target.at("target") == target.text()) {
      auto [it, fresh] = best.try_emplace(s.space.workload, s);
      if (!fresh && s.median_ns < it->second.median_ns) it->second = std::move(s);
    }
  std::vector<Subject> chosen;
  auto choose = [&](const std::string& word, auto&& wanted) -> Status {
    size_t before = chosen.size();
    for (const auto& [key, subject] : best)
      if (wanted(key, subject)) chosen.push_back(subject);
    if (chosen.size() > before) return {};
    return refuse(
        Refusal(record_unknown, fmt::format("the database has no verified record of {} for {}", word, target.text()))
            .with_help(fmt::format("tilewright db best; tilewright tune {}",
                                   word.find(':') == std::string::npos ? word : "--op " + word)));
  };
  if (words.empty()) TW_TRY_VOID(choose("any workload", [](const auto&...) { return true; }));
  for (const std::string& word : words) {
    if (names_operator(word)) {
      TW_TRY(Workload workload, make_workload(word));
      Key128 key = workload_key(print(*workload.program), 1);
      TW_TRY_VOID(choose(word, [&](const Key128& k, const Subject&) { return k == key; }));
    } else {
      TW_TRY_VOID(choose(word, [&](const Key128& k, const Subject& s) {
        return s.task.find(word) != std::string::npos || k.hex().starts_with(word);
      }));
    }
  }
  return items_of(chosen);
}

/// A program file or operator with --trace (or unscheduled).
std::optional<ExportRequest> request_of_program(Tool& tool, const std::string& what, const std::string& trace_file,
                                                int& exit) {
  ExportRequest request;
  if (names_operator(what)) {
    auto workload = make_workload(what);
    if (!workload) return exit = tool.fail(workload.error(), exit_usage), std::nullopt;
    request.program = workload->program;
    request.title = workload->name;
  } else {
    auto parsed = read_program(tool, what, exit);
    if (!parsed) return std::nullopt;
    request.program = parsed->program;
    request.title = std::filesystem::path(what).stem().string();
  }
  request.name = identifier(request.title);
  auto target = parse_target(tool.globals().target);
  if (!target) return exit = tool.fail(target.error(), exit_usage), std::nullopt;
  request.target = *target;
  if (auto function = schedulable_function(*request.program); !function)
    return exit = tool.fail(function.error()), std::nullopt;
  if (trace_file.empty()) return request;
  auto text = read_file(trace_file);
  if (!text) return exit = tool.fail(text.error(), exit_usage), std::nullopt;
  Applied applied = apply_trace_text(tool, *text, trace_file, request.program, 0, {});
  if (!applied.errors.empty()) return exit = tool.fail(applied.errors, exit_for_text(applied.errors)), std::nullopt;
  request.trace = trace_to_json(applied.schedule.trace());
  return request;
}

/// What WHAT and --best name. Nothing: it was reported.
std::optional<Items> read_items(Tool& tool, const Arguments& arguments, int& exit) {
  Items items;
  auto add = [&](Result<Items> found, int otherwise) {
    if (!found) {
      int named = exit_of_name(found.error());
      exit = tool.fail(found.error(), named == exit_no ? otherwise : named);
      return false;
    }
    std::move(found->begin(), found->end(), std::back_inserter(items));
    return true;
  };
  std::vector<std::string> words = arguments.all("WHAT");
  if (arguments.has("--best")) {
    auto found = items_of_database(tool, words);
    if (!found && found.error().is(record_unknown)) return exit = tool.fail(found.error()), std::nullopt;
    if (!add(std::move(found), exit_no)) return std::nullopt;
    words.clear();
  }
  for (const std::string& what : words) {
    std::error_code ec;
    const bool file = std::filesystem::is_regular_file(what, ec);
    if (file && what.ends_with(".json")) {
      if (!add(items_of_lock(what), exit_usage)) return std::nullopt;
    } else if (file || names_operator(what)) {
      auto request = request_of_program(tool, what, arguments.get("--trace"), exit);
      if (!request) return std::nullopt;
      items.push_back({std::move(*request), std::nullopt});
    } else if (arguments.has("--trace")) {
      exit = tool.usage(fmt::format("--trace belongs to a program file or operator, found \"{}\"", what));
      return std::nullopt;
    } else if (!add(items_of_run(tool, what), exit_no)) {
      return std::nullopt;
    }
  }
  return items;
}

bool measured_on_fake(const LockedKernel& k) {
  auto device = k.measured_on.find("device");
  return device != k.measured_on.end() && device->second.starts_with("fake");
}

/// Whether an exported file is one of this kernel's own: NAME.h, NAME_reference.o, libNAME.so, …
bool belongs(const ExportFile& file, const std::string& name) {
  std::string stem = file.name.substr(0, file.name.find('.'));
  return stem == name || stem == name + "_reference" || stem == "lib" + name;
}

/// Notes in each locked kernel what was made of it; says where that is not what the lock knew. False: with --strict
/// that is an error.
bool check_files(Tool& tool, Items& items, const std::vector<ExportFile>& files, const std::string& form, bool strict) {
  bool good = true;
  for (Item& item : items) {
    if (!item.locked) continue;
    LockedKernel& k = *item.locked;
    auto named =
        form == "cpu" ? codegen::toolchain(item.request.target) : fmt::format("tilewright {}", TILEWRIGHT_VERSION);
    const std::string toolchain = named ? *named : "";
    if (k.toolchain != toolchain) k.files.clear();
    k.toolchain = toolchain;
    for (const ExportFile& file : files) {
      if (!belongs(file, item.request.name)) continue;
      std::string& known = k.files[form + "/" + file.name];
      std::string key = content_key(file.bytes).hex();
      if (!known.empty() && known != key) {
        Refusal changed(lock_changed,
                        fmt::format("{}: the lock file has {}, this build gives {}", file.name, known, key));
        Diagnostic d = changed.diagnostic();
        d.warning = !strict;
        tool.diagnose(d);
        good &= !strict;
      }
      known = std::move(key);
    }
  }
  return good;
}

/// This build or this target cannot make what is asked for, whatever the kernel.
bool cannot_generate(const Refusal& refusal) {
  return refusal.is(component_missing) || refusal.is(codegen::code_generator_missing) ||
         refusal.is(codegen::dtype_not_generated);
}

int write_lock(Tool& tool, const std::string& path, const Items& items) {
  Lock lock;
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) {
    auto text = read_file(path);
    auto found = text ? parse_lock(*text, path) : refuse(text.error());
    if (!found) return tool.fail(found.error(), exit_usage);
    lock = std::move(*found);
  }
  for (const Item& item : items) {
    if (!item.locked)
      return tool.fail(Refusal(export_unverified, fmt::format("--lock: {} was never measured", item.request.title))
                           .with_help("lock a run, a trial or a record"));
    LockedKernel kernel = *item.locked;
    kernel.name = item.request.name;
    lock.put(std::move(kernel));
  }
  std::filesystem::path where = path;
  Status written = write_files(where.has_parent_path() ? where.parent_path().string() : ".",
                               {{where.filename().string(), to_text(lock)}});
  if (!written) return tool.fail(written.error(), exit_environment);
  tool.print(path + "\n");
  tool.field("lock", path);
  return exit_yes;
}

int run(Tool& tool, const Arguments& arguments) {
  if (!arguments.has("WHAT") && !arguments.has("--best"))
    return tool.usage(
        "export: expected a run, a trial, a record, a lock file, a program file or an operator, found none",
        "tilewright export last, or tilewright export --best for the best of the database");
  int exit = exit_yes;
  std::optional<Items> items = read_items(tool, arguments, exit);
  if (!items) return exit;
  if (arguments.has("--name")) {
    if (items->size() > 1) return tool.usage(fmt::format("--name: expected one kernel, found {}", items->size()));
    items->front().request.name = arguments.get("--name");
  }
  const std::string form = arguments.get("--as", "cpu");
  std::vector<ExportRequest> requests;
  for (const Item& item : *items) {
    if (form == "cpu" && item.locked && measured_on_fake(*item.locked))
      return tool.fail(Refusal(export_unverified, fmt::format("{} was measured on a fake device, which checks nothing",
                                                              item.locked->record))
                           .with_help("--as trace or --as program"));
    requests.push_back(item.request);
  }
  auto files = export_files(requests, form);
  if (!files) {
    bool usage = files.error().is(export_form_unknown) || files.error().is(export_name_invalid);
    return tool.fail(files.error(), usage ? exit_usage : cannot_generate(files.error()) ? exit_environment : exit_no);
  }
  if (!check_files(tool, *items, *files, form, arguments.has("--strict"))) return exit_no;
  std::string out = arguments.get("--out", "export");
  if (Status written = write_files(out, *files); !written) return tool.fail(written.error(), exit_environment);
  Json list = Json::array();
  for (const ExportFile& file : *files) {
    std::string path = (std::filesystem::path(out) / file.name).string();
    tool.print(path + "\n");
    list.push_back(path);
  }
  tool.field("files", std::move(list));
  return arguments.has("--lock") ? write_lock(tool, arguments.get("--lock"), *items) : exit_yes;
}

const RegisterCommand entry{
    "export",
    "write the files of a production build",
    {{{"WHAT", "a run (the best of each task), RUN:TRIAL, a record r-..., a lock file, a program file or an operator",
       false, true}},
     {{"--as", "FORM", "cpu (default): header, object, library and a checking program; trace; program"},
      {"--best", "", "of the database: the fastest record of each workload named (none: all) for the target"},
      {"--lock", "FILE", "write what was exported into a lock file, or replace it there"},
      {"--strict", "", "of a lock file: a kernel that comes out otherwise than it says is an error"},
      {"--out", "DIR", "folder of the files (default export)"},
      {"--trace", "FILE", "of a program file or operator: the trace to export"},
      {"--name", "NAME", "C name of the one kernel"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
