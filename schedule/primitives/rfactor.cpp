// rfactor: a reduction is cut in two: partial results for each value of `loop`, then a reduction over those.
//   s += a[k0*16 + k1]   →   s.rf[k1] += a[k0*16 + k1];  s += s.rf[k1]
#include <fmt/format.h>

#include <set>

#include "ir/analysis/reducers.h"
#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(loop_drives_a_spatial_iter, "loop-drives-a-spatial-iter", "the loop feeds no reduction iter");
TW_REFUSAL_CODE(loop_drives_both_kinds, "loop-drives-both-kinds", "the loop feeds a spatial and a reduction iter");
TW_REFUSAL_CODE(block_not_first_under_outermost_loop, "block-not-first-under-outermost-loop",
                "other statements precede the block under its outermost loop");
TW_REFUSAL_CODE(unused_loop_under_a_reduction_loop, "unused-loop-under-a-reduction-loop",
                "a loop that no iter uses stands between reduction loops");
TW_REFUSAL_CODE(factor_axis_out_of_range, "factor-axis-out-of-range", "factor_axis is no axis of the partial results");

struct Plan {
  const Block* block;
  const For* loop;
  std::vector<const For*> loops;
  std::set<const For*> counted;  ///< become iters: the loop, and those that share a reduction iter with one of them
  MatchedReducer reducer;
  int64_t axis;
};

bool drives_reduction(const Block& block, const For* l) {
  return iter_types_driven(block, l->var.get()) & (1u << static_cast<int>(IterType::reduction));
}

/// Whether the iter is a reduction over one of the loops.
bool reduces_over(const Iter& iter, const std::set<const For*>& loops) {
  return iter.type == IterType::reduction &&
         std::any_of(loops.begin(), loops.end(), [&](const For* l) { return uses_var(iter.binding, l->var.get()); });
}

std::set<const For*> counted_loops(const Block& block, const For* loop, const std::vector<const For*>& loops) {
  std::set<const For*> counted{loop};
  for (size_t before = 0; before != counted.size();) {
    before = counted.size();
    for (const Iter& iter : block.iters)
      if (reduces_over(iter, counted))
        for (const For* l : loops)
          if (uses_var(iter.binding, l->var.get())) counted.insert(l);
  }
  return counted;
}

/// A predicate may skip instances, but not all of one partial result, nor the one that initialises the final result.
Status check_predicate(const Context& c, const Plan& p) {
  Analyzer facts;
  VarMap others, own{{p.loop->var.get(), p.loop->min}};
  for (const For* l : p.loops) {
    facts.bind(*l);
    if (l != p.loop && drives_reduction(*p.block, l)) others[l->var.get()] = l->min;
  }
  for (const Expr& conjunct : conjuncts(p.block->predicate)) {
    bool uses_others = uses_any(conjunct, [&](const VarNode* v) { return others.count(v) > 0; });
    if (!uses_others && !uses_var(conjunct, p.loop->var.get())) continue;
    if (!facts.can_prove(substitute(conjunct, uses_others ? others : own)))
      return c.refuse(codes::predicate_not_trivial,
                      fmt::format("the predicate of block \"{}\" may leave a partial result of loop {} without a value",
                                  p.block->name, p.loop->var->name),
                      p.block);
  }
  return {};
}

