// Rewrites inside blocks that several primitives share: redirecting accesses and keeping signatures true.
#pragma once

#include "schedule/primitives/tree_ops.h"

namespace tilewright {

/// Redirects every load, store and region of `from` below `s` to `to`, with indices mapped by `map_indices`. A region
/// is mapped through its minimum when it is a point, else dimension by dimension (map_range; null: minimum mapped,
/// extents kept).
struct Redirect {
  Buffer from, to;
  std::function<std::vector<Expr>(const std::vector<Expr>&)> map_indices;  ///< null: unchanged
  bool loads = true, stores = true;
};
Stmt redirect(const Stmt& s, const Redirect& how);

/// Reads (and, with `writes`, writes) of the block derived again from its body; signatures of blocks above it up to the
/// root are derived too (the root's stays empty).
Stmt rederive_reads(const Stmt& block);

/// Makes signatures true again after a change inside the block at `p`: of this block and of those around it, but for
/// the root's, which stays empty. Regions grow to what is touched; buffers that are touched no more go.
void refresh_signatures(State&, BlockId block);

/// Whether the buffer is used other than by loads, stores and regions below s (pointer, match_buffer source).
bool has_opaque_use(const Stmt& s, const Buffer& b);

/// A buffer of its own for what `like` holds, or a part of it, rows one after the other.
Buffer buffer_like(const Buffer& like, const std::string& name, const std::string& scope, std::vector<Expr> shape);

/// Removes the buffer from the allocations of the tree.
Stmt drop_allocation(const Stmt& root, const Buffer& b);
/// Appends an allocation to the block at `owner`.
Stmt add_allocation(const Block& owner, const Buffer& b);

/// A copy block `name`: iters over `extents`, target[map_to(v)] = source[map_from(v)], under fresh loops ax0… with
/// bindings `offsets[i] + ax` (null offsets: 0).
struct CopyBlock {
  std::string name;
  Buffer source, target;
  std::vector<Range> domains;  ///< of the iters
  std::vector<Range> loops;    ///< loop ranges: binding i = loops[i].min + ax_i, extent loops[i].extent
  std::function<std::vector<Expr>(const std::vector<Expr>&)> source_indices,
      target_indices;  ///< null: the iters themselves
  std::vector<Expr>
      shape;       ///< binding i is held below shape[i] and at or above 0 by a predicate unless `facts` prove it
  Expr predicate;  ///< and-ed to that; null: none
};
/// The nest; *id is the block's. `facts`: about what the loops' ranges use.
Stmt make_copy(const CopyBlock&, Analyzer& facts, BlockId* id);

}  // namespace tilewright
