// Which instances a block has, told from its iters: for primitives that make new loops over them, or whole copies.
#pragma once

#include "schedule/primitives/cache.h"

namespace tilewright {

/// The bindings take every point of the iters' domains, whatever else the predicate asks; binding-not-affine.
Status check_sweeps_domain(const Context&, const Block*);

/// The block's predicate as a condition on its iters (null: none). Conjuncts that only keep a binding inside its domain
/// are left out. Refused (predicate-not-implied-by-domain): a loop's value that the iters do not tell.
Result<Expr> predicate_over_iters(const Context&, const Block*);

/// What of `indices` lying inside the buffer cannot be proved; null: all of it can.
Expr inside_buffer(const Buffer&, const std::vector<Expr>& indices, Analyzer&);

/// Of an iter's value in a buffer with one element for each: buffers start at 0, iters need not.
Expr place_of(const Iter&, const Expr& value);

/// `<buffer>_<scope>`, of the buffer's shape.
Buffer whole_cache(const Buffer&, const std::string& storage_scope);

/// Refused: the scope block has a signature, and what it says of the buffer is less than the block touches.
Status check_scope_covers(const Context&, const Block*, const BufferRegion& touched, const std::string& storage_scope,
                          bool write);

}  // namespace tilewright
