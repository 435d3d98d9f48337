// blockize as a part of other primitives (tensorize): see blockize.cpp.
#pragma once

#include "schedule/primitives/tree_ops.h"

namespace tilewright {

TW_REFUSAL_CODE(subspace_not_divisible, "subspace-not-divisible",
                "an iter of the block mixes loops inside and outside of the subtree, so that it cannot be cut in two");
inline const RefusalList blockize_loop_refusals{codes::subtree_has_not_one_block, subspace_not_divisible};

/// The subtree of the loop becomes one block around its only block; the id of the new block.
Result<BlockId> blockize_loop(Context&, const For*, bool preserve_unit_iters);

}  // namespace tilewright
