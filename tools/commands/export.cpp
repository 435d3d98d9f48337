// tilewright export: files for a production build, from a run's winners, one trial, or a program with a trace. export/
// makes them.
#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/progress.h"
#include "tools/run_directory.h"
#include "tools/tune_run.h"
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

Result<ExportRequest> request_of(const TrialName& named, const std::string& directory) {
  const TrialState& trial = named.run.trials.at(named.trial);
  std::string place = fmt::format("{}:{}", run_id(directory), named.trial);
  if (!trial.settled || trial.settled->status != TrialStatus::ok || !trial.settled->verified)
    return refuse(export_unverified, fmt::format("trial {} is {}: only verified results are exported", place,
                                                 trial.settled ? to_string(trial.settled->status) : "not settled"));
  TW_TRY(std::vector<Task> tasks, tasks_of(named.run));
  size_t index = static_cast<size_t>(std::distance(named.run.tasks.begin(), named.run.tasks.find(trial.task)));
  const Task& task = tasks.at(index);
  const JobResult& r = *trial.settled;
  return ExportRequest{identifier(task.name),
                       task.name,
                       task.program,
                       trial.trace,
                       task.target,
                       "",
                       fmt::format("{} on {} (trial {})", nice_time(r.median_ns), r.device, place)};
}

/// A run: the best of each task; RUN:TRIAL: that one.
Result<std::vector<ExportRequest>> requests_of_run(const std::string& what) {
  std::vector<ExportRequest> out;
  if (what.find(':') != std::string::npos) {
    TW_TRY(TrialName trial, find_trial(what));
    TW_TRY(ExportRequest request, request_of(trial, trial.directory));
    out.push_back(std::move(request));
    return out;
  }
  TW_TRY(std::string directory, find_run(what));
  TW_TRY(RunState state, replay_run(directory));
  for (const auto& [number, task] : state.tasks) {
    auto best = task.done && task.done->best_trial ? task.done->best_trial : task.best_trial;
    if (!best || !state.trials.contains(*best)) continue;
    TW_TRY(ExportRequest request, request_of({directory, state, *best}, directory));
    out.push_back(std::move(request));
  }
  if (out.empty()) return refuse(trial_unknown, fmt::format("run {} has no valid trial", directory));
  return out;
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
  for (const std::string& what : arguments.all("WHAT")) {
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
    auto found = requests_of_run(what);
    if (!found)
      return tool.fail(found.error(),
                       found.error().is(run_unknown) || found.error().is(run_ambiguous) ? exit_usage : exit_no);
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
    {{{"WHAT", "a run (the best of each task), RUN:TRIAL, a program file or an operator", true, true}},
     {{"--as", "FORM", "cpu (default): header, object, library and a checking program; trace; program"},
      {"--out", "DIR", "folder of the files (default export)"},
      {"--trace", "FILE", "of a program file or operator: the trace to export"},
      {"--name", "NAME", "C name of the one kernel"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
