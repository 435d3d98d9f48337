// Refusal codes that several primitives share beside those of ir/analysis/codes.h (schedule-language.md §3.1), and the
// labels under which the shared checks (primitives/tree_ops.h) are declared. Codes of one primitive stand in its file.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "ir/analysis/codes.h"

namespace tilewright::codes {

TW_REFUSAL_CODE(inside_an_init, "inside-an-init", "the block or loop stands in the init of another block");
TW_REFUSAL_CODE(extent_depends_on_loop, "extent-depends-on-loop",
                "the extent of a loop depends on another loop of the group");
TW_REFUSAL_CODE(too_few_loops, "too-few-loops", "the primitive was given fewer loops than it needs");
TW_REFUSAL_CODE(loop_not_only_child, "loop-not-only-child",
                "the loop is not the only statement in the body of the loop above it");
TW_REFUSAL_CODE(buffer_name_not_found, "buffer-name-not-found", "the block reads and writes no buffer of that name");
TW_REFUSAL_CODE(buffer_name_ambiguous, "buffer-name-ambiguous", "the block uses several buffers of that name");
TW_REFUSAL_CODE(several_writers, "several-writers", "the buffer is written by more than one block");
TW_REFUSAL_CODE(several_factors_inferred, "several-factors-inferred", "more than one factor is None");
TW_REFUSAL_CODE(factor_not_positive, "factor-not-positive", "a factor is below 1");
TW_REFUSAL_CODE(index_map_not_injective, "index-map-not-injective",
                "two different indices are mapped to the same place");
TW_REFUSAL_CODE(index_map_negative, "index-map-negative", "an index that the map gives may be below 0");
TW_REFUSAL_CODE(index_map_arity, "index-map-arity",
                "the index map takes another number of indices than what it maps has");
TW_REFUSAL_CODE(predicate_not_trivial, "predicate-not-trivial", "the block has a predicate");
TW_REFUSAL_CODE(predicate_not_implied_by_domain, "predicate-not-implied-by-domain",
                "the block's own predicate would be lost");
TW_REFUSAL_CODE(block_has_init, "block-has-init", "the block has an init");
TW_REFUSAL_CODE(block_writes_several_buffers, "block-writes-several-buffers",
                "the block must write exactly one buffer");
TW_REFUSAL_CODE(buffer_opaque_or_matched, "buffer-opaque-or-matched",
                "the buffer is accessed through a pointer or a match_buffer");
TW_REFUSAL_CODE(body_not_a_plain_store, "body-not-a-plain-store", "the block's body must be one store");
TW_REFUSAL_CODE(loop_not_serial, "loop-not-serial", "the loop is not serial");
TW_REFUSAL_CODE(annotation_exists, "annotation-exists", "the key is already there with another value");
TW_REFUSAL_CODE(no_matching_reducer, "no-matching-reducer", "init and update match no registered commutative reducer");

}  // namespace tilewright::codes

namespace tilewright {

/// Codes that a primitive can give: single ones and other lists, without repeats, in the order tested.
///   .refusals = {labels::pipeline, labels::temp, no_factors}
class RefusalList {
 public:
  RefusalList() = default;
  RefusalList(const RefusalCode& code) : codes_{&code} {}
  RefusalList(std::initializer_list<RefusalList> parts);
  const std::vector<const RefusalCode*>& codes() const { return codes_; }

 private:
  std::vector<const RefusalCode*> codes_;
};

inline RefusalList::RefusalList(std::initializer_list<RefusalList> parts) {
  for (const RefusalList& part : parts)
    for (const RefusalCode* code : part.codes_)
      if (std::find(codes_.begin(), codes_.end(), code) == codes_.end()) codes_.push_back(code);
}

/// What the checks of the same names (tree_ops.h) can give.
namespace labels {
inline const RefusalList inner{codes::root_block_not_allowed};
inline const RefusalList pipeline{codes::scope_not_a_stage_pipeline};
inline const RefusalList complete{codes::iter_not_spatial, codes::instances_share_an_output,
                                  codes::block_not_sole_writer, codes::block_reads_its_output};
inline const RefusalList reduction{
    codes::block_has_no_init,         codes::binding_not_affine,    codes::iter_not_spatial_or_reduction,
    codes::instances_share_an_output, codes::block_not_sole_writer, codes::reduction_iter_indexes_output};
inline const RefusalList either{codes::block_neither_complete_nor_reduction};
inline const RefusalList compact{codes::dataflow_not_compact};
inline const RefusalList temp{codes::block_is_output};
inline const RefusalList removable{codes::block_is_last_of_its_scope};
inline const RefusalList trivial{codes::binding_not_trivial};
inline const RefusalList zero{codes::loop_does_not_start_at_zero, codes::loop_step_not_one};
inline const RefusalList plain{codes::loop_has_annotations, codes::loop_bound_to_thread};
inline const RefusalList index{codes::buffer_index_out_of_range};
inline const RefusalList scope{codes::storage_scope_unknown};
inline const RefusalList alloc{codes::buffer_not_allocated_here};
inline const RefusalList parallel{codes::loop_drives_a_non_parallel_iter};
}  // namespace labels

}  // namespace tilewright
