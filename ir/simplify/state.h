// What an Analyzer knows, and the engine that uses it. Private to ir/simplify.
//   facts.cpp    binding, assuming, constant bounds, congruences
//   prove.cpp    proofs that a linear form is not negative
//   rules.cpp    the normal form: sums, quotients, remainders
//   boolean.cpp  comparisons, logic, minima, conditionals
#pragma once

#include "ir/simplify/linear.h"

namespace tilewright {

struct Analyzer::State {
  /// What is known about one atom (a variable, a quotient …).
  struct Entry {
    Expr atom;
    Interval bounds;
    ModularSet modular;
    Expr value;  ///< replaces the atom; null: none
  };
  std::vector<Entry> entries;
  std::vector<Linear> facts;  ///< each is >= 0
  std::vector<Expr> truths;   ///< boolean expressions in normal form that hold

  /// How to go back: a changed entry with its old content, or a list that grew.
  struct Undo {
    enum Kind : uint8_t { entry_changed, entry_added, fact_added, truth_added } kind;
    size_t index = 0;
    Entry old;
  };
  std::vector<Undo> log;

  const Entry* find(const Expr& atom) const {
    for (size_t i = entries.size(); i-- > 0;)
      if (entries[i].atom->hash == atom->hash) return &entries[i];
    return nullptr;
  }
  Entry& change(const Expr& atom);  ///< finds or adds, logging the old content
  void add_fact(Linear f);
  void add_truth(const Expr& e);
  void undo_to(size_t mark);
};

/// One simplification or proof. Cheap to construct. May throw CoefficientOverflow.
class Simplifier {
 public:
  explicit Simplifier(Analyzer::State& state) : s_(state) {}

  Expr simplify(const Expr& e);

  // --- normal form (rules.cpp) ---
  Linear linear(const Expr& e);
  void add(Linear& out, const Expr& e, int64_t k);

  // --- facts (facts.cpp) ---
  Interval bounds(const Expr& e);
  Interval bounds(const Linear& x);
  ModularSet modular(const Expr& e);
  ModularSet modular(const Linear& x);
  void assume(const Expr& conjunct);
  void assume_not_negative(const Linear& x);

  // --- proofs (prove.cpp) ---
  bool not_negative(const Linear& x);
  /// 1: e1 <= e2 …: sign knowledge of a form: true if x >= 0, false if x < 0, nothing if unknown.
  std::optional<bool> decide_not_negative(const Linear& x);

  // --- booleans (boolean.cpp) ---
  Expr simplify_bool(const Expr& e);
  /// The normal form of "x >= 0", "x == 0".
  Expr not_negative_condition(Linear x);
  Expr equal_zero_condition(Linear x);

 private:
  // rules.cpp
  void add_product(Linear& out, const Expr& a, const Expr& b, int64_t k);
  void add_div(Linear& out, Linear n, int64_t c, int64_t k);
  void add_mod(Linear& out, Linear n, int64_t c, int64_t k);
  void add_digit(Linear& out, Linear source, int64_t lower, int64_t modulus, int64_t k);
  void add_symbolic_division(Linear& out, BinaryOp op, Linear n, const Linear& d, int64_t k);
  void add_data(Linear& out, const Binary&, int64_t k);
  void add_resolved(Linear& out, const Expr& original, const Expr& simplified, int64_t k);
  void merge_digits(Linear& x);
  bool merge_one(Linear& x);
  bool merge_difference(Linear& x);
  bool merge_symbolic(Linear& x);
  bool drop_low_part(Linear& n, int64_t& c, Linear* low);
  bool absorb_quotient(Linear& n, int64_t& factor);
  Expr simplify_other(const Expr& e);
  Expr simplify_vector(const Expr& e);
  Expr simplify_float(const Expr& e);
  // boolean.cpp
  Expr min_max(const Binary& e);
  Expr comparison(const Binary& e);
  Expr logical(const Binary& e);
  Expr choice(const Expr& e, const Expr& condition, const Expr& a, const Expr& b);
  bool known_true(const Expr& e);
  // prove.cpp
  bool search(const Linear& x, int depth);
  bool search_facts(const Linear& x, int depth);
  bool search_atoms(const Linear& x, int depth);

  Analyzer::State& s_;
  int depth_ = 0;      ///< nesting of rules about one quotient
  int looked_at_ = 0;  ///< forms that the current proof has looked at
  bool searching_ = false;
};

}  // namespace tilewright
