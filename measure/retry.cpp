#include "measure/retry.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::measure {

namespace {

constexpr int low_priority = -1000;  // below every priority that a search gives

bool passes_by_waiting(RejectCode code) {
  return code == RejectCode::no_credit || code == RejectCode::device_busy || code == RejectCode::registry_unavailable ||
         code == RejectCode::draining || code == RejectCode::quarantined;
}

/// Retries that the status allows, given the outcome (the attempt limit applies on top).
int allowed_retries(const Outcome& outcome) {
  switch (info(outcome.status).next) {
    case Next::record:
    case Next::final:
      return 0;
    case Next::retry_alone:
    case Next::retry_fresh:
    case Next::recheck:
    case Next::confirm_floor:
      return 1;
    case Next::retry_low:
      return 2;
    case Next::retry_elsewhere:
    case Next::again_if_wanted:
      return 1 << 16;
    case Next::by_reject_code:
      return passes_by_waiting(outcome.reject) ? 1 << 16 : 0;
  }
  return 0;
}

Job next_attempt(const Job& job, const Outcome& outcome) {
  Job retry = job;
  ++retry.id.attempt;
  switch (info(outcome.status).next) {
    case Next::retry_alone:
      retry.alone = true;
      break;
    case Next::retry_low:
      retry.priority = low_priority;
      break;
    case Next::retry_fresh:
    case Next::recheck:
    case Next::confirm_floor:
      retry.run.fresh_exec = true;
      [[fallthrough]];
    case Next::retry_elsewhere:
      if (retry.run.device.empty()) retry.run.avoid_device = outcome.device;
      break;
    default:
      break;
  }
  return retry;
}

}  // namespace

Verdict RetryPolicy::decide(const Job& job, Outcome outcome) {
  MeasurementId trial = job.id.with_attempt(0);
  History& history = histories_[trial];
  int before = history.seen[outcome.status]++;
  Verdict verdict;

  bool limited = outcome.status != TrialStatus::cancelled;  // a cancelled attempt says nothing about the candidate
  bool again = before < allowed_retries(outcome) && (!limited || job.id.attempt + 1 < max_attempts);
  // A verdict of wrong stands unless the re-check passes; any other ending of the re-check leaves it standing.
  if (history.first_wrong) {
    if (outcome.ok()) {
      outcome.status = TrialStatus::nondeterministic;
      outcome.detail =
          "wrong on " + history.first_wrong->device + ", right in a fresh process: " + history.first_wrong->detail;
      verdict.strike = history.first_wrong->device;
    } else if (!again && info(outcome.status).label == ModelLabel::none) {
      outcome = *history.first_wrong;
    }
  } else if (outcome.status == TrialStatus::wrong_result) {
    history.first_wrong = outcome;
  }

  if (again) {
    verdict.settled = false;
    verdict.retry = next_attempt(job, outcome);
    if (limited) {
      ++retries_;
      double allowed = std::max(static_cast<double>(free_retries), max_share * static_cast<double>(dispatches_));
      verdict.budget_spent = static_cast<double>(retries_) > allowed;
    }
  } else {
    histories_.erase(trial);
  }
  verdict.outcome = std::move(outcome);
  return verdict;
}

void CircuitBreaker::tell(const Outcome& settled) {
  if (settled.status == TrialStatus::cancelled) return;
  if (settled.ok()) {
    run_ = 0;
    workers_.clear();
    counts_.clear();
    return;
  }
  ++run_;
  ++counts_[settled.status];
  workers_.insert(settled.host + "/" + settled.exec);
}

CircuitBreaker::Trip CircuitBreaker::tripped(bool canary_passes) const {
  if (run_ < limit || (workers_.size() < min_workers && run_ < 2 * limit)) return Trip::no;
  return canary_passes ? Trip::task : Trip::device;
}

std::string CircuitBreaker::text() const {
  std::string out = fmt::format("{} failures in a row:", run_);
  std::vector<std::pair<TrialStatus, int>> sorted(counts_.begin(), counts_.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (size_t i = 0; i < sorted.size(); ++i)
    out += fmt::format("{} {} {}", i ? "," : "", to_string(sorted[i].first), sorted[i].second);
  return out;
}

}  // namespace tilewright::measure
