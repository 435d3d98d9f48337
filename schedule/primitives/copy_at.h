// What read_at and write_at share: a block directly under a loop that moves the region which one iteration touches
// (schedule-language.md §3.4). It is annotated auto_copy: lowering distributes it over threads.
#pragma once

#include "schedule/primitives/instances.h"

namespace tilewright {

/// The arguments loop, block, buffer index and scope of read_at (write: of write_at), checked up to
/// loop-not-above-block.
struct CopyAt {
  const For* loop = nullptr;
  const Block* block = nullptr;
  Buffer buffer;
  std::vector<Place> readers, writers;  ///< of the buffer, under the loop, in program order
};
Result<CopyAt> copy_at_arguments(const Context&, bool write);
inline const RefusalList copy_at_refusals{labels::inner,
                                          labels::pipeline,
                                          labels::scope,
                                          labels::index,
                                          codes::loop_not_above_block,
                                          codes::buffer_opaque_or_matched};

/// The copy block: iters over the loops that the region depends on, loops over the region inside.
Stmt make_auto_copy(const State&, const For* loop, const BufferRegion& region, const Buffer& cache, bool into_cache,
                    BlockId* id);

/// Puts `copy` before (after) the item of the loop's body in a scope whose blocks are replaced as told.
void insert_copy(Context&, const CopyAt&, const Stmt& item, bool before, const Stmt& copy, const Buffer& cache,
                 const std::vector<std::pair<const StmtNode*, Stmt>>& replaced);

TW_REFUSAL_CODE(region_not_exact, "region-not-exact",
                "what the blocks under the loop touch is no box of which every element is there to be copied");

}  // namespace tilewright
