// Refusal codes that several primitives share beside those of ir/analysis/codes.h (schedule-language.md §3.1). Codes of
// one primitive stand in its file.
#pragma once

#include "ir/analysis/codes.h"

namespace tilewright::codes {

TW_REFUSAL_CODE(inside_an_init, "inside-an-init", "the block or loop stands in the init of another block");
TW_REFUSAL_CODE(extent_depends_on_loop, "extent-depends-on-loop",
                "the extent of a loop depends on another loop of the group");
TW_REFUSAL_CODE(loop_not_only_child, "loop-not-only-child",
                "the loop is not the only statement in the body of the loop above it");
TW_REFUSAL_CODE(several_writers, "several-writers", "the buffer is written by more than one block");
TW_REFUSAL_CODE(several_factors_inferred, "several-factors-inferred", "more than one factor is None");
TW_REFUSAL_CODE(factor_not_positive, "factor-not-positive", "a factor is below 1");
TW_REFUSAL_CODE(index_map_not_injective, "index-map-not-injective",
                "two different indices are mapped to the same place");
TW_REFUSAL_CODE(predicate_not_trivial, "predicate-not-trivial", "the block has a predicate");
TW_REFUSAL_CODE(predicate_not_implied_by_domain, "predicate-not-implied-by-domain",
                "the block's own predicate would be lost");
TW_REFUSAL_CODE(block_has_init, "block-has-init", "the block has an init");
TW_REFUSAL_CODE(block_writes_several_buffers, "block-writes-several-buffers",
                "the block must write exactly one buffer");
TW_REFUSAL_CODE(buffer_opaque_or_matched, "buffer-opaque-or-matched",
                "the buffer is accessed through a pointer or a match_buffer");
TW_REFUSAL_CODE(body_not_a_plain_store, "body-not-a-plain-store", "the block's body must be one store");
TW_REFUSAL_CODE(no_matching_reducer, "no-matching-reducer", "init and update match no registered commutative reducer");

}  // namespace tilewright::codes