Result<Plan> check(Context& c) {
  Plan p;
  TW_TRY(p.loop, c.loop("loop"));
  const TreeIndex& tree = c.state.tree();
  std::vector<Place> children = tree.child_blocks(c.state.place(*p.loop));
  if (children.size() != 1)
    return c.refuse(codes::subtree_has_not_one_block,
                    fmt::format("loop {} has {} blocks below", p.loop->var->name, children.size()), p.loop);
  p.block = tree.block(children[0]);
  TW_TRY_VOID(check_pipeline(c, p.block));
  TW_TRY_VOID(check_reduction(c, p.block));
  if (p.loop->loop_kind != ForKind::serial)
    return c.refuse(codes::loop_not_serial, fmt::format("loop {} is not serial", p.loop->var->name), p.loop);
  p.loops = tree.loop_nodes_above(children[0]);
  unsigned driven = iter_types_driven(*p.block, p.loop->var.get());
  bool reduction = driven & (1u << static_cast<int>(IterType::reduction)),
       spatial = driven & (1u << static_cast<int>(IterType::spatial));
  if (reduction && spatial)
    return c.refuse(loop_drives_both_kinds, fmt::format("loop {} feeds spatial and reduction iters", p.loop->var->name),
                    p.loop);
  if (!reduction)
    return c.refuse(loop_drives_a_spatial_iter, fmt::format("loop {} feeds no reduction iter", p.loop->var->name),
                    p.loop);
  p.counted = counted_loops(*p.block, p.loop, p.loops);
  for (const For* l : p.loops)
    if (p.counted.count(l)) TW_TRY_VOID(check_zero(c, l));
  Place outer = c.state.place(*p.loops.front());
  if (tree.child_blocks(outer).front() != children[0])
    return c.refuse(block_not_first_under_outermost_loop,
                    fmt::format("other blocks precede \"{}\" under loop {}", p.block->name, p.loops.front()->var->name),
                    p.block);
  bool seen_reduction = false;
  for (const For* l : p.loops) {
    unsigned types = iter_types_driven(*p.block, l->var.get());
    constexpr unsigned both = 1u << static_cast<int>(IterType::reduction) | 1u << static_cast<int>(IterType::spatial);
    if ((types & both) == both)  // the final block does without the other reduction loops
      return c.refuse(loop_drives_both_kinds, fmt::format("loop {} feeds spatial and reduction iters", l->var->name),
                      l);
    seen_reduction = seen_reduction || (types & (1u << static_cast<int>(IterType::reduction)));
    if (!types && seen_reduction && !is_const(l->extent, 1))
      return c.refuse(unused_loop_under_a_reduction_loop, fmt::format("no iter uses loop {}", l->var->name), l);
  }
  TW_TRY_VOID(check_predicate(c, p));
  std::optional<MatchedReducer> reducer = match_reducer(*p.block);
  if (!reducer)
    return c.refuse(codes::no_matching_reducer,
                    fmt::format("init and update of block \"{}\" match no registered reducer", p.block->name), p.block);
  p.reducer = std::move(*reducer);
  p.axis = c.integer("factor_axis");
  int64_t rank = p.reducer.buffers[0]->rank();
  if (p.axis < -(rank + 1) || p.axis > rank)
    return c.refuse(factor_axis_out_of_range,
                    fmt::format("expected an axis from {} to {}, found {}", -(rank + 1), rank, p.axis), p.block);
  if (p.axis < 0) p.axis += rank + 1;
  return p;
}

/// k stores, the values combined from `x` and `y`; more than one through binds, since each value reads the old
/// accumulators.
Stmt combine_stores(const MatchedReducer& r, const std::vector<Buffer>& buffers,
                    const std::vector<std::vector<Expr>>& indices, const std::vector<Expr>& x,
                    const std::vector<Expr>& y) {
  std::vector<Expr> values = r.reducer->combine(x, y);
  if (values.size() == 1) return make_stmt<Store>(buffers[0], indices[0], values[0]);
  std::vector<Var> vars;
  std::vector<Stmt> stores;
  for (size_t i = 0; i < values.size(); ++i) {
    vars.push_back(make_var(fmt::format("v_{}", buffers[i]->name), values[i]->dtype));
    stores.push_back(make_stmt<Store>(buffers[i], indices[i], vars[i]));
  }
  Stmt body = make_seq(std::move(stores));
  for (size_t i = values.size(); i-- > 0;) body = make_stmt<Bind>(vars[i], values[i], body);
  return body;
}

