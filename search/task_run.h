// TaskRun: one task of a run: its space, strategy and model, what has been planned and what came of it. The tuner's
// loop (tuner.cpp) decides which task is next and when; nothing here waits for a measurement but the shoot-out.
#pragma once

#include <deque>

#include "measure/retry.h"
#include "search/measuring.h"
#include "search/scheduler/scheduler.h"
#include "search/strategies/strategy.h"

namespace tilewright {

/// A round that was asked for: candidates and, in the same order, their trials.
struct Proposal {
  size_t task = 0;
  int64_t round = 0;
  std::vector<Candidate> candidates;
  std::vector<Trial> trials;
};

class TaskRun {
 public:
  using Emit = std::function<void(EventBody)>;
  struct Hooks {
    std::function<void()> pause;    ///< StrategyContext::pause
    std::function<bool()> give_up;  ///< StrategyContext::give_up
    Emit emit;
  };
  static Result<std::unique_ptr<TaskRun>> create(size_t index, const Task&, const TunerOptions&, Hooks);

  const Space& space() const { return space_; }
  const TaskProgress& progress() const { return progress_; }
  const TaskReport& report() const { return report_; }
  double incumbent_ns() const { return incumbent_ns_; }

  /// Why the task cannot be tuned: it has no space, or its untuned program fails. Such a task has ended; others go on.
  const std::optional<Refusal>& failure() const { return failure_; }

  void announce(const measure::Calibration&);                              ///< task.start, and warnings about the space
  std::vector<Trial> baseline_trials() const;                              ///< the untuned program, without numbers
  void take_baselines(std::vector<Trial>, const std::vector<JobResult>&);  ///< may end the task

  /// What earlier runs measured, as far as it is of this space: a round of its own with its results. The seeds among it
  /// wait for the first rounds.
  std::pair<Proposal, std::vector<JobResult>> recall(const Earlier&);
  /// Takes the seeds that are left, then asks the strategy; no candidates: the space is exhausted, and the task is
  /// closed.
  Proposal propose(int64_t round);
  /// Counts results, in slot order; `known[i]`: an earlier start of the run measured it. May stop the task.
  std::vector<Settled> settle(const Proposal&, const std::vector<JobResult>&, const std::vector<bool>& known);
  /// Strategy and model take the round.
  void learn(int64_t round, const std::vector<Settled>&);
  /// No further rounds. The first reason counts.
  void close(const std::string& reason);
  /// The task has ended by its results: rounds that are proposed and not begun are dropped.
  bool stopped() const { return stopped_; }
  /// Failures in a row that are the machine's, not the candidates'; empty: none.
  const std::string& machine_failure() const { return machine_failure_; }
  /// The paired shoot-out of the best (without `measuring`: none) and task.done.
  void conclude(Measuring* measuring);

 private:
  struct Good {
    double seconds;
    Trial trial;
  };
  TaskRun(size_t index, const Task&, const TunerOptions&, Hooks, Space);
  void take_ok(const Trial&, const Settled&, const JobResult&);
  void watch(const JobResult&, bool known);
  void warn(std::string_view code, std::string message, std::string help = "") const;
  void fail(const Refusal&);
  void end(const std::string& reason);
  int64_t limit() const { return task_.trials_of(options_.trials); }
  void stop(const std::string& reason);
  void report_refusals(int64_t round, size_t chosen);

  size_t index_;
  const Task& task_;
  const TunerOptions& options_;
  Hooks hooks_;
  Space space_;
  std::unique_ptr<CostModel> model_;
  std::unique_ptr<StrategyContext> context_;
  std::unique_ptr<SearchStrategy> strategy_;
  std::optional<Refusal> failure_;
  Trial baseline_;            ///< the faster untuned program
  bool baseline_ok_ = false;  ///< it was timed and verified, so it may win
  std::vector<Good> good_;    ///< ok trials, best first; as many as the shoot-out takes
  TaskReport report_;
  TaskProgress progress_;
  double incumbent_ns_ = 0;
  int64_t planned_ = 0;
  std::deque<Candidate> seeds_;  ///< to be proposed before anything else
  measure::CircuitBreaker breaker_;
  int barren_rounds_ = 0;  ///< in a row, without one valid candidate
  bool stopped_ = false;
  bool said_model_fails_ = false;
  std::string machine_failure_;
  Refusals seen_refusals_;  ///< what earlier candidates.refused events told
  int64_t seen_evaluated_ = 0;
};

}  // namespace tilewright
