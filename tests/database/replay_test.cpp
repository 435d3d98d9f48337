#include "database/replay.h"

#include <gtest/gtest.h>

#include "database/journal.h"
#include "tests/database/random_run.h"
#include "tests/database/scratch.h"

namespace tilewright {
namespace {

RunState replay(const std::vector<Event>& events) {
  RunState run;
  for (const Event& event : events) EXPECT_OK(run.apply(event));
  return run;
}

TEST(Replay, AddsUpTrialsByTaskAndStatus) {
  RandomRun random(5);
  for (int i = 0; i < 300; ++i) random.add_trial();
  random.dispatch_only();
  RunState run = replay(random.events());
  EXPECT_EQ(run.start->run, "run-5");
  EXPECT_EQ(run.last_seq, static_cast<int64_t>(random.events().size()));
  ASSERT_EQ(run.tasks.size(), 3u);
  EXPECT_EQ(run.settled(), 300);
  EXPECT_EQ(run.in_flight(), std::vector<int64_t>{300});
  int64_t counted = 0, attempts = 0, results = 0;
  for (const auto& [number, task] : run.tasks)
    for (const auto& [status, count] : task.settled_by_status) counted += count;
  EXPECT_EQ(counted, 300);
  for (const auto& [number, trial] : run.trials) attempts += trial.next_attempt;
  for (const Event& event : random.events()) results += std::holds_alternative<JobResult>(event.body);
  EXPECT_EQ(attempts, results + 1);
}

TEST(Replay, BestIsTheLeastVerifiedTimeOfTheHighestStage) {
  RandomRun random(6);
  for (int i = 0; i < 200; ++i) random.add_trial();
  RunState run = replay(random.events());
  for (const auto& [number, task] : run.tasks) {
    ASSERT_TRUE(task.best_trial);
    const JobResult& best = *run.trials.at(*task.best_trial).settled;
    EXPECT_TRUE(best.verified && best.status == TrialStatus::ok);
    for (int64_t other : task.trials) {
      const auto& settled = run.trials.at(other).settled;
      if (!settled || settled->status != TrialStatus::ok || !settled->verified) continue;
      EXPECT_TRUE(best.stage > settled->stage ||
                  (best.stage == settled->stage && best.median_ns <= settled->median_ns));
    }
  }
}

TEST(Replay, QuarantineWithdrawsTheVerdictsOfItsDevice) {
  RandomRun random(7);
  for (int i = 0; i < 100; ++i) random.add_trial();
  RunState before = replay(random.events());
  random.quarantine();
  const auto& q = std::get<DeviceQuarantined>(random.events().back().body);
  RunState after = replay(random.events());
  int64_t withdrawn = 0;
  for (const auto& [number, trial] : before.trials) {
    bool bad = trial.settled->device == q.device && trial.settled->finished_us >= q.since_us;
    withdrawn += bad;
    EXPECT_EQ(after.trials.at(number).settled.has_value(), !bad);
  }
  EXPECT_GT(withdrawn, 0);
  EXPECT_EQ(after.settled(), 100 - withdrawn);
  EXPECT_EQ(after.in_flight().size(), 0u);
}

TEST(Replay, ContradictionsAreRefused) {
  RandomRun random(8);
  random.add_trial();
  RunState base = replay(random.events());
  auto refused = [&](EventBody body) {
    RunState run = base;
    Status status = run.apply({99, 1, std::move(body)});
    return status ? std::string("applied") : std::string(status.error().code());
  };
  const JobResult& settled = *base.trials.at(0).settled;
  JobResult unknown = settled;
  unknown.trial = 77;
  JobDispatched reused;
  reused.trial = 0;
  reused.task = settled.task;
  reused.trace_key = settled.trace_key;
  RunResumed resumed;
  resumed.incarnation = 1;
  EXPECT_EQ(refused(settled), "journal-inconsistent");
  EXPECT_EQ(refused(unknown), "journal-inconsistent");
  EXPECT_EQ(refused(reused), "journal-inconsistent");
  EXPECT_EQ(refused(resumed), "journal-inconsistent");
  EXPECT_EQ(refused(RunStart{}), "journal-inconsistent");
  EXPECT_EQ(refused(TaskDone{55, "done"}), "journal-inconsistent");
  resumed.incarnation = 2;
  EXPECT_EQ(refused(resumed), "applied");
}

TEST(Replay, OfAFileEqualsReplayOfTheEvents) {
  Scratch dir;
  RandomRun random(9);
  for (int i = 0; i < 50; ++i) random.add_trial();
  {
    auto journal = JournalWriter::open(dir.path());
    ASSERT_OK(journal);
    for (const Event& event : random.events()) ASSERT_OK((*journal)->append(event));
  }
  auto run = replay_run(dir.path());
  ASSERT_OK(run);
  RunState direct = replay(random.events());
  ASSERT_EQ(run->trials.size(), direct.trials.size());
  for (const auto& [number, trial] : direct.trials) {
    const TrialState& other = run->trials.at(number);
    EXPECT_EQ(other.trace, trial.trace);
    EXPECT_EQ(to_line({1, 0, *other.settled}), to_line({1, 0, *trial.settled}));
  }
}

}  // namespace
}  // namespace tilewright