Status apply(Context& c) {
  TW_TRY(Plan p, check(c));
  const Block& block = *p.block;
  const size_t k = p.reducer.buffers.size();
  std::vector<Buffer> rf_buffers;
  for (const Buffer& b : p.reducer.buffers)
    rf_buffers.push_back(derive_buffer(b, [&](BufferNode& n) {
      n.name = b->name + ".rf";
      n.shape.insert(n.shape.begin() + p.axis, p.loop->extent);
      n.strides.clear();
      n.elem_offset = nullptr;
      n.data = make_var(n.name, kHandle);
    }));

  // The rf block: the loop becomes a spatial iter; reduction iters that use counted loops are replaced by iters over
  // these.
  auto rf = std::make_unique<Block>();
  rf->name = block.name + "_rf";
  rf->annotations = block.annotations;
  VarMap loop_map, iter_map;
  for (const For* l : p.loops) loop_map[l->var.get()] = make_var(l->var->name, l->var->dtype);
  auto new_loop_var = [&](const For* l) { return Var(static_cast<const VarNode*>(loop_map[l->var.get()].get())); };
  Var v_loop = make_var("v" + p.loop->var->name, p.loop->var->dtype);
  rf->iters.push_back({v_loop, {int_imm(0, v_loop->dtype), p.loop->extent}, IterType::spatial, new_loop_var(p.loop)});
  VarMap loop_to_iter{{p.loop->var.get(), v_loop}};
  bool has_reduction = false;
  for (const Iter& iter : block.iters) {
    if (!reduces_over(iter, p.counted)) {
      Var v = make_var(iter.var->name, iter.var->dtype);
      rf->iters.push_back({v, iter.dom, iter.type, substitute(iter.binding, loop_map)});
      iter_map[iter.var.get()] = v;
      has_reduction = has_reduction || iter.type == IterType::reduction;
      continue;
    }
    for (const For* l : p.loops) {
      if (l == p.loop || !uses_var(iter.binding, l->var.get()) || loop_to_iter.count(l->var.get())) continue;
      Var v = make_var("v" + l->var->name, l->var->dtype);
      rf->iters.push_back({v, {int_imm(0, v->dtype), l->extent}, IterType::reduction, new_loop_var(l)});
      loop_to_iter[l->var.get()] = v;
      has_reduction = true;
    }
    iter_map[iter.var.get()] = substitute(iter.binding, loop_to_iter);
  }
  auto rf_indices = [&](size_t i) {
    std::vector<Expr> out;
    for (const Expr& e : p.reducer.indices[i]) out.push_back(substitute(e, iter_map));
    out.insert(out.begin() + p.axis, v_loop);
    return out;
  };
  std::vector<std::vector<Expr>> indices;
  std::vector<Expr> old_values, step;
  for (size_t i = 0; i < k; ++i) {
    indices.push_back(rf_indices(i));
    old_values.push_back(load(rf_buffers[i], indices[i]));
    step.push_back(substitute(p.reducer.values[i], iter_map));
    rf->writes.push_back(point_region(rf_buffers[i], indices[i]));
  }
  if (has_reduction) {
    std::vector<Stmt> init;
    for (size_t i = 0; i < k; ++i) init.push_back(make_stmt<Store>(rf_buffers[i], indices[i], p.reducer.identity[i]));
    rf->init = make_seq(std::move(init));
    rf->body = combine_stores(p.reducer, rf_buffers, indices, old_values, step);
  } else {  // nothing left to reduce: a plain store
    std::vector<Stmt> stores;
    for (size_t i = 0; i < k; ++i) stores.push_back(make_stmt<Store>(rf_buffers[i], indices[i], step[i]));
    rf->body = make_seq(std::move(stores));
  }
  rf->predicate = substitute(block.predicate, loop_map);
  BlockId rf_id = rf->id;
  Stmt rf_nest = rederive_reads(finish(std::move(rf)));
  for (size_t i = p.loops.size(); i-- > 0;) {
    auto copy = edit(*p.loops[i]);
    copy->var = new_loop_var(p.loops[i]);
    copy->min = substitute(copy->min, loop_map);
    copy->extent = substitute(copy->extent, loop_map);
    copy->id = fresh_loop_id();
    copy->body = rf_nest;
    rf_nest = finish(std::move(copy));
  }

  // The final block reduces over the loop; its other reduction loops are gone.
  auto final_block = edit(block);
  final_block->iters.clear();
  Var v_final = make_var("v" + p.loop->var->name, p.loop->var->dtype);
  final_block->iters.push_back(
      {v_final, {int_imm(0, v_final->dtype), p.loop->extent}, IterType::reduction, p.loop->var});
  for (const Iter& iter : block.iters)
    if (iter.type == IterType::spatial) final_block->iters.push_back(iter);
  auto is_kept = [&](const For* l) { return l == p.loop || !drives_reduction(block, l); };
  Expr predicate;
  for (const Expr& conjunct : conjuncts(block.predicate)) {
    bool kept = true;
    for (const For* l : p.loops) kept = kept && (is_kept(l) || !uses_var(conjunct, l->var.get()));
    if (kept) predicate = and_of(predicate, conjunct);
  }
  final_block->predicate = predicate;
  std::vector<Expr> x, y;
  final_block->reads.clear();
  std::vector<Stmt> init;
  for (size_t i = 0; i < k; ++i) {
    std::vector<Expr> partial = p.reducer.indices[i];
    partial.insert(partial.begin() + p.axis, v_final);
    x.push_back(load(p.reducer.buffers[i], p.reducer.indices[i]));
    y.push_back(load(rf_buffers[i], partial));
    final_block->reads.push_back(point_region(rf_buffers[i], partial));
    init.push_back(make_stmt<Store>(p.reducer.buffers[i], p.reducer.indices[i], p.reducer.identity[i]));
  }
  final_block->init = make_seq(std::move(init));
  final_block->body = combine_stores(p.reducer, p.reducer.buffers, p.reducer.indices, x, y);
  // Other blocks below the outer loops stay: only the part of the nest that holds this block alone is rebuilt.
  const TreeIndex& tree = c.state.tree();
  size_t top = 0;
  while (tree.child_blocks(c.state.place(*p.loops[top])).size() > 1) ++top;
  std::vector<const For*> kept;
  for (size_t i = top; i < p.loops.size(); ++i)
    if (is_kept(p.loops[i])) kept.push_back(p.loops[i]);
  Stmt final_nest = nest(kept, finish(std::move(final_block)));
  const StmtNode* outermost = p.loops.front();
  Stmt replaced = replace_stmt(Stmt(outermost), p.loops[top], final_nest);
  Place scope = tree.enclosing_block(c.state.place(block));
  Stmt scope_stmt = replace_stmt(tree.ref(scope), outermost, make_seq({rf_nest, replaced}));
  for (const Buffer& b : rf_buffers) scope_stmt = add_allocation(*as<Block>(scope_stmt), b);
  c.state.replace(tree.stmt(scope), scope_stmt);
  c.give(rf_id);
  return {};
}

const RegisterPrimitive entry{
    "rfactor",
    "cuts a reduction in two: partial results for each value of the loop, then a reduction over those",
    {.kind = "RFactor",
     .inputs = {{"loop", ArgType::loop, {}, "a reduction loop"}},
     .attrs = {{"factor_axis", ArgType::integer, {}, "axis of the partial results; negative: from the end"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .refusals = {codes::subtree_has_not_one_block, labels::pipeline, labels::reduction, codes::loop_not_serial,
                  loop_drives_both_kinds, loop_drives_a_spatial_iter, codes::loop_does_not_start_at_zero,
                  block_not_first_under_outermost_loop, unused_loop_under_a_reduction_loop,
                  codes::predicate_not_trivial, codes::no_matching_reducer, factor_axis_out_of_range},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
