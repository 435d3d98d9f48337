// gradient: each task once, then the one whose weighted time is expected to fall most: part past gain over a window,
// part the gain that optimism promises (Ansor's rule, constants of search.md §8).
#include <algorithm>
#include <cmath>
#include <limits>

#include "search/scheduler/scheduler.h"

namespace tilewright {

namespace {

constexpr double kAlpha = 0.2;
constexpr int kWindow = 3;

class Gradient : public TaskScheduler {
 public:
  explicit Gradient(uint64_t seed) : rng_(Rng::keyed(seed, 0x67726164)) {}

  std::optional<size_t> next(const std::vector<TaskProgress>& tasks) override {
    std::vector<size_t> open;
    for (size_t i = 0; i < tasks.size(); ++i) {
      if (tasks[i].finished) continue;
      if (tasks[i].rounds == 0) return i;
      open.push_back(i);
    }
    if (open.empty()) return std::nullopt;
    std::vector<double> gains;
    for (size_t i : open) gains.push_back(expected_gain(tasks[i]));
    auto [low, high] = std::minmax_element(gains.begin(), gains.end());
    if (*low == *high) return open[rng_.below(open.size())];
    return open[static_cast<size_t>(high - gains.begin())];
  }

 private:
  static double expected_gain(const TaskProgress& t) {
    const int n = static_cast<int>(t.best_after.size());
    if (n == 0) return -1e9;  // its first round is still being measured
    const double best = t.best_after.back();
    if (!std::isfinite(best)) return -1e9;
    double past = 0;
    if (n > kWindow && std::isfinite(t.best_after[n - 1 - kWindow]))
      past = (t.best_after[n - 1 - kWindow] - best) / kWindow;
    return t.weight * (kAlpha * past + (1 - kAlpha) * best / n);
  }
  Rng rng_;
};

const Register<TaskSchedulerFactory> entry{"gradient",
                                           "the task whose weighted time is expected to fall most",
                                           {[](uint64_t seed) { return std::make_unique<Gradient>(seed); }}};

}  // namespace

}  // namespace tilewright
