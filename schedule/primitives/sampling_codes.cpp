#include "schedule/primitives/sampling_codes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright {

Status check_tile_count(Context& c, int64_t n, const For* loop) {
  constexpr int64_t most = 64;
  if (n < 1) return c.refuse(tile_count_too_small, fmt::format("expected at least 1 factor, found n = {}", n), loop);
  if (n > most)
    return c.refuse(tile_count_too_large, fmt::format("expected at most {} factors, found n = {}", most, n), loop);
  return {};
}

Result<Tile> decided_tile(Context& c, int64_t n, const For* loop) {
  auto* list = c.decision()->get<TraceList>();
  if (!list) return c.refuse(wrong_argument_type, "expected a list of integers as decision", loop);
  if (static_cast<int64_t>(list->size()) != n)
    return c.refuse(decision_of_wrong_length, fmt::format("expected {} factors, found {}", n, list->size()), loop);
  Tile tile;
  for (const TraceValue& item : *list) {
    auto* factor = item.get<int64_t>();
    if (!factor) return c.refuse(wrong_argument_type, "expected a list of integers as decision", loop);
    tile.push_back(*factor);
  }
  return tile;
}

std::string tile_text(const Tile& tile) { return fmt::format("[{}]", fmt::join(tile, ", ")); }

}  // namespace tilewright
