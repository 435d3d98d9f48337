// decompose_padding: a guarded copy becomes two: a constant everywhere, then the copy where the guard holds.
//   y[v] = if_then_else(6 <= v and v < 134, x[v - 6], 0)   →   y[v] = 0 for all v;  y[v + 6] = x[v] for v in 128
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(padding_pattern_not_found, "padding-pattern-not-found",
                "the block is not one store of `if_then_else(bounds of single iters, value, constant)`");

struct Plan {
  const Block* block = nullptr;
  const For* loop = nullptr;
  std::vector<const For*> inside;  ///< `loop` and the loops between it and the block
  const Store* store = nullptr;
  Expr value, constant;
  std::unordered_map<const VarNode*, Range> bounds;  ///< where the guard holds; by iter, only those that it restricts
};

bool is_constant(const Expr& e) {
  const Cast* c = as<Cast>(e);
  return c ? is_constant(c->value) : as<IntImm>(e) || as<FloatImm>(e);
}

/// Narrows the range of `iter` to where `scale * iter + offset >= 0`; false if that has no such form.
bool narrow(Range& range, const Var& iter, const Expr& at_least_zero, Analyzer& facts) {
  Expr offset = facts.simplify(substitute(at_least_zero, {{iter.get(), int_imm(0, iter->dtype)}}));
  std::optional<int64_t> scale =
      const_int(simplify(substitute(at_least_zero, {{iter.get(), Expr(iter) + 1}}) - at_least_zero));
  if (!scale || *scale == 0 || !facts.can_prove_equal(at_least_zero, Expr(iter) * *scale + offset)) return false;
  Expr lo = range.min, hi = end_of(range);
  if (*scale > 0)  // iter >= ceil(-offset / scale)
    lo = max_of(lo, floor_div(int_imm(*scale - 1, iter->dtype) - offset, *scale));
  else  // iter <= floor(offset / -scale)
    hi = min_of(hi, floor_div(offset, -*scale) + 1);
  range = {facts.simplify(lo), facts.simplify(hi - lo)};
  return true;
}

/// Adds one condition of the guard to the bounds; false if it is none on a single iter.
bool add_bound(Plan& p, const Expr& condition) {
  Analyzer facts;
  facts.bind(domains_of(*p.block));
  if (facts.can_prove(condition)) return true;
  const Binary* cmp = as<Binary>(condition);
  const Iter* iter = nullptr;
  for (const Iter& i : p.block->iters) {
    if (!uses_var(condition, i.var.get())) continue;
    if (iter) return false;
    iter = &i;
  }
  if (!cmp || !iter || reads_memory(condition) || cmp->a->dtype != iter->var->dtype) return false;
  Range& range = p.bounds.emplace(iter->var.get(), iter->dom).first->second;
  Analyzer outer;  // the range of the iter itself must not simplify its bounds away
  switch (cmp->op) {
    case BinaryOp::lt:
      return narrow(range, iter->var, cmp->b - cmp->a - 1, outer);
    case BinaryOp::le:
      return narrow(range, iter->var, cmp->b - cmp->a, outer);
    case BinaryOp::gt:
      return narrow(range, iter->var, cmp->a - cmp->b - 1, outer);
    case BinaryOp::ge:
      return narrow(range, iter->var, cmp->a - cmp->b, outer);
    case BinaryOp::eq:
      return narrow(range, iter->var, cmp->a - cmp->b, outer) && narrow(range, iter->var, cmp->b - cmp->a, outer);
    default:
      return false;
  }
}

Status match_pattern(const Context& c, Plan& p) {
  auto not_found = [&](const std::string& why) {
    return c.refuse(padding_pattern_not_found, fmt::format("block \"{}\": {}", p.block->name, why), p.block);
  };
  p.store = as<Store>(p.block->body);
  if (!p.store || !p.block->allocs.empty() || !p.block->matches.empty()) return not_found("expected one store as body");
  const Call* guarded = as<Call>(p.store->value);
  if (!guarded || guarded->op->name != "if_then_else") return not_found("expected the store of an if_then_else");
  p.value = guarded->args[1];
  p.constant = guarded->args[2];
  if (!is_constant(p.constant)) return not_found("the value outside is not a constant");
  for (const Expr& condition : conjuncts(guarded->args[0]))
    if (!add_bound(p, condition)) return not_found("the guard is not made of bounds of single iters");
  Analyzer facts;
  for (const auto& [iter, range] : p.bounds)
    if (!facts.can_prove_less(int_imm(0, range.extent->dtype), range.extent))
      return not_found("the guard may never hold");
  const TreeIndex& tree = c.state.tree();
  const Place top = c.state.place(*p.loop);
  for (Place at = c.state.place(*p.block); at != top; at = tree.parent(at)) {
    const StmtKind around = tree.stmt(tree.parent(at))->kind;
    if (around != StmtKind::kFor && around != StmtKind::kSeq)
      return not_found("it stands under a statement other than a loop");
  }
  // What comes before it under the loop would see the constants.
  for (Place other : tree.child_blocks(top)) {
    const Block* b = tree.block(other);
    if (!tree.before(other, c.state.place(*p.block))) continue;
    for (const auto* regions : {&b->reads, &b->writes})
      for (const BufferRegion& r : *regions)
        if (r.buffer->data.same_as(p.store->buffer->data))
          return c.refuse(
              codes::dependence_would_break,
              fmt::format("block \"{}\" uses {} before it under loop {}", b->name, r.buffer->name, p.loop->var->name),
              b);
  }
  return {};
}

