// round_robin: tasks in order, finished ones skipped.
#include "search/scheduler/scheduler.h"

namespace tilewright {

namespace {

class RoundRobin : public TaskScheduler {
 public:
  std::optional<size_t> next(const std::vector<TaskProgress>& tasks) override {
    for (size_t step = 0; step < tasks.size(); ++step) {
      size_t at = (next_ + step) % tasks.size();
      if (tasks[at].finished) continue;
      next_ = at + 1;
      return at;
    }
    return std::nullopt;
  }

 private:
  size_t next_ = 0;
};

const Register<TaskSchedulerFactory> entry{
    "round_robin", "tasks in order", {[](uint64_t) { return std::make_unique<RoundRobin>(); }}};

}  // namespace

}  // namespace tilewright
