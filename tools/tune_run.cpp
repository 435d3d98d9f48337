#include "tools/tune_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "ir/parse.h"
#include "support/append_file.h"
#include "support/component.h"
#include "tools/inputs.h"
#include "tools/stop.h"

namespace tilewright::tools {

namespace {

/// Hands the tuner's events to the run's stream. A run that goes on repeats what its journal already holds; that is
/// left out.
class Forward : public Observer {
 public:
  Forward(EventStream& stream, const RunState& before) : stream_(stream), before_(before) {}
  void on_event(const Event& event) override {
    if (auto* start = std::get_if<TaskStart>(&event.body); start && before_.tasks.contains(start->task)) return;
    stream_.emit(event.body);
  }

 private:
  EventStream& stream_;
  const RunState& before_;
};

std::string this_binary() {
  std::error_code ec;
  return std::filesystem::read_symlink("/proc/self/exe", ec).string();
}

Result<std::unique_ptr<measure::Measurer>> open_runner(const TuneRun& run, uint64_t campaign) {
  measure::MeasurerOptions options;
  options.binary = this_binary();
  for (const Plugin& plugin : open_plugins()) options.plugins.push_back(plugin.path);
  options.campaign = campaign;
  if (run.settings.runner.starts_with("fake")) {
    options.devices = {"fake"};
    if (run.settings.runner.size() > 5) {
      TW_TRY(options.fake, read_file(run.settings.runner.substr(5)));
    }
  }
  return measure::open_measurer(options);
}

std::map<std::pair<size_t, Key128>, JobResult> known_results(const RunState& state) {
  std::map<std::pair<size_t, Key128>, JobResult> known;
  for (const auto& [number, trial] : state.trials)
    if (trial.settled) known[{static_cast<size_t>(trial.task), trial.trace_key}] = *trial.settled;
  return known;
}

int64_t now_us() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

EventBody first_event(const TuneRun& run, const JournalReading& found) {
  if (run.resumed) {
    RunResumed e;
    e.incarnation = run.before.incarnation + 1;
    e.started_us = now_us();
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
  RunStart e;
  e.run = run.id;
  e.name = run.name;
  e.campaign.value = run.settings.tuner.campaign;
  e.seed = run.settings.tuner.seed;
  e.started_us = now_us();
  e.version = TILEWRIGHT_VERSION;
  e.command_line = run.command_line;
  e.settings = settings_as_text(run.settings);
  return e;
}

}  // namespace

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

  TW_TRY(auto measurer, open_runner(run, options.campaign));
  TW_TRY(auto journal, JournalWriter::open(run.directory));
  const auto start = std::chrono::steady_clock::now();
  EventStream stream(
      [&] {
        return run.before.elapsed_s + std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      },
      journal->found().last_seq);
  stream.add(*journal);
  for (Observer* observer : observers) stream.add(*observer);
  Forward forward(stream, run.before);
  stream.emit(first_event(run, journal->found()));

  auto results = known_results(run.before);
  TW_TRY(auto tuner, Tuner::create(run.tasks, options, *measurer, forward, [&](size_t task, const Key128& key) {
           auto it = results.find({task, key});
           return it == results.end() ? std::nullopt : std::optional(it->second);
         }));
  StopSignals signals([&] {
    tuner->stop();
    measurer->wake();
  });
  auto report = tuner->run();
  if (Status synced = journal->sync(); !synced) return refuse(synced.error());
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
