// Domains of the sampling primitives: drawing, counting and repairing tile decisions. Integers only; mutators and the
// closed-form evaluator use these without a program.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "support/rng.h"

namespace tilewright {

using Tile = std::vector<int64_t>;

/// (prime, exponent) pairs, ascending. n >= 1.
std::vector<std::pair<int64_t, int>> factorize(int64_t n);
/// All divisors, ascending. n >= 1.
std::vector<int64_t> divisors(int64_t n);

/// n factors whose product is `extent`, the last at most `limit` (-1: none), uniform over per-prime weak compositions
/// conditioned on the limit. Exact: no retry. extent >= 1, n >= 1.
Tile draw_perfect_tile(Rng&, int64_t extent, int n, int64_t limit);
/// Number of such tiles, as a double (they can exceed 2^64).
double count_perfect_tiles(int64_t extent, int n, int64_t limit);
bool is_perfect_tile(const Tile&, int64_t extent, int n, int64_t limit);
/// The repair of schedule-language.md §4.4; returns the tile itself when it fits.
Tile repair_perfect_tile(Tile, int64_t extent, int64_t limit);
/// The compatible system's repair: the first place from the end that fails takes the whole rest.
Tile repair_perfect_tile_tvm(Tile, int64_t extent);

/// Perfect tiles whose product from place `pos` on is a multiple of `inner`; nothing when `extent` is not a multiple.
std::optional<Tile> draw_partitioned_tile(Rng&, int64_t extent, int n, int pos, int64_t inner);
Tile repair_partitioned_tile(Tile, int64_t extent, int pos, int64_t inner);

}  // namespace tilewright
