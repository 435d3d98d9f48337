// Compiles accesses: buffers over memory, multi-dimensional indices to element addresses, bounds checks that are not
// proved.
#pragma once

#include "ir/interpret/expr_compiler.h"

namespace tilewright::interpreter {

/// A buffer as the code sees it. Extents, strides and offset are registers, in elements.
struct BufferView {
  int memory = -1;
  std::vector<int> extents, strides;
  int offset = 0;
};

class AccessCompiler : public ExprCompiler {
 public:
  using ExprCompiler::ExprCompiler;

 protected:
  /// Memory or registers for every parameter, and checks that the arguments' extents agree.
  void declare_parameters(const Function&);
  /// A new memory slot, reached by the buffer's data variable.
  int add_memory(const BufferNode&, int parameter);
  /// Declares the buffer over the memory of its data variable. Unbound variables among the strides are bound to the
  /// compact strides, an unbound elem_offset to `offset`.
  BufferView& declare(const BufferNode&, std::vector<int> extents, int offset);
  /// The same with extents from the buffer's shape.
  BufferView& declare(const BufferNode&);
  BufferView view_of(const BufferNode&);
  /// A fresh allocation at this point of the execution.
  void allocate(const BufferNode&);
  /// Declares `match` as an alias of a region.
  void alias(const MatchBuffer&);

  int load_lane(const Load&, int lane) override;
  void store(const Store&);
  /// Element address with the bounds of each dimension checked.
  int address(const BufferNode&, const BufferView&, const std::vector<Expr>& indices, int index_lane, const char* verb);
  Linear multiply(const Linear&, int factor_reg);

 private:
  void parameter(const Param&);
  void emit_load(DType element, int d, int address, int memory);
  void emit_store(DType element, int value, int address, int memory);
  bool bind_if_free(const Expr&, int reg);

  std::unordered_map<const VarNode*, int> memory_of_;
  std::unordered_map<const BufferNode*, BufferView> views_;
};

}  // namespace tilewright::interpreter
