// multi_level_tiling: the loops of a contraction are cut into the structure SSRSRS (spatial and reduction levels), and
// its output may go through a cache that is written back at one of the outer levels (search.md §3.2, CPU settings).
#include "search/rules/multi_level_tiling.h"

#include "search/rules/block_queries.h"

namespace tilewright {

namespace {

constexpr const char* kStructure = "SSRSRS";
constexpr int kInnermostLimit = 64;

std::vector<Schedule> with_write_reuse(Schedule s, BlockRV block, const std::vector<std::vector<LoopRV>>& tiles) {
  std::vector<Schedule> out;
  auto at_levels = [&](const Schedule& from, BlockRV moved) {
    for (int level : {1, 2}) {
      if (tiles[level - 1].empty()) continue;
      Schedule copy = from;
      if (copy.reverse_compute_at(moved, tiles[level - 1].back(), true)) out.push_back(std::move(copy));
    }
  };
  Schedule consumers_asked = s;
  auto consumers = consumers_asked.get_consumers(block);
  if (consumers && consumers->size() == 1) {
    auto consumer = consumers_asked.block((*consumers)[0]);
    if (consumer && is_elementwise_consumer(**consumer)) {  // a fused epilogue is the write cache
      at_levels(consumers_asked, (*consumers)[0]);
      out.push_back(std::move(s));
      return out;
    }
  }
  out.push_back(s);
  auto cache = s.cache_write(block, 0, "global");
  if (cache) at_levels(s, *cache);
  return out;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block || !needs_tiling(s, **block)) return {s};
  const Schedule original = s;
  if (!mark_as_tiled(s, rv)) return {original};
  std::vector<Schedule> tiled = tile_in_levels(std::move(s), rv);
  return tiled.empty() ? std::vector<Schedule>{original} : tiled;
}

const Register<ScheduleRule> entry{"multi_level_tiling", "cuts the loops of contractions into SSRSRS levels", {apply}};

}  // namespace

Status mark_as_tiled(Schedule& s, BlockRV block) {
  return s.annotate(block, "meta_schedule.tiling_structure", kStructure);
}

std::vector<Schedule> tile_in_levels(Schedule s, BlockRV rv) {
  auto block = s.block(rv);
  auto loops = s.get_loops(rv);
  if (!block || !loops) return {};
  std::vector<IterType> types = loop_types(s, **block);
  std::vector<int> spatial_levels, reduction_levels;
  for (int i = 0; kStructure[i]; ++i) (kStructure[i] == 'S' ? spatial_levels : reduction_levels).push_back(i);
  std::vector<std::vector<LoopRV>> tiles(6);
  for (size_t i = 0; i < loops->size(); ++i) {
    if (types[i] != IterType::spatial && types[i] != IterType::reduction) return {};
    const std::vector<int>& levels = types[i] == IterType::spatial ? spatial_levels : reduction_levels;
    auto factors = s.sample_perfect_tile((*loops)[i], static_cast<int>(levels.size()), kInnermostLimit);
    if (!factors) return {};
    auto split = s.split((*loops)[i], *factors);
    if (!split) return {};
    for (size_t k = 0; k < levels.size(); ++k) tiles[levels[k]].push_back((*split)[k]);
  }
  std::vector<LoopRV> order;
  for (const auto& level : tiles) order.insert(order.end(), level.begin(), level.end());
  if (!s.reorder(order)) return {};
  return with_write_reuse(std::move(s), rv, tiles);
}

}  // namespace tilewright
