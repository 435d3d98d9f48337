// tilewright export: files for a production build, from a run's winners, one trial, or a program with a trace. export/
// makes them.
#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "ir/parse.h"
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

TW_REFUSAL_CODE(export_unverified, "export-unverified", "only results that passed every check are exported");

/// "gemm 512x512x512 float32" → gemm_512x512x512_float32
std::string identifier(const std::string& name) {
  std::string out;
  for (char c : name) out += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(0, "kernel_");
  return out;
}

Result<ExportRequest> request_of(const Subject& s) {
  if (!s.valid())
    return refuse(export_unverified, fmt::format("{} is {}: only verified results are exported", s.name,
                                                 s.blocked                              ? "blocked, it was wrong once"
                                                 : s.status == TrialStatus::unspecified ? "not settled"
                                                 : s.status == TrialStatus::ok          ? "not verified"
                                                                                        : to_string(s.status)));
  if (s.trace.empty() && s.name.starts_with("r-"))
    return refuse(export_unverified, fmt::format("the trace of {} was pruned", s.name));
  auto parsed = parse_program(s.program, s.name);
  if (!parsed)
    return refuse(export_unverified,
                  fmt::format("the program of {} cannot be read: {}", s.name, parsed.error().front().message));
  TW_TRY(Target target, parse_target(s.target.at("target")));
  auto device = s.target.find("device");
  return ExportRequest{
      identifier(s.task),
      s.task,
      parsed->program,
      s.trace,
      target,
      s.record,
      fmt::format("{} on {} ({})", nice_time(s.median_ns), device == s.target.end() ? s.device : device->second,
                  s.name == s.record ? "record " + s.name : "trial " + s.name)};
}

Result<std::vector<ExportRequest>> requests_of(const std::vector<Subject>& subjects) {
  std::vector<ExportRequest> out;
  for (const Subject& s : subjects) {
    TW_TRY(ExportRequest request, request_of(s));
    out.push_back(std::move(request));
  }
  return out;
}

/// A run: the best of each task; RUN:TRIAL or a record: that one.
Result<std::vector<ExportRequest>> requests_of_run(const Tool& tool, const std::string& what) {
  if (names_record(what) || what.find(':') != std::string::npos) {
    TW_TRY(Subject subject, find_subject(tool, what));
    return requests_of({subject});
  }
  TW_TRY(std::string directory, find_run(what));
  TW_TRY(RunState state, replay_run(directory));
  std::vector<Subject> winners = winners_of(directory, state);
  if (winners.empty()) return refuse(trial_unknown, fmt::format("run {} has no valid trial", directory));
  return requests_of(winners);
}

/// --best: of each workload that `words` name (operators, or parts of names; none: all) the fastest record for the
/// target.
Result<std::vector<ExportRequest>> requests_of_database(const Tool& tool, const std::vector<std::string>& words) {
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
    if (Registry<Operator>::instance().find(word.substr(0, word.find(':')))) {
      TW_TRY(Workload workload, make_workload(word));
      Key128 key = workload_key(print(*workload.program), 1);
      TW_TRY_VOID(choose(word, [&](const Key128& k, const Subject&) { return k == key; }));
    } else {
      TW_TRY_VOID(choose(word, [&](const Key128& k, const Subject& s) {
        return s.task.find(word) != std::string::npos || k.hex().starts_with(word);
      }));
    }
  }
  return requests_of(chosen);
}

/// A program file or operator with --trace (or unscheduled).
std::optional<ExportRequest> request_of_program(Tool& tool, const std::string& what, const std::string& trace_file,
                                                int& exit) {
  ExportRequest request;
  if (Registry<Operator>::instance().find(what.substr(0, what.find(':')))) {
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
  Applied applied = apply_trace_text(*text, trace_file, request.program, 0, {});
  if (!applied.errors.empty()) return exit = tool.fail(applied.errors, exit_for_text(applied.errors)), std::nullopt;
  request.trace = trace_to_json(applied.schedule.trace());
  return request;
}

int run(Tool& tool, const Arguments& arguments) {
  std::vector<ExportRequest> requests;
  std::vector<std::string> words = arguments.all("WHAT");
  if (words.empty() && !arguments.has("--best"))
    return tool.usage("export: expected a run, a trial, a record, a program file or an operator, found none",
                      "tilewright export last, or tilewright export --best for the best of the database");
  if (arguments.has("--best")) {
    auto found = requests_of_database(tool, words);
    if (!found)
      return tool.fail(found.error(), found.error().is(record_unknown) ? exit_no : exit_of_name(found.error()));
    requests = std::move(*found);
    words.clear();
  }
  for (const std::string& what : words) {
    std::error_code ec;
    bool program = Registry<Operator>::instance().find(what.substr(0, what.find(':'))) ||
                   std::filesystem::is_regular_file(what, ec);
    if (program) {
      int exit = exit_yes;
      auto request = request_of_program(tool, what, arguments.get("--trace"), exit);
      if (!request) return exit;
      requests.push_back(std::move(*request));
      continue;
    }
    if (arguments.has("--trace"))
      return tool.usage(fmt::format("--trace belongs to a program file or operator, found \"{}\"", what));
    auto found = requests_of_run(tool, what);
    if (!found) return tool.fail(found.error(), exit_of_name(found.error()));
    std::move(found->begin(), found->end(), std::back_inserter(requests));
  }
  if (arguments.has("--name")) {
    if (requests.size() > 1) return tool.usage(fmt::format("--name: expected one kernel, found {}", requests.size()));
    requests[0].name = arguments.get("--name");
  }
  auto files = export_files(requests, arguments.get("--as", "cpu"));
  if (!files) {
    bool usage = files.error().is(export_form_unknown) || files.error().is(export_name_invalid);
    return tool.fail(files.error(), usage                                 ? exit_usage
                                    : files.error().is(component_missing) ? exit_environment
                                                                          : exit_no);
  }
  std::string out = arguments.get("--out", "export");
  if (Status written = write_files(out, *files); !written) return tool.fail(written.error(), exit_environment);
  Json list = Json::array();
  for (const ExportFile& file : *files) {
    std::string path = (std::filesystem::path(out) / file.name).string();
    tool.print(path + "\n");
    list.push_back(path);
  }
  tool.field("files", std::move(list));
  return exit_yes;
}

const RegisterCommand entry{
    "export",
    "write the files of a production build",
    {{{"WHAT", "a run (the best of each task), RUN:TRIAL, a record r-..., a program file or an operator", false, true}},
     {{"--as", "FORM", "cpu (default): header, object, library and a checking program; trace; program"},
      {"--best", "", "of the database: the fastest record of each workload named (none: all) for the target"},
      {"--out", "DIR", "folder of the files (default export)"},
      {"--trace", "FILE", "of a program file or operator: the trace to export"},
      {"--name", "NAME", "C name of the one kernel"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
