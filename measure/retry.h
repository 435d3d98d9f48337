// Retries and the circuit breaker, as pure decisions of the tuner (nothing else retries). Feed every Outcome in slot
// order.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "measure/measurer.h"
#include "measure/outcome.h"

namespace tilewright::measure {

/// What to do with the outcome of one attempt. Attempts count from 0.
struct Verdict {
  bool settled =
      true;         ///< false: submit `retry` (after `cancelled`: only if the task goes on), this outcome is not ranked
  Outcome outcome;  ///< with its final status (e.g. nondeterministic after a re-check that passed)
  Job retry;        ///< valid if !settled: the same job with the next attempt and its conditions
  std::string strike;         ///< device that earned a strike by this outcome; empty: none
  bool budget_spent = false;  ///< a retry was due, but retries exceed their share of all dispatches: pause the campaign
};

class RetryPolicy {
 public:
  int max_attempts = 3;
  double max_share = 0.10;   ///< retries over all dispatches of the campaign…
  size_t free_retries = 16;  ///< …once this many were made: a share means nothing in the first minute

  void dispatched() { ++dispatches_; }
  /// `job` is the one that was submitted for `outcome`.
  Verdict decide(const Job& job, Outcome outcome);

  size_t retries() const { return retries_; }

 private:
  struct History {
    std::map<TrialStatus, int> seen;
    std::optional<Outcome> first_wrong;
  };
  std::map<MeasurementId, History> histories_;  ///< by id with attempt 0
  size_t dispatches_ = 0, retries_ = 0;
};

/// Stops a task after a run of failures; with a failing canary the device is at fault instead.
class CircuitBreaker {
 public:
  enum class Trip { no, task, device };
  int limit = 20;          ///< consecutive outcomes that are not ok…
  size_t min_workers = 2;  ///< …seen by this many incarnations of exec, or twice the limit: builders may be one

  void tell(const Outcome& settled);
  Trip tripped(bool canary_passes) const;
  /// "20 failures in a row: build_error 14, run_crash 6".
  std::string text() const;

 private:
  int run_ = 0;
  std::set<std::string> workers_;
  std::map<TrialStatus, int> counts_;
};

}  // namespace tilewright::measure
