// The untuned default schedule of a task: what every tuned time is compared with, always measured first.
#pragma once

#include "search/space.h"

namespace tilewright {

/// Reduction loops outside the innermost spatial loop, then parallel, vectorised and unrolled by the postprocessors.
Schedule baseline_schedule(const Task&);

}  // namespace tilewright
