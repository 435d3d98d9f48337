// sample_perfect_tile: n factors whose product is the loop's extent.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/sampling_codes.h"
#include "schedule/sampling.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  const int64_t n = c.integer("n"), limit = c.integer("max_innermost_factor");
  TW_TRY_VOID(check_tile_count(c, n, loop));
  if (limit < 1 && limit != -1)
    return c.refuse(innermost_limit_not_positive,
                    fmt::format("expected a positive limit, or -1 for none, found {}", limit), loop);
  std::optional<int64_t> extent = const_int(loop->extent);
  TW_CHECK(!extent || *extent >= 1, "loop {} has extent {}", loop->var->name, *extent);
  if (!extent) {  // symbolic: -1, 1, …, 1; the -1 is inferred by split
    c.give_symbolic();
    Tile tile(n, 1);
    tile[0] = -1;
    if (c.decision()) {
      TW_TRY(Tile decided, decided_tile(c, n, loop));
      if (decided != tile) TW_TRY_VOID(c.repair(tile_text(decided), tile_text(tile), loop));
    }
    for (int64_t i = 1; i < n; ++i) c.give(int64_t{1});
    c.decide(tile);
    return {};
  }
  Tile tile;
  if (c.decision()) {
    TW_TRY(tile, decided_tile(c, n, loop));
    if (!is_perfect_tile(tile, *extent, static_cast<int>(n), limit)) {
      Tile repaired = c.schedule.options().repair == RepairMode::tvm ? repair_perfect_tile_tvm(tile, *extent)
                                                                     : repair_perfect_tile(tile, *extent, limit);
      if (repaired != tile) TW_TRY_VOID(c.repair(tile_text(tile), tile_text(repaired), loop));
      tile = repaired;
    }
  } else {
    tile = draw_perfect_tile(c.schedule.rng(), *extent, static_cast<int>(n), limit);
  }
  for (int64_t factor : tile) c.give(factor);
  c.decide(tile);
  return {};
}

const RegisterPrimitive entry{
    "sample_perfect_tile",
    "draws n factors whose product is the extent of the loop, the innermost at most max_innermost_factor (-1: no "
    "limit)",
    {.kind = "SamplePerfectTile",
     .inputs = {{"loop", ArgType::loop, {}, "the loop to tile"}},
     .attrs = {{"n", ArgType::integer, {}, "number of factors"},
               {"max_innermost_factor", ArgType::integer, 16, "limit of the last factor; -1: none"}},
     .outputs = OutputShape::ints,
     .output_kind = SymbolKind::integer,
     .pure = true,
     .samples = true,
     .refusals = {tile_refusals, innermost_limit_not_positive},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
