// The check plan of a program, read off its IR: which parameters are inputs and outputs, what values are legal inputs,
// how exact each output can be expected to be, whether small integers stay exact in it.
#pragma once

#include "ir/program.h"
#include "measure/check/plan.h"
#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(not_checkable, "not-checkable", "inputs or outputs of the program cannot be made or compared here");

/// Of the unscheduled function: schedules must not change what is checked.
Result<CheckPlan> plan_checks(const Function& function);

}  // namespace tilewright::measure
