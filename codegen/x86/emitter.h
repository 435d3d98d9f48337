// From form K to an LLVM module, one to one. Private to codegen/x86. Files: emit_entry.cpp (entry, parallel bodies,
// workspace), emit_stmt.cpp, emit_expr.cpp, emit_math.cpp, optimise.cpp (passes, object file), jit.cpp.
//
// Values: bool is i1 (stored as i8); bfloat16 and float8 values are their bits (i16, i8), only casts compute with them;
// float16 is half. Index arithmetic is 64-bit and never wraps; data arithmetic wraps.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/codegen.h"
#include "ir/build.h"

namespace tilewright::codegen {

class Emitter {
 public:
  Emitter(llvm::Module& module, const lowering::LoweredFunction& function, const Target& target);
  /// Fills the module; the refusal of the first construct without a machine form.
  Status run();
  std::vector<std::string> notes;

 private:
  using Value = llvm::Value*;
  using Type = llvm::Type*;

  // --- emit_entry.cpp
  // What a function needs from outside: buffers (by data variable) and scalars, in order of first use.
  struct Captures {
    std::vector<Buffer> buffers;
    std::vector<Var> scalars;
    std::vector<const Allocate*> workspace;  // allocations inside that live in the caller's workspace
  };
  // A group of workspace buffers whose byte ranges overlap: they share one pointer, so that noalias stays true.
  struct WorkspaceGroup {
    int64_t begin = 0, end = 0;
    bool slice = false;
    std::vector<const Allocate*> members;
  };
  static Captures captures_of(const Stmt& body);
  static std::vector<WorkspaceGroup> group_workspace(const std::vector<const Allocate*>&);
  llvm::Function* begin_body(const std::string& name, const Captures&, const std::vector<WorkspaceGroup>&,
                             bool has_range);
  Value call_body(llvm::Function* body, const Captures&, const std::vector<WorkspaceGroup>&, std::vector<Value> range,
                  Value worker);
  void emit_entry();
  void emit_parallel(const For& loop);
  llvm::Function* outline(const For& loop, const Captures&, int64_t chunks, llvm::StructType* env);
  void decorate(llvm::Function*);
  Value host_field(unsigned index, Type type);
  void set_denormals(Value& saved);
  void restore_denormals(Value saved);

  // --- emit_stmt.cpp
  void stmt(const Stmt& s);
  void store(const Store& s);
  void loop(const For& s);
  void emit_loop(const Var& var, Value begin, Value end, Value step, bool surely_runs, bool free_for_llvm,
                 const Stmt& body);
  void if_stmt(const If& s);
  void while_loop(const While& s);
  void attribute(const AttrStmt& s);
  void allocate(const Allocate& s);
  void return_error(Value condition_ok, int error);
  void prefetch(const AttrStmt& s);
  bool terminated() const { return builder_.GetInsertBlock()->getTerminator() != nullptr; }
  llvm::BasicBlock* block(const char* name);

  // --- emit_expr.cpp
  Value expr(const Expr& e);
  Value index(const Expr& e);  // as i64
  Value binary(const Binary& e);
  Value int_binary(BinaryOp op, Value a, Value b, DType type);
  Value float_binary(BinaryOp op, Value a, Value b);
  Value floor_divide(Value a, Value b, bool want_mod, const Expr& divisor);
  Value cast(Value v, DType from, DType to);
  Value to_float32(Value v, DType from);
  Value from_float32(Value v, DType to);
  Value load(const Load& e);
  Value load_lanes(const Load& e, int lanes);
  Value strided_load(const Load& e, const Ramp& ramp, int64_t stride);
  Value call(const Call& e);
  Value if_then_else(const Call& e);
  Value library_call(const std::string& name, const Call& e);
  Value llvm_intrinsic(const Call& e);
  Value address(const Buffer& buffer, Value index);
  Value shuffle(const Shuffle& e);
  Value splat(Value v, int lanes) {
    return lanes == 1 ? v : builder_.CreateVectorSplat(static_cast<unsigned>(lanes), v);
  }
  Value constant(double value, Type type);
  Value bits_like(uint64_t value, Type type);
  Type type_of(DType t) const;
  Type memory_type(DType t) const;  // as stored: bool is i8
  Value fail(std::string message, DType type);

  // --- emit_math.cpp: float32 functions of lowering.md §2.4, same bits as ir/interpret/math_table.h
  Value table_math(const std::string& name, Value x);  // null: not in the table

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  const lowering::LoweredFunction& lowered_;
  const Function& function_;
  const Target& target_;
  llvm::IRBuilder<> builder_;
  llvm::FastMathFlags flags_;  // of arithmetic in the program (not of math expansions)
  std::optional<Refusal> refusal_;

  // Per body.
  llvm::Function* body_ = nullptr;
  std::unordered_map<const VarNode*, Value> scalars_, pointers_;
  Value host_ = nullptr, worker_ = nullptr;
  bool inside_parallel_ = false;
  bool indexing_ = false;  // integer arithmetic may be assumed not to wrap
  bool nontemporal_ = false;
  bool used_nontemporal_ = false;
  Value mask_ = nullptr;  // lanes that are on, or null
  struct LoopBlocks {
    llvm::BasicBlock *next, *exit;
  };
  std::vector<LoopBlocks> loops_;
  int bodies_ = 0;
};

}  // namespace tilewright::codegen
