// row_fusion: softmax, norms and their like, row by row. When an output has rows that every producer is computed for,
// each row goes through all stages while it is in the nearest cache: producers are computed at the row's loop,
// reductions along it are re-associated, elementwise stages are vectors.
//
//   parallel rows:  max = …;  e[j] = exp(x[j] - max);  sum = …;  y[j] = e[j] / sum
#include <algorithm>

#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

/// All blocks that `rv` needs, nearest first: each after all of its consumers.
Result<std::vector<BlockRV>> producers_of(Schedule& s, BlockRV rv) {
  std::vector<BlockRV> out;
  std::vector<std::string> names;
  std::vector<BlockRV> todo{rv};
  while (!todo.empty()) {
    BlockRV consumer = todo.front();
    todo.erase(todo.begin());
    TW_TRY(std::vector<BlockRV> direct, s.get_producers(consumer));
    for (BlockRV p : direct) {
      TW_TRY(const Block* block, s.block(p));
      // Seen again, it belongs behind the consumer that was found later.
      if (auto at = std::find(names.begin(), names.end(), block->name); at != names.end()) {
        out.erase(out.begin() + (at - names.begin()));
        names.erase(at);
      }
      out.push_back(p);
      names.push_back(block->name);
      todo.push_back(p);
    }
  }
  return out;
}

Result<Schedule> fuse(Schedule s, BlockRV output, const RuleContext& context) {
  TW_TRY(std::vector<BlockRV> producers, producers_of(s, output));
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(output));
  TW_TRY(const Block* out, s.block(output));
  const int lanes = context.target.lanes(out->writes[0].buffer->dtype.bits);
  TW_TRY(IntRV vectors, s.sample_categorical({1, 2, 4}, {0.4, 0.3, 0.3}));
  for (BlockRV p : producers) {
    TW_TRY(const Block* block, s.block(p));
    if (!is_spatial(*block)) TW_TRY_VOID(s.annotate(p, "tilewright.reassociate", 1));
    TW_TRY_VOID(s.compute_at(p, loops[0], true));
  }
  producers.push_back(output);
  for (BlockRV p : producers) {
    TW_TRY(const Block* block, s.block(p));
    if (!is_spatial(*block)) continue;
    TW_TRY(std::vector<LoopRV> own, s.get_loops(p));
    TW_TRY(const For* inner, s.loop(own.back()));
    std::optional<int64_t> extent = const_int(inner->extent);
    if (own.size() < 2 || !extent || *extent % (4 * lanes) != 0) continue;
    TW_TRY(std::vector<LoopRV> steps, s.split(own.back(), TraceList{nullptr, vectors, int64_t{lanes}}));
    TW_TRY_VOID(s.unroll(steps[1]));
    TW_TRY_VOID(s.vectorize(steps[2]));
  }
  return s;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block || !context.target.is_cpu() || s.state().tree().enclosing_block(s.state().place(**block)) == kNoPlace ||
      !is_output(s, **block) || !is_spatial(**block))
    return {s};
  if ((*block)->writes.size() != 1 || !trivial_bindings(s, **block)) return {s};
  const TreeIndex& tree = s.state().tree();
  std::vector<const For*> loops = tree.loop_nodes_above(s.state().place(**block));
  const int64_t cores = on_one_core(s) ? 1 : context.target.cores;
  if (loops.size() < 2 || const_int(loops[0]->extent).value_or(0) < cores) return {s};
  // Rows only pay where something is reduced along them, and contractions have tiles of their own.
  bool reduces = false;
  for (Place p : tree.blocks()) {
    const Block& b = *tree.block(p);
    if (tree.enclosing_block(p) == kNoPlace) continue;
    if (needs_tiling(s, b)) return {s};
    reduces = reduces || !is_spatial(b);
  }
  if (!reduces) return {s};
  auto fused = fuse(s, rv, context);
  if (!fused) return {s};
  return {*fused, s};
}

const Register<ScheduleRule> entry{"row_fusion", "stages of softmax, norms, … row by row", {apply}};

}  // namespace

}  // namespace tilewright
