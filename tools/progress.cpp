#include "tools/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "tools/run_directory.h"
#include "tools/tune_run.h"

namespace tilewright::tools {

namespace {

using namespace std::chrono_literals;
constexpr auto kRedraw = 200ms;      // five times a second: more is flicker and work
constexpr double kStatusEvery = 30;  // seconds, in plain mode
constexpr auto kSilence = 2s;        // after that a person wonders whether anything goes on

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value;
}

/// The terminal shows UTF-8, as far as the locale tells.
bool utf8_locale() {
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (is_set(variable)) {
      std::string value = std::getenv(variable);
      std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
      return value.find("utf-8") != std::string::npos || value.find("utf8") != std::string::npos;
    }
  return false;
}

std::vector<BoardTask> rows_of(const TuneRun& run) {
  std::vector<BoardTask> rows;
  for (const Task& task : run.tasks) {
    BoardTask row;
    row.name = task.name;
    row.weight = task.weight;
    row.limit = task.trials_of(run.settings.tuner.trials);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string command_of(const TuneRun& run) {
  std::string command = "tilewright";
  for (size_t i = 1; i < run.command_line.size(); ++i) command += " " + run.command_line[i];
  return command;
}

}  // namespace

ProgressKind progress_kind(const Globals& globals) {
  if (globals.progress == "none" || globals.quiet) return ProgressKind::none;
  if (globals.progress == "plain") return ProgressKind::plain;
  if (globals.progress == "json") return ProgressKind::json;
  const char* term = std::getenv("TERM");
  const bool moves = term && *term && std::string_view(term) != "dumb";
  return isatty(STDERR_FILENO) && moves && !is_set("CI") ? ProgressKind::live : ProgressKind::plain;
}

Progress::Progress(Tool& tool, const TuneRun& run, ProgressKind kind)
    : tool_(tool),
      kind_(kind),
      verbose_(tool.globals().verbose),
      command_(command_of(run)),
      resume_(fmt::format("run {}   resume: tilewright tune --run {}", run.id, run.directory)),
      budget_(run.settings.tuner.budget_s),
      board_(run.id, rows_of(run), run.before),
      last_status_(run.before.elapsed_s),
      event_t_(run.before.elapsed_s) {
  style_.utf8 = utf8_locale();
  where_ = fmt::format("run {}   {} with: tilewright tune --run {}\n", run.id,
                       run.resumed ? "goes on; later again" : "go on", run.directory);
  doing_ = "starting the processes that build and measure";
  if (kind_ == ProgressKind::live || kind_ == ProgressKind::plain) ticker_ = std::thread([this] { tick(); });
}

Progress::~Progress() { finish(); }

double Progress::elapsed() const {
  return event_t_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - event_at_).count();
}

void Progress::line(double t, const std::string& text) {
  tool_.say(fmt::format("[{}] {}\n", clock_text(t), text));
  said_at_ = std::chrono::steady_clock::now();
}

void Progress::erase() {
  if (drawn_ > 0) tool_.say(fmt::format("\r\x1b[{}A\x1b[J", drawn_));
  drawn_ = 0;
}

void Progress::draw() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style_.width = size.ws_col;
    style_.height = size.ws_row;
  }
  std::vector<std::string> lines =
      board_table(board_, command_, resume_, last_.empty() ? doing_ : last_, elapsed(), budget_, style_);
  // One write: a terminal shows it whole. The cursor rests below the table, where ^C is echoed.
  std::string text = drawn_ > 0 ? fmt::format("\r\x1b[{}A", drawn_) : "\r";
  for (const std::string& l : lines) text += l + "\x1b[K\n";
  text += "\x1b[J";
  tool_.say(text);
  drawn_ = static_cast<int>(lines.size());
  dirty_ = false;
  drawn_at_ = std::chrono::steady_clock::now();
}

void Progress::tick() {
  std::unique_lock guard(mutex_);
  while (!stop_) {
    wake_.wait_for(guard, kRedraw, [this] { return stop_; });
    if (stop_) return;
    if (kind_ == ProgressKind::live) {
      // Once a second for the clock alone.
      if (dirty_ || std::chrono::steady_clock::now() - drawn_at_ > 1s) draw();
    } else if (!doing_.empty() && std::chrono::steady_clock::now() - said_at_ > kSilence) {
      line(elapsed(), std::exchange(doing_, {}));
    } else if (double now = elapsed(); now - last_status_ >= kStatusEvery) {
      last_status_ = now;
      line(now, board_.status());
    }
  }
}

/// What goes on before the first round, from the event that begins it.
void Progress::follow(const EventBody& body) {
  if (std::get_if<RunStart>(&body) || std::get_if<RunResumed>(&body))
    doing_ = "making the design spaces, calibrating the device";
  else if (auto* d = std::get_if<JobDispatched>(&body); d && d->origin == "baseline")
    doing_ = "computing the reference outputs, timing the untuned program";
  else if (std::get_if<ReferenceBuilt>(&body))
    doing_ = "timing the untuned program";
  else if (std::get_if<RoundStart>(&body))
    doing_.clear();
}

void Progress::on_event(const Event& event) {
  std::scoped_lock guard(mutex_);
  if (kind_ == ProgressKind::plain && !where_.empty()) tool_.say(std::exchange(where_, {}));
  follow(event.body);
  event_t_ = event.t;
  event_at_ = std::chrono::steady_clock::now();
  std::optional<Note> note = board_.apply(event);
  dirty_ = true;
  if (auto* r = std::get_if<JobResult>(&event.body); r && verbose_ && kind_ == ProgressKind::plain)
    line(event.t, fmt::format("trial {} {} {}{}", r->trial, to_string(r->status), nice_time(r->median_ns),
                              r->settled                 ? ""
                              : r->stage == Stage::final ? " in the final comparison"
                                                         : ", tried again"));
  if (kind_ == ProgressKind::json) return tool_.say(to_line(event) + "\n");
  if (!note || kind_ == ProgressKind::none) return;
  if (kind_ == ProgressKind::plain) return line(event.t, note->text);
  last_ = fmt::format("{} {}", clock_text(event.t), note->text);
  if (!note->warning) return;
  erase();  // a warning stays above the table
  line(event.t, note->text);
  draw();
}

void Progress::finish() {
  {
    std::scoped_lock guard(mutex_);
    if (stop_) return;
    stop_ = true;
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  if (kind_ == ProgressKind::live) draw();
}

}  // namespace tilewright::tools
