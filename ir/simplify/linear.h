// The normal form of index expressions: constant + Σ coefficient · atom. Atoms are variables, loads, quotients,
// remainders, minima, products of atoms … in normal form themselves; they are kept in a fixed order that does not
// depend on addresses or hashes (so neither does any result). Private to ir/simplify and ir/analysis.
#pragma once

#include <vector>

#include "ir/simplify/analyzer.h"

namespace tilewright {

struct Term {
  Expr atom;
  int64_t coeff;
};

struct Linear {
  std::vector<Term> terms;  ///< sorted by compare_exprs, no zero coefficients
  int64_t constant = 0;
  DType dtype = kInt32;

  bool is_const() const { return terms.empty(); }
  /// A single atom with coefficient 1 and nothing else.
  const Expr* lone_atom() const {
    return terms.size() == 1 && terms[0].coeff == 1 && constant == 0 ? &terms[0].atom : nullptr;
  }
};

/// Thrown out of the normal form and caught in Analyzer: a coefficient left the range of int64.
struct CoefficientOverflow {};
int64_t checked_add(int64_t a, int64_t b);
int64_t checked_mul(int64_t a, int64_t b);

/// Total order on expressions: by the leading variable (creation order), then kind, then content. 0: same content.
int compare_exprs(const Expr& a, const Expr& b);
bool is_index_type(DType t);

void add_term(Linear& out, const Expr& atom, int64_t coeff);
void add_scaled(Linear& out, const Linear& x, int64_t k);
void scale(Linear& x, int64_t k);
Expr to_expr(const Linear& x);
/// A constant of an index type; CoefficientOverflow if it does not fit.
Expr checked_imm(int64_t value, DType t);

/// value = (source // lower) % modulus; modulus 0: no remainder is taken.
struct Digit {
  Expr source;
  int64_t lower = 1, modulus = 0;
  bool trivial() const { return lower == 1 && modulus == 0; }
};
Digit decode_digit(const Expr& atom);

/// Factors of a product atom (one for anything else).
void collect_factors(const Expr& atom, std::vector<Expr>& out);
Expr product_of(std::vector<Expr> factors);

// Interval arithmetic with infinities.
Interval operator+(const Interval& a, const Interval& b);
Interval operator*(const Interval& a, int64_t k);
Interval operator*(const Interval& a, const Interval& b);
Interval floor_div(const Interval& a, int64_t c);  ///< c > 0
Interval hull(const Interval& a, const Interval& b);
Interval intersect(const Interval& a, const Interval& b);
/// All values of an integer type.
Interval type_bounds(DType t);

}  // namespace tilewright
