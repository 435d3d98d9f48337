// Signatures of blocks that state none (schedule-language.md §1.4). Private to the reader.
#pragma once

#include "ir/analysis/regions.h"

namespace tilewright::text {

/// What the body touches as a function of the block's iters. Inner loops with constant bounds give boxes of constant
/// size; what cannot be bounded is the whole dimension.
Signature body_signature(const Block&);

}  // namespace tilewright::text
