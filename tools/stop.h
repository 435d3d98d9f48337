// Ctrl-C, SIGTERM and a closed terminal while something long runs: the first calls a function on a thread of its own,
// the second leaves at once with 128 + the signal. The run's journal is consistent either way.
#pragma once

#include <functional>
#include <memory>

namespace tilewright::tools {

class StopSignals {
 public:
  explicit StopSignals(std::function<void()> first);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

 private:
  struct Watcher;
  std::unique_ptr<Watcher> watcher_;
};

}  // namespace tilewright::tools
