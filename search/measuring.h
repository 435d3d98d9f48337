// Measuring: turns candidates into jobs and outcomes into settled results, with the retry policy, the circuit breaker
// and the events job.dispatched and job.result. Results that are already known are not measured again.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <set>

#include "measure/measurer.h"
#include "measure/retry.h"
#include "search/tuner.h"

namespace tilewright {

struct Trial {
  size_t task = 0;
  int64_t number = 0;
  std::string trace;  ///< JSON; empty: the unscheduled program
  Key128 trace_key;
  std::string sketch, origin;
  int64_t round = 0;
  std::optional<double> predicted;
};

/// One batch at a time: begin, pump while there is something else to do, finish.
class Measuring {
 public:
  using Emit = std::function<void(EventBody)>;
  /// `may_start`: false once no further job may leave (the budget is spent, or the run is stopped). `overdue`: true
  /// once those that have left are not waited for any more.
  Measuring(const std::vector<Task>& tasks, const TunerOptions& options, measure::Measurer& measurer, Emit emit,
            Tuner::Known known, std::function<bool()> may_start, std::function<bool()> overdue,
            const std::atomic<bool>& stop)
      : tasks_(tasks),
        options_(options),
        measurer_(measurer),
        emit_(std::move(emit)),
        known_(std::move(known)),
        may_start_(std::move(may_start)),
        overdue_(std::move(overdue)),
        stop_(stop) {}

  /// Takes the trials and dispatches what there is room for. `incumbent_ns`: best times by task.
  void begin(std::vector<Trial> trials, const std::vector<double>& incumbent_ns);
  /// Takes what has arrived, waiting up to `timeout` for the first, and dispatches what there is room for.
  void pump(std::chrono::milliseconds timeout);
  /// Waits for the rest. Results in the order of the trials; `unspecified`: not measured to an end.
  std::vector<JobResult> finish();
  std::vector<JobResult> run(std::vector<Trial> trials, const std::vector<double>& incumbent_ns) {
    begin(std::move(trials), incumbent_ns);
    return finish();
  }
  /// A result that is known already, under its number in this run; into the journal if it is not there.
  JobResult reuse(const Trial&, JobResult known);
  /// Interleaved comparison of several traces of one task (stage final). The time of each contender that stayed to the
  /// end becomes one more result of its trial, which all views and the database prefer to the screening's. Nothing: it
  /// failed, or was cut.
  std::optional<measure::Outcome> shoot_out(const std::vector<Trial>& contenders);

  int64_t measured() const { return measured_; }
  int64_t reused() const { return reused_; }
  /// Whether a trial of the batch was answered from what is known.
  bool was_known(size_t i) const { return known_slots_.contains(i); }

 private:
  measure::Job make_job(const Trial&, double incumbent_ns) const;
  JobResult to_result(const Trial&, const measure::Outcome&, bool settled) const;
  void announce(const Trial&, int64_t attempt, Stage);
  void dispatch(const measure::Job&);
  void take(const measure::Outcome&);
  void emit_finals(const std::vector<Trial>& contenders, const measure::Outcome&);
  void forward_events();
  void cancel_late();

  const std::vector<Task>& tasks_;
  const TunerOptions& options_;
  measure::Measurer& measurer_;
  Emit emit_;
  Tuner::Known known_;
  std::function<bool()> may_start_, overdue_;
  const std::atomic<bool>& stop_;
  measure::RetryPolicy retry_;
  bool said_retries_ = false;
  int64_t measured_ = 0, reused_ = 0;

  std::vector<Trial> trials_;  ///< of the batch
  std::vector<JobResult> results_;
  std::set<size_t> known_slots_;
  std::map<int64_t, size_t> slot_;           ///< by trial number
  std::map<int64_t, int64_t> last_attempt_;  ///< of every trial of the run
  std::deque<measure::Job> waiting_;
  std::map<measure::MeasurementId, measure::Job> flying_;
  std::optional<std::chrono::steady_clock::time_point> stopped_at_;
  bool cancelled_ = false;
};

}  // namespace tilewright
