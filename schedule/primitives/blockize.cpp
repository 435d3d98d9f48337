// blockize: a subtree becomes one block, so that it can be scheduled, moved or tensorized as a whole. Each iter of the
// blocks below is cut into an outer part, which the new block iterates, and an inner part, which stays:
//   for i, j0, j1: C[i, j0*4 + j1] = …   →   for i, j0: block C_o (vi_o = i, vj_o = j0): for j1: block C (vj_i = j1)
#include "schedule/primitives/blockize.h"

#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(blocks_not_consecutive, "blocks-not-consecutive",
                "the blocks do not stand next to each other in one sequence of statements");
TW_REFUSAL_CODE(blocks_nested, "blocks-nested", "one block of the list is inside another");
TW_REFUSAL_CODE(outer_reduction_in_list, "outer-reduction-in-list",
                "a loop around a list of blocks drives a reduction iter");

/// One iter, cut: value = outer * inner_extent + inner.
struct Part {
  Range outer_domain;
  Expr outer, inner, inner_extent;
};
struct Cut {
  const Block* block = nullptr;
  std::vector<const For*> outside, inside;  ///< loops around the block, those inside the subtree apart
  std::vector<Part> parts;                  ///< one for each iter
  Expr outer_predicate, inner_predicate;
};

bool uses_loops(const Expr& e, const std::vector<const For*>& loops) {
  return uses_any(e, [&](const VarNode* v) {
    return std::any_of(loops.begin(), loops.end(), [&](const For* l) { return l->var.get() == v; });
  });
}

/// Bindings that are not quasi-affine can still be taken apart if each uses loops of one side only.
std::optional<SubspaceDivision> divide_trivially(const Cut& cut) {
  SubspaceDivision out;
  const Expr zero = int_imm(0), one = int_imm(1);
  for (const Iter& iter : cut.block->iters) {
    const bool inner = uses_loops(iter.binding, cut.inside), outer = uses_loops(iter.binding, cut.outside);
    if ((inner && outer) || !is_const(iter.dom.min, 0)) return std::nullopt;
    out.parts.push_back(inner ? SubspacePart{zero, one, iter.binding, iter.dom.extent}
                              : SubspacePart{iter.binding, iter.dom.extent, zero, one});
  }
  for (const Expr& conjunct : conjuncts(cut.block->predicate)) {
    const bool inner = uses_loops(conjunct, cut.inside), outer = uses_loops(conjunct, cut.outside);
    if (inner && outer) return std::nullopt;
    Expr& half = inner ? out.inner_predicate : out.outer_predicate;
    half = and_of(half, conjunct);
  }
  return out;
}

Result<Cut> divide(const Context& c, const Block* block, Place subtree, bool preserve) {
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*block);
  Cut cut;
  cut.block = block;
  cut.outside = tree.loop_nodes_above(subtree);
  std::vector<const For*> all = tree.loop_nodes_above(place);
  cut.inside.assign(all.begin() + static_cast<std::ptrdiff_t>(cut.outside.size()), all.end());
  std::vector<Expr> bindings;
  for (const Iter& iter : block->iters) bindings.push_back(iter.binding);
  std::vector<Var> inner;
  for (const For* l : cut.inside) inner.push_back(l->var);
  Analyzer facts;
  bind_loops_above(facts, c.state, place);
  auto division = divide_subspace(bindings, ranges_of(all), inner, block->predicate, facts);
  if (!division) division = divide_trivially(cut);
  if (!division)
    return c.refuse(subspace_not_divisible,
                    fmt::format("the iters of block \"{}\" cannot be cut into a part of the loops outside and one of "
                                "those inside",
                                block->name),
                    block);
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const SubspacePart& part = division->parts[i];
    const DType type = block->iters[i].var->dtype;
    // A base moves the outer part away from 0.
    SymbolicInterval bounds = bounds_over(part.outer, ranges_of(cut.outside), nullptr, facts);
    Expr min = bounds.bounded() && const_int(bounds.min) ? bounds.min : int_imm(0, type);
    Expr outer = part.outer;
    const bool unit = is_const(part.outer_extent, 1) && is_const(part.inner_extent, 1);
    if (unit && preserve && as<VarNode>(bindings[i]) && uses_loops(bindings[i], cut.outside)) outer = bindings[i];
    cut.parts.push_back({{min, part.outer_extent}, outer, part.inner, part.inner_extent});
  }
  cut.outer_predicate = division->outer_predicate;
  cut.inner_predicate = division->inner_predicate;
  return cut;
}

/// The block inside, and what the new one around it says of it.
struct Inside {
  Stmt block, init;
  std::vector<BufferRegion> reads, writes;
};

