// TaskScheduler: which task gets the next round.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "support/registry.h"
#include "support/rng.h"

namespace tilewright {

struct TaskProgress {
  double weight = 1;
  bool finished = false;
  int rounds = 0;                  ///< begun; with a lag, the last of them is still being measured
  std::vector<double> best_after;  ///< best seconds after each measured round; infinity while nothing is valid
};

class TaskScheduler {
 public:
  virtual ~TaskScheduler() = default;
  /// Nothing when all tasks are finished.
  virtual std::optional<size_t> next(const std::vector<TaskProgress>&) = 0;
};

struct TaskSchedulerFactory {
  static constexpr const char* registry_name = "scheduler";
  std::function<std::unique_ptr<TaskScheduler>(uint64_t seed)> make;
};

}  // namespace tilewright
