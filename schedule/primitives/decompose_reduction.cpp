// decompose_reduction: the init of a reduction block becomes a block of its own, placed before `loop`.
//   with T.init(): C = 0; C += …   →   for … : C_init: C = 0  ;  for … : C_update: C += …
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(loop_below_a_reduction_loop, "loop-below-a-reduction-loop",
                "a loop above the place of the init drives a reduction iter");
TW_REFUSAL_CODE(loop_repeats_the_block, "loop-repeats-the-block",
                "a loop below the place of the init drives no iter: without an init the block would add up again");
TW_REFUSAL_CODE(predicate_not_separable, "predicate-not-separable",
                "a condition of the predicate mixes loops of the init with dropped ones");

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(const For* loop, c.loop("loop"));
  const TreeIndex& tree = c.state.tree();
  std::vector<const For*> loops = tree.loop_nodes_above(c.state.place(*block));
  auto at = std::find(loops.begin(), loops.end(), loop);
  if (at == loops.end())
    return c.refuse(codes::loop_not_above_block,
                    fmt::format("loop {} is not above block \"{}\"", loop->var->name, block->name), loop);
  TW_TRY_VOID(check_reduction(c, block));
  auto drives = [&](const For* l, IterType type) {
    for (const Iter& iter : block->iters)
      if (iter.type == type && uses_var(iter.binding, l->var.get())) return true;
    return false;
  };
  for (auto it = loops.begin(); it != at; ++it)
    if (drives(*it, IterType::reduction))
      return c.refuse(loop_below_a_reduction_loop,
                      fmt::format("loop {} above {} drives a reduction iter", (*it)->var->name, loop->var->name), *it);

  // Loops from `loop` inwards that a spatial iter uses are copied for the init; the others are dropped.
  VarMap loop_map;
  std::vector<const For*> copied;
  std::vector<const VarNode*> dropped;
  for (auto it = at; it != loops.end(); ++it) {
    if (!drives(*it, IterType::spatial)) {
      if (!drives(*it, IterType::reduction) && !is_const((*it)->extent, 1))
        return c.refuse(loop_repeats_the_block,
                        fmt::format("loop {} drives no iter of block \"{}\"", (*it)->var->name, block->name), *it);
      dropped.push_back((*it)->var.get());
      continue;
    }
    copied.push_back(*it);
    loop_map[(*it)->var.get()] = make_var((*it)->var->name + "_init", (*it)->var->dtype);
  }
  Expr predicate;
  for (const Expr& conjunct : conjuncts(block->predicate)) {
    bool uses_dropped =
        uses_any(conjunct, [&](const VarNode* v) { return std::count(dropped.begin(), dropped.end(), v) > 0; });
    bool uses_kept =
        uses_any(conjunct, [&](const VarNode* v) { return std::count(dropped.begin(), dropped.end(), v) == 0; });
    if (uses_dropped && uses_kept)
      return c.refuse(
          predicate_not_separable,
          fmt::format("the predicate of block \"{}\" mixes loops of the init with dropped ones", block->name), block);
    if (!uses_dropped) predicate = and_of(predicate, substitute(conjunct, loop_map));
  }

  auto init = std::make_unique<Block>();
  init->name = block->name + "_init";
  init->annotations = block->annotations;
  init->predicate = predicate;
  VarMap iters;
  for (const Iter& iter : block->iters) {
    if (iter.type == IterType::reduction) continue;
    Var v = make_var(iter.var->name + "_init", iter.var->dtype);
    iters[iter.var.get()] = v;
    init->iters.push_back({v, iter.dom, iter.type, substitute(iter.binding, loop_map)});
  }
  init->body = substitute(block->init, iters);
  for (const BufferRegion& r : block->writes) init->writes.push_back(substitute(r, iters));
  BlockId id = init->id;
  Stmt init_nest = rederive_reads(finish(std::move(init)));
  for (size_t i = copied.size(); i-- > 0;) {
    auto copy = edit(*copied[i]);
    copy->var = Var(static_cast<const VarNode*>(loop_map[copied[i]->var.get()].get()));
    copy->min = substitute(copy->min, loop_map);
    copy->extent = substitute(copy->extent, loop_map);
    copy->id = fresh_loop_id();
    copy->body = init_nest;
    init_nest = finish(std::move(copy));
  }

  auto update = edit(*block);
  update->name = block->name + "_update";
  update->init = nullptr;
  std::vector<BufferRegion> reads = block->writes;
  for (const BufferRegion& r : block->reads) {
    bool output = std::any_of(block->writes.begin(), block->writes.end(),
                              [&](const BufferRegion& w) { return w.buffer.same_as(r.buffer); });
    if (!output) reads.push_back(r);
  }
  update->reads = std::move(reads);
  Stmt new_loop = replace_stmt(Stmt(loop), block, finish(std::move(update)));
  const BlockId scope = tree.block(tree.enclosing_block(c.state.place(*block)))->id;
  c.state.replace(loop, make_seq({init_nest, new_loop}));
  refresh_signatures(c.state, scope);  // the update reads what it writes, now that it has no init
  c.give(id);
  return {};
}

const RegisterPrimitive entry{"decompose_reduction",
                              "makes the init of a reduction a block of its own, placed before the loop",
                              {.kind = "DecomposeReduction",
                               .inputs = {{"block", ArgType::block, {}, "the reduction block"},
                                          {"loop", ArgType::loop, {}, "the init goes before this loop"}},
                               .outputs = OutputShape::one_block,
                               .output_kind = SymbolKind::block,
                               .refusals = {codes::loop_not_above_block, labels::reduction, loop_below_a_reduction_loop,
                                            loop_repeats_the_block, predicate_not_separable},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
