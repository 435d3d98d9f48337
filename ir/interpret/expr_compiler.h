// Compiles expressions to register code, one lane at a time. Integer registers carry a proved interval: sums that
// cannot wrap become one address instruction, checks that cannot fail are not emitted. Equal subexpressions of a
// statement are computed once.
#pragma once

#include <map>
#include <unordered_map>

#include "ir/interpret/code.h"

namespace tilewright::interpreter {

/// Closed interval; beyond ±2^62 nothing is known.
struct Interval {
  static constexpr int64_t kUnknown = int64_t{1} << 62;
  int64_t lo = -kUnknown, hi = kUnknown;
  bool known() const { return lo > -kUnknown && hi < kUnknown; }
  bool inside(int64_t low, int64_t high) const { return lo >= low && hi <= high; }
};
Interval interval_of(DType);

/// constant + Σ register · coefficient, over integers that do not wrap.
struct Linear {
  int64_t constant = 0;
  std::vector<std::pair<int, int64_t>> terms;
  bool too_large = false;  ///< a number here left 64 bits: the sum is not usable (its interval is unknown)
};

/// Thrown inside the compiler, turned into a refusal at its boundary.
struct CompileFailure {
  Refusal refusal;
};

class ExprCompiler {
 public:
  explicit ExprCompiler(InterpreterCode& code) : code_(code) {}
  virtual ~ExprCompiler() = default;

 protected:
  /// The register that holds lane `lane` of the value.
  int scalar(const Expr&, int lane = 0);
  std::vector<int> lanes(const Expr&);
  Linear linear(const Expr&, int lane = 0);
  Linear linear_of(int reg) const;  ///< a constant when the register's value is known
  int materialize(const Linear&);
  Linear scaled(Linear, int64_t factor) const;
  Linear sum(Linear, const Linear&) const;
  Interval interval(const Linear&) const;
  Interval interval(int reg) const { return intervals_[static_cast<size_t>(reg)]; }

  int fresh(Interval = {});
  int constant(int64_t);
  int constant_float(DType, double);
  int emit(Op, int a = 0, int b = 0, int c = 0, uint16_t x = 0, Interval = {});  ///< into a fresh register
  size_t emit_to(Op, int d, int a = 0, int b = 0, int c = 0, uint16_t x = 0);
  void fails_with(const RefusalCode&, std::string what);  ///< site of the instruction just emitted
  void patch(size_t jump) { code_.code[jump].d = static_cast<int>(code_.code.size()); }
  /// Emits the conversion of a register between scalar types.
  int convert(int reg, DType from, DType to);
  int round_if_small(int reg, DType);

  void bind(const VarNode* var, std::vector<int> regs) { env_[var] = std::move(regs); }
  void new_statement() { memo_.clear(); }
  [[noreturn]] void not_supported(const std::string& what) const;
  /// The register of one element of a load (flattened lane).
  virtual int load_lane(const Load&, int lane) = 0;

  InterpreterCode& code_;
  std::unordered_map<const VarNode*, std::vector<int>> env_;

  /// Names a loop variable or iter in the reports of failures below it, until leave() with what enter gave.
  Context enter(std::string name, int reg);
  Context enter_block(std::string name);
  void leave(Context before) { context_ = std::move(before), context_stored_ = false; }

 private:
  int scalar_uncached(const Expr&, int lane);
  int binary(const Binary&, int lane);
  int integer_binary(BinaryOp, DType, int a, int b);
  int float_binary(BinaryOp, DType, int a, int b);
  int call(const Call&, int lane);
  int math_call(const Call&, int lane);
  int integer_call(const Call&, int lane);
  int fixed_point(int x, int y, int left, int right);
  // vector_calls.cpp
  int bits(const Expr&, int width, int lane);
  int of_bits(int reg, DType to);
  int reinterpret(const Call&, int lane);
  int llvm_call(const Call&, int lane);
  int wrap(int reg, DType, Interval);
  int choose(const Expr& condition, const Expr& then_value, const Expr& else_value, int lane, bool lazy);

  Context context_;
  bool context_stored_ = false;  ///< code_.contexts.back() is context_
  std::vector<Interval> intervals_;
  std::map<int64_t, int> constants_;
  std::map<std::pair<uint32_t, uint64_t>, int> float_constants_;
  std::map<std::pair<Hash64, int>, int> memo_;
};

}  // namespace tilewright::interpreter
