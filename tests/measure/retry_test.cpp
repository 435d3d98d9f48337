#include "measure/retry.h"

#include <gtest/gtest.h>

namespace tilewright::measure {
namespace {

Job job_of(uint32_t trial) {
  Job job;
  job.id = {.campaign = 7, .task = 1, .trial = trial, .attempt = 0};
  return job;
}

Outcome ended(const Job& job, TrialStatus status, std::string device = "fake-0") {
  Outcome o;
  o.id = job.id;
  o.status = status;
  o.device = std::move(device);
  return o;
}

/// Runs one trial whose attempts end as given; returns the settled outcome and the number of attempts used.
std::pair<Verdict, size_t> settle(const std::vector<TrialStatus>& endings) {
  RetryPolicy policy;
  Job job = job_of(1);
  for (size_t i = 0; i < endings.size(); ++i) {
    policy.dispatched();
    Verdict v = policy.decide(job, ended(job, endings[i], "fake-" + std::to_string(i)));
    if (v.settled) return {v, i + 1};
    EXPECT_EQ(v.retry.id.attempt, job.id.attempt + 1);
    job = v.retry;
  }
  ADD_FAILURE() << "not settled after " << endings.size() << " attempts";
  return {};
}

using enum TrialStatus;

TEST(TrialStatus, TableIsInOrderAndNamesParseBack) {
  for (size_t i = 0; i < trial_statuses.size(); ++i) {
    const TrialStatusInfo& entry = trial_statuses[i];
    EXPECT_EQ(static_cast<size_t>(entry.status), i);
    EXPECT_EQ(parse_name<TrialStatus>(entry.name), entry.status);
    // Only the candidate's own failures may teach the model that a candidate is invalid.
    EXPECT_TRUE(entry.label != ModelLabel::invalid || entry.owner == Owner::candidate) << entry.name;
    EXPECT_TRUE(entry.owner != Owner::environment || entry.label == ModelLabel::none) << entry.name;
  }
  EXPECT_EQ(parse_name<TrialStatus>("OK"), std::nullopt);
}

TEST(Retry, AttemptsFollowTheTable) {
  EXPECT_EQ(settle({ok}).second, 1u);
  EXPECT_EQ(settle({build_error}).second, 1u);
  EXPECT_EQ(settle({run_timeout}).second, 1u);
  EXPECT_EQ(settle({internal_error}).second, 1u);
  EXPECT_EQ(settle({build_timeout, build_timeout}).second, 2u);
  EXPECT_EQ(settle({run_crash, run_crash}).second, 2u);
  EXPECT_EQ(settle({run_crash, ok}).second, 2u);
  EXPECT_EQ(settle({noisy, noisy, noisy}).second, 3u);
  EXPECT_EQ(settle({worker_lost, worker_lost, worker_lost}).second, 3u);
  EXPECT_EQ(settle({implausible, implausible}).second, 2u);
  EXPECT_EQ(settle({worker_lost, run_crash, run_crash}).second, 3u) << "the attempt limit holds over all statuses";
}

TEST(Retry, AWrongResultIsRecheckedInAFreshExecOnAnotherDevice) {
  RetryPolicy policy;
  Job job = job_of(1);
  Verdict v = policy.decide(job, ended(job, wrong_result, "fake-3"));
  ASSERT_FALSE(v.settled);
  EXPECT_TRUE(v.retry.run.fresh_exec);
  EXPECT_EQ(v.retry.run.avoid_device, "fake-3");
}

TEST(Retry, ARecheckThatPassesIsNondeterministicAndAStrikeForTheFirstDevice) {
  auto [v, attempts] = settle({wrong_result, ok});
  EXPECT_EQ(attempts, 2u);
  EXPECT_EQ(v.outcome.status, nondeterministic);
  EXPECT_EQ(v.strike, "fake-0");
  EXPECT_TRUE(info(v.outcome.status).blocks);
  EXPECT_EQ(settle({wrong_result, wrong_result}).first.outcome.status, wrong_result);
}

TEST(Retry, AnEnvironmentFailureOfTheRecheckNeverClearsTheCandidate) {
  EXPECT_EQ(settle({wrong_result, worker_lost, worker_lost}).first.outcome.status, wrong_result);
  EXPECT_EQ(settle({wrong_result, worker_lost, ok}).first.outcome.status, nondeterministic);
}

TEST(Retry, RejectionsRetryOnlyWhereWaitingHelps) {
  RetryPolicy policy;
  Job job = job_of(1);
  Outcome o = ended(job, rejected);
  o.reject = RejectCode::missing_plugin;
  EXPECT_TRUE(policy.decide(job, o).settled);
  o.reject = RejectCode::device_busy;
  EXPECT_FALSE(policy.decide(job, o).settled);
}

TEST(Retry, SpendingMoreThanAShareOnRetriesIsReported) {
  RetryPolicy policy;
  policy.free_retries = 0;
  for (int i = 0; i < 20; ++i) policy.dispatched();
  for (uint32_t i = 0; i < 2; ++i) EXPECT_FALSE(policy.decide(job_of(i), ended(job_of(i), worker_lost)).budget_spent);
  EXPECT_TRUE(policy.decide(job_of(9), ended(job_of(9), worker_lost)).budget_spent);
}

TEST(Retry, CancelledAttemptsAreNotCharged) {
  RetryPolicy policy;
  policy.free_retries = 0;
  Job job = job_of(1);
  for (int i = 0; i < 10; ++i) {
    Verdict v = policy.decide(job, ended(job, cancelled));
    ASSERT_FALSE(v.settled);
    EXPECT_FALSE(v.budget_spent);
    job = v.retry;
  }
  EXPECT_EQ(policy.retries(), 0u);
}

TEST(CircuitBreaker, TripsOnARunOfFailuresSeenByTwoWorkers) {
  CircuitBreaker breaker;
  Job job = job_of(1);
  Outcome bad = ended(job, build_error), good = ended(job, ok);
  for (int i = 0; i < 19; ++i) bad.exec = i % 2 ? "a" : "b", breaker.tell(bad);
  EXPECT_EQ(breaker.tripped(true), CircuitBreaker::Trip::no);
  breaker.tell(good);
  for (int i = 0; i < 20; ++i) bad.exec = "a", breaker.tell(bad);
  EXPECT_EQ(breaker.tripped(true), CircuitBreaker::Trip::no) << "one worker only";
  bad.exec = "b", bad.status = run_crash, breaker.tell(bad);
  EXPECT_EQ(breaker.tripped(true), CircuitBreaker::Trip::task);
  EXPECT_EQ(breaker.tripped(false), CircuitBreaker::Trip::device);
  EXPECT_EQ(breaker.text(), "21 failures in a row: build_error 20, run_crash 1");
}

}  // namespace
}  // namespace tilewright::measure
