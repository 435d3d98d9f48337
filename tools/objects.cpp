#include "tools/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "database/journal.h"
#include "support/append_file.h"
#include "tools/database.h"
#include "tools/run_directory.h"
#include "tools/task_outcome.h"

namespace tilewright::tools {

namespace fs = std::filesystem;

int exit_of_name(const Refusal& refusal) {
  for (const RefusalCode* code : {&run_unknown, &run_ambiguous, &trial_unknown, &record_unknown, &record_ambiguous})
    if (refusal.is(*code)) return exit_usage;
  // A run that is there and cannot be used.
  for (const RefusalCode* code : {&journal_damaged, &journal_inconsistent, &run_is_locked, &file_cannot_open})
    if (refusal.is(*code)) return exit_environment;
  return refusal.code().starts_with("database-") ? exit_of_database(refusal) : exit_no;
}

namespace {

/// A few of many.
std::vector<std::string> latest(std::vector<std::string> ids) {
  constexpr size_t most = 8;
  if (ids.size() > most) {
    ids.resize(most);
    ids.emplace_back("...");
  }
  return ids;
}

}  // namespace

Result<std::string> find_run(const std::string& name) {
  if (is_run(name)) return name;
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::vector<std::string> ids;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", ec)) {
    std::string path = entry.path().string(), id = run_id(path), folder = entry.path().filename().string();
    if (!is_run(path)) continue;
    ids.push_back(id);
    if (name == "last" || id.starts_with(name) || folder.starts_with(name))
      found.emplace_back(fs::last_write_time(entry.path() / "events.jsonl", ec), path);
  }
  std::sort(found.begin(), found.end());
  // A whole id or folder is that run, even where others start with it.
  std::vector<std::pair<fs::file_time_type, std::string>> exact;
  for (const auto& entry : found)
    if (run_id(entry.second) == name || fs::path(entry.second).filename() == name) exact.push_back(entry);
  if (!exact.empty()) found = std::move(exact);
  if (found.empty()) {
    std::string near = did_you_mean(name, ids);
    Refusal missing(run_unknown,
                    name == "last" ? "there is no run in runs/" : fmt::format("no run is called \"{}\" here", name));
    return refuse(missing.with_help(!near.empty() ? fmt::format("did you mean \"{}\"?", near)
                                    : ids.empty() ? "a run is a folder with events.jsonl, or one in ./runs by its id"
                                                  : fmt::format("runs here: {}", fmt::join(latest(ids), ", "))));
  }
  if (found.size() > 1 && name != "last")
    return refuse(run_ambiguous, fmt::format("{} runs start with \"{}\": {}, {}{}", found.size(), name, found[0].second,
                                             found[1].second, found.size() > 2 ? ", ..." : ""));
  return found.back().second;
}

namespace {

Result<int64_t> best_of(const std::string& directory, const RunState& run, const std::string& task) {
  for (const auto& [number, state] : run.tasks) {
    if (!task.empty() && state.start.name.find(task) == std::string::npos && std::to_string(number) != task) continue;
    if (auto winner = winner_of(run, state); winner && run.trials.contains(*winner)) return *winner;
    if (!task.empty())
      return refuse(run_without_result,
                    fmt::format("task {} has no verified result: {}", state.start.name, why_no_winner(state)));
  }
  if (task.empty()) return refuse(without_result(directory, run));
  std::vector<std::string> names;
  for (const auto& [number, state] : run.tasks) names.push_back(state.start.name);
  std::string near = did_you_mean(task, names);
  return refuse(Refusal(trial_unknown, fmt::format("the run has no task \"{}\"", task))
                    .with_help(near.empty() ? fmt::format("tasks: {}", fmt::join(names, ", "))
                                            : fmt::format("did you mean \"{}\"?", near)));
}

}  // namespace

