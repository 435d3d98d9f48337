// reindex_cache_write: the block writes a copy of the buffer that an index map of its iters lays out (packing).
#include "schedule/primitive.h"
#include "schedule/primitives/reindex_cache.h"

namespace tilewright {
namespace {

Status apply(Context& c) { return reindex_cache(c, true); }

const RegisterPrimitive entry{
    "reindex_cache_write",
    "the block writes a copy of the buffer laid out by an index map of its iters",
    {.kind = "ReindexCacheWrite",
     .inputs = {{"block", ArgType::block, {}, "the only user of the copy"},
                {"index_map", ArgType::index_map, {}, "the block's iters to indices of the copy"}},
     .attrs = {{"write_buffer_index", ArgType::integer, {}, "index of the write region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .python_order = {"block", "write_buffer_index", "storage_scope", "index_map"},
     .refusals = {reindex_cache_refusals, buffer_updated_in_place, map_uses_a_reduction_iter},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
