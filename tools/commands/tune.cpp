// tilewright tune: searches for fast schedules of one or many workloads, or goes on with a run.
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <filesystem>

#include "codegen/codegen.h"
#include "database/ingest.h"
#include "support/json.h"
#include "tools/baselines.h"
#include "tools/command.h"
#include "tools/database.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "tools/run_directory.h"
#include "tools/summary.h"
#include "tools/tasks.h"
#include "tools/tune_run.h"

namespace tilewright::tools {
namespace {

TW_REFUSAL_CODE(target_not_here, "target-not-here", "the machine that measures cannot run code of this target");

/// --json: the journal's lines on stdout.
class JsonLines : public Observer {
 public:
  void on_event(const Event& event) override {
    std::string line = to_line(event) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
    std::fflush(stdout);
  }
};

/// Flags that are settings.
constexpr std::pair<const char*, const char*> setting_flags[] = {
    {"--trials", "search.trials"},         {"--seed", "search.seed"},         {"--strategy", "search.strategy"},
    {"--cost-model", "search.cost_model"}, {"--preset", "search.preset"},     {"--runner", "measure.runner"},
    {"--final", "search.finalists"},       {"--baseline", "search.baseline"}, {"--warm-start", "database.warm_start"}};

/// Environment, then --set, then flags; the campaign file's were there before.
Status apply_settings(Tool& tool, const Arguments& arguments, TuneRun& run) {
  TW_TRY_VOID(settings_from_environment(run.settings));
  for (const auto& [name, value] : tool.globals().settings) {
    TW_TRY_VOID(set_setting(run.settings, name, value, "--set"));
  }
  if (arguments.has("--effort")) {
    TW_TRY(std::string meaning, set_effort(run.settings, arguments.get("--effort"), "--effort"));
    tool.say(meaning + "\n");
  }
  if (!tool.globals().database.empty())
    TW_TRY_VOID(set_setting(run.settings, "database.url", tool.globals().database, "--db"));
  if (arguments.has("--fresh")) TW_TRY_VOID(set_setting(run.settings, "database.reuse", "remeasure", "--fresh"));
  for (const auto& [flag, setting] : setting_flags)
    if (arguments.has(flag)) TW_TRY_VOID(set_setting(run.settings, setting, arguments.get(flag), flag));
  if (arguments.has("--until-no-gain"))
    TW_TRY_VOID(set_setting(run.settings, "search.until_no_gain", "true", "--until-no-gain"));
  if (arguments.has("--no-rule"))
    TW_TRY_VOID(set_setting(run.settings, "search.without_rules",
                            fmt::format("{}", fmt::join(arguments.all("--no-rule"), ",")), "--no-rule"));
  if (std::string budget = arguments.get("--budget"); budget.starts_with("+")) {
    auto more = parse_duration(budget.substr(1));
    if (!more || *more <= 0)
      return refuse(setting_invalid, fmt::format("--budget: expected a time such as +10m, found \"{}\"", budget));
    run.settings.tuner.budget_s = run.before.elapsed_s + *more;
  } else if (!budget.empty()) {
    TW_TRY_VOID(set_setting(run.settings, "search.budget", budget, "--budget"));
  }
  if (std::string space = arguments.get("--space"); space.ends_with(".py")) {
    TW_TRY(run.settings.tuner.space_text, read_file(space));
    run.settings.tuner.space_file = space;
  } else if (!space.empty()) {
    run.settings.tuner.space = space;
  }
  return {};
}

/// The settings of the run's last start, and afterwards: nothing but limits may have changed.
Status recall_settings(TuneRun& run) {
  for (const auto& [name, value] : run.before.start->settings) {
    if (!find_setting(name)) continue;
    const bool no_limit = name == "search.budget" && value == "0s";  // as older versions wrote it
    TW_TRY_VOID(set_setting(run.settings, name, no_limit ? "none" : value, "run " + run.id));
  }
  return {};
}
Status check_unchanged(const TuneRun& run) {
  std::string changed;
  for (const auto& [name, value] : settings_as_text(run.settings)) {
    auto it = run.before.start->settings.find(name);
    if (it == run.before.start->settings.end() || it->second == value || find_setting(name)->limit) continue;
    changed += fmt::format("{}{} was \"{}\", now \"{}\"", changed.empty() ? "" : "; ", name, it->second, value);
  }
  if (changed.empty()) return {};
  return refuse(Refusal(run_differs, fmt::format("run {} was started with other settings: {}", run.id, changed))
                    .with_help("leave the flags out, or start a new run without --run"));
}

/// Threads of the measured kernel: the target's cores unless given, and never more.
Status settle_threads(TuneRun& run) {
  int& threads = run.settings.tuner.run_threads;
  const Target& target = run.tasks.front().target;
  const int cores = std::max(1, target.cores);
  if (!run.settings.origins.contains("measure.threads")) threads = cores;
  if (threads <= cores) return {};
  return refuse(
      Refusal(setting_invalid, fmt::format("measure.threads: expected at most {}, the cores of target {}, found {}",
                                           cores, target.text(), threads))
          .with_help("more cores are part of the target: --target native:cores=N"));
}

/// What could be built for no candidate, or would run on none of this machine's cores, is said before the run. A fake
/// device builds nothing.
Status check_buildable(const TuneRun& run) {
  if (run.settings.runner.starts_with("fake")) return {};
  for (const Task& task : run.tasks) {
    TW_TRY(const Function* function, schedulable_function(*task.program));
    TW_TRY_VOID(codegen::check_generated(*function, task.target));
    if (std::vector<std::string> missing = features_missing_here(task.target); !missing.empty())
      return refuse(Refusal(target_not_here,
                            fmt::format("this CPU lacks {} of target {}", fmt::join(missing, ", "), task.target.text()))
                        .with_help("--target native, or a runner with such a CPU"));
  }
  return {};
}

/// Flags that nothing on the command line makes use of are mistakes.
int check_flags(Tool& tool, const Arguments& arguments) {
  bool campaign = false, program = false;
  for (const std::string& file : arguments.all("WORKLOAD")) (file.ends_with(".toml") ? campaign : program) = true;
  if (arguments.has("--only") && !campaign)
    return tool.usage("--only picks workloads of a campaign or suite file, found no such file");
  if (arguments.has("--arg") && !program)
    return tool.usage(
        "--arg gives the symbolic extents of a program file, found no such file",
        campaign ? "in a campaign file: args = { n = 4096 } of the task" : "sizes of an operator: --op NAME:K=V,...");
  if (arguments.has("--resume") && !arguments.has("--name"))
    return tool.usage("--resume goes on with the run that --name names, found no --name",
                      "tilewright tune --run RUN goes on with any run");
  return exit_yes;
}

/// Fills the run from the command line; on failure everything has been reported and the exit code is returned.
int prepare(Tool& tool, const Arguments& arguments, TuneRun& run) {
  if (int exit = check_flags(tool, arguments)) return exit;
  std::string named = arguments.get("--run");
  if (arguments.has("--name") && arguments.has("--resume")) named = "runs/" + slug(arguments.get("--name"));
  TaskRequest request{arguments.all("WORKLOAD"), arguments.all("--op"), {}, arguments.all("--only")};
  auto extents = read_extents(tool, arguments.all("--arg"));
  if (!extents) return exit_usage;
  request.extents = *extents;
  const bool none = request.files.empty() && request.ops.empty();
  if (none && named.empty()) {  // the embedded default
    request.ops = {"gemm:m=512,n=512,k=512,dtype=float32"};
    run.settings.tuner.budget_s = 60;
  }
  if (auto errors = settings_from_configuration(run.settings, tool.globals().config); !errors.empty())
    return tool.fail(errors, exit_usage);
  if (!named.empty()) {
    auto found = find_run(named);
    if (found) {
      auto state = replay_run(*found);
      if (!state) return tool.fail(state.error(), exit_of_name(state.error()));
      if (!state->start) return tool.fail(Refusal(run_differs, fmt::format("{} holds no start of a run", *found)));
      run.before = std::move(*state);
      run.resumed = true;
      run.directory = *found;
      run.id = run_id(run.directory);
      if (Status recalled = recall_settings(run); !recalled) return tool.fail(recalled.error());
    } else if (none) {
      return tool.fail(found.error(), exit_usage);
    } else {
      run.directory = named;
    }
  }
  int exit = exit_yes;
  auto requested = read_tasks(tool, request, run.settings, exit);
  if (!requested) return exit;
  if (run.resumed) {
    auto recorded = tasks_of(run.before);
    if (!recorded) return tool.fail(recorded.error());
    bool same = none || std::equal(recorded->begin(), recorded->end(), requested->tasks.begin(), requested->tasks.end(),
                                   [](const Task& a, const Task& b) { return a.key == b.key; });
    if (!same)
      return tool.fail(Refusal(run_differs, fmt::format("{} is a run of another workload", run.directory)), exit_usage);
    run.tasks = std::move(*recorded);
    run.name = run.before.start->name;
  } else {
    run.tasks = std::move(requested->tasks);
    run.name = arguments.get("--name", requested->name);
    if (getrandom(&run.settings.tuner.campaign, sizeof run.settings.tuner.campaign, 0) < 0)
      TW_UNREACHABLE("no random numbers");
    if (run.directory.empty()) {
      bool fixed = arguments.has("--name") && arguments.has("--resume");
      run.directory = fixed ? "runs/" + slug(run.name) : new_run_directory(run.name, run.settings.tuner.campaign);
    }
  }
  run.id = run_id(run.directory);
  if (Status applied = apply_settings(tool, arguments, run); !applied) return tool.fail(applied.error(), exit_usage);
  // A limit of the command line is for every task.
  if (auto origin = run.settings.origins.find("search.trials");
      origin != run.settings.origins.end() && origin->second.starts_with("--"))
    for (Task& task : run.tasks) task.trials = 0;
  if (Status known = check_names(run.settings); !known) return tool.fail(known.error(), exit_usage);
  if (const std::string& warm = run.settings.warm_start; !run.resumed && warm != "auto" && warm != "none")
    if (auto from = find_run(warm); !from) {
      Diagnostic d = from.error().diagnostic();
      d.notes.push_back({"--warm-start takes auto, none or a run", {}});
      return tool.fail(std::vector{d}, exit_usage);
    }
  if (run.resumed)
    if (Status unchanged = check_unchanged(run); !unchanged) return tool.fail(unchanged.error(), exit_usage);
  if (Status threads = settle_threads(run); !threads) return tool.fail(threads.error(), exit_usage);
  if (Status buildable = check_buildable(run); !buildable) return tool.fail(buildable.error(), exit_environment);
  auto baselines = baselines_of(tool, run);
  if (!baselines) return tool.fail(baselines.error(), exit_usage);
  run.settings.tuner.baselines = std::move(*baselines);
  return exit_yes;
}

/// Opens the run's database and enters the run, so that one that cannot be written to is known before anything is
/// measured.
Result<std::unique_ptr<Database>> enter_run(const TuneRun& run) {
  TW_TRY(auto database, open_database(database_url(run.settings.database)));
  Ingest ingest;
  TW_TRY_VOID(ingest.apply({0, 0, run.resumed ? *run.before.start : run_start(run)}));
  TW_TRY(DbCommitted entered, ingest.flush(*database));
  static_cast<void>(entered);
  return database;
}

/// A database that was named must work, or nothing is measured; without the one at the default place the run goes on.
int open_run_database(Tool& tool, TuneRun& run) {
  auto opened = enter_run(run);
  if (opened) return run.database = std::move(*opened), exit_yes;
  const std::string import = fmt::format("tilewright db import-run {}", run.directory);
  Diagnostic d = opened.error().diagnostic();
  if (!run.settings.database.empty()) {
    if (d.help.empty())
      d.help = fmt::format("--db memory: keeps the results in the run's journal only; later: {}", import);
    return tool.fail(std::vector{d}, exit_of_database(opened.error()));
  }
  d.warning = true;
  d.notes.push_back({"the results of this run stay in its journal; nothing that is measured is lost", {}});
  d.help = fmt::format("afterwards, with a database that can be written to: {} --db PATH", import);
  if (tool.globals().json) tool.stream();
  tool.diagnose(d);
  return exit_yes;
}

/// Settled trials of a task that a database holds, by whatever device of its target measured them. Nothing: there is no
/// database, or it cannot be read; the run itself says why.
std::optional<int64_t> stored_trials(Database* database, const TaskStart& task) {
  if (!database) return std::nullopt;
  auto targets = database->targets();
  if (!targets) return std::nullopt;
  int64_t stored = 0;
  for (const TargetEntry& target : *targets) {
    if (target_parts(target.text).at("target") != task.target) continue;
    auto settled = database->settled_trials({task.workload_key, target.key, task.mode});
    if (!settled) return std::nullopt;
    stored += *settled;
  }
  return stored;
}

/// What a run would do: tasks, sketches, sizes.
int dry_run(Tool& tool, const TuneRun& run) {
  Json rows = Json::array();
  const TunerOptions& o = run.settings.tuner;
  auto database = open_database(database_url(run.settings.database), {.create = false, .write = false});
  for (const Task& task : run.tasks) {
    auto parts = parts_for(o.preset, task.target);
    if (!parts) return tool.fail(parts.error(), exit_usage);
    for (const std::string& rule : o.without_rules) std::erase(parts->rules, rule);
    auto space = !o.space_text.empty() ? Space::from_schedule_file(task, *parts, o.space_text, o.space_file)
                 : !o.space.empty()    ? Space::from_function(task, *parts, o.space)
                                       : Space::from_rules(task, *parts);
    if (!space) return tool.fail(space.error());
    double size = 0;
    for (const Sketch& sketch : space->sketches()) size += space->size(task, sketch);
    const int64_t trials = task.trials_of(o.trials);
    auto stored = stored_trials(database ? database->get() : nullptr, task_start(task, rows.size(), o));
    tool.print(fmt::format(" {:<36} {:<14} {} sketches, {:.3g} points, {} trials{}\n", task.name, task.target.name,
                           space->sketches().size(), size, trials,
                           stored.value_or(0) > 0 ? fmt::format(", {} results stored", *stored) : ""));
    rows.push_back({{"task", task.name},
                    {"target", task.target.text()},
                    {"sketches", space->sketches().size()},
                    {"points", size},
                    {"trials", trials}});
    if (stored) rows.back()["stored"] = *stored;
  }
  tool.field("tasks", std::move(rows));
  return exit_yes;
}

int exit_of(const RunReport& report) {
  bool valid = false;
  for (const TaskReport& t : report.tasks) {
    if (t.failed.contains(to_string(TrialStatus::internal_error))) return exit_bug;
    valid |= t.best_ns.has_value();
  }
  if (report.stop_reason == "interrupted") return exit_stopped;
  return valid ? exit_yes : exit_no;
}

int run(Tool& tool, const Arguments& arguments) {
  TuneRun run;
  run.started_us = now_us();
  run.command_line = tool.globals().command_line;
  if (int exit = prepare(tool, arguments, run)) return exit;
  if (arguments.has("--dry-run")) return dry_run(tool, run);
  if (int exit = open_run_database(tool, run)) return exit;
  Progress progress(tool, run, tool.globals().json ? ProgressKind::none : progress_kind(tool.globals()));
  JsonLines lines;
  std::vector<Observer*> observers{&progress};
  if (tool.globals().json) {
    tool.stream();
    observers.push_back(&lines);
  }
  auto report = run_tuner(run, observers);
  progress.finish();
  if (!report) {
    bool usage = report.error().is(strategy_unknown) || report.error().is(scheduler_unknown) ||
                 report.error().is(preset_unknown) || report.error().is(space_unknown) ||
                 report.error().is(unknown_cost_model);
    return tool.fail(report.error(), usage ? exit_usage : exit_environment);
  }
  for (size_t i = 0; i < report->tasks.size(); ++i)
    if (const TaskReport& t = report->tasks[i]; !t.best_trace.empty())
      if (auto folder = save_winner(run, run.tasks[i], t.best_trace); !folder && !run.unwritten)
        tool.diagnose(folder.error().diagnostic());
  print_summary(tool, run, *report, progress.board());
  if (run.unwritten)
    return tool.fail(run.unwritten
                         ->with_note([] {
                           return tilewright::Note{
                               "the run was stopped; what its journal holds is kept, and it goes on once there is room",
                               {}};
                         })
                         .with_help(fmt::format("tilewright tune --run {}", run.directory)),
                     exit_environment);
  return exit_of(*report);
}

const RegisterCommand entry{
    "tune",
    "search for fast schedules of workloads, or go on with a run",
    {{{"WORKLOAD", "program files, or campaign and suite files (*.toml); none: one matrix product of 512, for a minute",
       false, true}},
     {{"--op", "NAME:K=V,...", "a named operator; may be repeated (show ops lists them)", 1, true},
      {"--arg", "NAME=N", "of program files: value of a symbolic extent; may be repeated", 1, true},
      {"--only", "WORD", "of a suite: only workloads with this id, operator or tag; may be repeated", 1, true},
      {"--trials", "N", "measured candidates per task (default 64)"},
      {"--budget", "TIME", "wall time: 90s, 20m, 2h; +10m extends a run"},
      {"--until-no-gain", "", "a task ends after five rounds without 0.5 % of gain"},
      {"--effort", "1..5", "limits in one word, from a look to a night; it prints what it stands for"},
      {"--final", "N", "candidates that the final comparison measures again (default 8)"},
      {"--baseline", "WHAT",
       "compare with default (the untuned program), previous (the last run's best) or a trace file"},
      {"--seed", "N", "of the search (default 1)"},
      {"--runner", "WHERE", "local (default), fake, or fake:FILE"},
      {"--strategy", "S", "show strategies lists them"},
      {"--cost-model", "M", "show cost-models lists them"},
      {"--preset", "P", "tilewright (default) or metaschedule"},
      {"--space", "SPACE", "a schedule file (*.py) or a registered space instead of the rules"},
      {"--no-rule", "RULE", "leave a rule out; may be repeated", 1, true},
      {"--fresh", "", "measure again what the database holds (results are saved all the same)"},
      {"--warm-start", "W", "traces to measure first: auto (default: from the database), none, or a run"},
      {"--run", "RUN", "go on with a run, or the folder of a new one"},
      {"--name", "NAME", "of the run"},
      {"--resume", "", "with --name: go on with runs/NAME if it is there"},
      {"--dry-run", "", "print tasks and space sizes, measure nothing"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
