// Measuring: turns candidates into jobs and outcomes into settled results, with the retry policy, the circuit breaker
// and the events job.dispatched and job.result. Results that are already known are not measured again.
#pragma once

#include <chrono>

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

class Measuring {
 public:
  using Emit = std::function<void(EventBody)>;
  Measuring(const std::vector<Task>& tasks, const TunerOptions& options, measure::Measurer& measurer, Emit emit,
            Tuner::Known known, const std::atomic<bool>& stop)
      : tasks_(tasks),
        options_(options),
        measurer_(measurer),
        emit_(std::move(emit)),
        known_(std::move(known)),
        stop_(stop) {}

  /// Measures all trials; results in the order given. Stops waiting for retries when the run is stopped.
  std::vector<JobResult> run(const std::vector<Trial>& trials, const std::vector<double>& incumbent_ns);
  /// Interleaved comparison of several traces of one task (stage final).
  std::optional<measure::Outcome> shoot_out(size_t task, const std::vector<Trial>& contenders);

  int64_t measured() const { return measured_; }
  int64_t reused() const { return reused_; }

 private:
  measure::Job make_job(const Trial&, double incumbent_ns) const;
  JobResult to_result(const Trial&, const measure::Outcome&, bool settled) const;
  const std::vector<Task>& tasks_;
  const TunerOptions& options_;
  measure::Measurer& measurer_;
  Emit emit_;
  Tuner::Known known_;
  const std::atomic<bool>& stop_;
  measure::RetryPolicy retry_;
  int64_t measured_ = 0, reused_ = 0;
};

}  // namespace tilewright