/// The init as a nest of its own: the inner loops that drive spatial iters, with a block `<b>_init`.
Result<Stmt> make_init(const Context& c, const Cut& cut, const std::vector<Iter>& inner, const VarMap& values,
                       Analyzer& facts) {
  VarMap loop_map, iter_map = values;
  std::vector<const For*> copied;
  auto init = std::make_unique<Block>();
  init->name = cut.block->name + "_init";
  for (const For* l : cut.inside)
    for (const Iter& iter : inner)
      if (iter.type == IterType::spatial && uses_var(iter.binding, l->var.get()) && !loop_map.contains(l->var.get())) {
        loop_map[l->var.get()] = make_var(l->var->name, l->var->dtype);
        copied.push_back(l);
      }
  VarMap fresh;
  for (const Iter& iter : inner) {
    if (iter.type != IterType::spatial) continue;
    Var v = make_var(iter.var->name + "_init", iter.var->dtype);
    fresh[iter.var.get()] = v;
    init->iters.push_back({v, iter.dom, iter.type, substitute(iter.binding, loop_map)});
    facts.bind(v, iter.dom);
  }
  for (const Expr& conjunct : conjuncts(cut.inner_predicate)) {
    if (uses_any(conjunct, [&](const VarNode* v) {
          return std::any_of(cut.inside.begin(), cut.inside.end(),
                             [&](const For* l) { return l->var.get() == v && !loop_map.contains(v); });
        }))
      return c.refuse(subspace_not_divisible,
                      fmt::format("the predicate of block \"{}\" holds its init back in some iterations of a reduction",
                                  cut.block->name),
                      cut.block);
    init->predicate = and_of(init->predicate, substitute(conjunct, loop_map));
  }
  auto of_init = [&](const auto& node) { return substitute(substitute(node, values), fresh); };
  init->body = simplify(of_init(cut.block->init), &facts);
  for (const BufferRegion& w : cut.block->writes) {
    BufferRegion region = of_init(w);
    for (Range& r : region.region) r = facts.simplify(r);
    init->writes.push_back(region);
  }
  Stmt nest = finish(std::move(init));
  for (size_t i = copied.size(); i-- > 0;) {
    auto copy = edit(*copied[i]);
    copy->var = Var(static_cast<const VarNode*>(loop_map[copied[i]->var.get()].get()));
    copy->min = substitute(copy->min, loop_map);
    copy->extent = substitute(copy->extent, loop_map);
    copy->id = fresh_loop_id();
    copy->body = nest;
    nest = finish(std::move(copy));
  }
  return nest;
}

/// `outer_values`: what the outer part of each iter is inside the new block.
Result<Inside> make_inside(const Context& c, const Cut& cut, const std::vector<Expr>& outer_values, Analyzer& facts) {
  const Block& block = *cut.block;
  auto inner = std::make_unique<Block>(block);
  inner->iters.clear();
  inner->predicate = cut.inner_predicate;
  VarMap values;
  std::vector<VarRange> relaxed;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    const Iter& iter = block.iters[i];
    const Part& part = cut.parts[i];
    if (is_const(part.inner_extent, 1)) {
      values[iter.var.get()] = outer_values[i];
      continue;
    }
    Var v = make_var(iter.var->name + "_i", iter.var->dtype);
    const Range domain{int_imm(0, iter.var->dtype), part.inner_extent};
    inner->iters.push_back({v, domain, iter.type, part.inner});
    relaxed.push_back({v, domain});
    values[iter.var.get()] = facts.simplify(outer_values[i] * part.inner_extent + Expr(v));
  }
  const std::vector<Iter> inner_iters = inner->iters;
  Inside out;
  if (block.init) {
    auto scope = facts.scope();
    TW_TRY(out.init, make_init(c, cut, inner_iters, values, facts));
    inner->init = nullptr;
  }
  auto scope = facts.scope();
  facts.bind(relaxed);
  auto simplified = [&](const BufferRegion& r) {
    BufferRegion region = substitute(r, values);
    for (Range& x : region.region) x = facts.simplify(x);
    return region;
  };
  inner->reads.clear();
  inner->writes.clear();
  for (const BufferRegion& w : block.writes) inner->writes.push_back(simplified(w));
  if (block.init) inner->reads = inner->writes;  // the update alone reads what it writes
  for (const BufferRegion& r : block.reads) {
    const bool there = std::any_of(inner->reads.begin(), inner->reads.end(),
                                   [&](const BufferRegion& x) { return x.buffer.same_as(r.buffer); });
    if (!(block.init && there)) inner->reads.push_back(simplified(r));
  }
  for (MatchBuffer& m : inner->matches) m.source = simplified(m.source);
  inner->body = simplify(substitute(block.body, values), &facts);
  out.block = finish(std::move(inner));
  // The region of the new block: over all values of the inner iters.
  auto whole = [&](const BufferRegion& r) {
    BufferRegion region = relax(simplified(r), relaxed, nullptr, facts);
    for (Range& x : region.region) x = facts.simplify(x);
    return region;
  };
  for (const BufferRegion& r : block.reads) out.reads.push_back(whole(r));
  for (const BufferRegion& w : block.writes) out.writes.push_back(whole(w));
  return out;
}

