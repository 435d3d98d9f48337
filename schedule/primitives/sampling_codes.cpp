#include "schedule/primitives/sampling_codes.h"

#include <fmt/format.h>

namespace tilewright {

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

}  // namespace tilewright
