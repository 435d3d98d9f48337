#include "database/store.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "database/ingest.h"
#include "database/replay.h"
#include "tests/database/random_run.h"
#include "tests/database/scratch.h"

namespace tilewright {
namespace {

std::unique_ptr<Database> open(const std::string& url) {
  auto store = open_database(url);
  EXPECT_OK(store);
  return store ? std::move(*store) : nullptr;
}

void feed(Database& store, const std::vector<Event>& events, size_t flush_after = 50) {
  Ingest ingest;
  for (const Event& event : events) {
    ASSERT_OK(ingest.apply(event));
    if (ingest.pending() >= flush_after) {
      ASSERT_OK(ingest.flush(store));
    }
  }
  auto done = ingest.flush(store);
  ASSERT_OK(done);
  EXPECT_EQ(done->through, events.back().seq);
}

/// Everything in a database, as text that can be compared.
std::string dump(Database& store) {
  std::string out;
  EXPECT_OK(store.for_each_measurement(nullptr, [&](const Measurement& m) {
    out += fmt::format("{} {} {} {} {} {}\n", m.seq, m.workload.hex(), m.target.hex(), m.trace, m.withdrawn,
                       to_line({1, 0, m.result}));
    return Status{};
  }));
  std::map<std::string, std::string> records;  // sorted: insertion order may differ
  EXPECT_OK(store.for_each_record(std::nullopt, [&](const Record& r) {
    records[r.id()] = to_json_text(r);
    return Status{};
  }));
  for (const auto& [id, text] : records) out += text + "\n";
  return out;
}

/// The first line that differs; empty if none does. (The whole texts are too long to print.)
std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream lines_a(a), lines_b(b);
  std::string x, y;
  for (;;) {
    bool more_a = static_cast<bool>(std::getline(lines_a, x)), more_b = static_cast<bool>(std::getline(lines_b, y));
    if (!more_a && !more_b) return {};
    if (more_a != more_b || x != y) return fmt::format("{}\n{}", more_a ? x : "(end)", more_b ? y : "(end)");
  }
}

int64_t problems(Database& store) {
  auto report = store.verify();
  EXPECT_OK(report);
  if (!report) return -1;
  for (const Diagnostic& d : report->problems) ADD_FAILURE() << d.message;
  return static_cast<int64_t>(report->problems.size());
}

std::vector<Event> random_run(uint64_t seed, int trials, bool quarantine = true) {
  RandomRun random(seed);
  for (int i = 0; i < trials; ++i) {
    random.add_trial();
    if (quarantine && i == trials / 2) random.quarantine();
  }
  random.dispatch_only();
  RunEnd end;
  end.reason = "budget";
  random.emit(end);
  return random.events();
}

TEST(Database, HoldsWhatTheJournalReplays) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    std::vector<Event> events = random_run(seed, 200);
    auto store = open("memory:");
    feed(*store, events);
    RunState run;
    for (const Event& event : events) ASSERT_OK(run.apply(event));
    // Each result is there once, with every field; those of a quarantined device are marked.
    std::map<std::pair<int64_t, int64_t>, std::string> expected, found;
    for (const auto& [number, trial] : run.trials)
      for (const JobResult& r : trial.results) expected[{number, r.attempt}] = to_line({1, 0, r});
    int64_t withdrawn = 0, results = 0;
    ASSERT_OK(store->for_each_measurement(nullptr, [&](const Measurement& m) {
      if (m.withdrawn) return ++withdrawn, Status{};
      found[{m.result.trial, m.result.attempt}] = to_line({1, 0, m.result});
      EXPECT_EQ(m.trace, run.trials.at(m.result.trial).trace);
      return Status{};
    }));
    for (const Event& event : events) results += std::holds_alternative<JobResult>(event.body);
    EXPECT_EQ(found, expected) << "seed " << seed;
    EXPECT_EQ(static_cast<int64_t>(found.size()) + withdrawn, results);
    EXPECT_GT(withdrawn, 0);
    EXPECT_EQ(problems(*store), 0);
    auto campaigns = store->campaigns();
    ASSERT_OK(campaigns);
    ASSERT_EQ(campaigns->size(), 1u);
    EXPECT_EQ(campaigns->front().state, "budget");
    EXPECT_EQ(campaigns->front().settings.at("search.trials"), "100");
  }
}