Result<TrialName> find_trial(const std::string& name) {
  size_t colon = name.rfind(':');
  std::string run = colon == std::string::npos ? "last" : name.substr(0, colon);
  std::string which = colon == std::string::npos ? name : name.substr(colon + 1);
  TW_TRY(std::string directory, find_run(run));
  TW_TRY(RunState state, replay_run(directory));
  int64_t trial = -1;
  if (which == "best" || which.starts_with("best/")) {
    TW_TRY(trial, best_of(directory, state, which == "best" ? "" : which.substr(5)));
  } else {
    auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), trial);
    if (error != std::errc() || end != which.data() + which.size())
      return refuse(trial_unknown, fmt::format("expected RUN:N, RUN:best or RUN:best/TASK, found \"{}\"", name));
    if (!state.trials.contains(trial))
      return refuse(trial_unknown, fmt::format("run {} has no trial {}; it has {} trials", run_id(directory), trial,
                                               state.trials.size()));
  }
  return TrialName{std::move(directory), std::move(state), trial};
}

bool names_record(const std::string& name) {
  return name.size() > 2 && name.size() <= 14 && name.starts_with("r-") &&
         name.find_first_not_of("0123456789abcdef", 2) == std::string::npos;
}

Result<std::unique_ptr<Database>> existing_database(const Tool& tool) {
  return open_database(database_url(tool.globals().database), {.create = false, .write = false});
}

