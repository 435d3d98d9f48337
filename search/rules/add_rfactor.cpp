// add_rfactor: reductions with few outputs are cut in two so that there is something to run in parallel.
#include <algorithm>

#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

constexpr int kJobsPerCore = 16, kInnermostLimit = 64;

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block || has_annotation(**block, "tilewright.reassociate") ||
      !needs_rfactor(s, **block, int64_t{context.target.cores} * kJobsPerCore))
    return {s};
  const Schedule original = s;
  std::vector<IterType> types = loop_types(s, **block);
  int spatial_count = 0;
  auto loops = s.get_loops(rv);
  if (!loops) return {original};
  std::vector<LoopRV> spatial, reduction, order;
  for (size_t i = 0; i < loops->size(); ++i)
    (types[i] == IterType::spatial ? spatial : reduction).push_back((*loops)[i]);
  spatial_count = static_cast<int>(spatial.size());
  order = spatial;
  order.insert(order.end(), reduction.begin(), reduction.end());
  // Nothing is recorded that changes nothing, as the reference does.
  if (!std::is_partitioned(types.begin(), types.end(), [](IterType t) { return t == IterType::spatial; }))
    if (!s.reorder(order)) return {original};
  LoopRV all = reduction[0];
  if (reduction.size() > 1) {
    auto fused = s.fuse(reduction);
    if (!fused) return {original};
    all = *fused;
  }
  auto factors = s.sample_perfect_tile(all, 2, kInnermostLimit);
  if (!factors) return {original};
  auto split = s.split(all, *factors);
  if (!split) return {original};
  std::vector<Schedule> out;
  for (LoopRV loop : *split) {
    Schedule copy = s;
    auto rf = copy.rfactor(loop, spatial_count);
    if (!rf || !copy.annotate(rv, "meta_schedule.random_compute_producer", 1)) continue;
    out.push_back(std::move(copy));
  }
  out.push_back(original);
  return out;
}

const Register<ScheduleRule> entry{"add_rfactor", "cuts reductions with few outputs in two", {apply}};

}  // namespace

}  // namespace tilewright
