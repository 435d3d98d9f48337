// Adaptive repeats: blocks of samples until the median is known well enough, the candidate is clearly slow, or the
// budget is spent. Then the judgement: ok, throttled (the clock would not settle) or noisy (the samples would not).
// Pure control flow over Device::time; works the same on every device and on the fake one.
#pragma once

#include <functional>

#include "measure/devices/device.h"

namespace tilewright::measure {

struct TimingHooks {
  std::function<void(uint32_t launches)> planned;  ///< before every block: deadlines follow from it
  std::function<void(double ms)> pause;            ///< pacing, and the wait after a disturbed block
  std::function<void(bool on)> quiet;              ///< a timing window opens or closes
};

/// Fills everything of a Measurement but contender, canary and counters. `about_ns`: time of a check launch, an upper
/// estimate that spares long kernels the batching probe and samples beyond their budget; 0: unknown.
Attempt<Measurement> measure_adaptive(Device& device, size_t slot, const RunSpec& spec, const TimingHooks& hooks,
                                      double about_ns = 0);

/// Launches that make one sample: 1 when cold; warm samples are batched to 100 µs, because a timer read costs tens of
/// ns.
Attempt<uint32_t> launches_per_sample(Device& device, size_t slot, const RunSpec& spec, const TimingHooks& hooks);

}  // namespace tilewright::measure
