// The tuner on the fake device in real worker processes: crashes are crashes. Same seed, same candidates; an agent that
// is killed in the middle costs nothing.
#include <csignal>

#include "measure/devices/fake.h"
#include "measure/embedded.h"
#include "search/baseline.h"
#include "tests/search/tuner_harness.h"

namespace tilewright {
namespace {

std::unique_ptr<measure::Measurer> open_fake(const std::string& config) {
  measure::MeasurerOptions options;
  options.binary = "/proc/self/exe";
  options.devices = {"fake:2"};
  options.build_slots = 1;
  options.fake = config;
  auto measurer = measure::open_measurer(options);
  if (!measurer) {
    ADD_FAILURE() << render_text(measurer.error().diagnostic());
    return nullptr;
  }
  return std::move(*measurer);
}

/// Settings of a fake device under which the untuned program is sound.
std::string faults(const std::string& list) {
  const std::vector<Schedule> baselines = baseline_schedules(small_gemm());
  for (int seed = 1; seed < 50; ++seed) {
    std::string config = fmt::format(R"({{"seed": {}, "noise": 0.001, "faults": [{}]}})", seed, list);
    auto parsed = measure::FakeConfig::parse(config);
    TW_CHECK(parsed, "the settings of the fake device are wrong");
    auto sound = [&](const Schedule& s) { return measure::fake_fault(*parsed, {}, trace_to_json(s.trace())).empty(); };
    if (std::all_of(baselines.begin(), baselines.end(), sound)) return config;
  }
  TW_CHECK(false, "no seed leaves the untuned program alone");
  return {};
}

TEST(FakeDevice, FaultsOfEveryKindAreCountedAndTheRunGoesOn) {
  const std::string config =
      faults(R"({"fault": "build_error", "p": 0.08}, {"fault": "build_crash", "p": 0.06}, {"fault": "segv", "p": 0.06},
                {"fault": "wrong_one", "p": 0.08}, {"fault": "launch_error", "p": 0.08}, {"fault": "exit0", "p": 0.05},
                {"fault": "internal", "p": 0.05}, {"fault": "load_error", "p": 0.05})");
  TunerOptions options = small_options();
  options.trials = 60;
  std::optional<TunerRun> first;
  for (int threads : {1, 2}) {
    options.threads = threads;
    auto measurer = open_fake(config);
    ASSERT_TRUE(measurer);
    TunerRun run = run_tuner({small_gemm()}, options, *measurer);
    ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
    const TaskReport& task = run.report.tasks[0];
    EXPECT_EQ(task.trials, 60);
    int64_t failed = 0;
    for (const auto& [status, n] : task.failed) failed += n;
    EXPECT_EQ(task.ok + failed, 60);
    EXPECT_GE(task.failed.size(), 3u);
    EXPECT_FALSE(task.best_trace.empty());
    if (!first) {
      first = std::move(run);
      continue;
    }
    EXPECT_EQ(run.proposed, first->proposed);
    EXPECT_EQ(task.failed, first->report.tasks[0].failed);
  }
}

TEST(FakeDevice, AnAgentThatIsKilledCostsNothing) {
  TunerOptions options = small_options();
  std::optional<TunerRun> first;
  for (bool kill_it : {false, true}) {
    auto measurer = open_fake(R"({"noise": 0})");
    ASSERT_TRUE(measurer);
    struct Killer : Observer {
      explicit Killer(measure::Measurer& m) : embedded(dynamic_cast<measure::EmbeddedMeasurer&>(m)) {}
      void on_event(const Event& e) override {
        events.push_back(e);
        if (std::get_if<JobDispatched>(&e.body) && ++dispatched == 12) kill(embedded.agent_pid(), SIGKILL);
      }
      measure::EmbeddedMeasurer& embedded;
      std::vector<Event> events;
      int dispatched = 0;
    } killer(*measurer);
    TunerRun run = run_tuner({small_gemm()}, options, *measurer, {}, {}, kill_it ? &killer : nullptr);
    ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
    EXPECT_EQ(run.report.tasks[0].ok, options.trials);
    if (!first) {
      first = std::move(run);
      continue;
    }
    int lost = 0;
    for (const Event& e : killer.events)
      if (auto* r = std::get_if<JobResult>(&e.body)) lost += r->status == TrialStatus::agent_lost;
    EXPECT_GE(killer.dispatched, 12);
    EXPECT_EQ(run.proposed, first->proposed) << lost << " attempts were lost with the agent";
    EXPECT_EQ(run.report.tasks[0].best_trace, first->report.tasks[0].best_trace);
  }
}

}  // namespace
}  // namespace tilewright
