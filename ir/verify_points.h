// Concrete loop values as witnesses of wrong accesses. Private to ir/verify*.cpp.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/program.h"

namespace tilewright {

/// Values of integer variables.
using VarValues = std::unordered_map<const VarNode*, int64_t>;

/// The value at a point; nothing where it depends on memory, calls or variables without a value.
std::optional<int64_t> value_at(const Expr&, const VarValues&);

/// The loops and iters around a place, outer first, and the conditions that hold there.
struct Surroundings {
  struct Variable {
    const VarNode* var;
    Expr min, extent, step;  ///< of a loop
    Expr binding;            ///< of an iter or let: the value instead
  };
  std::vector<Variable> variables;
  std::vector<Expr> conditions;
};

/// Looks for loop values under which all conditions hold and `index` is at its smallest (or largest): exact where the
/// index is affine in independent loops, else a good guess. Nothing where values are not known or no such point was
/// found.
std::optional<VarValues> extreme_point(const Surroundings&, const Expr& index, bool largest);
/// All loops at their first value; nothing where the conditions do not hold there or are not known.
std::optional<VarValues> first_point(const Surroundings&);
/// "i = 3, j = 0": the loops that the expression depends on.
std::string describe(const Surroundings&, const Expr&, const VarValues&);

}  // namespace tilewright
