// Tiling by levels as a part of other rules: see multi_level_tiling.cpp.
#pragma once

#include "search/rules/rule.h"

namespace tilewright {

/// Annotates the block, so that no rule tiles it again.
Status mark_as_tiled(Schedule&, BlockRV);
/// The loops of the block cut into SSRSRS levels, with and without a write cache. Empty: not applicable.
std::vector<Schedule> tile_in_levels(Schedule, BlockRV);

}  // namespace tilewright
