#include "measure/agent/worker_process.h"

#include <algorithm>
#include <csignal>

#include "measure/worker/entry.h"

namespace tilewright::measure {

namespace {
constexpr auto hello_limit = std::chrono::seconds(10);
}

TrialStatus judge_death(WorkerKind kind, const Exit& exit, const std::optional<KillReason>& killed) {
  if (killed) return killed->status;
  bool builder = kind == WorkerKind::build;
  if (exit.signal == 0 && exit.code == exit_out_of_memory)
    return builder ? TrialStatus::build_memory : TrialStatus::host_memory;
  // Nothing in a worker sends these to itself by accident: somebody else did.
  if (exit.signal == SIGKILL || exit.signal == SIGTERM || exit.signal == SIGHUP) return TrialStatus::worker_lost;
  if (exit.signal == SIGXCPU && builder) return TrialStatus::build_timeout;
  return builder ? TrialStatus::build_crash : TrialStatus::run_crash;
}

Status WorkerProcess::start(Time now) {
  if (child_.pid() <= 0) last_output = child_.output();
  auto spawned = Child::spawn(binary_, arguments_);
  if (!spawned) {
    failed(now);
    return refuse(spawned.error());
  }
  child_ = std::move(*spawned);
  socket = FrameSocket(child_.take_socket());
  ++starts_;
  state = State::starting;
  started = now;
  deadline = now + hello_limit;
  phase_deadline = Time::max();
  phase = "start";
  killed.reset();
  stopped_since.reset();
  tasks = 0;
  ticket = 0;
  return {};
}

void WorkerProcess::said_hello() {
  state = State::ready;
  deadline = Time::max();
  failed_starts_ = 0;
}

void WorkerProcess::kill(KillReason reason) {
  if (!killed) killed = std::move(reason);
  child_.kill();
}

std::optional<Exit> WorkerProcess::reap(Time now) {
  auto exit = child_.poll();
  if (!exit) return exit;
  if (state == State::starting) failed(now);
  last_output = child_.output();
  socket = FrameSocket();
  state = State::stopped;
  return exit;
}

void WorkerProcess::failed(Time now) {
  int doublings = std::min(failed_starts_++, 6);
  next_start_ = now + std::min(std::chrono::milliseconds(500) * (1 << doublings), std::chrono::milliseconds(30'000));
}

}  // namespace tilewright::measure
