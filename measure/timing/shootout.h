// The final shoot-out: contenders are timed in turn, forwards and backwards (ABBA), so that drift hits all alike; then
// each is compared with contender 0 by paired differences.
#pragma once

#include <vector>

#include "measure/timing/adaptive.h"

namespace tilewright::measure {

/// ns[contender][round]; NaN where a contender had left.
using Rounds = std::vector<std::vector<double>>;

/// Runs up to `rounds` rounds (fewer if `budget_ns` of device time is spent, but at least `least`). One untimed round
/// first. A contender that is more than twice as slow as the best after two rounds leaves.
Attempt<Rounds> shoot_out(Device& device, size_t contenders, uint32_t rounds, uint32_t least, double budget_ns,
                          const RunSpec& spec, const TimingHooks& hooks);

/// Rounds of several processes, one after another.
void append(Rounds& all, const Rounds& part);

std::vector<Measurement> measurements_of(const Rounds& rounds, const RunSpec& spec, Timer timer);
/// One entry per contender but the first.
std::vector<Paired> compare_with_first(const Rounds& rounds);

}  // namespace tilewright::measure
