// reindex_cache_read and reindex_cache_write: a copy laid out by an index map of the block's iters; only that block
// uses it.
#pragma once

#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

Status reindex_cache(Context&, bool write);

}  // namespace tilewright
