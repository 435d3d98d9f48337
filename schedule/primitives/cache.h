// What cache_read and cache_write share: where the copy goes and which region it covers (schedule-language.md §3.4).
#pragma once

#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

struct CachePlan {
  Place container = kNoPlace;  ///< innermost loop or scope block around writer and first reader
  BufferRegion region;         ///< what is copied
  Buffer cache;
  std::vector<Expr> offset;  ///< subtracted from indices (scope level); empty: same indices
  Stmt copy;                 ///< the nest of the copy block
  BlockId copy_id{};
};

/// "<buffer>_<scope>" over the region's shape (scope level, where that is the same in all instances) or the buffer's
/// shape.
CachePlan plan_cache(const Context&, const Buffer&, const BufferRegion& region, Place container,
                     const std::string& scope, bool into_cache);

TW_REFUSAL_CODE(
    region_has_gaps, "region-has-gaps",
    "the copy would hold elements that nobody has written: what is written is no box, or only a part of it");
TW_REFUSAL_CODE(scope_region_not_covered, "scope-region-not-covered",
                "the copy would not hold all that a block reads: not what the scope declares, or not what is written");
TW_REFUSAL_CODE(not_a_consumer, "not-a-consumer", "a block does not read what the buffer's writer leaves in it");
TW_REFUSAL_CODE(buffer_updated_in_place, "buffer-updated-in-place",
                "the block reads the buffer that it writes, so a copy of it would be read before it is written");

/// Blocks of the scope that the named blocks are or lie in, in order, each once. Refused: one that is not among
/// `readers`.
Result<std::vector<Place>> named_consumers(const Context&, const std::vector<const Block*>& named, const Buffer&,
                                           Place scope, const std::vector<Place>& readers);
/// Refused: the block updates the buffer without an init.
Status check_not_updated(const Context&, const Block*, const Buffer&);

/// Refused: the block at `p`, or one inside it, uses the buffer through a pointer or a match_buffer.
Status check_not_opaque(const Context&, Place p, const Buffer&);

/// The innermost loop or block that contains all places (never one of the places themselves).
Place common_container(const TreeIndex&, const std::vector<Place>& places);
/// The child of `container` (or item of its Seq) that contains p.
Place child_containing(const TreeIndex&, Place container, Place p);

/// Region of the buffer that the block touches (its read or write region), as seen at `container`: relaxed over the
/// loops between and the storage span.
BufferRegion region_at(const State&, Place container, Place block, const BufferRegion& region,
                       std::string_view storage_scope);

/// The block writes every element of `region` (of what the buffer has of it) in one iteration of `container`.
bool writes_whole(const State&, Place container, Place block, const BufferRegion& region);
/// What the block writes of the buffer in one iteration of `container`, if that is a box written whole.
std::optional<BufferRegion> written_box(const State&, Place container, Place block, const BufferRegion& write);

}  // namespace tilewright
