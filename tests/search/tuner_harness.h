// One run of the tuner, in memory or with a journal that a later run continues, as the tool does it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "database/journal.h"
#include "database/replay.h"
#include "ir/parse.h"
#include "measure/measurer.h"
#include "search/tuner.h"

namespace tilewright {

inline Task small_gemm(int m = 8, int n = 16, int k = 12) {
  std::string text = fmt::format(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({0}, {2}), "float32"), B: T.Buffer(({2}, {1}), "float32"), C: T.Buffer(({0}, {1}), "float32")):
    for i, j, k in T.grid({0}, {1}, {2}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                 m, n, k);
  auto parsed = parse_program(text, "test");
  TW_CHECK(parsed, "the test program does not parse");
  auto target = parse_target("x86-64-v3:cores=2");
  TW_CHECK(target);
  return Task::make(fmt::format("gemm {}x{}x{}", m, n, k), parsed->program, *target);
}

/// Small and quick: a test is about the loop, not about how good its candidates are.
inline TunerOptions small_options() {
  TunerOptions o;
  o.trials = 36;
  o.first_batch = 6;
  o.batch = 10;
  o.population = 24;
  o.generations = 2;
  o.campaign = 7;
  return o;
}

struct TunerRun {
  std::vector<std::string> proposed;  ///< trace keys, in order, by task: "0 3f…"
  std::vector<Event> events;
  RunReport report;
  std::optional<Refusal> refused;

  template <class T>
  std::vector<T> all() const {
    std::vector<T> out;
    for (const Event& e : events)
      if (auto* x = std::get_if<T>(&e.body)) out.push_back(*x);
    return out;
  }
};

class Recorder : public Observer {
 public:
  explicit Recorder(TunerRun& run) : run_(run) {}
  void on_event(const Event& e) override { run_.events.push_back(e); }

 private:
  TunerRun& run_;
};

using KnownResults = std::map<std::pair<size_t, Key128>, JobResult>;
inline KnownResults known_results(const RunState& state) {
  KnownResults known;
  for (const auto& [number, trial] : state.trials)
    if (trial.settled) known[{static_cast<size_t>(trial.task), trial.trace_key}] = *trial.known();
  return known;
}

/// `started` gets the tuner before it runs (to stop it).
inline TunerRun run_tuner(std::vector<Task> tasks, const TunerOptions& options, measure::Measurer& measurer,
                          const KnownResults& known = {}, const std::function<void(Tuner&)>& started = {},
                          Observer* also = nullptr) {
  TunerRun run;
  Recorder recorder(run);
  EventStream stream([] { return 0.0; });
  struct Forward : Observer {
    void on_event(const Event& e) override { stream->emit(e.body); }
    EventStream* stream;
  } forward;
  forward.stream = &stream;
  stream.add(recorder);
  Observer& observer = also ? *also : static_cast<Observer&>(forward);
  auto tuner = Tuner::create(std::move(tasks), options, measurer, observer,
                             [&](size_t task, const Key128& key) -> std::optional<JobResult> {
                               run.proposed.push_back(fmt::format("{} {}", task, key.hex()));
                               auto it = known.find({task, key});
                               if (it == known.end()) return std::nullopt;
                               return it->second;
                             });
  if (!tuner) {
    run.refused = tuner.error();
    return run;
  }
  if (started) started(**tuner);
  auto report = (*tuner)->run();
  if (!report)
    run.refused = report.error();
  else
    run.report = *report;
  return run;
}

/// Runs with the journal of `directory`; continues what is there.
inline TunerRun run_with_journal(const std::string& directory, std::vector<Task> tasks, TunerOptions options,
                                 measure::Measurer& measurer, const std::function<void(Tuner&)>& started = {}) {
  TunerRun out;
  RunState before;
  if (std::filesystem::exists(directory + "/events.jsonl")) {
    auto state = replay_run(directory);
    if (!state) {
      ADD_FAILURE() << render_text(state.error().diagnostic());
      return out;
    }
    before = *state;
  }
  if (!before.trials.empty()) options.first_trial = before.trials.rbegin()->first + 1;
  auto journal = JournalWriter::open(directory);
  if (!journal) {
    ADD_FAILURE() << render_text(journal.error().diagnostic());
    return out;
  }
  EventStream stream([] { return 0.0; }, (*journal)->found().last_seq);
  struct Forward : Observer {
    void on_event(const Event& e) override {
      if (before->holds(e.body)) return;
      stream->emit(e.body);
      run->events.push_back(e);
    }
    EventStream* stream;
    const RunState* before;
    TunerRun* run;
  } forward;
  forward.stream = &stream;
  forward.before = &before;
  forward.run = &out;
  stream.add(**journal);
  TunerRun run = run_tuner(std::move(tasks), options, measurer, known_results(before), started, &forward);
  run.events = std::move(out.events);
  return run;
}

class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewright-search-XXXXXX").string();
    TW_CHECK(mkdtemp(pattern.data()));
    path_ = pattern;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}
inline void write_text(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace tilewright
