// One supervised worker process of the agent: its socket, what it is doing, until when, and how its death is judged.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/outcome.h"
#include "measure/process/spawn.h"
#include "measure/session/frame.h"

namespace tilewright::measure {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

enum class WorkerKind : uint8_t { build, exec };

/// Why the agent killed a worker.
struct KillReason {
  TrialStatus status;
  std::string text;
};

/// The status of the task that a worker was busy with when it ended.
TrialStatus judge_death(WorkerKind kind, const Exit& exit, const std::optional<KillReason>& killed);

class WorkerProcess {
 public:
  enum class State { stopped, starting, ready, busy };

  WorkerProcess(WorkerKind what, std::string called, std::string binary, std::vector<std::string> arguments)
      : kind(what), name(std::move(called)), binary_(std::move(binary)), arguments_(std::move(arguments)) {}

  /// Starts it (again). On failure, and after a worker that died before its hello, the next start is delayed: 0.5 s·2ⁿ,
  /// at most 30 s.
  Status start(Time now);
  bool may_start(Time now) const { return state == State::stopped && now >= next_start_; }
  Time next_start() const { return next_start_; }
  void said_hello();
  void kill(KillReason reason);
  /// Its exit if it has ended; the state is `stopped` then.
  std::optional<Exit> reap(Time now);

  /// "fake-0#3": the third process for that device.
  std::string incarnation() const { return name + "#" + std::to_string(starts_); }
  int failed_starts() const { return failed_starts_; }
  const Child& child() const { return child_; }

  const WorkerKind kind;
  const std::string name;
  State state = State::stopped;
  FrameSocket socket;
  std::optional<KillReason> killed;
  uint64_t ticket = 0;  ///< of the task it is busy with
  uint64_t tasks = 0;   ///< finished by this process
  Time started{};
  Time deadline = Time::max();  ///< of the whole task, or of the hello
  Time phase_deadline = Time::max();
  std::chrono::milliseconds phase_limit{0};  ///< of the phase; 0: it has no limit of its own
  uint64_t phase_cpu_ms = 0;                 ///< CPU time of the process when the phase began
  int phase_extensions = 0;
  std::string phase;
  uint64_t cpu_limit_ms = 0;          ///< of this process when the task must have ended; 0: none
  uint64_t memory_limit = 0;          ///< resident bytes; 0: none
  std::optional<Time> stopped_since;  ///< SIGSTOP for a quiet window
  std::string last_output;            ///< of the process before this one

 private:
  void failed(Time now);
  std::string binary_;
  std::vector<std::string> arguments_;
  Child child_;
  int starts_ = 0, failed_starts_ = 0;
  Time next_start_{};
};

}  // namespace tilewright::measure
