// auto_inline and inline_constant_scalars: elementwise producers disappear into their readers.
#include "ir/visit.h"
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

bool has_condition(const Block& b) {
  bool found = !is_true(b.predicate);
  walk(
      b.body,
      [&](const Expr& e) {
        if (as<Select>(e)) found = true;
        if (const Call* c = as<Call>(e)) found = found || c->op->name == "if_then_else";
        return !found;
      },
      [&](const Stmt& s) {
        found = found || as<If>(s);
        return !found;
      });
  return found;
}

bool calls(const Block& b, const std::string& name) {
  bool found = false;
  walk(
      b.body,
      [&](const Expr& e) {
        if (const Call* c = as<Call>(e)) found = found || c->op->name == name;
        return !found;
      },
      [&](const Stmt&) { return !found; });
  return found;
}

std::vector<Schedule> inline_constants(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block) return {s};
  const Block& b = **block;
  bool constant = b.reads.empty() && b.writes.size() == 1 && b.writes[0].buffer->rank() == 0 && !is_output(s, b);
  if (constant) (void)s.compute_inline(rv).has_value();
  return {s};
}

// CPU: no inlining into producers, into consumers with injective and ordered reads; exp is not recomputed; no
// conditions.
std::vector<Schedule> inline_cpu(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block) return {s};
  const Block& b = **block;
  if (s.state().tree().enclosing_block(s.state().place(b)) == kNoPlace || b.writes.size() != 1 ||
      has_annotation(b, "meta_schedule.inline_rule"))
    return {s};
  bool legal = b.reads.empty();
  if (!legal) {
    ReadPattern p = read_pattern(b);
    legal = is_spatial_function(s) || (!calls(b, "exp") && !has_condition(b) && p.exists && p.injective && p.ordered);
  }
  if (!legal) return {s};
  (void)s.compute_inline(rv).has_value();
  return {s};
}

const Register<ScheduleRule> constants{
    "inline_constant_scalars", "inlines blocks that write one constant scalar", {inline_constants}};
const Register<ScheduleRule> cpu{
    "auto_inline", "inlines elementwise producers into their consumers (CPU settings)", {inline_cpu}};

}  // namespace

}  // namespace tilewright
