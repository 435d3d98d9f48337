// Child processes: posix_spawn of our own binary only, in a process group of their own, waited for by pidfd.
// No SIGCHLD handler, no fork: a process that has started gRPC or a CUDA context must not fork.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "measure/process/fd.h"
#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(spawn_failed, "spawn-failed", "a worker process cannot be started");

/// Set in the environment of every child. A program that finds it and still opens a measurer has no worker entries, and
/// would start itself for ever.
inline constexpr const char* child_mark = "TILEWRIGHT_CHILD";

struct Exit {
  int code = 0;  ///< exit code if signal is 0
  int signal = 0;
  std::string text() const;  ///< "exit code 3", "SIGSEGV (Segmentation fault)"
};

/// A spawned process; the child sees its end of the socket as descriptor 3. Destruction kills the group and reaps.
class Child {
 public:
  /// `arguments` follow the program's name. Call on a thread that outlives the child: the child's death signal follows
  /// it.
  static Result<Child> spawn(const std::string& binary, const std::vector<std::string>& arguments);

  Child() = default;
  Child(Child&&) = default;
  Child& operator=(Child&& other) noexcept;
  ~Child();

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  Fd take_socket() { return std::move(socket_); }

  void signal_group(int signal) const;
  void kill() const;
  /// Its exit if it has ended, without waiting. The process is reaped then.
  std::optional<Exit> poll();
  /// Waits at most `ms`.
  std::optional<Exit> wait(int ms);
  /// The end of what the child wrote to stdout and stderr.
  std::string output(size_t limit = 4096) const;
  /// CPU time of the child so far, in ms; resident set in bytes. 0 if unknown.
  uint64_t cpu_ms() const;
  uint64_t resident_bytes() const;

 private:
  pid_t pid_ = -1;
  Fd pidfd_, socket_, output_;
};

/// Called by a child first: closes everything but 0–3, leaves core dumps and privileges behind. `dies_with_parent`: it
/// is killed when the thread that spawned it ends. False: the parent is already gone.
bool enter_child(pid_t parent, bool dies_with_parent);

/// `tilewright` of this installation if there is one, else the running program.
std::string default_binary();

}  // namespace tilewright::measure
