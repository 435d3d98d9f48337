// ScheduleRule: rewrites one block of a schedule into one or more schedules; each is a branch of the design space. One
// file per rule. A refusal inside a rule means "not applicable here"; nothing a rule does can end a task.
#pragma once

#include <functional>

#include "schedule/schedule.h"
#include "schedule/target.h"
#include "support/registry.h"

namespace tilewright {

struct RuleContext {
  const Target& target;
};

struct ScheduleRule {
  static constexpr const char* registry_name = "rule";
  /// {input} = not applicable.
  std::function<std::vector<Schedule>(Schedule, BlockRV, const RuleContext&)> apply;
  /// Of a plug-in's rule, whose name has a dot: the preset's rule that it comes before; empty: it comes last.
  std::string before;
};

}  // namespace tilewright
