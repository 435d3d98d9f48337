#include "tools/summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/task_outcome.h"

namespace tilewright::tools {

namespace {

/// As --run and the views take it, quoted where a shell would cut it.
std::string shown_run(const TuneRun& run) { return run.directory.starts_with("runs/") ? run.id : run.directory; }
std::string quoted(const std::string& word) { return word.find(' ') == std::string::npos ? word : "'" + word + "'"; }

std::string long_clock(double seconds) {
  auto s = static_cast<int64_t>(seconds);
  return s < 60 ? fmt::format("{}s", s) : fmt::format("{}m {:02}s", s / 60, s % 60);
}

void print_winners(Tool& tool, const TuneRun& run, const RunReport& report, const Board& board) {
  size_t width = 0;
  for (const TaskReport& t : report.tasks) width = std::max(width, t.name.size());
  for (size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskReport& t = report.tasks[i];
    if (!t.best_ns) {
      tool.print(fmt::format(" {:<{}}  no valid candidate: {}{}\n", t.name, width,
                             why_no_winner(t.stop_reason, t.trials, t.failed),
                             t.refused.empty() ? "" : "; refused while sampling: " + counts_text(t.refused)));
      continue;
    }
    // Only the untuned program is valid: why.
    const std::string verdict =
        t.ok > 0 ? t.verdict : fmt::format("{} ({})", t.verdict, why_no_winner(t.stop_reason, t.trials, t.failed));
    std::string interval = t.best_lo_ns && *t.best_lo_ns > 0
                               ? fmt::format(" [{}, {}]", nice_time(*t.best_lo_ns), nice_time(*t.best_hi_ns))
                               : "";
    std::string ratio = t.baseline_ns ? fmt::format("{:.2f}x", *t.baseline_ns / *t.best_ns) : "-";
    const BoardTask& row = board.tasks()[i];
    std::string rate = run.tasks[i].flop > 0 ? fmt::format("  {:.1f} GFLOP/s", run.tasks[i].flop / *t.best_ns) : "";
    if (auto roof = roof_share(row.roofline_ns, t.best_ns)) rate += fmt::format("  {:.0f} %", 100 * *roof);
    const JobResult* result = board.result(t.best_trial);
    tool.print(fmt::format(" {:<{}}  {}{}  {}{}   {}{}\n", t.name, width, nice_time(*t.best_ns), interval, ratio, rate,
                           t.best_trial >= 0 ? fmt::format("{}:{}, {}", run.id, t.best_trial, verdict) : verdict,
                           fmt::format("{}{}", result && result->verified ? "   checked" : "",
                                       t.stop_reason == report.stop_reason ? "" : "   (" + t.stop_reason + ")")));
  }
}

/// Shares of this start's wall time.
void print_time(Tool& tool, const TuneRun& run, const RunReport& report, const Board& board) {
  const double total = std::max(board.now() - run.before.elapsed_s, 1e-3);
  std::string text;
  double known = 0;
  for (const char* what : {"measure", "search", "train"}) {
    auto it = report.seconds.find(what);
    const double s = it == report.seconds.end() ? 0 : it->second;
    known += s;
    text += fmt::format("{} {:.0f} %", what, 100 * s / total);
    text += std::string_view(what) == "measure" ? fmt::format(" (device {:.0f} %)  ", 100 * board.device_s() / total)
                                                : "  ";
  }
  tool.print(fmt::format("time: {}other {:.0f} %      saved: {}{}{}\n", text,
                         100 * std::max(total - known, 0.0) / total,
                         run.saved ? fmt::format("database +{} results, ", run.saved_rows) : "", run.directory,
                         report.reused ? fmt::format(" ({} results were known)", report.reused) : ""));
  if (!run.saved)
    tool.print(fmt::format("      in the journal of the run only; into a database: tilewright db import-run {}\n",
                           quoted(run.directory)));
}

void print_warnings(Tool& tool, const RunReport& report, const Board& board) {
  auto warn = [&](const std::string& text) { tool.print("warning: " + text + "\n"); };
  for (const TaskReport& t : report.tasks) {
    if (!t.best_ns) continue;
    if (t.verdict.starts_with("tied")) warn(fmt::format("{}: the best candidates are tied", t.name));
    if (t.best_lo_ns && *t.best_hi_ns - *t.best_lo_ns > 0.03 * *t.best_ns)
      warn(
          fmt::format("{}: the interval of the best time is {:.1f} % wide; `tilewright doctor` says what disturbs "
                      "this machine",
                      t.name, 100 * (*t.best_hi_ns - *t.best_lo_ns) / *t.best_ns));
    const JobResult* r = board.result(t.best_trial);
    if (!r) continue;
    if (auto it = r->build.find("spill_bytes"); it != r->build.end() && it->second > 0)
      warn(fmt::format("{}: the winner spills {:.0f} bytes of registers", t.name, it->second));
    if (std::find(r->flags.begin(), r->flags.end(), "throttled") != r->flags.end())
      warn(fmt::format("{}: the device was throttled while the winner ran", t.name));
  }
  for (const auto& [status, n] : board.failures())
    if (static_cast<double>(n) > 0.05 * static_cast<double>(board.trials()))
      warn(fmt::format("{:.1f} % of the trials ended as {}: tilewright explain {}",
                       100.0 * static_cast<double>(n) / static_cast<double>(board.trials()), status, status));
}

/// "gemm … still gained 1.9 % in its last 16 trials": of the task that gained most.
std::string late_gain(const Board& board) {
  std::string text;
  double most = 0.002;  // less is noise
  for (const BoardTask& t : board.tasks()) {
    const size_t n = t.best_after.size(), tail = n / 4;
    if (tail < 4) continue;
    const double gain = 1 - t.best_after[n - 1] / t.best_after[n - 1 - tail];
    if (gain <= most) continue;
    most = gain;
    text = fmt::format("   # {} gained {:.1f} % in its last {} trials", t.name, 100 * gain, tail);
  }
  return text;
}

void print_next(Tool& tool, const TuneRun& run, const RunReport& report, const Board& board) {
  const std::string id = shown_run(run);
  std::string winner;
  for (const TaskReport& t : report.tasks)
    if (!t.best_trace.empty() && winner.empty())
      winner = report.tasks.size() == 1 ? id + ":best" : id + ":best/" + t.name;
  tool.print("next:\n");
  tool.print(fmt::format("  tilewright report {}\n", quoted(id)));
  if (!winner.empty()) {
    tool.print(fmt::format("  tilewright explain {}\n", quoted(winner)));
    tool.print(fmt::format("  tilewright export {} --as cpu --out kernels\n", quoted(id)));
  }
  const bool exhausted = std::all_of(report.tasks.begin(), report.tasks.end(),
                                     [](const TaskReport& t) { return t.stop_reason == "the space is exhausted"; });
  if (exhausted) return;
  // What ended the run is what has to grow.
  const double budget = run.settings.tuner.budget_s;
  std::string more = report.stop_reason == "budget"
                         ? fmt::format("--budget +{}m", std::max(1, static_cast<int>(budget / 60)))
                     : report.stop_reason == "interrupted" ? ""
                                                           : fmt::format("--trials {}", 2 * run.settings.tuner.trials);
  tool.print(
      fmt::format("  tilewright tune --run {}{}{}{}\n", quoted(id), more.empty() ? "" : " ", more, late_gain(board)));
}

}  // namespace

void print_summary(Tool& tool, const TuneRun& run, const RunReport& report, const Board& board) {
  int64_t trials = 0, ok = 0;
  std::map<std::string, int64_t> failed;
  for (const TaskReport& t : report.tasks) {
    trials += t.trials;
    ok += t.ok;
    for (const auto& [status, n] : t.failed) failed[status] += n;
  }
  tool.print(fmt::format("done: {} ({})     {} trials: {} ok, {} failed{}\n", report.stop_reason,
                         long_clock(board.now()), grouped(trials), grouped(ok), grouped(trials - ok),
                         failed.empty() ? "" : " (" + counts_text(failed) + ")"));
  print_winners(tool, run, report, board);
  print_time(tool, run, report, board);
  print_warnings(tool, report, board);
  for (size_t i = 0; i < report.tasks.size(); ++i)
    if (!report.tasks[i].best_ns || board.funnel(i).narrow())
      tool.print(funnel_text(report.tasks[i].name, board.funnel(i)));
  print_next(tool, run, report, board);
}

}  // namespace tilewright::tools
