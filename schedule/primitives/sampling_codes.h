// Codes and decision reading that the tile samplings share.
#pragma once

#include "schedule/context.h"
#include "schedule/sampling.h"

namespace tilewright {

TW_REFUSAL_CODE(tile_count_too_small, "tile-count-too-small", "a tile needs at least one factor");
TW_REFUSAL_CODE(tile_count_too_large, "tile-count-too-large",
                "a tile of more factors than a 64-bit extent has primes, which are mostly loops of one iteration");
TW_REFUSAL_CODE(innermost_limit_not_positive, "innermost-limit-not-positive",
                "the limit of the innermost factor is neither positive nor -1 (none)");
TW_REFUSAL_CODE(decision_of_wrong_length, "decision-of-wrong-length",
                "a tile decision has another number of factors than n");
TW_REFUSAL_CODE(decision_out_of_range, "decision-out-of-range", "a categorical decision is no index of the candidates");

/// What check_tile_count, decided_tile and a repair that is off give.
inline const RefusalList tile_refusals{tile_count_too_small, tile_count_too_large, decision_of_wrong_length,
                                       decision_does_not_fit};

/// 1 <= n <= 64.
Status check_tile_count(Context&, int64_t n, const For* loop);
/// The recorded decision as a tile of n integers.
Result<Tile> decided_tile(Context&, int64_t n, const For* loop);
/// "[8, 16]"
std::string tile_text(const Tile&);

}  // namespace tilewright
