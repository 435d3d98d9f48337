// fuse: a chain of loops becomes one loop over the same tuples in the same order.
//   for i, j in T.grid(8, 4)  →  for i_j_fused in range(32), with i = i_j_fused // 4, j = i_j_fused % 4
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(loops_not_nested, "loops-not-nested", "a loop is not directly inside the loop given before it");

Status check_chain(const Context& c, const std::vector<const For*>& loops) {
  const TreeIndex& tree = c.state.tree();
  if (loops.empty()) return c.refuse(codes::too_few_loops, "expected at least one loop");
  for (size_t i = 0; i < loops.size(); ++i) {
    TW_TRY_VOID(check_plain(c, loops[i]));
    TW_TRY_VOID(check_zero(c, loops[i]));
    if (i == 0) continue;
    Place outer = c.state.place(*loops[i - 1]), inner = c.state.place(*loops[i]);
    if (!tree.contains(outer, inner) || outer == inner || tree.enclosing_block(outer) != tree.enclosing_block(inner))
      return c.refuse(loops_not_nested,
                      fmt::format("loop {} is not inside loop {}", loops[i]->var->name, loops[i - 1]->var->name),
                      loops[i]);
    if (tree.parent(inner) != outer) {
      bool loop_between = tree.loop(tree.parent(inner)) != nullptr;
      return c.refuse(
          loop_between ? loops_not_nested : codes::loop_not_only_child,
          fmt::format("loop {} is not the only statement of loop {}", loops[i]->var->name, loops[i - 1]->var->name),
          loops[i]);
    }
    for (size_t j = 0; j < i; ++j)
      if (uses_var(loops[i]->extent, loops[j]->var.get()))
        return c.refuse(
            codes::extent_depends_on_loop,
            fmt::format("the extent of loop {} depends on loop {}", loops[i]->var->name, loops[j]->var->name),
            loops[i]);
  }
  return {};
}

Status apply(Context& c) {
  TW_TRY(std::vector<const For*> loops, c.loops("loops"));
  TW_TRY_VOID(check_chain(c, loops));
  const bool preserve = c.boolean("preserve_unit_iters");
  std::string name;
  Expr extent = int_imm(1, loops[0]->var->dtype);
  for (const For* loop : loops) {
    name += loop->var->name + "_";
    extent = extent * loop->extent;
  }
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*loops[0]), preserve);
  extent = facts.simplify(extent);
  Var fused = make_var(name + "fused", loops[0]->var->dtype);
  VarMap map;
  Expr inner = int_imm(1, fused->dtype);
  for (size_t i = loops.size(); i-- > 0;) {
    Expr digit = floor_div(fused, inner);
    map[loops[i]->var.get()] = i == 0 ? digit : floor_mod(digit, loops[i]->extent);
    inner = inner * loops[i]->extent;
  }
  if (!preserve || !is_const(extent, 1)) facts.bind(fused, {int_imm(0, fused->dtype), extent});
  Stmt body = rebind_blocks(loops.back()->body, map, facts, nullptr, preserve);
  auto node = edit(*loops[0]);
  node->var = fused;
  node->extent = extent;
  node->body = body;
  node->loop_kind = ForKind::serial;
  node->id = fresh_loop_id();
  LoopId id = node->id;
  c.state.replace(loops[0], finish(std::move(node)));
  c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "fuse",
    "fuses a chain of loops into one; the order of iterations is kept",
    {.kind = "Fuse",
     .inputs = {{"loops", ArgType::loops, {}, "the chain, outermost first"}},
     .attrs = {{"preserve_unit_iters", ArgType::boolean, true, "keep variables of unit loops in the bindings"}},
     .outputs = OutputShape::one_loop,
     .output_kind = SymbolKind::loop,
     .positional = true,
     .refusals = {codes::too_few_loops, labels::plain, labels::zero, loops_not_nested, codes::loop_not_only_child,
                  codes::extent_depends_on_loop},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
