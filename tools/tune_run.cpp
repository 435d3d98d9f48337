#include "tools/tune_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "ir/parse.h"
#include "lowering/options.h"
#include "support/append_file.h"
#include "tools/database.h"
#include "tools/objects.h"
#include "tools/runner.h"
#include "tools/stop.h"

namespace tilewright::tools {

namespace {

/// Hands the tuner's events to the run's stream, and its results to the database. A run that goes on repeats what its
/// journal already holds; that is left out. `unwritten` is called once, when the journal cannot be written.
class Forward : public Observer {
 public:
  Forward(EventStream& stream, JournalWriter& journal, const RunState& before, Saving* saving,
          std::function<void(const Refusal&)> unwritten)
      : stream_(stream), journal_(journal), before_(before), saving_(saving), unwritten_(std::move(unwritten)) {}
  void on_event(const Event& event) override {
    if (before_.holds(event.body)) return;
    int64_t seq = stream_.emit(event.body);
    if (Status trouble = journal_.trouble(); !trouble && unwritten_) std::exchange(unwritten_, {})(trouble.error());
    if (!saving_) return;
    saving_->take({seq, 0, event.body});
    if (!saving_->due() && !std::holds_alternative<RunEnd>(event.body)) return;
    if (!journal_.sync()) return;  // the database never holds what the journal lacks
    if (auto committed = saving_->commit()) stream_.emit(std::move(*committed));
  }

