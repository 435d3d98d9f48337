// tilewright explain: what became of a trial and why, what a run's failures were, or what a code means.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "database/journal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "lowering/pipeline.h"
#include "schedule/primitive.h"
#include "support/json.h"
#include "tools/board.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/run_directory.h"
#include "tools/runner.h"
#include "tools/task_outcome.h"
#include "tools/text_diff.h"

namespace tilewright::tools {
namespace {

/// What a run does about a status, and what a person can do.
struct Advice {
  std::string whose, next, help;
};
Advice advice_on(TrialStatus status) {
  Advice a;
  switch (info(status).owner) {
    case Owner::environment:
      a.whose = "this is the machine's, not the candidate's: it says nothing about the candidate";
      a.help = "what disturbs the machine: tilewright doctor";
      break;
    case Owner::candidate:
      a.whose = "this is the candidate's: the run counts it, the search learns from it and goes on";
      a.help = "first trial of each kind in a run: tilewright explain RUN; once more: tilewright replay RUN:N";
      break;
    case Owner::ours:
      a.whose = "this is a bug of Tilewright";
      a.help = "please report it with what `tilewright explain RUN:N` prints";
      break;
    case Owner::none:
      break;
  }
  switch (info(status).next) {
    case Next::retry_alone:
    case Next::retry_fresh:
    case Next::retry_low:
    case Next::retry_elsewhere:
      a.next = "it is tried again before it counts";
      break;
    case Next::recheck:
      a.next = "it is checked again before it counts";
      break;
    case Next::confirm_floor:
      a.next = "it is measured again before it counts, and never ranked";
      break;
    case Next::final:
    case Next::record:
    case Next::by_reject_code:
    case Next::again_if_wanted:
      break;
  }
  if (info(status).blocks) a.next += "; afterwards the trace is blocked in the database until `tilewright db unblock`";
  return a;
}

bool explain_code(Tool& tool, const std::string& word) {
  if (const RefusalCode* code = find_refusal_code(word)) {
    tool.print(fmt::format("{}: {}\n", code->text, code->doc));
    tool.field("doc", code->doc);
    return true;
  }
  if (auto status = parse_name<TrialStatus>(word)) {
    tool.print(fmt::format("{}: {}\n", word, info(*status).meaning));
    tool.field("doc", info(*status).meaning);
    const Advice advice = advice_on(*status);
    for (const std::string& line : {advice.whose, advice.next, advice.help})
      if (!line.empty()) tool.print("  " + line + "\n");
    tool.field("whose", advice.whose);
    tool.field("next", advice.next);
    tool.field("help", advice.help);
    return true;
  }
  return false;
}

/// One instruction of a trace, with what it did to the program.
struct Step {
  std::string text;     ///< as a line of the Python form
  std::string program;  ///< after it
  std::string diff;     ///< against the program before; empty: no change
};

Result<std::vector<Step>> steps_of(const Trace& trace, const ProgramRef& program) {
  std::vector<Step> out;
  Schedule schedule(program);
  std::string before = print(*program);
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    auto applied = schedule.apply(trace.instructions[i], true);
    if (!applied) return refuse(applied.error());
    Step step{trace_line(trace, i), print(*schedule.program()), ""};
    step.diff = line_diff(before, step.program);
    before = step.program;
    out.push_back(std::move(step));
  }
  return out;
}

void indent(Tool& tool, const std::string& text) {
  size_t start = 0;
  while (start < text.size()) {
    size_t end = std::min(text.find('\n', start), text.size());
    tool.print("      " + text.substr(start, end - start) + "\n");
    start = end + 1;
  }
}

/// Every step with its difference; steps that changed nothing are one line.
int print_steps(Tool& tool, const std::vector<Step>& steps, bool diffs) {
  Json list = Json::array();
  for (size_t i = 0; i < steps.size(); ++i) {
    tool.print(fmt::format("{:>4}  {}\n", i, steps[i].text));
    if (diffs) indent(tool, steps[i].diff);
    Json row = {{"step", i}, {"text", steps[i].text}, {"changed", !steps[i].diff.empty()}};
    if (diffs) row["diff"] = steps[i].diff;
    list.push_back(std::move(row));
  }
  tool.field("steps", std::move(list));
  return exit_yes;
}

int print_step(Tool& tool, const std::vector<Step>& steps, const std::string& text) {
  auto number = read_number(tool, "--step", text);
  if (!number) return exit_usage;
  if (*number >= steps.size())
    return tool.usage(fmt::format("--step: the trace has steps 0 to {}, found {}", steps.size() - 1, *number));
  const Step& step = steps[*number];
  tool.print(fmt::format("{:>4}  {}\n", *number, step.text));
  tool.print(step.diff.empty() ? "      changed nothing\n" : "");
  indent(tool, step.diff);
  tool.print(step.program);
  tool.field("step", Json{{"step", *number}, {"text", step.text}, {"diff", step.diff}, {"program", step.program}});
  return exit_yes;
}

/// What lowering makes of the scheduled program, pass by pass.
int print_passes(Tool& tool, const Program& program, const std::string& target_text,
                 const std::map<std::string, std::string>& lower) {
  auto target = parse_target(target_text);
  if (!target) return tool.fail(target.error());
  const Function* function = program.main();
  if (!function) return tool.fail(schedulable_function(program).error());
  std::string before;
  Json list = Json::array();
  auto options = lower_options(tool.globals(), lower);
  if (!options) return tool.fail(options.error(), exit_usage);
  auto lowered = lowering::lower(*function, *target, *options, [&](const std::string& pass, const FunctionRef& f) {
    std::string now = print(*f);
    std::string diff = pass.empty() ? "" : line_diff(before, now);
    if (!pass.empty()) {
      tool.print(fmt::format("pass {}{}\n", pass, diff.empty() ? ": changed nothing" : ""));
      indent(tool, diff);
      list.push_back({{"pass", pass}, {"diff", diff}});
    }
    before = std::move(now);
  });
  tool.field("passes", std::move(list));
  if (!lowered) return tool.fail(lowered.error());
  return exit_yes;
}

/// Sampled values that differ from the winner's, by instruction.
void print_decisions(Tool& tool, const Trace& trace, const Trace& winner) {
  if (!(without_decisions(trace) == without_decisions(winner))) {
    tool.print("decisions: the winner is of another sketch\n");
    return;
  }
  auto line = [](const Trace& t, size_t i) {
    std::string text = trace_line(t, i);
    size_t at = text.find("decision=");
    return at == std::string::npos ? text : text.substr(at + 9, text.rfind(')') - at - 9);
  };
  bool any = false;
  for (size_t i = 0; i < trace.instructions.size(); ++i) {
    if (!trace.instructions[i].decision || trace.instructions[i].decision == winner.instructions[i].decision) continue;
    tool.print(fmt::format("decision of step {} ({}): {}, the winner's {}\n", i, trace.instructions[i].kind->name,
                           line(trace, i), line(winner, i)));
    any = true;
  }
  if (!any) tool.print("decisions: the winner's\n");
}

Json print_results(Tool& tool, const TrialState& trial) {
  Json results = Json::array();
  for (const JobResult& r : trial.results) {
    tool.print(fmt::format("attempt {}{}: {}{}{}\n", r.attempt,
                           r.stage == Stage::final && !r.settled ? " (final comparison)" : "", to_string(r.status),
                           r.n ? fmt::format(", {} [{}, {}], {} samples", nice_time(r.median_ns), nice_time(r.ci_lo_ns),
                                             nice_time(r.ci_hi_ns), r.n)
                               : "",
                           r.status == TrialStatus::ok ? r.verified ? ", verified" : ", not verified"
                                                       : ": " + std::string(info(r.status).meaning)));
    if (!r.detail.empty()) tool.print(fmt::format("  {}: {}\n", r.phase, r.detail));
    if (!r.build.empty()) {
      std::string facts;
      for (const auto& [what, value] : r.build)
        facts += fmt::format("{}{} {:.6g}", facts.empty() ? "" : ", ", what, value);
      tool.print(fmt::format("  build: {}\n", facts));
    }
    results.push_back({{"attempt", r.attempt},
                       {"status", to_string(r.status)},
                       {"stage", to_string(r.stage)},
                       {"median_ns", r.median_ns},
                       {"n", r.n},
                       {"verified", r.verified},
                       {"detail", r.detail},
                       {"build", r.build}});
  }
  return results;
}

/// Its place among the task's results, in one line.
void print_verdict(Tool& tool, const RunState& run, const TaskState& task, int64_t number,
                   std::optional<int64_t> best) {
  const auto& settled = run.trials.at(number).settled;
  if (!settled) return tool.print("verdict: no result; the run stopped while it was measured\n");
  if (best == number) return tool.print("verdict: the winner of its task\n");
  if (settled->status != TrialStatus::ok)
    return tool.print(
        fmt::format("verdict: lost, it ended as {}: {}\n", to_string(settled->status), info(settled->status).meaning));
  const JobResult* winner = best ? run.trials.at(*best).counting() : nullptr;
  if (!winner) return;
  const double time = run.trials.at(number).counting()->median_ns;
  int64_t faster = std::count_if(task.trials.begin(), task.trials.end(), [&](int64_t other) {
    const JobResult* o = run.trials.at(other).counting();
    return o && o->status == TrialStatus::ok && o->median_ns < time;
  });
  tool.print(fmt::format("verdict: {:.2f}x the winner's time; {} of {} trials are faster\n", time / winner->median_ns,
                         faster, task.trials.size()));
}

int explain_trial(Tool& tool, const Arguments& arguments, const TrialName& named) {
  const TrialState& trial = named.run.trials.at(named.trial);
  const TaskState& task = named.run.tasks.at(trial.task);
  const std::string id = run_id(named.directory);
  auto best = winner_of(named.run, task);
  tool.field("task", task.start.name);
  tool.field("trial", named.trial);
  auto parsed = parse_program(task.start.program, task.start.name);
  if (!parsed) return tool.fail(parsed.error());
  Trace trace;
  if (!trial.trace.empty()) {
    auto read = trace_from_json(std::string_view(trial.trace));
    if (!read) return tool.fail(read.error());
    trace = *read;
  }
  auto steps = steps_of(trace, parsed->program);
  if (!steps) return tool.fail(steps.error());
  if (arguments.has("--step")) {
    if (steps->empty()) return tool.usage("--step: this trial is the unscheduled program, it has no steps");
    return print_step(tool, *steps, arguments.get("--step"));
  }
  if (arguments.has("--passes")) {
    Replayed replayed = replay(trace, parsed->program, Rng(0));
    return print_passes(tool, *replayed.schedule.program(), task.start.target,
                        lower_options_of(task.start.environment));
  }
  tool.print(fmt::format("trial {}:{} of {} on {}\n", id, named.trial, task.start.name, task.start.target));
  tool.field("results", print_results(tool, trial));
  tool.print(trial.trace.empty() ? "the unscheduled program\n" : "trace:\n");
  print_steps(tool, *steps, arguments.has("--diff"));
  if (!trial.trace.empty()) tool.field("trace", Json::parse(trial.trace));
  if (best && *best != named.trial && !trial.trace.empty() && named.run.trials.contains(*best))
    if (auto winner = trace_from_json(std::string_view(named.run.trials.at(*best).trace)))
      print_decisions(tool, trace, *winner);
  if (trial.predicted_ns) tool.print(fmt::format("predicted: {}\n", nice_time(*trial.predicted_ns)));
  print_verdict(tool, named.run, task, named.trial, best);
  if (Registry<Command>::instance().find("replay"))
    tool.print(fmt::format("again: tilewright replay {}:{}\n", id, named.trial));
  return exit_yes;
}

/// By task.
std::map<int64_t, Funnel> funnels_of(const RunState& state) {
  std::map<int64_t, Funnel> out;
  for (const CandidatesRefused& e : state.refused) out[e.task].apply(e);
  for (const auto& [number, trial] : state.trials)
    for (const JobResult& r : trial.results) out[trial.task].apply(r, trial.origin == "baseline");
  return out;
}

Json funnel_json(const Funnel& funnel) {
  Json stages = Json::array();
  for (const FunnelStage& s : funnel.stages())
    stages.push_back({{"stage", s.name}, {"kept", s.kept}, {"lost", s.lost}, {"reasons", s.reasons}});
  return stages;
}

/// A run: per task the funnel, and the failures by kind, each with its first example.
int explain_run(Tool& tool, const std::string& directory) {
  auto state = replay_run(directory);
  if (!state) return tool.fail(state.error(), exit_of_name(state.error()));
  std::map<int64_t, Funnel> funnels = funnels_of(*state);
  const std::string id = run_id(directory);
  Json tasks = Json::array();
  for (const auto& [number, task] : state->tasks) {
    std::map<std::string, std::pair<int64_t, int64_t>> kinds;  // status → count, first trial
    for (int64_t trial : task.trials)
      if (const auto& settled = state->trials.at(trial).settled) {
        auto [it, fresh] = kinds.try_emplace(std::string(to_string(settled->status)), 0, trial);
        ++it->second.first;
      }
    tool.print(fmt::format("{} on {}: {} trials{}\n", task.start.name, task.start.target, task.trials.size(),
                           task.done ? ", stopped by: " + task.done->reason : ""));
    Json row = Json::object();
    for (const auto& [status, entry] : kinds) {
      const JobResult& r = *state->trials.at(entry.second).settled;
      std::string detail = r.detail.substr(0, r.detail.find('\n'));
      tool.print(fmt::format("  {:<16} {:>5}{}\n", status, entry.first,
                             r.status == TrialStatus::ok ? ""
                                                         : fmt::format("  first {}:{}{}", id, entry.second,
                                                                       detail.empty() ? "" : " " + detail)));
      row[status] = {{"count", entry.first}, {"first", entry.second}, {"detail", detail}};
    }
    tool.print(funnel_text(task.start.name, funnels[number]));
    tasks.push_back(
        {{"task", task.start.name}, {"statuses", std::move(row)}, {"funnel", funnel_json(funnels[number])}});
  }
  tool.field("tasks", std::move(tasks));
  return exit_yes;
}

int explain_record(Tool& tool, const std::string& name) {
  auto database = existing_database(tool);
  if (!database) return tool.fail(database.error(), exit_of_name(database.error()));
  auto record = find_record(**database, name);
  if (!record) return tool.fail(record.error(), exit_of_name(record.error()));
  auto subject = subject_of(**database, *record);
  if (!subject) return tool.fail(subject.error(), exit_of_name(subject.error()));
  tool.print(fmt::format("record {} of {} on {}, {}\n", record->id(), subject->task, subject->target.at("target"),
                         to_string(record->mode)));
  for (const auto& [part, value] : subject->target)
    if (part != "target") tool.print(fmt::format("  {}: {}\n", part, value));
  tool.print(record->blocked ? "blocked: it was wrong once; db unblock lets it be ranked again\n"
             : record->rank_ns
                 ? fmt::format("{} [{}, {}], {} samples, {}{}\n", nice_time(*record->rank_ns),
                               nice_time(subject->ci_lo_ns), nice_time(subject->ci_hi_ns), record->n,
                               to_string(record->stage), record->verified ? ", verified" : ", not verified")
                 : fmt::format("no time: {}\n", to_string(record->status)));
  Json results = Json::array();
  Status read = (*database)->for_each_measurement(&*record, [&](const Measurement& m) -> Status {
    const JobResult& r = m.result;
    tool.print(fmt::format("campaign {}, trial {}, attempt {}: {}{}{}\n", hex64(m.campaign.value), m.seq & 0xffffffff,
                           r.attempt, to_string(r.status), r.n ? ", " + nice_time(r.median_ns) : "",
                           m.withdrawn        ? ", withdrawn"
                           : r.detail.empty() ? ""
                                              : ": " + r.detail));
    results.push_back({{"campaign", hex64(m.campaign.value)},
                       {"trial", m.seq & 0xffffffff},
                       {"attempt", r.attempt},
                       {"status", to_string(r.status)},
                       {"median_ns", r.median_ns},
                       {"n", r.n},
                       {"verified", r.verified},
                       {"withdrawn", m.withdrawn},
                       {"detail", r.detail}});
    return {};
  });
  if (!read) return tool.fail(read.error(), exit_of_name(read.error()));
  tool.field("record", record->id());
  tool.field("task", subject->task);
  tool.field("results", std::move(results));
  if (record->trace.empty()) return tool.print("its trace was pruned\n"), exit_yes;
  auto trace = trace_from_json(std::string_view(record->trace));
  if (!trace) return tool.fail(trace.error());
  tool.print(trace_to_python(*trace));
  tool.field("trace", Json::parse(record->trace));
  return exit_yes;
}

int unknown_name(Tool& tool, const std::string& word) {
  std::vector<std::string> names;
  for (const RefusalCode* code : all_refusal_codes()) names.emplace_back(code->text);
  for (TrialStatus status : all_values<TrialStatus>()) names.emplace_back(to_string(status));
  for (const std::string& run : runs_latest_first()) names.push_back(run_id(run));
  std::string near = did_you_mean(word, names);
  return tool.usage(fmt::format("expected a run, RUN:N, RUN:best, N, a record r-<hexadecimal digits>, or a refusal or "
                                "status code, found \"{}\"",
                                word),
                    !near.empty()            ? fmt::format("did you mean \"{}\"?", near)
                    : word.starts_with("r-") ? "tilewright db top lists records"
                                             : "tilewright show refusals lists the codes; runs are folders of ./runs");
}

int explain(Tool& tool, const Arguments& arguments) {
  std::string what = arguments.get("WHAT");
  if (explain_code(tool, what)) return exit_yes;
  if (names_record(what)) return explain_record(tool, what);
  const bool number =
      !what.empty() && std::all_of(what.begin(), what.end(), [](char c) { return c >= '0' && c <= '9'; });
  // A bare number is a trial of the last run, even where a run's id looks like one.
  if (what.find(':') == std::string::npos && !number)
    if (auto directory = find_run(what); directory || directory.error().is(run_ambiguous))
      return directory ? explain_run(tool, *directory) : tool.fail(directory.error(), exit_usage);
  if (what.find(':') == std::string::npos && !number) return unknown_name(tool, what);
  auto named = find_trial(what);
  if (!named) return tool.fail(named.error(), exit_of_name(named.error()));
  return explain_trial(tool, arguments, *named);
}

const RegisterCommand entry{
    "explain",
    "what became of a trial, what a run's failures were, or what a refusal or status code means",
    {{{"WHAT", "RUN:N, RUN:best, RUN:best/TASK, N (of the last run), a run, a record r-..., or a code"}},
     {{"--diff", "", "each step of the trace with what it changed in the program"},
      {"--step", "K", "one step, and the program after it"},
      {"--passes", "", "what each lowering pass changed"}},
     explain}};

}  // namespace
}  // namespace tilewright::tools
