// Inputs of a program: pure functions of (seed, buffer, set, element), so that any host or device makes the same bits.
#pragma once

#include "ir/interpret/tensor.h"
#include "measure/check/plan.h"

namespace tilewright::measure {

/// An input, or the first values of an inout buffer.
Tensor make_input(const CheckPlan& plan, size_t buffer, CheckSet set, uint64_t seed);

}  // namespace tilewright::measure
