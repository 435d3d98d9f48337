// reassociate_reduction: sums and extrema along contiguous rows, as vectors. The order of summation of such a reduction
// is given up (block annotation tilewright.reassociate), so that code generation keeps several vectors of partial
// results and combines them in a tree at the row's end. add_rfactor does the same in the program, at the price of a
// buffer of partial results and a serial sum over it.
#include <algorithm>

#include "ir/analysis/reducers.h"
#include "ir/visit.h"
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

constexpr const char* kMark = "tilewright.reassociate";

/// The block makes an output, or what outputs of the same shape are made of value by value: rounded from a wider
/// accumulator, or the root of a sum. (Reductions whose rows are read again are row_fusion's.)
bool ends_in_output(const Schedule& s, const Block& b) {
  const TreeIndex& tree = s.state().tree();
  const Place place = s.state().place(b);
  if (is_output(s, b)) return true;
  const std::vector<Place> consumers = s.state().scope_of(place).consumers(place);
  return !consumers.empty() && std::all_of(consumers.begin(), consumers.end(), [&](Place p) {
    const Block& consumer = *tree.block(p);
    return is_output(s, consumer) && is_elementwise_consumer(consumer) &&
           consumer.writes[0].region.size() == b.writes[0].region.size();
  });
}

/// The innermost loop is a reduction that runs along the last dimension of a buffer which is read.
bool reduces_rows(const Schedule& s, const Block& b) {
  if (b.writes.size() != 1 || !b.init || !b.writes[0].buffer->dtype.is_float() || !match_reducer(b)) return false;
  if (!trivial_bindings(s, b) || needs_tiling(s, b)) return false;
  if (s.state().tree().enclosing_block(s.state().place(b)) == kNoPlace || !ends_in_output(s, b)) return false;
  std::vector<IterType> types = loop_types(s, b);
  if (types.empty() || types.back() != IterType::reduction) return false;
  std::vector<const For*> loops = s.state().tree().loop_nodes_above(s.state().place(b));
  const VarNode* inner = nullptr;
  for (const Iter& iter : b.iters)
    if (as<VarNode>(iter.binding) == loops.back()->var.get()) inner = iter.var.get();
  if (!inner) return false;
  for (const BufferRegion& read : b.reads)
    if (!read.region.empty() && as<VarNode>(read.region.back().min) == inner) return true;
  return false;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block || !context.target.is_cpu() || has_annotation(**block, kMark) || !reduces_rows(s, **block)) return {s};
  Schedule vectors = s;
  if (!vectors.annotate(rv, kMark, 1)) return {s};
  return {vectors, s};
}

const Register<ScheduleRule> entry{
    "reassociate_reduction", "sums and extrema along rows keep vectors of partial results", {apply}};

}  // namespace

}  // namespace tilewright
