// Outcomes per second through journal and database, and the queries of a search. Run it on an idle machine and on the
// disk that is meant (TMPDIR): most of the time is the disk's.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "database/ingest.h"
#include "database/journal.h"
#include "database/store.h"
#include "support/rng.h"

namespace tilewright {
namespace {

template <class R>
auto must(R&& result) {
  if (!result) throw std::runtime_error(render_text(result.error().diagnostic()));
  if constexpr (!std::is_same_v<std::decay_t<R>, Status>) return std::move(*result);
}

class Directory {
 public:
  Directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewright-bench-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A run that makes outcomes: traces of some 2 kB, as those of a matrix product on a GPU are.
class Outcomes {
 public:
  RunStart start() const {
    RunStart e;
    e.run = "bench";
    e.campaign = {campaign_};
    return e;
  }
  TaskStart task() const {
    TaskStart e;
    e.name = "gemm";
    e.program = "@T.prim_func\ndef main(): pass\n";
    e.workload_key = workload_key(e.program, 1);
    e.target = R"({"arch":"sm_90a"})";
    e.target_key = text_key(e.target);
    return e;
  }
  std::pair<JobDispatched, JobResult> next() {
    JobDispatched job;
    job.trial = trial_++;
    job.trace = "[[[\"GetSBlock\",[],[\"C\",\"main\"],[\"b0\"]],[\"GetLoops\",[\"b0\"],[],[\"l1\",\"l2\",\"l3\"]]";
    for (int i = 0; i < 24; ++i)
      job.trace +=
          fmt::format(R"(,["SamplePerfectTile",["l{}"],[4,64],["v{}","v{}","v{}","v{}"]])", i, i, i + 1, i + 2, i + 3);
    job.trace += "],[";
    for (int i = 0; i < 24; ++i)
      job.trace += fmt::format("{}[{},[{},{},{},{}]]", i ? "," : "", i, rng_.below(64), rng_.below(64), rng_.below(64),
                               rng_.below(64));
    job.trace += "]]";
    job.trace_key = text_key(job.trace);
    JobResult r;
    r.trial = job.trial;
    r.trace_key = job.trace_key;
    r.status = TrialStatus::ok;
    r.stage = Stage::screen;
    r.n = 30;
    r.median_ns = 30'000 * (1 + rng_.uniform());
    r.ci_lo_ns = r.median_ns * 0.99;
    r.ci_hi_ns = r.median_ns * 1.01;
    r.verified = r.settled = true;
    r.device = "GPU-0";
    r.finished_us = 1'700'000'000'000'000 + job.trial;
    r.build = {{"registers", 168}, {"spill_bytes", 0}, {"cpu_ms", 300}};
    return {std::move(job), std::move(r)};
  }

 private:
  uint64_t campaign_ = 7;
  Rng rng_{1};
  int64_t trial_ = 0;
};

struct Sink : Observer {
  Ingest ingest;
  void on_event(const Event& event) override { must(ingest.apply(event)); }
};

/// The way of an outcome in a run: journal, one sync, one transaction, acknowledged; `range(0)` outcomes at a time.
void outcomes_committed(benchmark::State& state) {
  Directory directory;
  auto journal = must(JournalWriter::open(directory.path()));
  auto store = must(open_database("sqlite:" + directory.path() + "/t.db"));
  Sink sink;
  EventStream stream([] { return 0.0; });
  stream.add(*journal);
  stream.add(sink);
  Outcomes outcomes;
  stream.emit(outcomes.start());
  stream.emit(outcomes.task());
  for (auto _ : state) {
    for (int64_t i = 0; i < state.range(0); ++i) {
      auto [job, result] = outcomes.next();
      stream.emit(std::move(job));
      stream.emit(std::move(result));
    }
    must(journal->sync());
    stream.emit(must(sink.ingest.flush(*store)));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["database_bytes_per_row"] = benchmark::Counter(
      static_cast<double>(must(store->stats()).bytes) / static_cast<double>(state.iterations() * state.range(0)));
}
BENCHMARK(outcomes_committed)->Arg(1)->Arg(64)->Arg(200)->UseRealTime();

void journal_lines(benchmark::State& state) {
  Directory directory;
  auto journal = must(JournalWriter::open(directory.path()));
  Outcomes outcomes;
  auto [job, result] = outcomes.next();
  int64_t seq = 0;
  for (auto _ : state) must(journal->append({++seq, 1.5, result}));
  must(journal->sync());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(journal_lines)->UseRealTime();

void journal_replayed(benchmark::State& state) {
  Directory directory;
  Outcomes outcomes;
  {
    auto journal = must(JournalWriter::open(directory.path()));
    for (int64_t seq = 1; seq <= 10'000; seq += 2) {
      auto [job, result] = outcomes.next();
      must(journal->append({seq, 1.5, std::move(job)}));
      must(journal->append({seq + 1, 1.5, std::move(result)}));
    }
  }
  for (auto _ : state) benchmark::DoNotOptimize(must(read_journal(directory.path() + "/events.jsonl", {})));
  state.SetItemsProcessed(state.iterations() * 10'000);
}
BENCHMARK(journal_replayed)->UseRealTime();

/// `range(0)`: rows in the space; `range(1)`: how many of the best.
void top_records(benchmark::State& state) {
  Outcomes outcomes;
  auto store = must(open_database("memory:"));
  Ingest ingest;
  must(ingest.apply({1, 0, outcomes.start()}));
  must(ingest.apply({2, 0, outcomes.task()}));
  for (int64_t i = 0; i < state.range(0); ++i) {
    auto [job, result] = outcomes.next();
    must(ingest.apply({3, 0, std::move(job)}));
    must(ingest.apply({4, 0, std::move(result)}));
    if (ingest.pending() >= 1000) must(ingest.flush(*store));
  }
  must(ingest.flush(*store));
  TaskStart task = outcomes.task();
  TopQuery query{{task.workload_key, task.target_key, task.mode}, false, false, static_cast<int>(state.range(1))};
  for (auto _ : state) benchmark::DoNotOptimize(must(store->top(query)));
}
BENCHMARK(top_records)->Args({100'000, 1})->Args({100'000, 128})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright
