// tilewright replay: one trial again, exactly: the trace is replayed, built, checked and timed, and every step compared
// with what is recorded.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ir/equal.h"
#include "ir/print.h"
#include "support/append_file.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "tools/runner.h"
#include "tools/settings.h"
#include "workloads/operator.h"

namespace tilewright::tools {
namespace {

/// A trace file (JSON or Python) on --program: nothing is recorded, so that there is nothing to compare with.
std::optional<Subject> subject_of_file(Tool& tool, const std::string& file, const Arguments& arguments, int& exit) {
  std::string workload = arguments.get("--program");
  if (workload.empty()) {
    exit = tool.usage("replay of a trace file: expected --program with a program file or an operator, found none");
    return std::nullopt;
  }
  Subject s;
  s.name = file;
  ProgramRef program;
  if (names_operator(workload)) {
    auto made = make_workload(workload);
    if (!made) return exit = tool.fail(made.error(), exit_usage), std::nullopt;
    program = made->program;
    s.task = made->name;
  } else {
    auto parsed = read_program(tool, workload, exit);
    if (!parsed) return std::nullopt;
    program = parsed->program;
    s.task = std::filesystem::path(workload).stem().string();
  }
  auto target = parse_target(tool.globals().target);
  if (!target) return exit = tool.fail(target.error(), exit_usage), std::nullopt;
  s.target = {{"target", target->text()}};
  s.program = print(*program);
  s.space.mode = Mode::cold;
  auto text = read_file(file);
  if (!text) return exit = tool.fail(text.error(), exit_usage), std::nullopt;
  Applied applied = apply_trace_text(tool, *text, file, program, 0, {});
  if (!applied.errors.empty()) return exit = tool.fail(applied.errors, exit_for_text(applied.errors)), std::nullopt;
  s.trace = trace_to_json(applied.schedule.trace());
  s.trace_key = content_key(s.trace);
  return s;
}

Status write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) return refuse(file_write_failed, fmt::format("cannot write {}", path.string()));
  return {};
}

/// What was replayed, as files: --keep.
Status keep(const std::string& folder, const Subject& s, const Schedule& schedule, const std::string& artifact) {
  std::error_code ec;
  std::filesystem::create_directories(folder, ec);
  std::filesystem::path to = folder;
  TW_TRY_VOID(write_file(to / "program.py", s.program));
  TW_TRY_VOID(write_file(to / "trace.json", s.trace + "\n"));
  TW_TRY_VOID(write_file(to / "trace.py", trace_to_python(schedule.trace())));
  TW_TRY_VOID(write_file(to / "scheduled.py", print(*schedule.program())));
  return artifact.empty() ? Status{} : write_file(to / "kernel.so", artifact);
}

/// "device: was X, is Y" for each part in which the machine here differs from the recorded one.
std::vector<std::string> differences(const ByName<std::string>& then, const ByName<std::string>& now) {
  std::vector<std::string> out;
  for (const auto& [name, value] : now)
    if (auto it = then.find(name); it != then.end() && it->second != value)
      out.push_back(fmt::format("{}: was {}, is {}", name, it->second, value));
  return out;
}

class Replay {
 public:
  Replay(Tool& tool, const Arguments& arguments, Subject subject)
      : tool_(tool), arguments_(arguments), subject_(std::move(subject)) {}

  int run() {
    if (int exit = replay_trace()) return exit;
    if (int exit = measure()) return exit;
    return answer();
  }

 private:
  int replay_trace() {
    auto parsed = parse_program(subject_.program, subject_.name);
    if (!parsed) return tool_.fail(parsed.error(), exit_usage);
    schedule_ = Schedule(parsed->program);
    if (subject_.trace.empty()) return exit_yes;
    auto trace = trace_from_json(std::string_view(subject_.trace));
    if (!trace) return tool_.fail(trace.error());
    Replayed replayed = tilewright::replay(*trace, parsed->program, Rng(0));
    if (!replayed.refusals.empty()) {
      tool_.field("status", to_string(TrialStatus::replay_refused));
      tool_.field("reproduced", subject_.status == TrialStatus::replay_refused);
      return tool_.fail(replayed.refusals[0].refusal);
    }
    schedule_ = std::move(replayed.schedule);
    same_trace_ = trace_to_json(schedule_->trace()) == subject_.trace;
    return exit_yes;
  }

  int measure() {
    auto threads = subject_.target.find("threads");
    auto target = parse_target(subject_.target.at("target"));
    if (!target) return tool_.fail(target.error(), exit_environment);
    measure::Job job;
    job.program = subject_.program;
    job.target = target->text();
    job.contenders = {{subject_.trace, subject_.trace_key}};
    job.build.options = lower_options_of(subject_.target);
    job.run.mode = subject_.space.mode;
    job.run.threads = threads == subject_.target.end() ? std::max(1, target->cores) : std::stoi(threads->second);
    job.run.input_seed = subject_.input_seed;
    if (!timed()) job.run.policy.max_samples = job.run.policy.min_samples;
    job.build.return_artifact = arguments_.has("--keep");
    std::string runner = arguments_.get("--runner", subject_.runner);
    auto measurer = open_runner(runner, 0);
    if (!measurer) return tool_.fail(measurer.error(), exit_environment);
    auto environment = environment_of(**measurer, runner, job.run.threads, *target,
                                      subject_.target.contains("lower") ? subject_.target.at("lower") : "");
    if (!environment) return tool_.fail(environment.error(), exit_environment);
    here_ = std::move(*environment);
    outcome_ = run_job(**measurer, job);
    if (!arguments_.has("--keep")) return exit_yes;
    std::string artifact;
    if (std::string digest = artifact_now(); !digest.empty())
      if (auto bytes = (*measurer)->artifact(digest)) artifact = *bytes;
    Status kept = keep(arguments_.get("--keep"), subject_, *schedule_, artifact);
    return kept ? exit_yes : tool_.fail(kept.error(), exit_environment);
  }

  bool timed() const { return !arguments_.has("--check") || arguments_.has("--measure"); }
  std::string artifact_now() const { return outcome_.builds.empty() ? "" : outcome_.builds.front().artifact; }
  std::string toolchain_now() const { return outcome_.builds.empty() ? "" : outcome_.builds.front().toolchain; }

  /// "same", "different", or why there is nothing to say.
  std::string artifact_verdict() const {
    if (artifact_now().empty()) return "not built";
    if (subject_.artifact.empty()) return "none recorded";
    if (subject_.toolchain != toolchain_now())
      return fmt::format("built by {} then, by {} now", subject_.toolchain, toolchain_now());
    return subject_.artifact == artifact_now() ? "same" : "different";
  }

  int answer() {
    const TrialStatus now = outcome_.status;
    const bool recorded = subject_.status != TrialStatus::unspecified;
    // What went wrong with the machine then need not go wrong now.
    const bool same_status = !recorded ? now == TrialStatus::ok
                                       : now == subject_.status || (now == TrialStatus::ok &&
                                                                    info(subject_.status).owner == Owner::environment);
    const std::string artifact = artifact_verdict();
    const bool reproduced = same_trace_ && same_status && artifact != "different";
    const std::string program_hash = fmt::format("{:016x}", structural_hash(schedule_->function()));

    tool_.print(fmt::format("{}  {}\n", subject_.name, subject_.task));
    tool_.print(fmt::format("trace:    {}\n", same_trace_ ? "same after replay" : "another one after replay"));
    tool_.print(fmt::format("program:  {}\n", program_hash));
    tool_.print(fmt::format("artifact: {}  {}\n", artifact_now().substr(0, 16), artifact));
    tool_.print(fmt::format("status:   {}{}{}\n", to_string(now), outcome_.detail.empty() ? "" : ": " + outcome_.detail,
                            recorded ? fmt::format("  (recorded: {})", to_string(subject_.status)) : ""));
    Json differing = Json::array();
    for (const std::string& line : differences(subject_.target, here_)) {
      tool_.print(fmt::format("machine:  {}\n", line));
      differing.push_back(line);
    }
    const measure::Measurement* m = outcome_.measurements.empty() ? nullptr : &outcome_.measurements.front();
    if (m && m->n > 0 && timed()) {
      std::string then = subject_.n > 0 ? fmt::format("  (recorded: {} [{}, {}])", nice_time(subject_.median_ns),
                                                      nice_time(subject_.ci_lo_ns), nice_time(subject_.ci_hi_ns))
                                        : "";
      tool_.print(fmt::format("time:     {} [{}, {}]{}\n", nice_time(m->median), nice_time(m->ci_lo),
                              nice_time(m->ci_hi), then));
      if (subject_.n > 0) tool_.field("recorded_ns", subject_.median_ns);
      tool_.field("median_ns", m->median);
      tool_.field("ci_lo_ns", m->ci_lo);
      tool_.field("ci_hi_ns", m->ci_hi);
      tool_.field("n", m->n);
    }
    tool_.print(reproduced ? "reproduced\n" : "not reproduced\n");
    tool_.field("status", to_string(now));
    tool_.field("detail", outcome_.detail);
    tool_.field("program_hash", program_hash);
    tool_.field("artifact_hash", artifact_now());
    tool_.field("artifact", artifact);
    tool_.field("differences", std::move(differing));
    tool_.field("reproduced", reproduced);
    return reproduced ? exit_yes : exit_no;
  }

  Tool& tool_;
  const Arguments& arguments_;
  Subject subject_;
  std::optional<Schedule> schedule_;
  bool same_trace_ = true;
  ByName<std::string> here_;
  measure::Outcome outcome_;
};

int run(Tool& tool, const Arguments& arguments) {
  std::string what = arguments.get("WHAT");
  std::error_code ec;
  if (what == "-" || std::filesystem::is_regular_file(what, ec)) {
    int exit = exit_yes;
    auto subject = subject_of_file(tool, what, arguments, exit);
    return subject ? Replay(tool, arguments, std::move(*subject)).run() : exit;
  }
  if (arguments.has("--program"))
    return tool.usage(fmt::format("--program belongs to a trace file, found \"{}\"", what));
  auto subject = find_subject(tool, what);
  if (!subject) return tool.fail(subject.error(), exit_of_name(subject.error()));
  if (subject->trace.empty() && names_record(what))
    return tool.fail(Refusal(record_unknown, fmt::format("the trace of {} was pruned", subject->name)));
  return Replay(tool, arguments, std::move(*subject)).run();
}

const RegisterCommand entry{"replay",
                            "measure one trial again, and say whether it comes out the same",
                            {{{"WHAT", "RUN:N, RUN:best, N (of the last run), a record r-..., or a trace file"}},
                             {{"--program", "P", "of a trace file: the program file or operator"},
                              {"--runner", "WHERE", "local, fake or fake:FILE (default: as recorded)"},
                              {"--check", "", "build and check only, print no time"},
                              {"--measure", "", "time it as well: the default, unless there is --check"},
                              {"--keep", "DIR", "write program, trace, scheduled program and kernel there"}},
                             run}};

}  // namespace
}  // namespace tilewright::tools
