// Moving a block under a loop: compute_at (a producer to its consumers) and reverse_compute_at (a consumer to its
// producers) share everything but the direction.
#pragma once

#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

TW_REFUSAL_CODE(block_and_loop_in_different_scopes, "block-and-loop-in-different-scopes",
                "block and loop are not in the same scope block");
TW_REFUSAL_CODE(loop_above_block, "loop-above-block", "the loop already encloses the block");
TW_REFUSAL_CODE(consumer_outside_loop, "consumer-outside-loop", "a consumer of the block is outside the loop");
TW_REFUSAL_CODE(producer_outside_loop, "producer-outside-loop", "a producer of the block is outside the loop");
TW_REFUSAL_CODE(
    producer_not_complete_under_loop, "producer-not-complete-under-loop",
    "the loop, or one above it, drives a reduction of the producer: under it there are only partial results");
TW_REFUSAL_CODE(insertion_index_invalid, "insertion-index-invalid", "the place asked for is not legal");
TW_REFUSAL_CODE(region_not_solvable, "region-not-solvable",
                "the needed part of an iter's domain cannot be derived from the regions");
/// What move_block can give in either direction.
inline const RefusalList move_refusals{
    labels::inner,           block_and_loop_in_different_scopes,    labels::pipeline, labels::either, loop_above_block,
    insertion_index_invalid, codes::predicate_not_implied_by_domain};

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
