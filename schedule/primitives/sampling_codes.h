// Codes and decision reading that the tile samplings share.
#pragma once

#include "schedule/context.h"
#include "schedule/sampling.h"

namespace tilewright {

TW_REFUSAL_CODE(tile_count_too_small, "tile-count-too-small", "a tile needs at least one factor");
TW_REFUSAL_CODE(innermost_limit_not_positive, "innermost-limit-not-positive",
                "the limit of the innermost factor is neither positive nor -1 (none)");
TW_REFUSAL_CODE(extent_not_positive, "extent-not-positive", "the loop has no iterations");
TW_REFUSAL_CODE(decision_of_wrong_length, "decision-of-wrong-length",
                "a tile decision has another number of factors than n");
TW_REFUSAL_CODE(decision_out_of_range, "decision-out-of-range", "a categorical decision is no index of the candidates");
TW_REFUSAL_CODE(decision_does_not_fit, "decision-does-not-fit",
                "a tile decision does not divide the extent, and repair is off");

/// The recorded decision as a tile of n integers.
Result<Tile> decided_tile(Context&, int64_t n, const For* loop);

}  // namespace tilewright
