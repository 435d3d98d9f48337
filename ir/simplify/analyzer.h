// Facts about the integer variables in scope, and what follows from them: simplification, proofs, constant bounds,
// congruences. Cheap to construct; not shared between threads (no global state). Read next: linear.h (the normal form),
// rules.cpp (division, comparison, min/max rules), stmt.cpp (whole statements).
//
// Semantics: index arithmetic (signed integers of 32 bits and more) is taken over the mathematical integers, that is
// int32 and int64 expressions are assumed not to overflow. Narrower and unsigned types wrap, so only rules that are
// right modulo 2^n are applied to them; the same goes for what is computed from loaded values. Floats change only by
// identities that are exact for every value (x * 1, x - 0). A divisor is assumed to be non-zero, an extent of a bound
// variable to be positive where the variable is used.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "ir/build.h"
#include "ir/program.h"

namespace tilewright {

/// Constant bounds, both ends included; kMin and kMax mean unbounded.
struct Interval {
  static constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  int64_t min = kMin, max = kMax;

  bool operator==(const Interval&) const = default;
  bool is_point() const { return min == max; }
  bool is_empty() const { return min > max; }
  bool bounded() const { return min != kMin && max != kMax; }
  bool contains(int64_t v) const { return min <= v && v <= max; }
};

/// value ≡ base (mod coefficient); coefficient 0: the value is base; 1: nothing known. 0 <= base < coefficient
/// otherwise.
struct ModularSet {
  int64_t coefficient = 1, base = 0;
  bool operator==(const ModularSet&) const = default;
  bool divisible_by(int64_t n) const { return coefficient % n == 0 && base % n == 0; }
};

/// A variable and its range: a loop variable, a block iter.
struct VarRange {
  Var var;
  Range range;
};
/// min + extent, simplified only by folding.
Expr end_of(const Range&);
Range range_of(const For&);
std::vector<VarRange> domains_of(const Block&);  ///< iters and their domains

class Analyzer {
 public:
  Analyzer();
  ~Analyzer();
  Analyzer(const Analyzer&) = delete;
  Analyzer& operator=(const Analyzer&) = delete;

  /// var takes values in the range. Bind outer variables first: an extent may use variables that are already bound.
  /// What is bound lasts until the enclosing Scope ends; to give a variable another range, end that scope first.
  void bind(const Var& var, const Range& range);
  void bind(const std::vector<VarRange>& vars);
  void bind(const For& loop);
  /// var = value (a let): simplify replaces the variable.
  void bind(const Var& var, const Expr& value);

  /// Ends what was bound and assumed after its construction.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(Analyzer& a);
    Scope(Scope&& o) noexcept : analyzer_(std::exchange(o.analyzer_, nullptr)), mark_(o.mark_) {}
    Scope& operator=(Scope&&) = delete;
    ~Scope();

   private:
    Analyzer* analyzer_;
    size_t mark_;
  };
  /// Facts that hold while the scope lives: a predicate (conjunctions are split; null: none).
  Scope assume(const Expr& predicate);
  /// A scope for bind(): `auto scope = analyzer.scope();`
  Scope scope() { return Scope(*this); }

  /// The normal form; idempotent. Never reads more memory than the input did.
  Expr simplify(const Expr& e);
  Range simplify(const Range& r);

  bool can_prove(const Expr& condition);
  bool can_prove_equal(const Expr& a, const Expr& b);
  bool can_prove_less(const Expr& a, const Expr& b);        ///< a < b
  bool can_prove_less_equal(const Expr& a, const Expr& b);  ///< a <= b
  bool can_prove_not_negative(const Expr& e);               ///< e >= 0
  bool can_prove_divisible(const Expr& e, const Expr& divisor);

  Interval const_bounds(const Expr& e);
  ModularSet modular(const Expr& e);

 private:
  friend class Simplifier;
  struct State;
  template <class T, class F>
  T guarded(T fallback, F&& f);
  std::unique_ptr<State> state_;
};

/// simplify with no facts.
Expr simplify(const Expr& e);

/// Every expression of the statement is simplified under the loops, iters, predicates and conditions around it;
/// branches and loops that never run disappear, predicates that always hold are dropped. Ids are kept. `outer` gives
/// facts about variables from outside (may be null).
Stmt simplify(const Stmt& s, Analyzer* outer = nullptr);

}  // namespace tilewright
