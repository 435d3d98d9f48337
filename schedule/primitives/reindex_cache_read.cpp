// reindex_cache_read: the block reads a copy of the buffer that an index map of its iters lays out (packing).
#include "schedule/primitive.h"
#include "schedule/primitives/reindex_cache.h"

namespace tilewright {
namespace {

Status apply(Context& c) { return reindex_cache(c, false); }

const RegisterPrimitive entry{
    "reindex_cache_read",
    "the block reads a copy of the buffer laid out by an index map of its iters",
    {.kind = "ReindexCacheRead",
     .inputs = {{"block", ArgType::block, {}, "the only user of the copy"},
                {"index_map", ArgType::index_map, {}, "the block's iters to indices of the copy"}},
     .attrs = {{"read_buffer_index", ArgType::integer, {}, "index of the read region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .python_order = {"block", "read_buffer_index", "storage_scope", "index_map"},
     .refusals = {reindex_cache_refusals, codes::block_reads_its_output},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
