// merge: nests of equal loops become one, with their bodies in sequence.
//   for i in 8: A;  for j in 8: B   →   for i_m in 8: A; B
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(loops_in_different_scopes, "loops-in-different-scopes", "the loops are not in the same scope block");
TW_REFUSAL_CODE(nest_depths_differ, "nest-depths-differ",
                "the loops are not equally deep below the place where their nests part");
TW_REFUSAL_CODE(extents_differ, "extents-differ", "loops that would become one have different extents");
TW_REFUSAL_CODE(loops_nested_in_each_other, "loops-nested-in-each-other", "a loop is given twice, or inside another");

/// A loop to merge with the loops above it, from where the nests part.
using Chain = std::vector<const For*>;

struct Plan {
  Place parting = kNoPlace;   ///< loop or block that holds all nests
  std::vector<Chain> chains;  ///< in the order given
};

Result<Plan> check_chains(const Context& c, const std::vector<const For*>& loops) {
  const TreeIndex& tree = c.state.tree();
  if (loops.size() < 2)
    return c.refuse(codes::too_few_loops, fmt::format("expected at least two loops, found {}", loops.size()));
  Plan p;
  p.parting = c.state.place(*loops[0]);
  for (const For* l : loops) {
    if (tree.enclosing_block(c.state.place(*l)) != tree.enclosing_block(c.state.place(*loops[0])))
      return c.refuse(loops_in_different_scopes, fmt::format("loop {} is in another scope", l->var->name), l);
    p.parting = tree.common_ancestor(p.parting, c.state.place(*l));
  }
  while (!tree.loop(p.parting) && !tree.block(p.parting)) p.parting = tree.parent(p.parting);
  for (const For* l : loops) {
    Chain chain;
    for (Place at : tree.loops_above(c.state.place(*l)))
      if (at != p.parting && tree.contains(p.parting, at)) chain.push_back(tree.loop(at));
    if (c.state.place(*l) != p.parting) chain.push_back(l);
    if (!p.chains.empty() && chain.size() != p.chains[0].size())
      return c.refuse(nest_depths_differ,
                      fmt::format("loop {} is {} loops deep, loop {} is {}", loops[0]->var->name, p.chains[0].size(),
                                  l->var->name, chain.size()),
                      l);
    p.chains.push_back(std::move(chain));
  }
  Analyzer facts;
  bind_loops_above(facts, c.state, p.parting);
  for (const Chain& chain : p.chains)
    for (size_t k = 0; k < chain.size(); ++k) {
      const For *first = p.chains[0][k], *l = chain[k];
      if (first->var->dtype != l->var->dtype || !facts.can_prove_equal(first->extent, l->extent))
        return c.refuse(extents_differ,
                        fmt::format("loops {} and {} have different extents", first->var->name, l->var->name), l);
    }
  for (const Chain& chain : p.chains)
    for (size_t k = 1; k < chain.size(); ++k)
      if (tree.parent(c.state.place(*chain[k])) != c.state.place(*chain[k - 1]))
        return c.refuse(
            codes::loop_not_only_child,
            fmt::format("loop {} is not the only statement of loop {}", chain[k]->var->name, chain[k - 1]->var->name),
            chain[k]);
  for (size_t i = 0; i < loops.size(); ++i)
    for (size_t j = 0; j < loops.size(); ++j)
      if (i != j && (p.chains[i].empty() || tree.contains(c.state.place(*loops[i]), c.state.place(*loops[j]))))
        return c.refuse(loops_nested_in_each_other, fmt::format("loop {} is given twice", loops[j]->var->name),
                        loops[j]);
  for (const Chain& chain : p.chains) {
    const Place item = child_containing(tree, p.parting, c.state.place(*chain[0]));
    if (item != c.state.place(*chain[0]))
      return c.refuse(codes::loop_not_only_child,
                      fmt::format("loop {} stands under a statement other than a loop", chain[0]->var->name), chain[0]);
    for (const For* l : chain) {
      TW_TRY_VOID(check_plain(c, l));
      TW_TRY_VOID(check_zero(c, l));
    }
  }
  return p;
}

/// The region as it is touched in one iteration of the merged loops: `at` gives the value of the chain's loops, the
/// loops from `depth` on and those below run through.
BufferRegion touched(const Context& c, Place block, const BufferRegion& region, const Chain& chain, size_t depth,
                     const VarMap& at, Analyzer& facts) {
  const TreeIndex& tree = c.state.tree();
  const Block& b = *tree.block(block);
  VarMap bindings;
  for (const Iter& iter : b.iters) bindings[iter.var.get()] = substitute(iter.binding, at);
  std::vector<VarRange> inner;
  for (const For* l : tree.loop_nodes_above(block)) {
    const Place place = c.state.place(*l);
    const bool below = place != c.state.place(*chain[0]) && tree.contains(c.state.place(*chain[0]), place);
    const bool fixed = std::find(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(depth), l) !=
                       chain.begin() + static_cast<std::ptrdiff_t>(depth);
    if (!fixed && (below || l == chain[0]))
      inner.push_back({l->var, {substitute(l->min, at), substitute(l->extent, at)}});
  }
  return relax(substitute(region, bindings), inner, substitute(b.predicate, at), facts);
}

