// transform_block_layout: a block iterates over other, equally many points; its loops are made anew.
//   for i, j in T.grid(16, 32): C[vi, vj] = …   →   (lambda i, j: (i * 32 + j,))   for ax0 in 512: C[v0 // 32, v0 % 32]
//   = …
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(index_map_not_bijective, "index-map-not-bijective",
                "the map does not pair the block's points with those of a box from 0");
TW_REFUSAL_CODE(index_map_mixes_iter_types, "index-map-mixes-iter-types",
                "a result of the map uses iters of different types");

struct Plan {
  const Block* block = nullptr;
  std::vector<const For*> loops;
  std::vector<Iter> iters;  ///< new ones; bindings are their loops' variables
  VarMap values;            ///< of the old iters, in the new ones
};

/// Loops that only this block uses, one for each iter.
Status check_loops(const Context& c, Plan& p) {
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*p.block);
  p.loops = tree.loop_nodes_above(place);
  for (const For* l : p.loops) TW_TRY_VOID(check_zero(c, l));
  if (!p.loops.empty() && !tree.is_only_descendant(c.state.place(*p.loops[0]), place))
    return c.refuse(codes::subtree_has_not_one_block,
                    fmt::format("loop {} holds more than block \"{}\"", p.loops[0]->var->name, p.block->name),
                    p.loops[0]);
  TW_TRY_VOID(check_trivial(c, p.block));
  if (p.loops.size() != p.block->iters.size())
    return c.refuse(
        codes::binding_not_trivial,
        fmt::format("block \"{}\" has {} iters under {} loops", p.block->name, p.block->iters.size(), p.loops.size()),
        p.block);
  TW_TRY_VOID(check_sweeps_domain(c, p.block));  // the new loops run over the whole domains of the iters
  for (const Iter& iter : p.block->iters)
    if (iter.type != IterType::spatial && iter.type != IterType::reduction)
      return c.refuse(codes::iter_not_spatial_or_reduction,
                      fmt::format("iter {} of block \"{}\" depends on the order", iter.var->name, p.block->name),
                      p.block);
  return {};
}

Status map_iters(const Context& c, Plan& p) {
  IndexMapRef map = c.index_map("index_map");
  const std::vector<Iter>& old = p.block->iters;
  if (map->inputs.size() != old.size())
    return c.refuse(codes::index_map_arity,
                    fmt::format("expected {} indices, found {}", old.size(), map->inputs.size()), p.block);
  const std::vector<VarRange> domains = domains_of(*p.block);
  std::vector<Expr> vars, mapped;
  for (const Iter& iter : old) vars.push_back(iter.var);
  Analyzer facts;
  facts.bind(domains);
  mapped = apply_index_map(*map, vars);
  IterMap detected = detect_iter_map(mapped, domains, nullptr, IterMapCheck::bijective, facts);
  std::vector<Expr> fresh;
  for (const Expr& e : mapped) {
    SymbolicInterval bounds = bounds_over(e, domains, nullptr, facts);
    if (!detected || !bounds.bounded() || !facts.can_prove_equal(bounds.min, int_imm(0, e->dtype)))
      return c.refuse(index_map_not_bijective,
                      fmt::format("the map of block \"{}\" is no bijection onto a box from 0{}", p.block->name,
                                  detected.failure.empty() ? "" : ": " + detected.failure),
                      p.block);
    const std::string number = fmt::format("{}", p.iters.size());
    Iter iter{make_var("v" + number, e->dtype),
              {int_imm(0, e->dtype), facts.simplify(bounds.max + 1)},
              IterType::spatial,
              make_var("ax" + number, e->dtype)};
    bool any = false;
    for (const Iter& o : old) {
      if (!uses_var(e, o.var.get()) || is_const(o.dom.extent, 1)) continue;
      if (any && o.type != iter.type)
        return c.refuse(index_map_mixes_iter_types,
                        fmt::format("result {} of the map uses a spatial and a reduction iter", p.iters.size()),
                        p.block);
      iter.type = o.type;
      any = true;
    }
    for (const Iter& o : old)  // a result over unit iters alone keeps the type of the first
      if (!any && uses_var(e, o.var.get())) iter.type = o.type, any = true;
    fresh.push_back(iter.var);
    p.iters.push_back(std::move(iter));
  }
  auto reduces = [](const Iter& iter) { return iter.type == IterType::reduction; };
  if (p.block->init && std::none_of(p.iters.begin(), p.iters.end(), reduces))
    return c.refuse(
        index_map_not_bijective,
        fmt::format("no result of the map keeps a reduction iter of block \"{}\", which has an init", p.block->name),
        p.block);
  std::optional<std::vector<Expr>> inverse = inverse_map(detected, domains, fresh, facts);
  if (!inverse)
    return c.refuse(index_map_not_bijective,
                    fmt::format("the iters of block \"{}\" cannot be told from the results of the map", p.block->name),
                    p.block);
  Analyzer now;
  for (const Iter& iter : p.iters) now.bind(iter.var, iter.dom);
  for (size_t i = 0; i < old.size(); ++i) p.values[old[i].var.get()] = now.simplify((*inverse)[i]);
  return {};
}

Status apply(Context& c) {
  Plan p;
  TW_TRY(p.block, c.block("block"));
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY_VOID(check_loops(c, p));
  TW_TRY_VOID(map_iters(c, p));
  TW_TRY(Expr predicate, predicate_over_iters(c, p.block));

  Analyzer facts;
  VarMap loops;
  for (const Iter& iter : p.iters) {
    facts.bind(iter.var, iter.dom);
    loops[iter.var.get()] = iter.binding;
  }
  auto block = edit(*p.block);
  block->iters = p.iters;
  block->predicate = nullptr;
  if (predicate)
    if (Expr now = facts.simplify(substitute(predicate, p.values)); !is_true(now))
      block->predicate = substitute(now, loops);
  auto region = [&](BufferRegion& r) {
    r = substitute(r, p.values);
    for (Range& x : r.region) x = facts.simplify(x);
  };
  for (BufferRegion& r : block->reads) region(r);
  for (BufferRegion& w : block->writes) region(w);
  for (MatchBuffer& m : block->matches) region(m.source);
  if (block->init) block->init = simplify(substitute(block->init, p.values), &facts);
  block->body = simplify(substitute(block->body, p.values), &facts);
  Stmt s = finish(std::move(block));
  for (size_t i = p.iters.size(); i-- > 0;)
    s = serial_loop(Var(static_cast<const VarNode*>(p.iters[i].binding.get())), p.iters[i].dom.extent, s);
  c.state.replace(p.loops.empty() ? static_cast<const StmtNode*>(p.block) : p.loops[0], s);
  return {};
}

const RegisterPrimitive entry{
    "transform_block_layout",
    "a block iterates over other points, one for each of the old ones, under new loops",
    {.kind = "TransformBlockLayout",
     .inputs = {{"block", ArgType::block, {}, "the block"}},
     .attrs = {{"index_map", ArgType::index_map, {}, "old iters to new ones"}},
     .refusals = {labels::inner, labels::zero, codes::subtree_has_not_one_block, labels::trivial,
                  codes::binding_not_affine, codes::iter_not_spatial_or_reduction, codes::index_map_arity,
                  index_map_not_bijective, index_map_mixes_iter_types},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
