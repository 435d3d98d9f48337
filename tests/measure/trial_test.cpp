// Every way a trial can end, made to happen for real in the processes of an embedded session with a fake device.
#include <csignal>
#include <thread>

#include "measure/retry.h"
#include "tests/measure/harness.h"

namespace tilewright::measure {
namespace {

using enum TrialStatus;

TEST(Trial, AGoodCandidateIsBuiltCheckedAndTimed) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, "fake.time_us=50");
  Outcome o = run_one(*measurer, job);
  EXPECT_EQ(o.status, ok) << o.detail << o.log;
  EXPECT_EQ(o.id, job.id);
  EXPECT_EQ(o.device, "fake-0");
  ASSERT_EQ(o.measurements.size(), 1u);
  EXPECT_NEAR(o.median_ns(), 50'000, 1'000);
  EXPECT_GE(o.measurements[0].n, job.run.policy.min_samples);
  ASSERT_TRUE(o.check);
  EXPECT_EQ(o.check->sets, (std::vector<std::string>{"exact", "random"}));
  EXPECT_EQ(o.check->mismatches, 0u);
  EXPECT_EQ(o.builds.at(0).toolchain, "fake");
  bool reference = false;
  for (const std::string& line : measurer->take_events())
    reference |= line.find("\"reference.built\"") != std::string::npos;
  EXPECT_TRUE(reference);
}

struct FaultCase {
  const char* fault;
  TrialStatus status;
};
class Faults : public testing::TestWithParam<FaultCase> {};

TEST_P(Faults, EndAsTheTableSaysAndTheNextCandidateIsFine) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, std::string("fake.fault=") + GetParam().fault);
  // Only what hangs needs a short limit; everything else must not meet one on a slow machine.
  const std::string fault = GetParam().fault;
  job.build.memory_mib = 192;
  job.build.wall_ms = fault == "build_hang" ? 700 : 60'000;
  job.build.cpu_ms = fault == "build_spin" ? 300 : 60'000;
  job.run.load_ms = fault == "slow_load" ? 300 : 60'000;
  job.run.device_ms = fault == "hang" || fault == "hang_timing" || fault == "stop" ? 300 : 60'000;
  Outcome o = run_one(*measurer, job);
  EXPECT_EQ(to_string(o.status), std::string(to_string(GetParam().status))) << o.phase << ": " << o.detail;
  EXPECT_FALSE(o.phase.empty());
  EXPECT_EQ(run_one(*measurer, fake_job(2)).status, ok);
}

INSTANTIATE_TEST_SUITE_P(
    All, Faults,
    testing::Values(FaultCase{"replay_refused", replay_refused}, FaultCase{"lower_refused", lower_refused},
                    FaultCase{"build_error", build_error}, FaultCase{"build_internal", internal_error},
                    FaultCase{"build_crash", build_crash}, FaultCase{"build_abort", build_crash},
                    FaultCase{"build_exit", build_crash}, FaultCase{"build_hang", build_timeout},
                    FaultCase{"build_spin", build_timeout}, FaultCase{"build_memory", build_memory},
                    FaultCase{"load_error", load_error}, FaultCase{"slow_load", load_error},
                    FaultCase{"launch_error", launch_error}, FaultCase{"out_of_memory", out_of_memory},
                    FaultCase{"host_memory", host_memory}, FaultCase{"hang", run_timeout},
                    FaultCase{"hang_timing", run_timeout}, FaultCase{"stop", run_timeout}, FaultCase{"segv", run_crash},
                    FaultCase{"abort", run_crash}, FaultCase{"exit0", run_crash}, FaultCase{"sticky", run_crash},
                    FaultCase{"partial_frame", run_crash}, FaultCase{"internal", internal_error},
                    FaultCase{"device_lost", device_lost}, FaultCase{"wrong_all", wrong_result},
                    FaultCase{"wrong_one", wrong_result}, FaultCase{"wrong_later", nondeterministic},
                    FaultCase{"unwritten", wrong_result}, FaultCase{"red_zone", wrong_result},
                    FaultCase{"input_overwrite", wrong_result}, FaultCase{"garbage", worker_lost},
                    FaultCase{"oversized_frame", worker_lost}, FaultCase{"fork_bomb", ok},
                    FaultCase{"throttled", throttled}),
    [](const auto& one) { return std::string(one.param.fault); });