/// Whether a block of the one nest, which all ran before, may touch what a block of the other has touched in an
/// earlier iteration (or, when the bodies change places, in the same).
bool may_meet(const Context& c, const std::pair<Place, const Chain*>& before,
              const std::pair<Place, const Chain*>& after, const BufferRegion& x, const BufferRegion& y,
              bool exchanged) {
  const Chain &a = *before.second, &b = *after.second;
  for (size_t t = 0; t < a.size() + (exchanged ? 1 : 0); ++t) {
    if (t < a.size() && is_const(a[t]->extent, 1)) continue;
    Analyzer facts;
    bind_loops_above(facts, c.state, c.state.place(*a[0]));
    VarMap earlier, later;
    Expr order;
    for (size_t k = 0; k <= t && k < a.size(); ++k) {
      Var m = make_var("m", a[k]->var->dtype);
      facts.bind(m, {int_imm(0, m->dtype), a[k]->extent});
      earlier[b[k]->var.get()] = m;
      later[a[k]->var.get()] = m;
      if (k < t) continue;
      Var gap = make_var("gap", m->dtype);
      facts.bind(gap, {int_imm(1, m->dtype), a[k]->extent - 1});
      later[a[k]->var.get()] = Expr(m) + gap;
      order = less(Expr(m) + gap, a[k]->extent);
    }
    auto scope = facts.assume(order);
    const size_t depth = std::min(t + 1, a.size());
    if (!regions_disjoint(touched(c, before.first, x, a, depth, later, facts),
                          touched(c, after.first, y, b, depth, earlier, facts), facts))
      return true;
  }
  return false;
}

/// Bodies that ran one after the other alternate now, at the place of the nest that was given last.
Status check_order(const Context& c, const Plan& p) {
  const TreeIndex& tree = c.state.tree();
  const Place target = c.state.place(*p.chains.back()[0]);
  auto nest_of = [&](Place block) {
    for (size_t i = 0; i < p.chains.size(); ++i)
      if (tree.contains(c.state.place(*p.chains[i][0]), block)) return static_cast<int>(i);
    return -1;
  };
  const BlockScope scope = c.state.scope_of(c.state.place(*p.chains[0][0]));
  for (const Dependence& d : scope.dependences()) {
    const Place from = scope.children()[static_cast<size_t>(d.from)], to = scope.children()[static_cast<size_t>(d.to)];
    const int a = nest_of(from), b = nest_of(to);
    bool broken = false;
    if (a >= 0 && b >= 0 && a != b) {
      broken = d.kind == DependenceKind::opaque;
      auto each = [&](const std::vector<BufferRegion>& xs, const std::vector<BufferRegion>& ys) {
        for (const BufferRegion& x : xs)
          for (const BufferRegion& y : ys) {
            const bool named = x.buffer->data.same_as(d.buffer->data) || y.buffer->data.same_as(d.buffer->data);
            if (!named || broken) continue;
            broken = !x.buffer.same_as(y.buffer) ? true
                                                 : may_meet(c, {from, &p.chains[static_cast<size_t>(a)]},
                                                            {to, &p.chains[static_cast<size_t>(b)]}, x, y, a > b);
          }
      };
      const Block &x = *tree.block(from), &y = *tree.block(to);
      if (!broken && d.kind == DependenceKind::raw) each(x.writes, y.reads);
      if (!broken && d.kind == DependenceKind::war) each(x.reads, y.writes);
      if (!broken && d.kind == DependenceKind::waw) each(x.writes, y.writes);
    } else if (a >= 0 && b < 0) {  // a nest moves behind what follows it
      broken = tree.contains(p.parting, to) && to < target;
    } else if (a < 0 && b >= 0) {  // or before what precedes it
      broken = tree.contains(p.parting, from) && target < from;
    }
    if (broken)
      return c.refuse(codes::dependence_would_break,
                      fmt::format("block \"{}\" would run before parts of \"{}\" that it depends on",
                                  tree.block(to)->name, tree.block(from)->name),
                      tree.stmt(to));
  }
  return {};
}

Status apply(Context& c) {
  TW_TRY(std::vector<const For*> loops, c.loops("loops"));
  TW_TRY(Plan p, check_chains(c, loops));
  TW_TRY_VOID(check_order(c, p));
  const TreeIndex& tree = c.state.tree();
  std::vector<Var> vars;
  for (const For* l : p.chains[0]) vars.push_back(make_var(l->var->name + "_m", l->var->dtype));
  std::vector<Stmt> bodies;
  const For* last = p.chains.back()[0];
  for (const Chain& chain : p.chains) {
    VarMap map;
    for (size_t k = 0; k < chain.size(); ++k) map[chain[k]->var.get()] = vars[k];
    bodies.push_back(substitute(chain.back()->body, map));
  }
  Stmt nest = make_seq(std::move(bodies));
  LoopId innermost = fresh_loop_id();
  for (size_t k = vars.size(); k-- > 0;)
    nest = serial_loop(vars[k], p.chains[0][k]->extent, nest, k + 1 == vars.size() ? innermost : fresh_loop_id());
  Stmt s = tree.ref(p.parting);
  for (const Chain& chain : p.chains) s = replace_stmt(s, chain[0], chain[0] == last ? nest : Stmt());
  c.state.replace(tree.stmt(p.parting), s);
  c.give(innermost);
  return {};
}

const RegisterPrimitive entry{
    "merge",
    "nests of equal loops become one nest, with their bodies in sequence, at the place of the last given",
    {.kind = "Merge",
     .inputs = {{"loops", ArgType::loops, {}, "one loop of each nest, equally deep"}},
     .outputs = OutputShape::one_loop,
     .output_kind = SymbolKind::loop,
     .positional = true,
     .refusals = {codes::too_few_loops, loops_in_different_scopes, nest_depths_differ, extents_differ,
                  codes::loop_not_only_child, loops_nested_in_each_other, labels::plain, labels::zero,
                  codes::dependence_would_break},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
