// Small helpers on indices and layouts that several passes share.
#pragma once

#include <functional>
#include <vector>

#include "ir/program.h"
#include "ir/simplify/analyzer.h"

namespace tilewright::lowering {

/// index + offset; a Ramp or Broadcast keeps its form.
Expr shift_index(const Expr& index, const Expr& offset);
/// Strides in elements: those of the buffer, or row-major.
std::vector<Expr> strides_of(const BufferNode&);
/// Bytes of a buffer of constant shape (padding of its strides included); 0 if not constant.
int64_t buffer_bytes(const BufferNode&);
/// Wraps an expression at every vector lane: lane l of an index that is a Ramp, a Broadcast or a scalar.
Expr lane_of(const Expr& index, int lane);

/// One access of a buffer, with what surrounds it below the statement that was searched.
struct Access {
  const std::vector<Expr>* indices = nullptr;  ///< null: through a pointer, or an opaque region
  bool write = false;
  std::vector<VarRange> loops;  ///< outer first
  Expr predicate;               ///< of enclosing ifs and if_then_else; null: always
};
/// Accesses of `buffer` (by its data variable) in program order; reads of a statement before its write.
std::vector<Access> accesses_of(const Stmt&, const Buffer& buffer);

}  // namespace tilewright::lowering
