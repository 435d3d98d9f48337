// Reports what a trial costs beside its build and its launches, and checks what must hold over many trials: nothing
// leaks, equal seeds give equal times, every job is answered once.
#include <csignal>
#include <map>
#include <thread>

#include "measure/retry.h"
#include "tests/measure/harness.h"

namespace tilewright::measure {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Not an assertion: machines differ. The figure is printed and kept as a property of the test.
TEST(Overhead, OfAnEmptyTrialIsReported) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  run_one(*measurer, fake_job(0));  // the reference
  std::vector<double> ms;
  for (uint32_t i = 1; i <= 50; ++i) {
    auto begin = SteadyClock::now();
    ASSERT_EQ(run_one(*measurer, fake_job(i, "fake.time_us=1")).status, TrialStatus::ok);
    ms.push_back(std::chrono::duration<double, std::milli>(SteadyClock::now() - begin).count());
  }
  std::sort(ms.begin(), ms.end());
  std::printf("empty fake trial, submit to outcome: p50 %.2f ms, p90 %.2f ms\n", ms[25], ms[45]);
  RecordProperty("p50_ms", std::to_string(ms[25]));
}

TEST(Many, MixedFaultsAreEachAnsweredOnceAndNothingLeaks) {
  constexpr uint64_t seed = 4242;
  RecordProperty("seed", std::to_string(seed));
  auto measurer = open_fake(R"({"seed": 4242, "faults": [{"fault": "segv", "p": 0.04}, {"fault": "exit0", "p": 0.03},
      {"fault": "garbage", "p": 0.03}, {"fault": "partial_frame", "p": 0.03}, {"fault": "build_crash", "p": 0.03},
      {"fault": "wrong_one", "p": 0.04}, {"fault": "build_error", "p": 0.04}, {"fault": "launch_error", "p": 0.03}]})",
                            2, 2);
  ASSERT_TRUE(measurer);
  run_one(*measurer, fake_job(0));
  run_one(*measurer, fake_job(1));
  pid_t agent = agent_of(*measurer);
  size_t descriptors = descriptors_of(agent), own = descriptors_of(getpid());
  constexpr uint32_t jobs = 150;
  for (uint32_t i = 2; i < 2 + jobs; ++i) measurer->submit(fake_job(i));
  auto outcomes = collect(*measurer, jobs);
  std::map<MeasurementId, int> seen;
  std::map<TrialStatus, int> counts;
  std::vector<MeasurementId> ids;
  for (const Outcome& o : outcomes) ++seen[o.id], ++counts[o.status], ids.push_back(o.id);
  EXPECT_EQ(seen.size(), jobs);
  EXPECT_GT(counts[TrialStatus::ok], 80);
  EXPECT_GT(counts[TrialStatus::run_crash], 0);
  EXPECT_EQ(counts[TrialStatus::internal_error], 0);
  measurer->acknowledge(ids);
  EXPECT_TRUE(measurer->poll(300ms).empty());
  // Artifacts stay cached as descriptors; what does not belong to one is a leak.
  size_t artifacts = static_cast<size_t>(counts[TrialStatus::ok]) + jobs;
  EXPECT_LE(descriptors_of(agent), descriptors + artifacts + 2);
  EXPECT_LE(descriptors_of(getpid()), own + 2);
  int alive = 0;
  for (auto [pid, state] : children_of(agent)) {
    EXPECT_NE(state, 'Z') << "zombie " << pid;
    ++alive;
  }
  EXPECT_EQ(alive, 4) << "two execs, two builders";
}

TEST(Many, EqualSeedsGiveEqualTimesInAnyOrderAndOverProcesses) {
  auto times = [](bool backwards, int build_slots) {
    std::map<uint32_t, std::vector<float>> out;
    auto measurer = open_fake(R"({"seed": 9, "noise": 0.01, "faults": [{"fault": "segv", "p": 0.2}]})", 1, build_slots);
    if (!measurer) return out;
    constexpr uint32_t n = 12;
    for (uint32_t i = 1; i <= n; ++i) {
      Job job = fake_job(backwards ? n + 1 - i : i);
      job.run.keep_samples = true;
      measurer->submit(std::move(job));
    }
    for (const Outcome& o : collect(*measurer, n))
      out[o.id.trial] = o.ok() ? o.measurements[0].samples : std::vector<float>{-static_cast<float>(o.status)};
    return out;
  };
  auto once = times(false, 1);
  EXPECT_EQ(once.size(), 12u);
  EXPECT_EQ(once, times(true, 2));
}

TEST(Many, TheRetryPolicySettlesEveryTrialOfAFaultyRun) {
  auto measurer = open_fake(R"({"seed": 3, "faults": [{"fault": "segv", "p": 0.1}, {"fault": "garbage", "p": 0.1},
      {"fault": "wrong_one", "p": 0.1}, {"fault": "build_crash", "p": 0.1}]})",
                            2, 1);
  ASSERT_TRUE(measurer);
  RetryPolicy policy;
  std::map<uint32_t, Job> jobs;
  std::map<uint32_t, TrialStatus> settled;
  constexpr uint32_t n = 30;
  for (uint32_t i = 1; i <= n; ++i) {
    jobs[i] = fake_job(i);
    policy.dispatched();
    measurer->submit(jobs[i]);
  }
  auto end = SteadyClock::now() + 90s;
  while (settled.size() < n && SteadyClock::now() < end) {
    for (Outcome& o : measurer->poll(500ms)) {
      uint32_t trial = o.id.trial;
      Verdict v = policy.decide(jobs[trial], std::move(o));
      if (v.settled) {
        EXPECT_TRUE(settled.emplace(trial, v.outcome.status).second);
        continue;
      }
      jobs[trial] = v.retry;
      policy.dispatched();
      measurer->submit(v.retry);
    }
  }
  ASSERT_EQ(settled.size(), n);
  // The faults follow the candidate, so a retry meets them again: nothing of the kind "it works the second time" may
  // appear.
  std::map<TrialStatus, int> counts;
  for (auto [trial, status] : settled) ++counts[status];
  EXPECT_EQ(counts[TrialStatus::nondeterministic], 0);
  EXPECT_GT(counts[TrialStatus::ok], 0);
  EXPECT_GT(policy.retries(), 0u);
}

TEST(Many, ATunerThatDiesTakesItsAgentAndWorkersWithIt) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  pid_t agent = agent_of(*measurer);
  auto workers = children_of(agent);
  EXPECT_EQ(workers.size(), 2u);
  measurer.reset();  // the same end of the socket as a kill: nobody reads it any more
  EXPECT_TRUE(ended(agent));
  for (auto [pid, state] : workers) EXPECT_TRUE(ended(pid));
}

}  // namespace
}  // namespace tilewright::measure
