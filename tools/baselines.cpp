#include "tools/baselines.h"

#include <fmt/format.h>

#include "tools/inputs.h"
#include "tools/run_directory.h"
#include "tools/task_outcome.h"

namespace tilewright::tools {

namespace {

/// The best trace of the latest other run that holds the same program on the same target.
Result<std::string> previous_best(const Task& task, const std::string& directory) {
  for (const std::string& other : runs_latest_first()) {
    if (other == directory) continue;
    auto state = replay_run(other);
    if (!state) continue;  // a damaged run is no baseline; `report` says what is wrong with it
    for (const auto& [number, t] : state->tasks) {
      if (t.start.program != task.program_text || t.start.target != task.target.text()) continue;
      auto best = winner_of(*state, t);
      if (best && state->trials.contains(*best)) return state->trials.at(*best).trace;
    }
  }
  return refuse(Refusal(baseline_unknown,
                        fmt::format("no earlier run in runs/ has a result of {} on {}", task.name, task.target.text()))
                    .with_help("use --baseline default, or a trace"));
}

}  // namespace

tl::expected<std::vector<std::string>, std::vector<Diagnostic>> baselines_of(Tool& tool, const TuneRun& run) {
  std::vector<std::string> out;
  if (run.resumed && !run.before.trials.empty()) {
    for (const auto& [number, task] : run.before.tasks)
      out.push_back(task.trials.empty() ? "" : run.before.trials.at(task.trials.front()).trace);
    return out;
  }
  const std::string& what = run.settings.baseline;
  if (what == "default") return out;
  if (what == "previous") {
    for (const Task& task : run.tasks) {
      auto trace = previous_best(task, run.directory);
      if (!trace) return tl::unexpected(std::vector{trace.error().diagnostic()});
      out.push_back(*trace);
    }
    return out;
  }
  auto text = read_file(what);
  if (!text) {
    Diagnostic d = text.error().diagnostic();
    d.help = "--baseline takes default, previous or the file of a trace";
    return tl::unexpected(std::vector{d});
  }
  for (const Task& task : run.tasks) {
    Applied applied = apply_trace_text(tool, *text, what, task.program, 0, {});
    if (!applied.errors.empty()) return tl::unexpected(applied.errors);
    out.push_back(trace_to_json(applied.schedule.trace()));
  }
  return out;
}

}  // namespace tilewright::tools