// The ranks, computed here once more from the plain events.
TEST(Database, RankIsTheWeightedMeanOfTheHighestVerifiedStage) {
  std::vector<Event> events = random_run(11, 400, false);
  auto store = open("memory:");
  feed(*store, events);
  RunState run;
  for (const Event& event : events) ASSERT_OK(run.apply(event));
  int64_t ranked = 0, blocked = 0;
  ASSERT_OK(store->for_each_record(std::nullopt, [&](const Record& record) {
    std::map<Stage, std::pair<double, double>> sums;  // weight, weighted time
    bool wrong = false;
    for (const auto& [number, trial] : run.trials) {
      if (trial.trace_key != record.trace_key) continue;
      const TaskStart& task = run.tasks.at(trial.task).start;
      if (task.workload_key != record.workload || task.target_key != record.target || task.mode != record.mode)
        continue;
      std::map<Stage, const JobResult*> last;
      for (const JobResult& r : trial.results) {
        if (r.settled && info(r.status).blocks) wrong = true;
        if (r.status == TrialStatus::ok && r.verified) last[r.stage] = &r;
      }
      for (const auto& [stage, r] : last) {
        double weight = static_cast<double>(r->n);
        sums[stage].first += weight;
        sums[stage].second += weight * r->median_ns / r->canary_ratio.value_or(1);
      }
    }
    EXPECT_EQ(record.blocked, wrong);
    blocked += wrong;
    EXPECT_EQ(record.verified, !sums.empty());
    if (sums.empty()) return Status{};
    ++ranked;
    auto [stage, sum] = *sums.rbegin();
    EXPECT_EQ(record.stage, stage);
    EXPECT_NEAR(*record.rank_ns, sum.second / sum.first, 1e-9 * *record.rank_ns);
    return Status{};
  }));
  EXPECT_GT(ranked, 50);
  EXPECT_GT(blocked, 3);
}

TEST(Database, TopIsSortedStrictOrByClassAndNeverBlocked) {
  std::vector<Event> events = random_run(12, 400);
  auto store = open("memory:");
  feed(*store, events);
  std::vector<TaskStart> tasks;
  for (const Event& event : events)
    if (auto* task = std::get_if<TaskStart>(&event.body)) tasks.push_back(*task);
  for (const TaskStart& task : tasks) {
    TopQuery query{{task.workload_key, task.target_key, task.mode}, false, false, 10};
    auto top = store->top(query);
    ASSERT_OK(top);
    ASSERT_EQ(top->size(), 10u);
    int64_t better = 0;
    ASSERT_OK(store->for_each_record(query.space, [&](const Record& r) {
      if (r.verified && !r.blocked && *r.rank_ns < *top->back().rank_ns) ++better;
      return Status{};
    }));
    EXPECT_EQ(better, 9);
    for (size_t i = 0; i < top->size(); ++i) {
      EXPECT_TRUE((*top)[i].verified && !(*top)[i].blocked);
      EXPECT_FALSE((*top)[i].trace.empty());
      if (i > 0) {
        EXPECT_LE(*(*top)[i - 1].rank_ns, *(*top)[i].rank_ns);
      }
    }
    auto found = store->find_id(*parse_record_id((*top)[0].id()));
    ASSERT_OK(found);
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(to_json_text(found->front()), to_json_text(top->front()));
  }
  // Task 0 and task 2 share a workload and a class, not a target nor a mode.
  TopQuery by_class{{tasks[0].workload_key, tasks[0].target_class, tasks[0].mode}, true, false, 5};
  auto strict = store->top({{tasks[0].workload_key, tasks[0].target_key, tasks[0].mode}, false, false, 5});
  auto of_class = store->top(by_class);
  ASSERT_OK(of_class);
  ASSERT_EQ(of_class->size(), 5u);
  EXPECT_EQ(to_json_text(of_class->front()), to_json_text(strict->front()));
  by_class.space.target = tasks[0].target_key;  // a key is no class
  EXPECT_EQ(store->top(by_class)->size(), 0u);
}