Result<Record> find_record(Database& database, const std::string& name) {
  std::vector<Record> found;
  if (auto id = parse_record_id(name)) {
    TW_TRY(found, database.find_id(*id));
  } else {
    TW_TRY_VOID(database.for_each_record(std::nullopt, [&](const Record& record) -> Status {
      if (found.size() < 3 && record.id().starts_with(name)) found.push_back(record);
      return {};
    }));
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return refuse(Refusal(record_unknown, fmt::format("the database has no record {}", name))
                      .with_help("tilewright db top lists records"));
  return refuse(record_ambiguous, fmt::format("several records start with \"{}\": {}, {}{}", name, found[0].id(),
                                              found[1].id(), found.size() > 2 ? ", ..." : ""));
}

Subject subject_of(const LockedKernel& k) {
  Subject s;
  s.name = k.name;
  s.task = k.task;
  for (const std::string& line : k.program) s.program += line + "\n";
  s.trace = k.trace;
  s.trace_key = text_key(k.trace);
  s.space = {workload_key(s.program, 1), text_key(target_text(k.target, k.measured_on)), k.mode};
  s.target = k.measured_on;
  s.target["target"] = k.target;
  s.status = TrialStatus::ok;
  s.stage = parse_name<Stage>(k.stage).value_or(Stage::unspecified);
  s.verified = true;  // nothing else is locked
  s.median_ns = k.median_ns, s.ci_lo_ns = k.ci_lo_ns, s.ci_hi_ns = k.ci_hi_ns, s.n = k.n;
  s.record = k.record;
  if (s.target["device"].starts_with("fake")) s.runner = "fake";
  return s;
}

Subject subject_of(const TrialName& named) {
  const TrialState& trial = named.run.trials.at(named.trial);
  const TaskStart& task = named.run.tasks.at(trial.task).start;
  Subject s;
  s.name = fmt::format("{}:{}", run_id(named.directory), named.trial);
  s.task = task.name;
  s.program = task.program;
  s.trace = trial.trace;
  s.space = {task.workload_key, task.target_key, task.mode};
  s.trace_key = trial.trace_key;
  s.target = target_parts(target_text(task.target, task.environment));
  s.target_name = task.target_name;
  Record id;
  id.workload = task.workload_key, id.target = task.target_key, id.mode = task.mode, id.trace_key = trial.trace_key;
  s.record = id.id();
  if (named.run.start) {
    s.input_seed = named.run.start->seed;
    auto runner = named.run.start->settings.find("measure.runner");
    if (runner != named.run.start->settings.end()) s.runner = runner->second;
  }
  const JobResult* r = trial.counting();
  if (!r && !trial.results.empty()) r = &trial.results.back();
  if (!r) return s;
  s.status = r->status;
  s.stage = r->stage;
  s.verified = r->verified;
  s.blocked = trial.settled && info(trial.settled->status).blocks;
  s.median_ns = r->median_ns, s.ci_lo_ns = r->ci_lo_ns, s.ci_hi_ns = r->ci_hi_ns, s.n = r->n;
  s.clock_mhz = r->clock_mhz.value_or(0);
  s.device = r->device, s.toolchain = r->toolchain, s.artifact = r->artifact;
  return s;
}

namespace {

Subject subject_of(const Record& record, const WorkloadEntry& workload, const TargetEntry& target) {
  Subject s;
  s.name = s.record = record.id();
  s.task = workload.name;
  s.program = workload.program;
  s.target_name = target.name;
  s.target = target_parts(target.text);
  s.trace = record.trace;
  s.space = {record.workload, record.target, record.mode};
  s.trace_key = record.trace_key;
  s.status = record.status;
  s.stage = record.stage;
  s.verified = record.verified;
  s.blocked = record.blocked;
  s.median_ns = record.rank_ns.value_or(0);
  s.ci_lo_ns = record.ci_lo_ns.value_or(s.median_ns), s.ci_hi_ns = record.ci_hi_ns.value_or(s.median_ns);
  s.n = record.n;
  s.toolchain = record.toolchain, s.artifact = record.artifact;
  auto device = s.target.find("device");
  if (device != s.target.end() && device->second.starts_with("fake")) s.runner = "fake";
  return s;
}

}  // namespace

Result<Subject> subject_of(Database& database, const Record& record) {
  TW_TRY(std::vector<WorkloadEntry> workloads, database.workloads());
  TW_TRY(std::vector<TargetEntry> targets, database.targets());
  auto workload = std::find_if(workloads.begin(), workloads.end(),
                               [&](const WorkloadEntry& w) { return w.key == record.workload; });
  auto target =
      std::find_if(targets.begin(), targets.end(), [&](const TargetEntry& t) { return t.key == record.target; });
  if (workload == workloads.end() || target == targets.end())
    return refuse(database_row_unknown, fmt::format("{}: its workload or target is not in the database", record.id()));
  return subject_of(record, *workload, *target);
}

Result<Subject> find_subject(const Tool& tool, const std::string& name) {
  if (!names_record(name)) {
    TW_TRY(TrialName trial, find_trial(name));
    return subject_of(trial);
  }
  TW_TRY(auto database, existing_database(tool));
  TW_TRY(Record record, find_record(*database, name));
  return subject_of(*database, record);
}

Result<std::vector<Subject>> winners_of(const std::string& directory, const RunState& run,
                                        std::vector<Diagnostic>& without) {
  std::vector<Subject> out;
  for (const auto& [number, task] : run.tasks) {
    std::string told = "has no verified result: " + why_no_winner(task);
    if (auto winner = winner_of(run, task); winner && run.trials.contains(*winner)) {
      out.push_back(subject_of({directory, run, *winner}));
      if (run.trials.at(*winner).origin != "baseline") continue;
      told = "has the untuned program as its result: " +
             (has_valid_candidate(run, task) ? "no candidate is faster" : why_no_winner(task));
    }
    Diagnostic d{run_without_result.text,
                 fmt::format("task {} of run {} {}", task.start.name, run_id(directory), told),
                 {},
                 {},
                 ""};
    d.warning = true;
    without.push_back(std::move(d));
  }
  if (out.empty()) return refuse(without_result(directory, run));
  return out;
}

Result<std::vector<Subject>> best_of(Database& database) {
  std::vector<Subject> out;
  TW_TRY(std::vector<WorkloadEntry> workloads, database.workloads());
  TW_TRY(std::vector<TargetEntry> targets, database.targets());
  for (const WorkloadEntry& workload : workloads)
    for (const TargetEntry& target : targets)
      for (Mode mode : {Mode::cold, Mode::warm, Mode::cold_sustained}) {
        TW_TRY(std::vector<Record> best, database.top({{workload.key, target.key, mode}, false, false, 1}));
        if (!best.empty()) out.push_back(subject_of(best.front(), workload, target));
      }
  return out;
}

}  // namespace tilewright::tools