 private:
  EventStream& stream_;
  JournalWriter& journal_;
  const RunState& before_;
  Saving* saving_;
  std::function<void(const Refusal&)> unwritten_;
};

std::map<std::pair<size_t, Key128>, JobResult> known_results(const RunState& state) {
  std::map<std::pair<size_t, Key128>, JobResult> known;
  for (const auto& [number, trial] : state.trials)
    if (trial.settled) known[{static_cast<size_t>(trial.task), trial.trace_key}] = *trial.known();
  return known;
}

/// What the run starts from: its own journal if it goes on, else the database.
Result<Earlier> earlier_of(const TuneRun& run, const TunerOptions& options) {
  Earlier earlier;
  if (run.resumed) {
    for (const auto& [number, trial] : run.before.trials)
      if (trial.settled && trial.origin == "record")
        earlier.results.push_back({static_cast<size_t>(trial.task), trial.trace, *trial.known()});
    earlier.seeds = run.before.seeds;
    return earlier;
  }
  std::vector<TaskStart> tasks;
  for (size_t i = 0; i < run.tasks.size(); ++i) tasks.push_back(task_start(run.tasks[i], i, options));
  const std::string& warm = run.settings.warm_start;
  if (run.database && run.settings.reuse) {
    int64_t most = options.trials;
    for (const Task& task : run.tasks) most = std::max(most, task.trials);
    TW_TRY(earlier.results, recorded_results(*run.database, tasks, most));
    if (warm == "auto") {
      TW_TRY(earlier.seeds, seeds_from_database(*run.database, tasks, options.first_batch));
    }
  }
  if (warm != "auto" && warm != "none") {
    TW_TRY(std::string directory, find_run(warm));
    TW_TRY(RunState state, replay_run(directory));
    earlier.seeds = seeds_from_run(state, tasks, options.first_batch);
  }
  return earlier;
}

/// A run goes on only where its times mean the same.
Status check_environment(const TuneRun& run, const ByName<std::string>& environment) {
  for (const auto& [number, task] : run.before.tasks) {
    const ByName<std::string>& then = task.start.environment;
    for (const auto& [name, value] : environment)
      if (auto it = then.find(name); it != then.end() && it->second != value)
        return refuse(Refusal(run_differs, fmt::format("run {} was measured with {} \"{}\", here it is \"{}\"", run.id,
                                                       name, it->second, value))
                          .with_help("start a new run without --run: it takes what matches from the database"));
  }
  return {};
}

EventBody first_event(const TuneRun& run, const JournalReading& found) {
  if (run.resumed) {
    RunResumed e;
    e.incarnation = run.before.incarnation + 1;
    e.started_us = run.started_us;
    e.elapsed_s = run.before.elapsed_s;
    e.events = found.events;
    e.dropped_bytes = found.dropped_bytes;
    e.version = TILEWRIGHT_VERSION;
    for (const auto& [name, value] : settings_as_text(run.settings))
      if (auto it = run.before.start->settings.find(name);
          it == run.before.start->settings.end() || it->second != value)
        e.settings[name] = value;
    return e;
  }
  return run_start(run);
}

}  // namespace

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

RunStart run_start(const TuneRun& run) {
  RunStart e;
  e.run = run.id;
  e.name = run.name;
  e.campaign.value = run.settings.tuner.campaign;
  e.seed = run.settings.tuner.seed;
  e.started_us = run.started_us;
  e.version = TILEWRIGHT_VERSION;
  e.command_line = run.command_line;
  e.settings = settings_as_text(run.settings);
  return e;
}

Result<std::vector<Task>> tasks_of(const RunState& state) {
  std::vector<Task> tasks;
  for (const auto& [number, task] : state.tasks) {
    auto parsed = parse_program(task.start.program, task.start.name);
    if (!parsed)
      return refuse(run_differs, fmt::format("the program of task {} cannot be read: {}", task.start.name,
                                             parsed.error().front().message));
    TW_TRY(Target target, parse_target(task.start.target));
    tasks.push_back(
        Task::make(task.start.name, parsed->program, target, task.start.flops, task.start.bytes, task.start.weight));
    tasks.back().trials = task.start.trials.value_or(0);
  }
  if (tasks.empty())
    return refuse(run_differs, "the run stopped before its first task; start it again with its workload");
  return tasks;
}

Result<RunReport> run_tuner(TuneRun& run, const std::vector<Observer*>& observers) {
  TunerOptions options = run.settings.tuner;
  if (run.resumed) options.campaign = run.before.start->campaign.value;
  if (!run.before.trials.empty()) options.first_trial = run.before.trials.rbegin()->first + 1;
  // The budget is the wall time of the run, summed over its starts.
  if (options.budget_s > 0) options.budget_s = std::max(1e-3, options.budget_s - run.before.elapsed_s);

  TW_TRY(auto measurer, open_runner(run.settings.runner, options.campaign));
  TW_TRY(auto lower, lowering::LowerOptions::parse(options.lower));
  TW_TRY(options.environment,
         environment_of(*measurer, run.settings.runner, options.run_threads, run.tasks.front().target, lower.text()));
  TW_TRY_VOID(check_environment(run, options.environment));
  TW_TRY(Earlier earlier, earlier_of(run, options));
  std::optional<Saving> saving;
  if (run.database) saving.emplace(*run.database, run.directory);
  TW_TRY(auto journal, JournalWriter::open(run.directory, [&](const Event& event) -> Status {
           if (saving) saving->take(event);
           return {};
         }));
  const auto start = std::chrono::steady_clock::now();
  EventStream stream(
      [&] {
        return run.before.elapsed_s + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      },
      journal->found().last_seq);
  stream.add(*journal);
  for (Observer* observer : observers) stream.add(*observer);
  // What is measured from then on could be recorded nowhere.
  std::unique_ptr<Tuner> tuner;
  Forward forward(stream, *journal, run.before, saving ? &*saving : nullptr, [&](const Refusal& why) {
    run.unwritten = why;
    if (tuner) tuner->stop();
  });
  forward.on_event({0, 0, first_event(run, journal->found())});

  auto results = known_results(run.before);
  std::vector<SpaceKey> spaces;
  for (size_t i = 0; i < run.tasks.size(); ++i) {
    TaskStart task = task_start(run.tasks[i], i, options);
    spaces.push_back({task.workload_key, task.target_key, task.mode});
  }
  auto known = [&](size_t task, const Key128& key) -> std::optional<JobResult> {
    if (auto it = results.find({task, key}); it != results.end()) return it->second;
    if (!run.database || !run.settings.reuse) return std::nullopt;
    auto found = run.database->find(spaces[task], key);  // a failing database only costs the measurement
    return found && *found ? result_of(**found) : std::nullopt;
  };
  TW_TRY(tuner, Tuner::create(run.tasks, options, *measurer, forward, known, std::move(earlier)));
  if (run.unwritten) return refuse(*run.unwritten);
  StopSignals signals([&] {
    tuner->stop();
    measurer->wake();
  });
  auto report = tuner->run();
  if (saving) run.saved_rows = saving->rows(), run.saved = !saving->failed();
  if (Status synced = journal->sync(); !synced && !run.unwritten) run.unwritten = synced.error();
  return report;
}

Result<std::string> save_winner(const TuneRun& run, const Task& task, const std::string& trace_json) {
  TW_TRY(Trace trace, trace_from_json(trace_json));
  std::filesystem::path folder =
      std::filesystem::path(run.directory) / "artifacts" / content_key(trace_json).hex().substr(0, 12);
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  const std::pair<const char*, std::string> files[] = {
      {"program.py", task.program_text}, {"trace.json", trace_json + "\n"}, {"trace.py", trace_to_python(trace)}};
  for (const auto& [name, text] : files) {
    std::ofstream out(folder / name, std::ios::binary);
    out << text;
    if (!out.flush()) return refuse(file_write_failed, fmt::format("cannot write {}", (folder / name).string()));
  }
  return folder.string();
}

}  // namespace tilewright::tools
