// tilewright report: the tasks of a run, from its journal.
#include <fmt/format.h>

#include <algorithm>

#include "support/json.h"
#include "tools/board.h"
#include "tools/command.h"
#include "tools/objects.h"
#include "tools/run_directory.h"
#include "tools/task_outcome.h"

namespace tilewright::tools {
namespace {

/// The time of a trial that counts; 0: none.
double time_of(const RunState& run, std::optional<int64_t> trial) {
  if (!trial || !run.trials.contains(*trial)) return 0;
  const JobResult* r = run.trials.at(*trial).counting();
  return r && r->n > 0 ? r->median_ns : 0;
}

int report(Tool& tool, const Arguments& arguments) {
  auto directory = find_run(arguments.get("RUN", "last"));
  if (!directory) return tool.fail(directory.error(), exit_of_name(directory.error()));
  auto state = replay_run(*directory);
  if (!state) return tool.fail(state.error(), exit_of_name(state.error()));
  std::string stop = state->end ? state->end->reason : "not ended";
  tool.print(fmt::format("run {}  {}  {} settled trials in {}  {}\n", run_id(*directory), *directory, state->settled(),
                         clock_text(state->elapsed_s), stop));
  Json tasks = Json::array();
  for (const auto& [number, task] : state->tasks) {
    auto best = winner_of(*state, task);
    const double best_ns = time_of(*state, best), baseline_ns = time_of(*state, baseline_of(*state, task));
    Json failed = Json::object();
    int64_t ok = 0, lost = 0;
    for (const auto& [status, n] : task.settled_by_status) {
      if (status == to_string(TrialStatus::ok)) {
        ok = n;
      } else {
        failed[status] = n;
        lost += n;
      }
    }
    std::string kinds;
    for (const auto& [status, n] : failed.items())
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", status, n.get<int64_t>());
    tool.print(fmt::format(" {:<36} {:>9} {:>8}  {} ok, {} failed{}\n", task.start.name, nice_time(best_ns),
                           best_ns > 0 && baseline_ns > 0 ? fmt::format("{:.2f}x", baseline_ns / best_ns) : "-", ok,
                           lost, kinds.empty() ? "" : " (" + kinds + ")"));
    Json row = {{"task", task.start.name},
                {"target", task.start.target},
                {"ok", ok},
                {"failed", failed},
                {"rounds", task.rounds}};
    if (best) {
      row["best_trial"] = *best;
    } else {
      tool.print(fmt::format("   no verified result: {}\n", why_no_winner(task)));
      row["without_result"] = why_no_winner(task);
    }
    if (best_ns > 0) row["best_ns"] = best_ns;
    if (baseline_ns > 0) row["baseline_ns"] = baseline_ns;
    tasks.push_back(std::move(row));
  }
  tool.field("run", run_id(*directory));
  tool.field("directory", *directory);
  tool.field("stop_reason", stop);
  tool.field("elapsed_s", state->elapsed_s);
  tool.field("tasks", std::move(tasks));
  return exit_yes;
}

const RegisterCommand report_entry{"report",
                                   "the tasks of a run with their best times and failures",
                                   {{{"RUN", "id, prefix, folder, or last (default)", false}}, {}, report}};

}  // namespace
}  // namespace tilewright::tools
