// compute_inline and reverse_compute_inline as functions: compute_at to the "inline" location, and the tests of
// location sampling, use them too.
#pragma once

#include "schedule/context.h"

namespace tilewright {

Status inline_block(Context&, const Block* block);
Status reverse_inline_block(Context&, const Block* block);

}  // namespace tilewright
