// The tuner's promises: the candidate list is a function of seed and measurements (threads, order of arrival, crashes
// change nothing), every ending of a trial is counted and the run goes on, limits and stop() leave the best.
#include <algorithm>
#include <numeric>
#include <thread>

#include "costmodel/features/schema.h"
#include "costmodel/model.h"
#include "search/baseline.h"
#include "support/rng.h"
#include "tests/search/scripted_measurer.h"
#include "tests/search/tuner_harness.h"

namespace tilewright {
namespace {

using measure::Job;
using measure::Outcome;

/// Untuned programs of small_gemm: on all cores and on one.
constexpr int kBaselines = 2;

bool is_baseline(const Job& job) {
  static const std::vector<Schedule> baselines = baseline_schedules(small_gemm());
  return job.contenders.size() == 1 && std::any_of(baselines.begin(), baselines.end(), [&](const Schedule& s) {
           return job.contenders[0].trace == trace_to_json(s.trace());
         });
}

/// The same third of all candidates, whatever the run.
bool chosen(const Job& job) {
  return job.contenders.size() == 1 && !is_baseline(job) &&
         Rng::keyed(11, hash_text(job.contenders[0].trace)).chance(0.35);
}

// ---- determinism --------------------------------------------------------------------------------------------------

struct Way {
  const char* strategy;
  int lag;
};
class Deterministic : public ::testing::TestWithParam<Way> {};

TEST_P(Deterministic, ForAnyThreadsAndAnyOrderOfArrival) {
  TunerOptions options = small_options();
  options.strategy = GetParam().strategy;
  options.lag = GetParam().lag;
  std::vector<Task> tasks{small_gemm(), small_gemm(8, 8, 8)};
  options.trials = 24;
  std::optional<TunerRun> first;
  for (int threads : {1, 2, 8}) {
    options.threads = threads;
    ScriptedMeasurer measurer;
    measurer.newest_first = threads == 2;
    measurer.per_poll = threads == 8 ? 1 : 3;
    measurer.slots = threads == 8 ? 40 : 3;
    measurer.script = [](const Job& job, Outcome& o) {
      if (chosen(job)) o.status = TrialStatus::build_error;
    };
    TunerRun run = run_tuner(tasks, options, measurer);
    ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
    EXPECT_EQ(run.report.tasks[0].trials, 24);
    EXPECT_EQ(run.report.tasks[1].trials, 24);
    std::vector<std::string> sorted = run.proposed;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end()) << "a candidate is proposed twice";
    if (!first) {
      first = std::move(run);
      continue;
    }
    EXPECT_EQ(run.proposed, first->proposed) << threads << " threads";
    for (size_t i = 0; i < tasks.size(); ++i)
      EXPECT_EQ(run.report.tasks[i].best_trace, first->report.tasks[i].best_trace);
  }
}

TEST_P(Deterministic, ASeedMakesAnotherRun) {
  TunerOptions options = small_options();
  options.strategy = GetParam().strategy;
  options.lag = GetParam().lag;
  options.trials = 12;
  ScriptedMeasurer measurer;
  TunerRun one = run_tuner({small_gemm()}, options, measurer);
  options.seed = 2;
  TunerRun two = run_tuner({small_gemm()}, options, measurer);
  EXPECT_NE(one.proposed, two.proposed);
}

INSTANTIATE_TEST_SUITE_P(Strategies, Deterministic,
                         ::testing::Values(Way{"evolutionary", 0}, Way{"evolutionary", 1}, Way{"replay_trace", 0},
                                           Way{"replay_trace", 1}),
                         [](const auto& p) {
                           return std::string(p.param.strategy) + "_lag" + std::to_string(p.param.lag);
                         });

TEST(Lag, ARoundSeesWhatItMaySeeAndNoMore) {
  // The first rounds are blind, one more with a lag; what is learned later does change what is asked.
  for (int lag : {0, 1}) {
    TunerOptions options = small_options();
    options.lag = lag;
    options.trials = 60;  // the model starts at 32
    auto with_times = [&](double base) {
      ScriptedMeasurer measurer;
      measurer.script = [base](const Job&, Outcome& o) {
        // Turns the order of the candidates round.
        if (base > 0 && !o.measurements.empty()) o.measurements[0].median = base / o.measurements[0].median;
      };
      return run_tuner({small_gemm()}, options, measurer).proposed;
    };
    std::vector<std::string> a = with_times(0), b = with_times(1e10);
    const size_t same = 1 + static_cast<size_t>(options.first_batch * (1 + lag));  // baseline, then blind rounds
    ASSERT_GT(a.size(), same);
    EXPECT_TRUE(std::equal(a.begin(), a.begin() + static_cast<ptrdiff_t>(same), b.begin())) << "lag " << lag;
    EXPECT_NE(a, b) << "lag " << lag;
  }
}

TEST(Lag, TheNextRoundIsAskedForWhileOneIsMeasured) {
  for (int lag : {0, 1}) {
    TunerOptions options = small_options();
    options.lag = lag;
    ScriptedMeasurer measurer;
    measurer.slow = true;
    TunerRun run = run_tuner({small_gemm()}, options, measurer);
    int64_t open = 0, most_open = 0, rounds_begun_while_open = 0;
    for (const Event& e : run.events) {
      if (auto* d = std::get_if<JobDispatched>(&e.body); d && d->stage != Stage::final)
        most_open = std::max(most_open, ++open);
      if (auto* r = std::get_if<JobResult>(&e.body); r && r->settled) --open;
      if (std::get_if<RoundStart>(&e.body)) rounds_begun_while_open += open > 0;
    }
    EXPECT_EQ(open, 0);
    if (lag == 0)
      EXPECT_EQ(rounds_begun_while_open, 0);
    else
      EXPECT_GT(rounds_begun_while_open, 0);
  }
}

TEST(Tuner, TheTimeOfTheShootOutIsTheOneThatCounts) {
  ScratchFolder folder;
  const std::string directory = folder / "run";
  TunerOptions options = small_options();
  options.trials = 12;
  int64_t finals = 0;
  for (int start = 0; start < 3; ++start, options.trials += 6) {
    ScriptedMeasurer measurer;
    // Every start measures other times, and the comparison at its end others again.
    measurer.script = [start](const Job& job, Outcome& o) {
      for (auto& m : o.measurements) {
        m.median *= 1 + 0.01 * start + (job.run.stage == Stage::final ? 0.1 : 0);
        m.ci_lo = m.median * 0.99, m.ci_hi = m.median * 1.01;
      }
    };
    TunerRun run = run_with_journal(directory, {small_gemm()}, options, measurer);
    ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
    auto state = replay_run(directory);
    ASSERT_TRUE(state) << render_text(state.error().diagnostic());  // no attempt is used twice
    const TaskReport& report = run.report.tasks.at(0);
    const JobResult* best = state->trials.at(report.best_trial).counting();
    ASSERT_TRUE(best);
    EXPECT_EQ(best->stage, Stage::final);
    EXPECT_EQ(best->median_ns, report.best_ns);
    EXPECT_EQ(best->ci_lo_ns, report.best_lo_ns);
    bool baseline = false;
    for (const auto& [number, trial] : state->trials)
      baseline |= trial.origin == "baseline" && trial.counting()->median_ns == report.baseline_ns;
    EXPECT_TRUE(baseline);
    EXPECT_EQ(state->settled(), options.trials + 2) << "a shoot-out settles nothing";
    int64_t now = 0;
    for (const auto& [number, trial] : state->trials)
      for (const JobResult& r : trial.results) now += r.stage == Stage::final && r.verified;
    EXPECT_GT(now, finals);
    finals = now;
  }
}

TEST(Lag, ThePresetOfTheReferenceHasNone) {
  TunerOptions options = small_options();
  options.preset = "metaschedule";
  options.trials = 70;
  ScriptedMeasurer measurer;
  TunerRun run = run_tuner({small_gemm(32, 32, 32)}, options, measurer);
  ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
  std::vector<RoundStart> rounds = run.all<RoundStart>();
  ASSERT_EQ(rounds.size(), 2u);
  EXPECT_EQ(rounds[0].candidates, 64);
  EXPECT_EQ(rounds[1].candidates, 6);
  int64_t settled = 0;
  for (const Event& e : run.events) {
    if (auto* r = std::get_if<JobResult>(&e.body)) settled += r->settled;
    if (auto* r = std::get_if<RoundStart>(&e.body); r && r->round == 1) break;
  }
  EXPECT_EQ(settled, 64 + kBaselines);
}

// ---- resume -------------------------------------------------------------------------------------------------------

class Resume : public ::testing::TestWithParam<const char*> {};

TEST_P(Resume, AfterACutAnywhereTheSameCandidatesAreProposed) {
  const bool cheap = std::string(GetParam()) == "replay_trace";
  TunerOptions options = small_options();
  options.strategy = GetParam();
  options.trials = cheap ? 14 : 24;
  std::vector<Task> tasks{small_gemm(), small_gemm(8, 8, 8)};
  auto script = [](const Job& job, Outcome& o) {
    if (chosen(job)) o.status = TrialStatus::run_crash;
  };
  ScratchFolder scratch;
  ScriptedMeasurer undisturbed;
  undisturbed.script = script;
  TunerRun whole = run_with_journal(scratch / "whole", tasks, options, undisturbed);
  ASSERT_FALSE(whole.refused);
  auto undisturbed_state = replay_run(scratch / "whole");
  ASSERT_TRUE(undisturbed_state);
  const std::string journal = read_text(scratch / "whole/events.jsonl");
  std::vector<size_t> ends;  // of lines
  for (size_t i = 0; i < journal.size(); ++i)
    if (journal[i] == '\n') ends.push_back(i + 1);
  ASSERT_GT(ends.size(), 30u);
  const size_t step = cheap ? 1 : ends.size() / 6;
  for (size_t i = 0; i < ends.size(); i += step) {
    // Every other cut tears the line after it.
    size_t torn = i % 2 && i + 1 < ends.size() ? (ends[i + 1] - ends[i]) / 2 : 0;
    const std::string folder = scratch / ("cut" + std::to_string(i));
    write_text(folder + "/events.jsonl", journal.substr(0, ends[i] + torn));
    auto before = replay_run(folder);
    ASSERT_TRUE(before) << render_text(before.error().diagnostic());
    ScriptedMeasurer measurer;
    measurer.script = script;
    measurer.newest_first = i % 3 == 0;
    TunerRun resumed = run_with_journal(folder, tasks, options, measurer);
    ASSERT_FALSE(resumed.refused);
    ASSERT_EQ(resumed.proposed, whole.proposed) << "cut after line " << i + 1;
    EXPECT_EQ(resumed.report.reused, before->settled());
    for (size_t t = 0; t < tasks.size(); ++t) {
      EXPECT_EQ(resumed.report.tasks[t].best_trace, whole.report.tasks[t].best_trace);
      EXPECT_EQ(resumed.report.tasks[t].failed, whole.report.tasks[t].failed);
      EXPECT_EQ(resumed.report.tasks[t].trials, whole.report.tasks[t].trials);
    }
    // The journal of both starts together is one consistent run, and no attempt was used twice.
    auto after = replay_run(folder);
    ASSERT_TRUE(after) << "cut after line " << i + 1 << "\n" << render_text(after.error().diagnostic());
    EXPECT_EQ(after->settled(), static_cast<int64_t>(whole.proposed.size()));
    // What was told before the cut is not told again.
    EXPECT_EQ(after->rounds.size(), undisturbed_state->rounds.size());
    EXPECT_EQ(after->refused.size(), undisturbed_state->refused.size());
    EXPECT_EQ(after->bests.size(), undisturbed_state->bests.size());
    EXPECT_EQ(after->fits.size(), undisturbed_state->fits.size());
    std::filesystem::remove_all(folder);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Resume, ::testing::Values("replay_trace", "evolutionary"),
                         [](const auto& p) { return std::string(p.param); });

TEST(ResumedRun, MoreTrialsGoOnWhereTheRunEnded) {
  TunerOptions options = small_options();
  ScratchFolder scratch;
  ScriptedMeasurer measurer;
  options.trials = 36;
  TunerRun whole = run_with_journal(scratch / "whole", {small_gemm()}, options, measurer);
  options.trials = 18;
  TunerRun half = run_with_journal(scratch / "half", {small_gemm()}, options, measurer);
  options.trials = 36;
  TunerRun rest = run_with_journal(scratch / "half", {small_gemm()}, options, measurer);
  EXPECT_EQ(rest.proposed, whole.proposed);
  EXPECT_EQ(rest.report.reused, 18 + kBaselines);
  EXPECT_EQ(rest.report.measured, 18);
}

// ---- every ending of a trial --------------------------------------------------------------------------------------

/// Keeps what it is told; scores are all equal.
struct RecordingModel : CostModel {
  static std::vector<Sample>& samples() {
    static std::vector<Sample> all;
    return all;
  }
  Status update(std::span<const Sample> s) override {
    samples().insert(samples().end(), s.begin(), s.end());
    return {};
  }
  void predict(const FeatureBlock& block, Scores& scores) const override { scores.resize(block.candidates()); }
  bool trained() const override { return false; }
  Hash64 digest() const override { return samples().size(); }
  Result<std::string> save() const override { return refuse(model_not_trained, "a test"); }
  Status load(std::string_view) override { return {}; }
  Status resume(std::span<const Sample>, std::string_view) override { return {}; }
};
const Register<CostModelFactory> recording{
    "test-recording", "keeps its samples", {[](const ModelOptions&) -> Result<std::unique_ptr<CostModel>> {
      return std::unique_ptr<CostModel>(new RecordingModel);
    }}};

class Endings : public ::testing::TestWithParam<TrialStatusInfo> {};

TEST_P(Endings, AreCountedTheRunGoesOnAndTheModelSeesWhatTheTableSays) {
  const TrialStatusInfo& status = GetParam();
  TunerOptions options = small_options();
  options.cost_model = "test-recording";
  RecordingModel::samples().clear();
  ScriptedMeasurer measurer;
  int64_t struck = 0;
  const bool cancelled = status.status == TrialStatus::cancelled;
  measurer.script = [&](const Job& job, Outcome& o) {
    if (!chosen(job) || (cancelled && job.id.attempt > 0)) return;  // cancelled says nothing: it is planned again
    struck += job.id.attempt == 0;
    o.status = status.status;
    o.detail = "scripted";
  };
  TunerRun run = run_tuner({small_gemm()}, options, measurer);
  ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
  const TaskReport& task = run.report.tasks[0];
  EXPECT_EQ(task.trials, options.trials);
  EXPECT_EQ(run.report.stop_reason, "trials");
  ASSERT_GT(struck, 3);
  const bool ok = status.status == TrialStatus::ok;
  std::map<std::string, int64_t> failed;
  if (!ok && !cancelled) failed[status.name] = struck;
  EXPECT_EQ(task.failed, failed);
  EXPECT_EQ(task.ok, options.trials - (ok || cancelled ? 0 : struck));
  EXPECT_FALSE(task.best_trace.empty());
  const auto& samples = RecordingModel::samples();
  auto with = [&](Label label) {
    return std::count_if(samples.begin(), samples.end(), [&](const Sample& s) { return s.label == label; });
  };
  EXPECT_EQ(with(Label::measured), task.ok);
  EXPECT_EQ(with(Label::invalid), status.label == ModelLabel::invalid ? struck : 0);
  EXPECT_EQ(with(Label::lower_bound), 0);
  // Exactly one settled result for each trial, and no more attempts than the policy has.
  std::map<int64_t, int> settled, attempts;
  for (const JobResult& r : run.all<JobResult>()) settled[r.trial] += r.settled, ++attempts[r.trial];
  EXPECT_EQ(settled.size(), static_cast<size_t>(options.trials + kBaselines));
  for (const auto& [trial, n] : settled) EXPECT_EQ(n, 1) << trial;
  for (const auto& [trial, n] : attempts) EXPECT_LE(n, 3) << trial;
}

INSTANTIATE_TEST_SUITE_P(All, Endings, ::testing::ValuesIn(trial_statuses.begin() + 1, trial_statuses.end()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(Ending, ACutTimeIsALowerBound) {
  TunerOptions options = small_options();
  options.cost_model = "test-recording";
  RecordingModel::samples().clear();
  ScriptedMeasurer measurer;
  int64_t cut = 0;
  measurer.script = [&](const Job& job, Outcome& o) {
    if (chosen(job)) o.measurements[0].cut_short = true, ++cut;
  };
  TunerRun run = run_tuner({small_gemm()}, options, measurer);
  const auto& samples = RecordingModel::samples();
  EXPECT_EQ(
      std::count_if(samples.begin(), samples.end(), [](const Sample& s) { return s.label == Label::lower_bound; }),
      cut);
  EXPECT_EQ(run.report.tasks[0].ok, options.trials);
}

TEST(Baseline, ABaselineThatFailsEndsTheRunAtOnce) {
  ScriptedMeasurer measurer;
  measurer.script = [](const Job&, Outcome& o) { o.status = TrialStatus::wrong_result; };
  TunerRun run = run_tuner({small_gemm()}, small_options(), measurer);
  ASSERT_TRUE(run.refused);
  EXPECT_EQ(run.refused->code(), "baseline-fails");
  for (const Job& job : measurer.seen) EXPECT_TRUE(is_baseline(job));
}

TEST(Baseline, ABaselineThatTheMachineFailsDoesNot) {
  ScriptedMeasurer measurer;
  measurer.script = [](const Job& job, Outcome& o) {
    if (is_baseline(job)) o.status = TrialStatus::noisy;
  };
  TunerRun run = run_tuner({small_gemm()}, small_options(), measurer);
  ASSERT_FALSE(run.refused);
  EXPECT_EQ(run.report.tasks[0].ok, small_options().trials);
  std::vector<Warning> warnings = run.all<Warning>();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].code, "baseline-not-timed");
}

TEST(Baseline, OfAllCoresAndOneTheFasterCounts) {
  const std::vector<Schedule> untuned = baseline_schedules(small_gemm());
  ASSERT_EQ(untuned.size(), 2u);
  const std::string serial = trace_to_json(untuned[1].trace());
  ScriptedMeasurer measurer;
  measurer.script = [&](const Job& job, Outcome& o) {
    for (size_t i = 0; i < job.contenders.size(); ++i)
      if (job.contenders[i].trace == serial) o.measurements[i].median = 1;
  };
  TunerRun run = run_tuner({small_gemm()}, small_options(), measurer);
  ASSERT_FALSE(run.refused);
  const TaskReport& report = run.report.tasks[0];
  EXPECT_EQ(report.baseline_ns, 1);
  EXPECT_EQ(report.best_trace, serial);
  EXPECT_EQ(report.verdict, "the untuned program is the fastest");
}

TEST(Baseline, NeverWinsUnlessItWasVerified) {
  ScriptedMeasurer measurer;
  measurer.keep_times = true;
  measurer.script = [](const Job& job, Outcome& o) {
    if (is_baseline(job)) o.status = TrialStatus::noisy;
    if (job.run.stage == Stage::final) o.measurements.back().median = 1;  // the untuned program
  };
  TunerRun run = run_tuner({small_gemm()}, small_options(), measurer);
  ASSERT_FALSE(run.refused);
  const TaskReport& report = run.report.tasks[0];
  EXPECT_EQ(report.baseline_ns, 1);
  EXPECT_GT(report.best_ns.value_or(0), 1);
  for (const Schedule& s : baseline_schedules(small_gemm())) EXPECT_NE(report.best_trace, trace_to_json(s.trace()));
}

TEST(Baseline, WinsWithoutAShootOutToo) {
  ScriptedMeasurer measurer;
  measurer.script = [](const Job& job, Outcome& o) {
    if (job.run.stage == Stage::final) o.status = TrialStatus::noisy;
    if (is_baseline(job)) o.measurements[0].median = 1;
  };
  TunerRun run = run_tuner({small_gemm()}, small_options(), measurer);
  ASSERT_FALSE(run.refused);
  EXPECT_EQ(run.report.tasks[0].verdict, "the untuned program is the fastest");
  EXPECT_EQ(run.report.tasks[0].best_ns, 1);
}

TEST(Baseline, ATaskWithoutOneCostsOnlyItself) {
  ScriptedMeasurer measurer;
  measurer.script = [](const Job& job, Outcome& o) {
    if (job.id.task == 0) o.status = TrialStatus::wrong_result;
  };
  TunerRun run = run_tuner({small_gemm(), small_gemm(8, 8, 8)}, small_options(), measurer);
  ASSERT_FALSE(run.refused);
  EXPECT_EQ(run.report.tasks[0].verdict, "not tuned: baseline-fails");
  EXPECT_EQ(run.report.tasks[0].trials, 0);
  EXPECT_EQ(run.report.tasks[1].ok, small_options().trials);
}

// ---- what ends a task or a run ------------------------------------------------------------------------------------

TEST(Breaker, TwentyFailuresInARowStopTheTaskAndTheOthersGoOn) {
  TunerOptions options = small_options();
  options.first_batch = 30;
  options.trials = 60;
  ScriptedMeasurer measurer;
  Task other = small_gemm(16, 16, 16);
  measurer.script = [](const Job& job, Outcome& o) {
    if (job.id.task == 0 && !is_baseline(job)) o.status = TrialStatus::launch_error;
  };
  TunerRun run = run_tuner({small_gemm(), other}, options, measurer);
  ASSERT_FALSE(run.refused);
  const TaskReport& broken = run.report.tasks[0];
  EXPECT_EQ(broken.stop_reason, "20 failures in a row: launch_error 20");
  EXPECT_EQ(broken.trials, 30);  // the round in which it tripped; the next one was dropped
  EXPECT_EQ(broken.verdict, "no valid candidate: the untuned program is kept");
  EXPECT_GE(broken.best_trial, 0);
  EXPECT_EQ(run.report.tasks[1].ok, 60);
  EXPECT_EQ(run.report.tasks[1].stop_reason, "trials");
}

TEST(Breaker, ThreeRoundsWithoutAValidCandidateAreADeadEnd) {
  TunerOptions options = small_options();
  options.first_batch = 4;
  ScriptedMeasurer measurer;
  measurer.script = [](const Job& job, Outcome& o) {
    if (!is_baseline(job)) o.status = TrialStatus::wrong_result;
  };
  TunerRun run = run_tuner({small_gemm()}, options, measurer);
  EXPECT_EQ(run.report.tasks[0].stop_reason, "3 rounds without a valid candidate");
  EXPECT_EQ(run.report.stop_reason, "3 rounds without a valid candidate");
  EXPECT_EQ(run.report.tasks[0].trials, 12);
}

TEST(Breaker, AMachineThatFailsPausesTheRunAndItGoesOnWhenTheMachineIsWell) {
  TunerOptions options = small_options();
  options.trials = 60;
  options.first_batch = 30;
  ScratchFolder scratch;
  bool ill = true;
  ScriptedMeasurer measurer;
  measurer.script = [&](const Job& job, Outcome& o) {
    if (ill && !is_baseline(job)) o.status = TrialStatus::device_lost;
  };
  TunerRun paused = run_with_journal(scratch / "run", {small_gemm()}, options, measurer);
  ASSERT_EQ(paused.all<CampaignPaused>().size(), 1u);
  EXPECT_EQ(paused.report.stop_reason, "paused: 20 failures in a row: device_lost 20");
  ill = false;
  TunerRun resumed = run_with_journal(scratch / "run", {small_gemm()}, options, measurer);
  EXPECT_TRUE(resumed.all<CampaignPaused>().empty());
  EXPECT_EQ(resumed.report.stop_reason, "trials");
  EXPECT_EQ(resumed.report.tasks[0].trials, 60);
  EXPECT_EQ(resumed.report.tasks[0].ok, 30);
}

TEST(Limits, TheBudgetCutsARoundAndLeavesTheBest) {
  TunerOptions options = small_options();
  options.strategy = "replay_trace";
  options.budget_s = 3;
  options.trials = 1000;
  options.first_batch = 100;
  ScriptedMeasurer measurer;
  measurer.slots = measurer.per_poll = 1;
  measurer.script = [&](const Job&, Outcome&) {
    if (measurer.seen.size() == 8) std::this_thread::sleep_for(std::chrono::milliseconds(3000));
  };
  TunerRun run = run_tuner({small_gemm(64, 64, 64)}, options, measurer);
  ASSERT_FALSE(run.refused);
  EXPECT_EQ(run.report.stop_reason, "budget");
  const TaskReport& task = run.report.tasks[0];
  EXPECT_GE(task.trials, 1);
  EXPECT_LE(task.trials, 8);  // the round had a hundred candidates
  EXPECT_EQ(task.ok, task.trials);
  EXPECT_FALSE(task.best_trace.empty());
  EXPECT_EQ(measurer.seen.back().run.stage, Stage::final);  // the shoot-out has time of its own
}

TEST(Limits, WhatHangsWhenTheBudgetIsSpentIsCut) {
  TunerOptions options = small_options();
  options.budget_s = 2;
  ScriptedMeasurer measurer;
  measurer.hangs = [](const Job& job) { return job.id.task == 1 && job.run.stage == Stage::screen; };
  TunerRun run = run_tuner({small_gemm(), small_gemm(64, 64, 64)}, options, measurer);
  ASSERT_FALSE(run.refused);
  EXPECT_EQ(run.report.stop_reason, "budget");
  EXPECT_TRUE(run.report.tasks[0].best_ns) << "the untuned program of the first task was measured";
  EXPECT_FALSE(run.report.tasks[1].best_ns);
  auto warnings = run.all<Warning>();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].code, "baseline-not-timed");
  EXPECT_EQ(warnings[0].task, 1);
  for (const JobResult& r : run.all<JobResult>()) EXPECT_FALSE(r.task == 1 && r.settled) << "a resumed run measures it";
}