TEST(Trial, AResultBelowTheFloorIsImplausible) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, "fake.time_us=50");
  job.run.floor_ns = 100'000;
  EXPECT_EQ(run_one(*measurer, job).status, implausible);
}

TEST(Trial, WildSamplesAreNoisyAndSlowCandidatesAreCutShort) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  EXPECT_EQ(run_one(*measurer, fake_job(1, "fake.noise=1.5")).status, noisy);
  Job slow = fake_job(2, "fake.time_us=300");
  slow.run.incumbent_ns = 100'000;
  Outcome o = run_one(*measurer, slow);
  EXPECT_EQ(o.status, ok);
  EXPECT_TRUE(o.measurements.at(0).cut_short);
  EXPECT_LE(o.measurements.at(0).n, 3u);
  EXPECT_NEAR(o.measurements.at(0).incumbent_ratio, 3, 0.2);
}

TEST(Trial, UnknownDevicesPipelinesAndEmptyJobsAreRejected) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1);
  job.run.device = "GPU-0";
  Outcome o = run_one(*measurer, job);
  EXPECT_EQ(o.status, rejected);
  EXPECT_EQ(o.reject, RejectCode::unknown_device);
  job = fake_job(2);
  job.contenders.clear();
  EXPECT_EQ(run_one(*measurer, job).reject, RejectCode::bad_message);
  job = fake_job(3);
  job.build.pipeline = "fakee";
  o = run_one(*measurer, job);
  EXPECT_EQ(o.status, rejected);
  EXPECT_NE(o.detail.find("did you mean \"fake\"?"), std::string::npos) << o.detail;
  job = fake_job(4);
  job.contenders[0].trace.assign(300 << 10, 'x');
  EXPECT_EQ(run_one(*measurer, job).reject, RejectCode::too_large);
}

TEST(Trial, ADeviceThatDoesNotExistOrAWrongConfigurationIsReportedAtOpen) {
  MeasurerOptions options;
  options.binary = "/proc/self/exe";
  options.devices = {"fake"};
  options.fake = R"({"faults": [{"fault": "segfault"}]})";
  auto measurer = open_measurer(options);
  ASSERT_FALSE(measurer.has_value());
  EXPECT_NE(render_text(measurer.error().diagnostic()).find("no fault is named \"segfault\""), std::string::npos)
      << render_text(measurer.error().diagnostic());
  EXPECT_FALSE(open_measurer(options, "embeded").has_value());
}

TEST(Trial, WorkersKilledFromOutsideAreLostNotGuilty) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  ASSERT_EQ(run_one(*measurer, fake_job(1)).status, ok);
  for (const char* fault : {"hang", "build_hang"}) {
    Job job = fake_job(std::string(fault) == "hang" ? 2 : 3, std::string("fake.fault=") + fault);
    job.run.device_ms = job.build.wall_ms = 30'000;
    measurer->submit(job);
    // More than once, and later each time: who is killed while it starts has no job yet that could be lost.
    std::vector<Outcome> outcomes;
    for (auto patience = 300ms; outcomes.empty() && patience < 20s; patience *= 2) {
      std::this_thread::sleep_for(patience);
      for (auto [pid, state] : children_of(agent_of(*measurer))) kill(pid, SIGKILL);
      outcomes = measurer->poll(patience);
    }
    ASSERT_EQ(outcomes.size(), 1u);
    EXPECT_EQ(outcomes[0].status, worker_lost) << outcomes[0].detail;
  }
  // The other worker was killed, too: the agent may learn of it only when it hands it this job.
  TrialStatus status = run_one(*measurer, fake_job(4)).status;
  if (status == worker_lost) status = run_one(*measurer, fake_job(5)).status;
  EXPECT_EQ(status, ok);
}

