// blockize as a part of other primitives (tensorize): see blockize.cpp.
#pragma once

#include "schedule/primitives/tree_ops.h"

namespace tilewright {

/// The subtree of the loop becomes one block around its only block; the id of the new block.
Result<BlockId> blockize_loop(Context&, const For*, bool preserve_unit_iters);

}  // namespace tilewright