TEST(Limits, StopLeavesTheBestAndTheRunGoesOnLater) {
  TunerOptions options = small_options();
  ScratchFolder scratch;
  ScriptedMeasurer undisturbed;
  TunerRun whole = run_with_journal(scratch / "whole", {small_gemm()}, options, undisturbed);
  for (size_t after : {1u, 5u, 9u, 20u}) {
    const std::string folder = scratch / ("stop" + std::to_string(after));
    ScriptedMeasurer measurer;
    Tuner* tuner = nullptr;
    size_t results = 0;
    measurer.script = [&](const Job& job, Outcome& o) {
      if (++results == after) tuner->stop();
      // What is due for a retry when the run stops is no result.
      if (results > after && !is_baseline(job)) o.status = TrialStatus::worker_lost;
    };
    TunerRun stopped = run_with_journal(folder, {small_gemm()}, options, measurer, [&](Tuner& t) { tuner = &t; });
    ASSERT_FALSE(stopped.refused);
    EXPECT_EQ(stopped.report.stop_reason, "interrupted");
    const TaskReport& task = stopped.report.tasks[0];
    EXPECT_EQ(task.trials, task.ok);
    EXPECT_LT(task.trials, options.trials);
    EXPECT_FALSE(task.best_trace.empty());
    for (const Job& job : measurer.seen) EXPECT_NE(job.run.stage, Stage::final);
    ScriptedMeasurer rest;
    TunerRun resumed = run_with_journal(folder, {small_gemm()}, options, rest);
    EXPECT_EQ(resumed.proposed, whole.proposed) << after;
    EXPECT_EQ(resumed.report.tasks[0].best_trace, whole.report.tasks[0].best_trace);
    EXPECT_EQ(resumed.report.tasks[0].ok, options.trials);
  }
}

