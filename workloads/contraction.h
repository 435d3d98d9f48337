// What matrix products and convolutions share: sums of products in the accumulation type, stored in the result's type.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "workloads/builder.h"
#include "workloads/operator.h"

namespace tilewright {

/// The two factors of one term of the sum.
using Factors = std::function<std::pair<Expr, Expr>(const Point& point, const Point& reduced)>;

/// A temporary `name` of the accumulation type that holds the sum.
inline Buffer contract(ProgramBuilder& b, const std::string& name, const std::vector<int64_t>& shape,
                       const std::string& axes, const std::vector<Axis>& reduced, const ElementTypes& t,
                       const Factors& factors) {
  Buffer sum = b.temporary(name, t.acc, shape);
  b.reduce(name, sum, axes, reduced, 0, [&](Expr current, const Point& p, const Point& r) {
    auto [x, y] = factors(p, r);
    return current + cast(t.acc, x) * cast(t.acc, y);
  });
  return sum;
}

/// The sum in `out`: at once when the types agree, else through a temporary "acc" that is cast at the end.
inline void contract_into(ProgramBuilder& b, const Buffer& out, const std::vector<int64_t>& shape,
                          const std::string& axes, const std::vector<Axis>& reduced, const ElementTypes& t,
                          const Factors& factors) {
  if (t.out == t.acc)
    return b.reduce(out->name, out, axes, reduced, 0, [&](Expr current, const Point& p, const Point& r) {
      auto [x, y] = factors(p, r);
      return current + cast(t.acc, x) * cast(t.acc, y);
    });
  Buffer sum = contract(b, "acc", shape, axes, reduced, t, factors);
  b.map(out->name, out, axes, [&](const Point& p) { return cast(t.out, load(sum, p)); });
}

}  // namespace tilewright
