// reindex_cache_read and reindex_cache_write: a copy laid out by an index map of the block's iters; only that block
// uses it.
#pragma once

#include "schedule/primitives/cache.h"

namespace tilewright {

TW_REFUSAL_CODE(access_not_a_point, "access-not-a-point",
                "the block accesses more than one element of the buffer in an instance");
TW_REFUSAL_CODE(map_uses_a_reduction_iter, "map-uses-a-reduction-iter",
                "a copy of what is written cannot be indexed by a reduction iter: it is initialised only once");
TW_REFUSAL_CODE(map_iters_differ, "map-iters-differ",
                "the index map takes another number of indices than the block has iters");
inline const RefusalList reindex_cache_refusals{labels::scope,
                                                labels::inner,
                                                labels::index,
                                                labels::pipeline,
                                                codes::several_writers,
                                                access_not_a_point,
                                                map_iters_differ,
                                                codes::index_map_not_injective,
                                                codes::index_map_negative,
                                                codes::buffer_opaque_or_matched,
                                                region_has_gaps};

Status reindex_cache(Context&, bool write);

}  // namespace tilewright