TEST(Limits, ASmallSpaceIsExhausted) {
  TunerOptions options = small_options();
  options.trials = 100'000;
  options.space_text =
      "def space(sch):\n    b = sch.get_sblock(name=\"C\", func_name=\"main\")\n    l1, l2, l3 = "
      "sch.get_loops(block=b)\n"
      "    v1, v2 = sch.sample_perfect_tile(loop=l1, n=2, max_innermost_factor=64)\n"
      "    l4, l5 = sch.split(loop=l1, factors=[v1, v2])\n";
  options.space_file = "space.py";
  for (const char* strategy : {"replay_trace", "evolutionary"}) {
    options.strategy = strategy;
    ScriptedMeasurer measurer;
    TunerRun run = run_tuner({small_gemm()}, options, measurer);
    ASSERT_FALSE(run.refused) << render_text(run.refused->diagnostic());
    EXPECT_EQ(run.report.stop_reason, "the space is exhausted");
    EXPECT_EQ(run.report.tasks[0].trials, 4) << strategy;  // 8 = 1·8 = 2·4 = 4·2 = 8·1
  }
}

TEST(Funnel, NumbersOfEachRoundAddUp) {
  ScriptedMeasurer measurer;
  TunerRun run = run_tuner({small_gemm(24, 40, 30)}, small_options(), measurer);
  std::vector<CandidatesRefused> stages = run.all<CandidatesRefused>();
  std::vector<RoundStart> rounds = run.all<RoundStart>();
  ASSERT_EQ(stages.size(), 2 * rounds.size());
  std::map<std::string, int64_t> reasons;
  std::set<std::string> examples;
  for (size_t i = 0; i < rounds.size(); ++i) {
    const CandidatesRefused &replayed = stages[2 * i], &selected = stages[2 * i + 1];
    EXPECT_EQ(replayed.stage, "replayed");
    EXPECT_EQ(selected.stage, "selected");
    EXPECT_EQ(replayed.round, rounds[i].round);
    int64_t lost = 0;
    for (const auto& [code, n] : replayed.reasons) lost += n, reasons[code] += n;
    for (const auto& [code, text] : replayed.examples) {
      EXPECT_TRUE(examples.insert(code).second) << "a second example of " << code;
      EXPECT_FALSE(text.empty());
    }
    EXPECT_EQ(replayed.lost, lost);
    EXPECT_EQ(selected.kept, rounds[i].candidates);
    EXPECT_EQ(selected.kept + selected.lost, replayed.kept);
  }
  EXPECT_EQ(reasons, run.report.tasks[0].refused);
}

}  // namespace
}  // namespace tilewright
