// Quasi-affine maps: expressions that are sums of scaled *digits* of iteration variables, as split and fuse make them.
//   mark   a source of digits: a variable, or a sum whose values are exactly 0 … extent - 1
//   split  one digit of a mark: ((source // lower) % extent) * scale
//   sum    splits plus a base that uses no iteration variable
// A map is *surjective* if, under the predicate, the tuple of its indices takes every value of the box of their
// extents; *bijective* if each exactly once. Extents may be symbolic where divisibility is provable.
#pragma once

#include <optional>
#include <string>

#include "ir/simplify/analyzer.h"

namespace tilewright {

struct IterSum;

struct IterMark {
  Var var;                             ///< null: the source is `sum`
  std::shared_ptr<const IterSum> sum;  ///< null: the source is `var` (minus the minimum of its range)
  Expr min;                            ///< of var's range; null for sums
  Expr extent;
  bool is_var() const { return static_cast<bool>(var); }
};
using IterMarkRef = std::shared_ptr<const IterMark>;

struct IterSplit {
  IterMarkRef mark;
  Expr lower_factor, extent, scale;
};

struct IterSum {
  std::vector<IterSplit> splits;  ///< for results of detect: descending scale
  Expr base;
};

enum class IterMapCheck : uint8_t {
  none,        ///< any quasi-affine form
  surjective,  ///< every point of the box of extents is reached (pieces may be unused)
  bijective,   ///< and each variable's digits are all used: each point exactly once
};

struct IterMap {
  std::vector<IterSum> indices;
  std::vector<Expr> extents;  ///< index i covers [base_i, base_i + extent_i) (checks surjective, bijective)
  std::string failure;        ///< why it is not a map of the wanted kind; empty: it is
  explicit operator bool() const { return failure.empty(); }
};

/// `domains`: the iteration variables. Conjuncts of the predicate that bound a sum of digits restrict it; conjuncts
/// that always hold are ignored; any other conjunct makes the checks fail. Variables not in `domains` are constants.
IterMap detect_iter_map(const std::vector<Expr>& indices, const std::vector<VarRange>& domains, const Expr& predicate,
                        IterMapCheck check, Analyzer& analyzer);

/// Back to expressions.
Expr to_expr(const IterSplit&);
Expr to_expr(const IterSum&);

/// For a bijective map: the value of each variable of `domains` (in that order) given `outputs`, the values of the
/// indices. Empty if some variable cannot be recovered.
std::optional<std::vector<Expr>> inverse_map(const IterMap& map, const std::vector<VarRange>& domains,
                                             const std::vector<Expr>& outputs, Analyzer& analyzer);

/// Index = outer * inner_extent + inner, where `inner` uses only the inner variables and `outer` the others.
struct SubspacePart {
  Expr outer, outer_extent;  ///< outer includes the base
  Expr inner, inner_extent;
};
struct SubspaceDivision {
  std::vector<SubspacePart> parts;        ///< one for each index
  Expr outer_predicate, inner_predicate;  ///< the predicate's two halves (null: true)
};
/// Divides the iteration space into the variables `inner` and the rest; nothing if it does not divide.
std::optional<SubspaceDivision> divide_subspace(const std::vector<Expr>& indices, const std::vector<VarRange>& domains,
                                                const std::vector<Var>& inner, const Expr& predicate,
                                                Analyzer& analyzer);

/// Loops around a block, outer first, as ranges.
std::vector<VarRange> ranges_of(const std::vector<const For*>& loops);
/// Every binding is a bare loop variable, each used once.
bool is_trivial_binding(const Block& block, const std::vector<const For*>& loops);
/// The bindings are surjective onto the iters' domains under the predicate, digit by digit (schedule-language.md §2).
bool is_affine_binding(const Block& block, const std::vector<const For*>& loops, Analyzer& analyzer);

}  // namespace tilewright