TEST(Database, CommittingAgainChangesNothing) {
  std::vector<Event> events = random_run(13, 150);
  auto store = open("memory:");
  feed(*store, events);
  std::string once = dump(*store);
  feed(*store, events, 7);
  EXPECT_EQ(first_difference(dump(*store), once), "");
  auto stats = store->stats();
  ASSERT_OK(stats);
  EXPECT_GT(stats->measurements, 150);
}

TEST(Database, AnyBatchSizeGivesTheSameDatabase) {
  std::vector<Event> events = random_run(14, 150);
  auto one = open("memory:"), many = open("memory:");
  feed(*one, events, 1);
  feed(*many, events, 1000);
  EXPECT_EQ(first_difference(dump(*one), dump(*many)), "");
}

TEST(Database, MergeIsIdempotentAndKeepsPardons) {
  auto a = open("memory:"), b = open("memory:"), both = open("memory:");
  std::vector<Event> first = random_run(15, 200, false), second = random_run(16, 200);
  feed(*a, first);
  feed(*b, second);
  feed(*both, first);
  feed(*both, second);
  std::optional<Record> blocked;
  ASSERT_OK(b->for_each_record(std::nullopt,
                               [&](const Record& r) { return r.blocked ? (blocked = r, Status{}) : Status{}; }));
  ASSERT_TRUE(blocked);
  ASSERT_OK(b->unblock(*blocked, "checked by hand"));
  ASSERT_OK(both->unblock(*blocked, "checked by hand"));
  auto inserted = merge(*a, *b);
  ASSERT_OK(inserted);
  EXPECT_EQ(*inserted, b->stats()->measurements);
  EXPECT_EQ(*merge(*a, *b), 0);
  EXPECT_EQ(problems(*a), 0);
  auto found = a->find({blocked->workload, blocked->target, blocked->mode}, blocked->trace_key);
  ASSERT_OK(found);
  EXPECT_FALSE((*found)->blocked);
  EXPECT_EQ((*found)->unblocked_reason, "checked by hand");
  EXPECT_EQ(a->stats()->records, both->stats()->records);
}

TEST(Database, WrongResultsBlockUntilUnblockedAndALaterOneBlocksAgain) {
  RandomRun random(17);
  const TaskStart task = std::get<TaskStart>(random.events()[1].body);
  auto add = [&, trial = int64_t{0}](TrialStatus status, int64_t at) mutable {
    JobDispatched job;
    job.trial = trial++;
    job.trace = "[[],[]]";
    job.trace_key = text_key(job.trace);
    random.emit(job);
    JobResult r;
    r.trial = job.trial;
    r.trace_key = job.trace_key;
    r.status = status;
    r.stage = Stage::confirm;
    r.finished_us = at;
    r.settled = true;
    if (status == TrialStatus::ok) r.verified = true, r.n = 10, r.median_ns = 500;
    random.emit(r);
  };
  auto store = open("memory:");
  SpaceKey space{task.workload_key, task.target_key, task.mode};
  auto record = [&] { return **store->find(space, text_key("[[],[]]")); };
  add(TrialStatus::ok, 10);
  add(TrialStatus::wrong_result, 20);
  feed(*store, random.events());
  EXPECT_TRUE(record().blocked);
  EXPECT_EQ(store->top({space})->size(), 0u);
  EXPECT_FALSE(store->unblock(record(), "")) << "a reason is required";
  ASSERT_OK(store->unblock(record(), "the reference was wrong"));
  EXPECT_EQ(store->top({space})->size(), 1u);
  EXPECT_EQ(problems(*store), 0);
  add(TrialStatus::ok, 30);
  feed(*store, random.events());
  EXPECT_EQ(store->top({space})->size(), 1u);
  add(TrialStatus::nondeterministic, 40);
  feed(*store, random.events());
  EXPECT_TRUE(record().blocked);
  EXPECT_EQ(*store->settled_trials(space), 4);
}

