// Tuner: the whole loop over tasks, rounds, measurements and learning. The journal's events are its only output;
// whoever runs it observes them (screen, journal, database). The library never prints.
//   ask → build and measure → tell → model update → events, round after round; then the paired shoot-out.
// Read next: tuner.cpp (the loop), task_run.h (one task), measuring.h (a batch of trials).
// Resume and idempotence are one mechanism: the search is deterministic, so running it again with the recorded results
// (`known`) proposes the same candidates and measures only what is not known.
#pragma once

#include <atomic>
#include <chrono>

#include "measure/measurer.h"
#include "search/scheduler/scheduler.h"
#include "search/space.h"
#include "search/strategies/strategy.h"
#include "search/task.h"
#include "support/events.h"

namespace tilewright {

TW_REFUSAL_CODE(strategy_unknown, "strategy-unknown", "no search strategy has that name");
TW_REFUSAL_CODE(scheduler_unknown, "scheduler-unknown", "no task scheduler has that name");
TW_REFUSAL_CODE(baseline_fails, "baseline-fails",
                "the untuned program does not build, run or compute the right values");

struct TunerOptions {
  uint64_t seed = 1;
  int64_t trials = 64;  ///< per task, baseline not counted
  double budget_s = 0;  ///< wall time of the whole run; 0: no limit. A tenth (at most 60 s) is kept for the shoot-out
  std::string preset = "tilewright", strategy, cost_model, scheduler = "gradient";  ///< empty: as the preset says
  std::string space;                   ///< registered space, or empty: the rules
  std::string space_text, space_file;  ///< a schedule file's text and name
  std::vector<std::string> without_rules;
  int first_batch = 8, batch = 32;  ///< below and from 64 records on
  /// Rounds that a search may be ahead of the measurements: round r sees the results of rounds < r - lag, however fast
  /// they arrive, so that search and measurement overlap and a run can be repeated. -1: as the preset says (1;
  /// metaschedule 0).
  int lag = -1;
  int population = 0;   ///< of a generation of evolutionary search; 0: as the preset says
  int generations = 4;  ///< of evolutionary search
  int threads = 1;      ///< of the search
  int run_threads = 1;  ///< of the measured kernel; part of the target
  Mode mode = Mode::cold;
  int finalists = 8;
  bool until_no_gain = false;          ///< a task ends after five rounds without 0.5 % of gain
  std::vector<std::string> baselines;  ///< by task: trace JSON of what is compared with; empty: the untuned program
  int64_t first_trial = 0;             ///< trial number of the first measurement
  uint64_t campaign = 0;
  std::map<std::string, std::string> lower;  ///< options of lowering that are given, by name
  ByName<std::string> environment;  ///< device model, toolchain, …: with the target's text the key of the results
};

/// The event that opens a task; its keys say which results belong together.
TaskStart task_start(const Task&, size_t index, const TunerOptions&);

/// A settled result of an earlier run that counts here as if it had been measured now.
struct Recorded {
  size_t task = 0;
  std::string trace;  ///< JSON
  JobResult result;   ///< result.trial: its number if this run's journal has it already, else -1
};
/// What was known before the run, besides what `Known` finds.
struct Earlier {
  std::vector<Recorded> results;
  std::vector<RunSeeded> seeds;  ///< traces to measure first; their times hold elsewhere
};

struct TaskReport {
  std::string name;
  std::optional<double> baseline_ns, best_ns, best_lo_ns, best_hi_ns;
  std::string best_trace;  ///< JSON; empty: the untuned program won, or nothing is valid
  int64_t best_trial = -1;
  std::string verdict;  ///< of the shoot-out: "best", "tied with N: kept …", "untuned kept", "no valid candidate"
  int64_t trials = 0, ok = 0;
  std::map<std::string, int64_t> failed;   ///< by status
  std::map<std::string, int64_t> refused;  ///< sampled candidates that were not legal, by code
  std::string stop_reason;
};
struct RunReport {
  std::string stop_reason;
  std::vector<TaskReport> tasks;
  std::map<std::string, double> seconds;  ///< by activity: search, train, measure (waiting for measurements)
  int64_t measured = 0, reused = 0;
};

class Tuner {
 public:
  /// A result that is already known for (task index, trace key): settled, or nothing. With trial -1 it is not in this
  /// run's journal yet, and goes there under the candidate's number; else `attempt` is the last that its trial used.
  using Known = std::function<std::optional<JobResult>(size_t task, const Key128& trace_key)>;

  static Result<std::unique_ptr<Tuner>> create(std::vector<Task> tasks, TunerOptions, measure::Measurer&, Observer&,
                                               Known known = {}, Earlier earlier = {});
  ~Tuner();
  /// Runs to the end of the budget, or until stop() was called from another thread (or a signal handler).
  Result<RunReport> run();
  void stop() { stop_ = true; }
  const std::vector<Task>& tasks() const;
  const Space& space(size_t task) const;

 private:
  struct Impl;
  Tuner();
  std::unique_ptr<Impl> impl_;
  std::atomic<bool> stop_{false};
};

}  // namespace tilewright
