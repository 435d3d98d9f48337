// What unsafe_hide_buffer_access and annotate_buffer_access share.
#pragma once

#include "schedule/primitives/tree_ops.h"

namespace tilewright {

TW_REFUSAL_CODE(buffer_type_unknown, "buffer-type-unknown", "buf_type is neither \"read\" nor \"write\"");

/// Whether buf_type is "write".
Result<bool> is_write_side(const Context&, const Block*);

}  // namespace tilewright
