#include "tools/board.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace tilewright::tools {

std::string nice_time(double ns) {
  if (!(ns > 0)) return "-";
  static constexpr std::pair<double, const char*> units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  for (const auto& [size, unit] : units)
    if (ns >= size || size == 1) {
      double x = ns / size;
      return fmt::format("{:.{}f} {}", x, x < 10 ? 2 : x < 100 ? 1 : 0, unit);
    }
  TW_UNREACHABLE();
}

std::optional<double> roof_share(std::optional<double> roofline_ns, std::optional<double> best_ns) {
  if (!roofline_ns || !best_ns || *best_ns <= 0 || *roofline_ns > *best_ns) return std::nullopt;
  return *roofline_ns / *best_ns;
}

std::string clock_text(double seconds) {
  auto s = static_cast<int64_t>(seconds);
  return s < 3600 ? fmt::format("{:02}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string grouped(int64_t n) {
  std::string digits = fmt::format("{}", n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, " ");
  return digits;
}

std::string counts_text(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> rows(counts.begin(), counts.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (const auto& [what, n] : rows) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", what, grouped(n));
  return out;
}

Board::Board(std::string run, std::vector<BoardTask> tasks, const RunState& before)
    : run_(std::move(run)),
      tasks_(std::move(tasks)),
      funnels_(tasks_.size()),
      now_(before.elapsed_s),
      started_(before.elapsed_s) {
  for (const auto& [number, task] : before.tasks) {
    if (static_cast<size_t>(number) >= tasks_.size()) continue;
    BoardTask& row = tasks_[number];
    row.roofline_ns = task.start.roofline_ns;
    for (int64_t t : task.trials)
      if (before.trials.at(t).origin == "baseline") row.baseline_trials.insert(t);
  }
  for (const CandidatesRefused& e : before.refused)
    if (e.task >= 0 && static_cast<size_t>(e.task) < tasks_.size()) funnels_[e.task].apply(e);
  for (const auto& [number, trial] : before.trials) {
    if (trial.settled) take(*trial.settled, false);
    if (const JobResult* counts = trial.counting(); counts && !counts->settled) take_final(*counts);
  }
  trials_before_ = trials_;
}

int64_t Board::done() const {
  return std::count_if(tasks_.begin(), tasks_.end(), [](const BoardTask& t) { return !t.done.empty(); });
}

double Board::rate() const { return static_cast<double>(trials_ - trials_before_) / std::max(now_ - started_, 1e-3); }

const JobResult* Board::result(int64_t trial) const {
  auto it = results_.find(trial);
  return it == results_.end() ? nullptr : &it->second;
}

std::string Board::status() const {
  std::string kinds = counts_text(failures_);
  return fmt::format("{} trials {:.1f}/s ok {} failed {}{} {} task{}, {} done", trials_, rate(), ok_, trials_ - ok_,
                     kinds.empty() ? "" : " (" + kinds + ")", tasks_.size(), tasks_.size() == 1 ? "" : "s", done());
}

/// A time of the final comparison takes the place of the screening's.
void Board::take_final(const JobResult& r) {
  if (r.task < 0 || static_cast<size_t>(r.task) >= tasks_.size() || r.n <= 0) return;
  results_[r.trial] = r;
  BoardTask& row = tasks_[r.task];
  if (row.baseline_trials.contains(r.trial)) row.baseline_ns = r.median_ns;
}

std::optional<Note> Board::take(const JobResult& r, bool say) {
  if (!r.settled && r.stage == Stage::final) take_final(r);
  if (!r.settled || r.task < 0 || static_cast<size_t>(r.task) >= tasks_.size()) return std::nullopt;
  BoardTask& row = tasks_[r.task];
  results_[r.trial] = r;
  const bool baseline = row.baseline_trials.contains(r.trial);
  funnels_[r.task].apply(r, baseline);
  const bool good = r.status == TrialStatus::ok;
  if (baseline) {
    if (r.n > 0 && r.median_ns < row.baseline_ns.value_or(std::numeric_limits<double>::infinity()))
      row.baseline_ns = r.median_ns;
    return std::nullopt;
  }
  ++trials_, ++row.trials;
  if (good) {
    ++ok_, ++row.ok;
    if (!row.best_ns || r.median_ns < *row.best_ns) {
      std::string gain = row.best_ns ? fmt::format(" {:+.1f} %", 100 * (r.median_ns / *row.best_ns - 1)) : "";
      row.best_ns = r.median_ns;
      row.best_trial = r.trial;
      row.best_after.push_back(*row.best_ns);
      if (say) return Note{fmt::format("best {} {}{} {}:{}", row.name, nice_time(r.median_ns), gain, run_, r.trial)};
      return std::nullopt;
    }
  }
  if (row.best_ns) row.best_after.push_back(*row.best_ns);
  if (good || ++failures_[to_string(r.status)] > 1 || !say) return std::nullopt;
  std::string first = r.detail.substr(0, r.detail.find('\n'));
  return Note{fmt::format("first {}: {}:{} {}", to_string(r.status), run_, r.trial, first)};
}

std::optional<Note> Board::apply(const Event& event) {
  now_ = std::max(now_, event.t);
  auto row = [&](int64_t task) -> BoardTask* {
    return task >= 0 && static_cast<size_t>(task) < tasks_.size() ? &tasks_[task] : nullptr;
  };
  if (auto* start = std::get_if<TaskStart>(&event.body)) {
    if (BoardTask* t = row(start->task)) t->roofline_ns = start->roofline_ns;
  } else if (auto* d = std::get_if<JobDispatched>(&event.body)) {
    if (BoardTask* t = row(d->task); t && d->origin == "baseline") t->baseline_trials.insert(d->trial);
  } else if (auto* r = std::get_if<JobResult>(&event.body)) {
    device_s_ += static_cast<double>(r->device_us.value_or(0)) * 1e-6;
    return take(*r, true);
  } else if (auto* refused = std::get_if<CandidatesRefused>(&event.body)) {
    if (row(refused->task)) funnels_[refused->task].apply(*refused);
  } else if (auto* fit = std::get_if<ModelFit>(&event.body)) {
    auto it = fit->metrics.find("pair-accuracy");
    if (BoardTask* t = row(fit->task); t && it != fit->metrics.end()) t->accuracy = it->second;
  } else if (auto* done = std::get_if<TaskDone>(&event.body)) {
    BoardTask* t = row(done->task);
    if (!t) return std::nullopt;
    t->done = done->reason.empty() ? "done" : done->reason;
    if (done->best_ns) t->best_ns = done->best_ns;
    if (done->best_trial) t->best_trial = *done->best_trial;
    return Note{fmt::format("done {}: {}", t->name, done->best_ns ? nice_time(*done->best_ns) : "nothing valid")};
  } else if (auto* w = std::get_if<Warning>(&event.body)) {
    return Note{fmt::format("warning: {} [{}]", w->message, w->code), true};
  } else if (auto* q = std::get_if<DeviceQuarantined>(&event.body)) {
    return Note{fmt::format("warning: device {} is not used any more: {}", q->device, q->reason), true};
  }
  return std::nullopt;
}

namespace {

/// Columns that the text takes: all that we print is one column a code point.
size_t columns(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string cut(const std::string& text, size_t width) {
  size_t n = 0, i = 0;
  for (; i < text.size(); ++i)
    if ((text[i] & 0xC0) != 0x80 && ++n > width) break;
  return text.substr(0, i);
}

std::string pad(const std::string& text, size_t width, bool right = false) {
  size_t n = columns(text);
  std::string blanks(n < width ? width - n : 0, ' ');
  return right ? blanks + text : text + blanks;
}

/// Speed over the trials so far, in seven steps up to the best.
std::string trend(const BoardTask& t, bool utf8) {
  static constexpr const char* bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr const char* marks[] = {".", ".", ":", "-", "=", "+", "*", "#"};
  constexpr size_t steps = 7;
  std::string out;
  const size_t n = t.best_after.size();
  for (size_t i = 0; i < std::min(n, steps); ++i) {
    size_t at = n <= steps ? i : (i + 1) * n / steps - 1;
    auto level = static_cast<size_t>(7.99 * t.best_after.back() / t.best_after[at]);
    out += utf8 ? bars[std::min<size_t>(level, 7)] : marks[std::min<size_t>(level, 7)];
  }
  return out;
}

std::string eta(const BoardTask& t, double rate, size_t running, double left) {
  if (!t.done.empty()) return "done: " + t.done;
  if (t.trials >= t.limit) return "final comparison";
  if (t.trials == 0 || !(rate > 0)) return "";
  double seconds = static_cast<double>(std::max<int64_t>(t.limit - t.trials, 0)) * static_cast<double>(running) / rate;
  if (left > 0) seconds = std::min(seconds, left);
  return seconds < 90 ? fmt::format("{:.0f}s", seconds) : fmt::format("{:.0f}m", seconds / 60);
}

std::string task_line(const BoardTask& t, size_t width, double rate, size_t running, double left, bool utf8) {
  auto share = [](double x) { return fmt::format("{:.0f} %", 100 * x); };
  const int64_t failed = t.trials - t.ok;
  const std::optional<double> roof = roof_share(t.roofline_ns, t.best_ns);
  return fmt::format(
      " {} {} {} {} {} {} {} {}  {}", pad(cut(t.name, width), width),
      pad(t.best_ns ? nice_time(*t.best_ns) : "-", 9, true),
      pad(t.best_ns && t.baseline_ns ? fmt::format("{:.2f}x", *t.baseline_ns / *t.best_ns) : "-", 8, true),
      pad(roof ? share(*roof) : "-", 6, true), pad(fmt::format("{}/{}", t.trials, t.limit), 9, true),
      pad(failed ? fmt::format("{:.1f} %", 100.0 * static_cast<double>(failed) / static_cast<double>(t.trials)) : "0",
          7, true),
      pad(t.accuracy ? fmt::format("{:.2f}", *t.accuracy) : "-", 6, true), pad(" " + trend(t, utf8), 8),
      eta(t, rate, running, left));
}

}  // namespace

std::vector<std::string> board_table(const Board& board, const std::string& command, const std::string& resume,
                                     const std::string& last, double elapsed, double budget, const TableStyle& style) {
  size_t width = 4;
  for (const BoardTask& t : board.tasks()) width = std::max(width, columns(t.name));
  // 60 columns for the numbers, 20 for the last column.
  width = std::min<size_t>(width, static_cast<size_t>(std::max(style.width - 80, 12)));
  const size_t whole_width = static_cast<size_t>(std::max(style.width - 1, 10)), taken = columns(resume) + 3;
  const std::string title = cut(command, whole_width > taken ? whole_width - taken : 0) + "   " + resume;
  std::vector<std::string> lines{
      title, fmt::format(" {} {} {} {} {} {} {} {}  {}", pad("task", width), pad("best", 9, true),
                         pad("vs base", 8, true), pad("roof", 6, true), pad("trials", 9, true), pad("failed", 7, true),
                         pad("model", 6, true), pad(" trend", 8), "eta")};
  const double left = budget > 0 ? std::max(budget - elapsed, 0.0) : 0;
  const size_t running = board.tasks().size() - static_cast<size_t>(board.done());
  // Title, head, sum and last line stay; tasks that go on come before those that are done.
  size_t room = static_cast<size_t>(std::max(style.height - 5, 1));
  size_t hidden = board.tasks().size() > room ? board.tasks().size() - room + 1 : 0;
  size_t to_hide = hidden;
  std::vector<bool> shown(board.tasks().size(), true);
  for (bool done : {true, false})
    for (size_t i = shown.size(); i-- > 0 && to_hide > 0;)
      if (shown[i] && board.tasks()[i].done.empty() != done) shown[i] = false, --to_hide;
  double sum = 0, start = 0;
  bool whole = true, based = true;
  for (size_t i = 0; i < shown.size(); ++i) {
    const BoardTask& t = board.tasks()[i];
    if (shown[i]) lines.push_back(task_line(t, width, board.rate(), running, left, style.utf8));
    whole &= t.best_ns.has_value();
    based &= t.baseline_ns.has_value();
    sum += t.weight * t.best_ns.value_or(0);
    start += t.weight * t.baseline_ns.value_or(0);
  }
  if (hidden) lines.push_back(fmt::format(" {} more tasks", hidden));
  std::string total = whole ? fmt::format("{} {}{}", style.utf8 ? "Σ weight·latency" : "sum of weight*latency",
                                          nice_time(sum), based ? fmt::format(" (start {})", nice_time(start)) : "")
                            : "";
  const int64_t failed = board.trials() - board.ok();
  lines.push_back(fmt::format(" total  {}{}{} trials {} {:.1f} trials/s{}   [{}{}]", total, total.empty() ? "" : "   ",
                              grouped(board.trials()), style.utf8 ? "·" : "-", board.rate(),
                              failed ? fmt::format(" {} {} failed", style.utf8 ? "·" : "-", grouped(failed)) : "",
                              clock_text(elapsed), budget > 0 ? " of " + clock_text(budget) : ""));
  if (!last.empty()) lines.push_back(" " + last);
  for (std::string& line : lines) line = cut(line, static_cast<size_t>(std::max(style.width - 1, 10)));
  return lines;
}

}  // namespace tilewright::tools