TEST(Database, PruneKeepsTheBestAndTheVerdicts) {
  Scratch dir;
  std::vector<Event> events = random_run(18, 600, false);
  auto store = open("sqlite:" + (dir / "t.db"));
  feed(*store, events);
  auto before = store->stats();
  std::map<std::string, double> ranks;
  ASSERT_OK(store->for_each_record(std::nullopt, [&](const Record& r) {
    ranks[r.id()] = r.rank_ns.value_or(-1);
    return Status{};
  }));
  auto report = store->prune({3, std::nullopt});
  ASSERT_OK(report);
  EXPECT_GT(report->records, 10);
  EXPECT_LT(report->bytes_after, report->bytes_before);
  int64_t whole = 0;
  ASSERT_OK(store->for_each_record(std::nullopt, [&](const Record& r) {
    EXPECT_EQ(r.rank_ns.value_or(-1), ranks.at(r.id()));
    whole += !r.trace.empty() && !r.blocked;
    EXPECT_FALSE(r.blocked && r.trace.empty()) << "a blocked record keeps its reproducer";
    return Status{};
  }));
  EXPECT_EQ(whole, 3 * 3);
  EXPECT_EQ(store->stats()->measurements, before->measurements);
  EXPECT_EQ(problems(*store), 0);
  EXPECT_EQ(store->prune({3, 0})->records, 0) << "nothing is older than the epoch";
  feed(*store, events);  // known measurements do not bring the traces back; pruning again finds nothing new
  EXPECT_EQ(store->stats()->measurements, before->measurements);
}

TEST(Database, RowsThatReferToNothingAreRefusedAndRolledBack) {
  auto store = open("memory:");
  Batch batch;
  Measurement m;
  m.workload = content_key("nothing");
  batch.measurements.push_back(m);
  batch.targets.push_back({content_key("t"), content_key("c"), "t", "{}"});
  auto result = store->commit(batch);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), "database-row-unknown");
  EXPECT_EQ(store->targets()->size(), 0u);
}

TEST(Database, KeysThatDoNotBelongToTheirTextAreRefused) {
  RandomRun random(19);
  TaskStart task = std::get<TaskStart>(random.events()[1].body);
  task.program += "#";
  Ingest ingest;
  Status status = ingest.apply({1, 0, task});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), "event-key-mismatch");
  JobDispatched job;
  job.trace = "[[],[]]";
  EXPECT_FALSE(ingest.apply({2, 0, job}));
}

TEST(Database, UrlsAreChecked) {
  EXPECT_EQ(open_database("tuning.db").error().code(), "database-url-invalid");
  EXPECT_NE(error_text(open_database("tuning.db")).find("--db sqlite:tuning.db"), std::string::npos);
  EXPECT_NE(error_text(open_database("sqlit:x")).find("did you mean \"sqlite:\"?"), std::string::npos);
  EXPECT_EQ(open_database("sqlite:").error().code(), "database-url-invalid");
  EXPECT_EQ(open_database("memory:x").error().code(), "database-url-invalid");
  Scratch dir;
  EXPECT_EQ(open_database("sqlite:" + (dir / "none.db"), {.create = false}).error().code(), "database-missing");
}

TEST(Record, IdsAreReadBack) {
  Record record;
  record.trace_key = content_key("x");
  EXPECT_EQ(parse_record_id(record.id()), record.short_id());
  for (const char* bad : {"r-123", "x-0123456789ab", "r-0123456789aZ", "r-0123456789ab0"})
    EXPECT_FALSE(parse_record_id(bad));
}

}  // namespace
}  // namespace tilewright
