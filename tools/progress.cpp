#include "tools/progress.h"

#include <fmt/format.h>

#include <algorithm>

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

std::string clock_text(double seconds) {
  auto s = static_cast<int64_t>(seconds);
  return s < 3600 ? fmt::format("{:02}:{:02}", s / 60, s % 60)
                  : fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

void PlainProgress::line(double t, const std::string& text) {
  tool_.say(fmt::format("[{}] {}\n", clock_text(t), text));
}

void PlainProgress::on_event(const Event& event) {
  if (auto* e = std::get_if<TaskStart>(&event.body)) {
    tasks_[e->task] = e->name;
  } else if (std::holds_alternative<RunStart>(event.body) || std::holds_alternative<RunResumed>(event.body)) {
    tool_.say(fmt::format("run {}   goes on with: tilewright tune --run {}\n", run_, directory_));
  } else if (auto* best = std::get_if<Best>(&event.body)) {
    std::string gain =
        best->previous_ns ? fmt::format(" {:+.1f} %", 100 * (best->median_ns / *best->previous_ns - 1)) : "";
    line(event.t,
         fmt::format("best {} {}{} {}:{}", tasks_[best->task], nice_time(best->median_ns), gain, run_, best->trial));
  } else if (auto* r = std::get_if<JobResult>(&event.body)) {
    if (!r->settled) return;
    ++trials_;
    if (r->status == TrialStatus::ok) {
      ++ok_;
    } else if (++failures_[to_string(r->status)] == 1) {
      std::string first = r->detail.substr(0, r->detail.find('\n'));
      line(event.t, fmt::format("first {}: {}:{} {}", to_string(r->status), run_, r->trial, first));
    }
    if (event.t - last_status_ < 30) return;
    last_status_ = event.t;
    std::string kinds;
    for (const auto& [status, n] : failures_) kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", status, n);
    line(event.t, fmt::format("{} trials {:.1f}/s ok {} failed {}{}", trials_,
                              static_cast<double>(trials_) / std::max(event.t, 1e-3), ok_, trials_ - ok_,
                              kinds.empty() ? "" : " (" + kinds + ")"));
  } else if (auto* done = std::get_if<TaskDone>(&event.body)) {
    line(event.t,
         fmt::format("done {}: {}", tasks_[done->task], done->best_ns ? nice_time(*done->best_ns) : "nothing valid"));
  } else if (auto* w = std::get_if<Warning>(&event.body)) {
    line(event.t, fmt::format("warning: {} [{}]", w->message, w->code));
  } else if (auto* q = std::get_if<DeviceQuarantined>(&event.body)) {
    line(event.t, fmt::format("device {} is not used any more: {}", q->device, q->reason));
  }
}

}  // namespace tilewright::tools
