// sample_partitioned_tile: perfect tiles whose product from place partition_pos on is a multiple of innerpart_factor.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "schedule/primitive.h"
#include "schedule/primitives/sampling_codes.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(partition_out_of_range, "partition-out-of-range", "partition_pos is no place of the tile");

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  const int64_t n = c.integer("n"), pos = c.integer("partition_pos"), inner = c.integer("innerpart_factor");
  TW_TRY_VOID(check_tile_count(c, n, loop));
  if (pos < 0 || pos > n || inner < 1)
    return c.refuse(
        partition_out_of_range,
        fmt::format("expected 0 <= partition_pos <= {} and innerpart_factor >= 1, found {} and {}", n, pos, inner),
        loop);
  if (pos == n && inner > 1)
    return c.refuse(partition_out_of_range,
                    fmt::format("no factor is left for an inner part that is a multiple of {}", inner), loop);
  std::optional<int64_t> extent = const_int(loop->extent);
  TW_CHECK(!extent || *extent >= 1, "loop {} has extent {}", loop->var->name, *extent);
  std::optional<Tile> tile;
  if (extent && c.decision()) {
    TW_TRY(Tile decided, decided_tile(c, n, loop));
    tile = repair_partitioned_tile(decided, *extent, static_cast<int>(pos), inner);
    if (*tile != decided) TW_TRY_VOID(c.repair(tile_text(decided), tile_text(*tile), loop));
  } else if (extent) {
    tile = draw_partitioned_tile(c.schedule.rng(), *extent, static_cast<int>(n), static_cast<int>(pos), inner);
  }
  if (!tile || tile->at(0) == -1) {  // symbolic or indivisible
    Tile symbolic(n, 1);
    symbolic[0] = -1;
    c.give_symbolic();
    for (int64_t i = 1; i < n; ++i) c.give(int64_t{1});
    c.decide(symbolic);
    return {};
  }
  for (int64_t factor : *tile) c.give(factor);
  c.decide(*tile);
  return {};
}

const RegisterPrimitive entry{
    "sample_partitioned_tile",
    "draws a perfect tile whose product from place partition_pos on is a multiple of innerpart_factor",
    {.kind = "SamplePartitionedTile",
     .inputs = {{"loop", ArgType::loop, {}, "the loop to tile"}},
     .attrs = {{"n", ArgType::integer, {}, "number of factors"},
               {"partition_pos", ArgType::integer, 0, "first place of the inner part"},
               {"innerpart_factor", ArgType::integer, 1, "divides the product of the inner part"}},
     .outputs = OutputShape::ints,
     .output_kind = SymbolKind::integer,
     .pure = true,
     .samples = true,
     .refusals = {tile_refusals, partition_out_of_range},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