TEST(Trial, AKilledAgentLosesItsJobsAndComesBack) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, "fake.fault=hang");
  job.run.device_ms = 30'000;
  measurer->submit(job);
  std::this_thread::sleep_for(300ms);
  auto workers = children_of(agent_of(*measurer));
  EXPECT_EQ(workers.size(), 2u);
  kill(agent_of(*measurer), SIGKILL);
  auto outcomes = collect(*measurer, 1);
  ASSERT_EQ(outcomes.size(), 1u);
  EXPECT_EQ(outcomes[0].status, agent_lost);
  EXPECT_EQ(run_one(*measurer, fake_job(2)).status, ok);
  for (auto [pid, state] : workers) EXPECT_TRUE(ended(pid)) << "a worker outlived its agent";
}

TEST(Trial, CancelledJobsEndOnceWhetherTheyWaitOrRun) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  std::vector<MeasurementId> ids;
  for (uint32_t i = 1; i <= 20; ++i) {
    Job job = fake_job(i, "fake.fault=hang");
    job.run.device_ms = 30'000;
    ids.push_back(job.id);
    measurer->submit(std::move(job));
  }
  std::this_thread::sleep_for(300ms);
  measurer->cancel(ids);
  for (const Outcome& o : collect(*measurer, 20)) EXPECT_EQ(o.status, cancelled);
  EXPECT_EQ(measurer->in_flight(), 0u);
  EXPECT_EQ(run_one(*measurer, fake_job(21)).status, ok);
}

TEST(Trial, AWrongReferenceBlamesNobodysCandidate) {
  // Faults of the configuration strike candidates by chance, but never the unscheduled program.
  auto measurer = open_fake(R"({"faults": [{"fault": "segv", "p": 1}]})");
  ASSERT_TRUE(measurer);
  EXPECT_EQ(run_one(*measurer, fake_job(1)).status, run_crash);
}

TEST(Trial, EqualTracesAreBuiltOnce) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1);
  EXPECT_FALSE(run_one(*measurer, job).builds.at(0).cached);
  job.id.attempt = 1;
  job.build.return_artifact = true;
  Outcome again = run_one(*measurer, job);
  EXPECT_TRUE(again.builds.at(0).cached);
}

TEST(Trial, ArtifactsAreReturnedWhenAskedFor) {
  auto measurer = open_fake();
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, "fake.padding=" + std::string(150'000, 'x'));
  job.build.return_artifact = true;
  job.build_only = true;
  Outcome o = run_one(*measurer, job);
  ASSERT_EQ(o.status, ok) << o.detail;
  auto bytes = measurer->artifact(o.builds.at(0).artifact);
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(*bytes, job.contenders[0].trace);
  EXPECT_FALSE(measurer->artifact("0123").has_value());
}

TEST(Trial, AShootOutComparesPairedTimesOverFreshProcesses) {
  auto measurer = open_fake(R"({"noise": 0.002})");
  ASSERT_TRUE(measurer);
  Job job = fake_job(1, "fake.time_us=100");
  job.contenders.push_back({trace_with("fake.time_us=97", 2), {}});
  job.contenders.push_back({trace_with("fake.time_us=400", 3), {}});
  job.run.stage = Stage::final;
  job.run.policy = MeasurePolicy::final();
  Outcome o = run_one(*measurer, job);
  ASSERT_EQ(o.status, ok) << o.detail;
  ASSERT_EQ(o.measurements.size(), 3u);
  ASSERT_EQ(o.paired.size(), 2u);
  EXPECT_NEAR(o.paired[0].ratio, 0.97, 0.005);
  EXPECT_LT(o.paired[0].hi, 1);
  EXPECT_LT(o.paired[0].sign_p, 0.01);
  EXPECT_EQ(o.paired[0].rounds, 30u);
  EXPECT_TRUE(o.paired[1].left_early);
  EXPECT_EQ(o.exec, "fake-0#3") << "one process for the reference and the first part, then fresh ones";
}

}  // namespace
}  // namespace tilewright::measure
