#include "tools/task_outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/board.h"
#include "tools/run_directory.h"

namespace tilewright::tools {

std::optional<int64_t> winner_of(const RunState& run, const TaskState& task) {
  if (task.done) return task.done->best_trial;
  const bool only_untuned = std::all_of(task.trials.begin(), task.trials.end(),
                                        [&](int64_t t) { return run.trials.at(t).origin == "baseline"; });
  return only_untuned ? std::nullopt : task.best_trial;
}

bool has_valid_candidate(const RunState& run, const TaskState& task) {
  return std::any_of(task.trials.begin(), task.trials.end(), [&](int64_t t) {
    const TrialState& trial = run.trials.at(t);
    return trial.origin != "baseline" && trial.settled && trial.settled->status == TrialStatus::ok &&
           trial.settled->verified;
  });
}

std::optional<int64_t> baseline_of(const RunState& run, const TaskState& task) {
  std::optional<int64_t> found;
  std::pair<bool, double> least;
  for (int64_t t : task.trials) {
    const JobResult* r = run.trials.at(t).origin == "baseline" ? run.trials.at(t).counting() : nullptr;
    if (!r || r->n <= 0) continue;
    std::pair rank{r->settled, r->median_ns};
    if (!found || rank < least) found = t, least = rank;
  }
  return found;
}

std::string why_no_winner(const std::string& reason, int64_t trials, const std::map<std::string, int64_t>& failed) {
  if (trials > 0) return fmt::format("none of {} trials is valid: {}", trials, counts_text(failed));
  if (reason == "budget") return "the budget ended before the first trial";
  if (reason == "interrupted") return "it was stopped before the first trial";
  return reason.empty() ? "no trial has a result yet" : fmt::format("no trial was measured: {}", reason);
}

std::string why_no_winner(const TaskState& task) {
  std::map<std::string, int64_t> failed = task.settled_by_status;
  failed.erase(to_string(TrialStatus::ok));
  int64_t trials = 0;
  for (const auto& [status, n] : failed) trials += n;
  return why_no_winner(task.done ? task.done->reason : "", trials, failed);
}

Refusal without_result(const std::string& directory, const RunState& run) {
  std::string why;
  bool measured = false;
  for (const auto& [number, task] : run.tasks) {
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", task.start.name, why_no_winner(task));
    measured |= task.settled_by_status.size() > task.settled_by_status.count(to_string(TrialStatus::ok));
  }
  const std::string id = run_id(directory);
  const bool budget = run.end && run.end->reason == "budget";
  return Refusal(run_without_result, fmt::format("run {} has no verified result ({})", id,
                                                 why.empty() ? "it stopped before its first task" : why))
      .with_help(measured ? fmt::format("tilewright explain {}", id)
                          : fmt::format("tilewright tune --run {}{}", directory, budget ? " --budget +1m" : ""));
}

}  // namespace tilewright::tools
