// reorder: permutes loops of one chain; loops of the chain that are not named keep their places.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(loop_repeated, "loop-repeated", "a loop is named twice");
TW_REFUSAL_CODE(loops_not_a_chain, "loops-not-a-chain",
                "the loops are not nested in one chain without siblings between");

/// The chain from the topmost named loop down to the deepest one.
Result<std::vector<const For*>> find_chain(const Context& c, const std::vector<const For*>& loops) {
  const TreeIndex& tree = c.state.tree();
  auto depth = [&](const For* loop) { return tree.loops_above(c.state.place(*loop)).size(); };
  const For* top = *std::min_element(loops.begin(), loops.end(), [&](auto* a, auto* b) { return depth(a) < depth(b); });
  const For* bottom =
      *std::max_element(loops.begin(), loops.end(), [&](auto* a, auto* b) { return depth(a) < depth(b); });
  std::vector<const For*> chain;
  Place p = c.state.place(*bottom);
  while (true) {
    const For* loop = tree.loop(p);
    if (!loop) break;
    chain.push_back(loop);
    if (loop == top) break;
    p = tree.parent(p);
    if (p == kNoPlace) break;
  }
  std::reverse(chain.begin(), chain.end());
  bool complete = !chain.empty() && chain.front() == top;
  for (const For* loop : loops) complete = complete && std::count(chain.begin(), chain.end(), loop) > 0;
  if (!complete)
    return c.refuse(loops_not_a_chain, "the loops are not nested in one chain without siblings between", loops[0]);
  return chain;
}

Status check_blocks_below(const Context& c, const For* top) {
  const TreeIndex& tree = c.state.tree();
  for (Place p : tree.child_blocks(c.state.place(*top))) {
    const Block* block = tree.block(p);
    for (const Iter& iter : block->iters)
      if (iter.type != IterType::spatial && iter.type != IterType::reduction)
        return c.refuse(
            codes::iter_not_spatial_or_reduction,
            fmt::format("iter {} of block \"{}\" is neither spatial nor a reduction", iter.var->name, block->name),
            block);
    TW_TRY_VOID(check_affine(c, block));
  }
  return {};
}

/// Several blocks below the chain: in another order a reader might run before the write that it needs, so every reader
/// must find what it reads written in the same iteration of the chain; writes of one buffer by two blocks are not
/// reordered at all.
Status check_order(const Context& c, const For* bottom) {
  const TreeIndex& tree = c.state.tree();
  Place place = c.state.place(*bottom);
  BlockScope scope = c.state.scope_of(place);
  for (const Dependence& d : scope.dependences()) {
    Place from = scope.children()[d.from], to = scope.children()[d.to];
    if (!tree.contains(place, from) || !tree.contains(place, to)) continue;
    bool kept = false;
    if (d.kind == DependenceKind::raw) {
      kept = true;
      for (const BufferRegion& read : tree.block(to)->reads)
        for (const BufferRegion& write : tree.block(from)->writes)
          if (read.buffer.same_as(write.buffer))
            kept = kept && writes_whole(c.state, place, from, region_at(c.state, place, to, read, "local"));
    }
    if (!kept)
      return c.refuse(codes::dependence_would_break,
                      fmt::format("block \"{}\" depends on block \"{}\" across iterations", tree.block(to)->name,
                                  tree.block(from)->name),
                      tree.stmt(to));
  }
  return {};
}

Status apply(Context& c) {
  TW_TRY(std::vector<const For*> loops, c.loops("loops"));
  if (loops.size() < 2) return {};
  for (size_t i = 0; i < loops.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (loops[i] == loops[j])
        return c.refuse(loop_repeated, fmt::format("loop {} is named twice", loops[i]->var->name), loops[i]);
  TW_TRY(std::vector<const For*> chain, find_chain(c, loops));
  TW_TRY_VOID(check_blocks_below(c, chain.front()));
  std::vector<const For*> order = chain;
  size_t next = 0;
  for (const For*& slot : order)
    if (std::count(loops.begin(), loops.end(), slot)) slot = loops[next++];
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t j = i + 1; j < order.size(); ++j)
      if (uses_var(order[i]->extent, order[j]->var.get()) || uses_var(order[i]->min, order[j]->var.get()))
        return c.refuse(
            codes::extent_depends_on_loop,
            fmt::format("the extent of loop {} depends on loop {}", order[i]->var->name, order[j]->var->name),
            order[i]);
  // Several blocks below the chain: interleaving them in another order may run a reader before the write that it needs.
  std::vector<Place> blocks = c.state.tree().child_blocks(c.state.place(*chain.front()));
  if (blocks.size() > 1 && order != chain) TW_TRY_VOID(check_order(c, chain.back()));
  c.state.replace(chain.front(), nest(order, chain.back()->body));
  return {};
}

const RegisterPrimitive entry{
    "reorder",
    "permutes loops of one chain; loops that are not named keep their places",
    {.kind = "Reorder",
     .inputs = {{"loops", ArgType::loops, {}, "the loops in their new order, outermost first"}},
     .positional = true,
     .refusals = {loop_repeated, loops_not_a_chain, codes::iter_not_spatial_or_reduction, codes::binding_not_affine,
                  codes::extent_depends_on_loop, codes::dependence_would_break},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
