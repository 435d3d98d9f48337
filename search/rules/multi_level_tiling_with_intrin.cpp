// multi_level_tiling_with_intrin: contractions of bytes whose innermost loops become a dot product of the target; the
// loops around it are cut into levels (search.md §3.1; preset metaschedule). Whether the operands lie as the intrinsic
// wants them is seen only when it is put in (rewrite_tensorize).
#include "ir/visit.h"
#include "search/rules/block_queries.h"
#include "search/rules/multi_level_tiling.h"

namespace tilewright {

namespace {

constexpr int kLanes = 16, kDepth = 4;

/// Σ of uint8 × int8 into int32; operands in either order.
bool sums_bytes(const Block& b) {
  const Store* store = as<Store>(b.body);
  const Binary* sum = store ? as<Binary>(store->value) : nullptr;
  if (!sum || sum->op != BinaryOp::add || sum->dtype != kInt32) return false;
  auto operand = [](const Expr& e) -> DType {
    const Cast* cast = as<Cast>(e);
    return cast && cast->dtype == kInt32 && as<Load>(cast->value) ? cast->value->dtype : kVoid;
  };
  for (const auto& [product, old] : {std::pair(sum->b, sum->a), std::pair(sum->a, sum->b)}) {
    const Binary* mul = as<Binary>(product);
    const Load* load = as<Load>(old);
    if (!mul || mul->op != BinaryOp::mul || !load || !load->buffer.same_as(store->buffer)) continue;
    const DType x = operand(mul->a), y = operand(mul->b);
    if ((x == kUInt8 && y == kInt8) || (x == kInt8 && y == kUInt8)) return true;
  }
  return false;
}

/// Places among the block's loops of the intrinsic's lanes (the last spatial one before it) and depth (the last
/// reduction).
std::optional<std::pair<size_t, size_t>> places(const std::vector<IterType>& types) {
  for (size_t depth = types.size(); depth-- > 0;) {
    if (types[depth] != IterType::reduction) continue;
    for (size_t lane = depth; lane-- > 0;)
      if (types[lane] == IterType::spatial) return std::pair(lane, depth);
    return std::nullopt;
  }
  return std::nullopt;
}

Result<BlockRV> tile_for(Schedule& s, BlockRV rv, const char* intrinsic, size_t lane, size_t depth) {
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(rv));
  TW_TRY(std::vector<LoopRV> depths, s.split(loops[depth], TraceList{nullptr, kDepth}));
  TW_TRY(std::vector<LoopRV> lanes, s.split(loops[lane], TraceList{nullptr, kLanes}));
  // What stands between the two innermost ones moves out.
  TW_TRY(std::vector<LoopRV> all, s.get_loops(rv));
  std::vector<LoopRV> order(all.begin() + static_cast<std::ptrdiff_t>(lane + 2),
                            all.begin() + static_cast<std::ptrdiff_t>(depth + 2));
  order.insert(order.end(), all.begin() + static_cast<std::ptrdiff_t>(depth + 3), all.end());
  order.push_back(lanes[1]);
  order.push_back(depths[1]);
  TW_TRY_VOID(s.reorder(order));
  TW_TRY(BlockRV outer, s.blockize(lanes[1]));
  TW_TRY_VOID(s.annotate(outer, "meta_schedule.auto_tensorize", intrinsic));
  return outer;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const char* intrinsic) {
  auto block = s.block(rv);
  if (!block || !needs_tiling(s, **block) || !sums_bytes(**block)) return {s};
  auto at = places(loop_types(s, **block));
  if (!at) return {s};
  std::vector<const For*> loops = s.state().tree().loop_nodes_above(s.state().place(**block));
  if (const_int(loops[at->first]->extent).value_or(1) % kLanes != 0 ||
      const_int(loops[at->second]->extent).value_or(1) % kDepth != 0)
    return {s};
  const Schedule original = s;
  if (!mark_as_tiled(s, rv)) return {original};
  auto outer = tile_for(s, rv, intrinsic, at->first, at->second);
  if (!outer) return {original};
  std::vector<Schedule> tiled = tile_in_levels(std::move(s), *outer);
  return tiled.empty() ? std::vector<Schedule>{original} : tiled;
}

const Register<ScheduleRule> entries[] = {
    {"multi_level_tiling_with_vnni",
     "tiles contractions of bytes around dot_16x4_vnni",
     {[](Schedule s, BlockRV b, const RuleContext&) { return apply(std::move(s), b, "dot_16x4_vnni"); }}},
    {"multi_level_tiling_with_avx512",
     "tiles contractions of bytes around dot_16x4_avx512",
     {[](Schedule s, BlockRV b, const RuleContext&) { return apply(std::move(s), b, "dot_16x4_avx512"); }}},
};

}  // namespace

}  // namespace tilewright
