// The untuned program: what every tuned time is compared with, always measured first. It is written as a person would
// without tuning: reductions outside of the innermost loop, vectorised, on all cores or on one. Both are measured where
// they differ, and the faster one counts: small programs lose more by waking cores than they win.
#pragma once

#include "search/space.h"

namespace tilewright {

/// Reduction loops outside the innermost spatial loop, then vectorised and, for `cores` > 1, parallel by the
/// postprocessors.
Schedule baseline_schedule(const Task&, int cores);
/// The schedules to measure, without repetition: on all cores of the target, on one.
std::vector<Schedule> baseline_schedules(const Task&);

}  // namespace tilewright
