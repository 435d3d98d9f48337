// Moving a block under a loop: compute_at (a producer to its consumers) and reverse_compute_at (a consumer to its
// producers) share everything but the direction.
#pragma once

#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

/// Loop handles that are no loops: results of sample_compute_location.
inline constexpr uint64_t kRootLocation = ~uint64_t{0}, kInlineLocation = ~uint64_t{0} - 1;

enum class MoveDirection : uint8_t { to_consumers, to_producers };

/// All checks and the move. `index`: -1 last legal place, -2 first, k the k-th place in the loop's body.
Status move_block(Context&, const Block* block, const For* loop, bool preserve_unit_loops, int64_t index,
                  MoveDirection);

/// Legal decisions of sample_compute_location, ascending. The state is left as it was.
std::vector<int64_t> compute_locations(Context&, const Block* block);

/// The primitive with its location handle: root = no change, inline = (reverse_)compute_inline.
Status apply_compute_location(Context&, MoveDirection);

}  // namespace tilewright
