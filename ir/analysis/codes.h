// The refusal codes of the checks that primitives share (schedule-language.md §3.1). A primitive's own codes are
// declared in its file.
#pragma once

#include "support/refusal.h"

namespace tilewright::codes {

// live, inner
TW_REFUSAL_CODE(handle_expired, "handle-expired", "the handle was consumed by an earlier instruction");
TW_REFUSAL_CODE(handle_of_wrong_kind, "handle-of-wrong-kind", "a loop was expected and a block given, or the reverse");
TW_REFUSAL_CODE(root_block_not_allowed, "root-block-not-allowed",
                "the root block was given where an inner block is needed");
// pipeline
TW_REFUSAL_CODE(
    scope_not_a_stage_pipeline, "scope-not-a-stage-pipeline",
    "a child of the scope reads what its producers do not cover, or the scope has a WAR or an opaque dependence");
// complete, reduction, either, compact
TW_REFUSAL_CODE(iter_not_spatial, "iter-not-spatial", "every iter of the block must be spatial");
TW_REFUSAL_CODE(instances_share_an_output, "instances-share-an-output",
                "different values of the spatial iters write the same element, so that the last one counts");
TW_REFUSAL_CODE(block_not_sole_writer, "block-not-sole-writer", "another block of the scope writes the same buffer");
TW_REFUSAL_CODE(block_reads_its_output, "block-reads-its-output", "the block reads a buffer that it writes");
TW_REFUSAL_CODE(block_has_no_init, "block-has-no-init", "the reduction block has no init");
TW_REFUSAL_CODE(binding_not_affine, "binding-not-affine",
                "the block's bindings are not an affine map of its loops onto the iters' domains");
TW_REFUSAL_CODE(iter_not_spatial_or_reduction, "iter-not-spatial-or-reduction",
                "an iter is neither spatial nor a reduction");
TW_REFUSAL_CODE(reduction_iter_indexes_output, "reduction-iter-indexes-output",
                "an output is indexed by a reduction iter");
TW_REFUSAL_CODE(block_neither_complete_nor_reduction, "block-neither-complete-nor-reduction",
                "the block is neither a complete block nor a reduction block");
TW_REFUSAL_CODE(dataflow_not_compact, "dataflow-not-compact",
                "a block below the loop is neither complete nor a reduction within the loop's subtree");
// temp, removable
TW_REFUSAL_CODE(block_is_output, "block-is-output", "the block writes a buffer that its scope does not allocate");
TW_REFUSAL_CODE(block_is_last_of_its_scope, "block-is-last-of-its-scope",
                "removing the block would leave an empty scope");
// trivial
TW_REFUSAL_CODE(binding_not_trivial, "binding-not-trivial", "every binding must be a bare loop variable");
// zero, plain
TW_REFUSAL_CODE(loop_does_not_start_at_zero, "loop-does-not-start-at-zero", "the loop must start at 0");
TW_REFUSAL_CODE(loop_step_not_one, "loop-step-not-one", "the loop's step must be 1");
TW_REFUSAL_CODE(loop_has_annotations, "loop-has-annotations", "the loop carries annotations");
TW_REFUSAL_CODE(loop_bound_to_thread, "loop-bound-to-thread", "the loop is bound to a thread axis");
// single, above, const
TW_REFUSAL_CODE(subtree_has_not_one_block, "subtree-has-not-one-block", "exactly one block is needed below the loop");
TW_REFUSAL_CODE(loop_not_above_block, "loop-not-above-block", "the loop is not above the block");
TW_REFUSAL_CODE(extent_not_constant, "extent-not-constant", "the loop's extent must be a constant");
// index, scope, alloc
TW_REFUSAL_CODE(buffer_index_out_of_range, "buffer-index-out-of-range", "the block has fewer regions in its signature");
TW_REFUSAL_CODE(storage_scope_unknown, "storage-scope-unknown", "the storage scope is not known");
TW_REFUSAL_CODE(buffer_not_allocated_here, "buffer-not-allocated-here", "the buffer is a parameter or an alias");
// order
TW_REFUSAL_CODE(dependence_would_break, "dependence-would-break",
                "the new order runs a reader before the write it needs, or reverses two writes");
// parallel, vectorize, bind, moves under such loops
TW_REFUSAL_CODE(loop_drives_a_non_parallel_iter, "loop-drives-a-non-parallel-iter",
                "the binding of a reduction, scan or opaque iter uses the loop");

}  // namespace tilewright::codes