/// `<b>_pad_const`: the constant over the whole domain.
Stmt constant_nest(const Plan& p, BlockId* id) {
  VarMap loops, iters;
  for (const For* l : p.inside) loops[l->var.get()] = make_var(l->var->name, l->var->dtype);
  auto block = std::make_unique<Block>();
  block->name = p.block->name + "_pad_const";
  for (const Iter& iter : p.block->iters) {
    Var v = make_var(iter.var->name, iter.var->dtype);
    iters[iter.var.get()] = v;
    block->iters.push_back({v, iter.dom, iter.type, substitute(iter.binding, loops)});
  }
  block->predicate = substitute(p.block->predicate, loops);
  std::vector<Expr> indices;
  for (const Expr& e : p.store->indices) indices.push_back(substitute(e, iters));
  block->writes = {point_region(p.store->buffer, indices)};
  block->body = make_stmt<Store>(p.store->buffer, indices, p.constant);
  *id = block->id;
  Stmt s = rederive_reads(finish(std::move(block)));
  for (size_t i = p.inside.size(); i-- > 0;) {
    const For* l = p.inside[i];
    s = make_stmt<For>(Var(static_cast<const VarNode*>(loops[l->var.get()].get())), substitute(l->min, loops),
                       substitute(l->extent, loops), l->step, ForKind::serial, std::string(), AttrDict(), s);
  }
  return s;
}

/// The loop that the iter is bound to, if it can count over the bounds instead.
const For* loop_to_shrink(const Context& c, const Plan& p, const Iter& iter) {
  for (const For* l : p.inside) {
    if (as<VarNode>(iter.binding) != l->var.get() || l->step) continue;
    bool elsewhere = c.state.tree().child_blocks(c.state.place(*l)).size() != 1 || !same(l->min, iter.dom.min) ||
                     !same(l->extent, iter.dom.extent);
    for (const Iter& other : p.block->iters)
      elsewhere = elsewhere || (other.var.get() != iter.var.get() && uses_var(other.binding, l->var.get()));
    for (const For* inner : p.inside)
      elsewhere = elsewhere || uses_var(inner->min, l->var.get()) || uses_var(inner->extent, l->var.get());
    return elsewhere ? nullptr : l;
  }
  return nullptr;
}

Status apply(Context& c) {
  Plan p;
  TW_TRY(p.block, c.block("block"));
  TW_TRY(p.loop, c.loop("loop"));
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY_VOID(check_complete(c, p.block));
  std::vector<const For*> above = c.state.tree().loop_nodes_above(c.state.place(*p.block));
  auto at = std::find(above.begin(), above.end(), p.loop);
  if (at == above.end())
    return c.refuse(codes::loop_not_above_block,
                    fmt::format("loop {} is not above block \"{}\"", p.loop->var->name, p.block->name), p.loop);
  p.inside.assign(at, above.end());
  TW_TRY_VOID(match_pattern(c, p));

  BlockId constant_id{};
  Stmt constant = constant_nest(p, &constant_id);
  auto block = edit(*p.block);
  VarMap shifted, shifted_loops;
  std::unordered_map<const For*, Range> shrunk;
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*p.block));
  Expr predicate;
  for (Iter& iter : block->iters) {
    auto bound = p.bounds.find(iter.var.get());
    const bool restricted = bound != p.bounds.end();
    if (!restricted && is_const(iter.dom.min, 0)) continue;
    const Range inside = restricted ? bound->second : iter.dom;
    shifted[iter.var.get()] = facts.simplify(Expr(iter.var) + inside.min);
    if (const For* l = loop_to_shrink(c, p, iter)) {
      shrunk[l] = inside;
      shifted_loops[l->var.get()] = Expr(l->var) + inside.min;
    } else {
      for (const Expr& test : {less_equal(inside.min, iter.binding), less(iter.binding, end_of(inside))})
        if (restricted && !facts.can_prove(test)) predicate = and_of(predicate, facts.simplify(test));
      iter.binding = facts.simplify(iter.binding - inside.min);
    }
    iter.dom = {int_imm(0, inside.extent->dtype), inside.extent};
  }
  for (const Expr& conjunct : conjuncts(p.block->predicate))
    predicate = and_of(predicate, simplify(substitute(conjunct, shifted_loops)));
  block->predicate = is_true(predicate) ? Expr() : predicate;
  block->body = simplify(substitute(make_stmt<Store>(p.store->buffer, p.store->indices, p.value), shifted));
  for (BufferRegion& r : block->writes) r = substitute(r, shifted);
  for (BufferRegion& w : block->writes)
    for (Range& r : w.region) r.min = simplify(r.min);
  Stmt rest = replace_stmt(Stmt(p.loop), p.block, rederive_reads(finish(std::move(block))));
  const std::function<Stmt(const Stmt&)> shrink = [&](const Stmt& s) -> Stmt {
    const For* l = as<For>(s);
    const For* old = nullptr;
    for (const auto& [loop, range] : shrunk)
      if (l && loop->id == l->id) old = loop;
    Stmt mapped = l || as<Seq>(s) ? map_children(s, [](const Expr& e) { return e; }, shrink) : s;
    if (!old) return mapped;
    auto copy = edit(*as<For>(mapped));
    copy->min = int_imm(0, old->var->dtype);
    copy->extent = shrunk[old].extent;
    return finish(std::move(copy));
  };
  c.state.replace(p.loop, make_seq({constant, shrink(rest)}));
  c.give(constant_id);
  return {};
}

const RegisterPrimitive entry{
    "decompose_padding",
    "splits a guarded copy into a constant everywhere, placed before the loop, and a copy of what is inside",
    {.kind = "DecomposePadding",
     .inputs = {{"block", ArgType::block, {}, "the guarded copy"},
                {"loop", ArgType::loop, {}, "the constant is stored before this loop"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .refusals = {labels::inner, labels::complete, codes::loop_not_above_block, padding_pattern_not_found,
                  codes::dependence_would_break},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