void add_region(std::vector<BufferRegion>& list, const BufferRegion& region, Analyzer& facts) {
  for (BufferRegion& r : list)
    if (r.buffer.same_as(region.buffer)) {
      r = region_union(r, region, facts);
      for (Range& x : r.region) x = facts.simplify(x);
      return;
    }
  list.push_back(region);
}

/// The new block around `body`, in which the blocks of `cuts` stand.
Result<Stmt> wrap(const Context& c, const std::vector<Cut>& cuts, const std::string& name, Stmt body, BlockId* id) {
  auto outer = std::make_unique<Block>();
  outer->name = name;
  Analyzer facts;
  if (Place scope = c.state.tree().enclosing_block(c.state.place(*cuts[0].block)); scope != kNoPlace)
    for (const VarRange& iter : domains_of(*c.state.tree().block(scope))) facts.bind(iter.var, iter.range);
  std::vector<std::vector<Expr>> values(cuts.size());
  for (size_t k = 0; k < cuts.size(); ++k) {
    for (size_t i = 0; i < cuts[k].parts.size(); ++i) {
      const Part& part = cuts[k].parts[i];
      const Iter& iter = cuts[k].block->iters[i];
      const bool unit = is_const(part.outer_domain.extent, 1);
      if (cuts.size() > 1 && !unit && iter.type == IterType::reduction)
        return c.refuse(outer_reduction_in_list,
                        fmt::format("iter {} of block \"{}\" is a reduction over loops outside of the list",
                                    iter.var->name, cuts[k].block->name),
                        cuts[k].block);
      std::optional<size_t> known;
      for (size_t o = 0; k > 0 && o < outer->iters.size(); ++o)
        if (same(outer->iters[o].binding, part.outer) && outer->iters[o].type == iter.type &&
            same(outer->iters[o].dom.min, part.outer_domain.min) &&
            same(outer->iters[o].dom.extent, part.outer_domain.extent))
          known = o;
      if (!known && !(k > 0 && unit)) {
        known = outer->iters.size();
        outer->iters.push_back(
            {make_var(iter.var->name + "_o", iter.var->dtype), part.outer_domain, iter.type, part.outer});
        facts.bind(outer->iters.back().var, part.outer_domain);
      }
      values[k].push_back(unit ? part.outer_domain.min : Expr(outer->iters[*known].var));
    }
    for (const Expr& conjunct : conjuncts(cuts[k].outer_predicate)) {
      // One predicate for all: a condition of one block only would hold the others back.
      const bool shared = std::all_of(cuts.begin(), cuts.end(), [&](const Cut& other) {
        std::vector<Expr> all = conjuncts(other.outer_predicate);
        return std::any_of(all.begin(), all.end(), [&](const Expr& e) { return same(e, conjunct); });
      });
      if (!shared)
        return c.refuse(subspace_not_divisible,
                        "the blocks of the list have different predicates over the loops outside", cuts[k].block);
      if (k == 0) outer->predicate = and_of(outer->predicate, conjunct);
    }
  }
  for (size_t k = 0; k < cuts.size(); ++k) {
    TW_TRY(Inside inside, make_inside(c, cuts[k], values[k], facts));
    body = replace_stmt(body, cuts[k].block, inside.block);
    if (inside.init) {
      if (cuts.size() > 1) {  // runs where the reduction begins, which is inside
        body = make_seq({inside.init, body});
        for (const BufferRegion& w : inside.writes) add_region(outer->reads, w, facts);  // by the update
      } else {
        outer->init = inside.init;
      }
    }
    for (const BufferRegion& r : inside.reads) add_region(outer->reads, r, facts);
    for (const BufferRegion& w : inside.writes) add_region(outer->writes, w, facts);
  }
  outer->body = std::move(body);
  *id = outer->id;
  return finish(std::move(outer));
}

/// The statement directly below the common parent that holds the block.
Place subtree_of(const TreeIndex& tree, Place block, Place* parent) {
  Place p = block;
  while (tree.loop(tree.parent(p)) && tree.child_blocks(tree.parent(p)).size() == 1) p = tree.parent(p);
  *parent = tree.parent(p);
  return p;
}

