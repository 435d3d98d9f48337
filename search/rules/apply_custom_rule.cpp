// apply_custom_rule: a block annotated schedule_rule = NAME is left to the registered rule "<target kind>/NAME".
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block) return {s};
  auto it = (*block)->annotations.find("schedule_rule");
  if (it == (*block)->annotations.end()) return {s};
  auto* name = it->second.get<std::string>();
  if (!name || *name == "None") return {s};
  const std::string kind = context.target.is_cpu() ? "cpu" : "cuda";
  const ScheduleRule* rule = Registry<ScheduleRule>::instance().find(kind + "/" + *name);
  if (!rule) {
    (void)s.unannotate(rv, "schedule_rule").has_value();
    return {s};
  }
  (void)s.unannotate(rv, "schedule_rule").has_value();
  return rule->apply(std::move(s), rv, context);
}

const Register<ScheduleRule> entry{"apply_custom_rule", "hands annotated blocks to the rule that they name", {apply}};

}  // namespace

}  // namespace tilewright