Status blockize_list(Context& c, const std::vector<const Block*>& blocks, bool preserve) {
  if (blocks.empty()) return c.refuse(wrong_argument_type, "expected at least one block, found an empty list");
  const TreeIndex& tree = c.state.tree();
  std::vector<Cut> cuts;
  std::string name = "outer_";
  Place parent = kNoPlace;
  std::vector<Stmt> parts;
  std::vector<Place> subtrees;
  for (const Block* block : blocks) {
    TW_TRY_VOID(check_inner(c, block));
    for (const Block* other : blocks)
      for (Place p = tree.enclosing_block(c.state.place(*block)); p != kNoPlace; p = tree.enclosing_block(p))
        if (tree.block(p) == other)
          return c.refuse(blocks_nested, fmt::format("block \"{}\" is inside \"{}\"", block->name, other->name), block);
    Place above = kNoPlace;
    subtrees.push_back(subtree_of(tree, c.state.place(*block), &above));
    if (parent == kNoPlace) parent = above;
    if (above != parent)
      return c.refuse(blocks_not_consecutive,
                      fmt::format("blocks \"{}\" and \"{}\" stand under different loops", blocks[0]->name, block->name),
                      block);
    name += block->name + "_";
  }
  const Seq* seq = as<Seq>(tree.ref(parent));
  size_t first = 0;
  auto position = [&](Place p) {
    for (size_t i = 0; i < seq->stmts.size(); ++i)
      if (seq->stmts[i].get() == tree.stmt(p)) return i;
    return seq->stmts.size();
  };
  if (blocks.size() > 1) {
    if (!seq)
      return c.refuse(blocks_not_consecutive, "the blocks do not stand in one sequence of statements", blocks[0]);
    first = position(subtrees[0]);
    for (size_t i = 0; i < subtrees.size(); ++i)
      if (position(subtrees[i]) != first + i || first == seq->stmts.size())
        return c.refuse(blocks_not_consecutive, fmt::format("block \"{}\" does not follow directly", blocks[i]->name),
                        blocks[i]);
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    TW_TRY(Cut cut, divide(c, blocks[i], subtrees[i], preserve));
    cuts.push_back(std::move(cut));
    parts.push_back(Stmt(tree.stmt(subtrees[i])));
  }
  BlockId id{};
  TW_TRY(Stmt outer, wrap(c, cuts, name, make_seq(parts), &id));
  if (blocks.size() == 1 || seq->stmts.size() == blocks.size()) {
    c.state.replace(blocks.size() == 1 ? tree.stmt(subtrees[0]) : static_cast<const StmtNode*>(seq), outer);
  } else {
    std::vector<Stmt> rest(seq->stmts.begin(), seq->stmts.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(first),
               rest.begin() + static_cast<std::ptrdiff_t>(first + blocks.size()));
    rest.insert(rest.begin() + static_cast<std::ptrdiff_t>(first), outer);
    c.state.replace(seq, make_seq(std::move(rest)));
  }
  refresh_signatures(c.state, id);
  c.give(id);
  return {};
}

Status apply(Context& c) {
  const bool preserve = c.boolean("preserve_unit_iters");
  if (c.value("target").get<TraceList>()) {
    TW_TRY(std::vector<const Block*> blocks, c.blocks("target"));
    return blockize_list(c, blocks, preserve);
  }
  TW_TRY(const For* loop, c.loop("target"));
  TW_TRY(BlockId id, blockize_loop(c, loop, preserve));
  c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "blockize",
    "makes the subtree of a loop, or consecutive blocks, one block",
    {.kind = "Blockize",
     .inputs = {{"target", ArgType::block_list_or_loop, {}, "a loop with one block below, or a list of blocks"}},
     .attrs = {{"preserve_unit_iters", ArgType::boolean, true, "keep variables of unit loops in the bindings"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .refusals = {codes::subtree_has_not_one_block, subspace_not_divisible, labels::inner, blocks_nested,
                  blocks_not_consecutive, outer_reduction_in_list},
     .apply = apply}};

}  // namespace

Result<BlockId> blockize_loop(Context& c, const For* loop, bool preserve_unit_iters) {
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*loop);
  std::vector<Place> below = tree.child_blocks(place);
  if (below.size() != 1)
    return c.refuse(codes::subtree_has_not_one_block,
                    fmt::format("loop {} has {} blocks below", loop->var->name, below.size()), loop);
  const Block* block = tree.block(below[0]);
  TW_TRY(Cut cut, divide(c, block, place, preserve_unit_iters));
  BlockId id{};
  TW_TRY(Stmt outer, wrap(c, {cut}, block->name + "_o", Stmt(loop), &id));
  c.state.replace(loop, outer);
  return id;
}

}  // namespace tilewright
