// Commutative reducers: which `init` + `update` is a sum, a product, an arg-max, a soft-max pair… A reducer is a
// registered record (add one in one file); matching is structural, up to operand order of commutative operations.
//   T.init: C = identity ; body: C = combine(C, value)
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "ir/program.h"
#include "support/registry.h"

namespace tilewright {

/// k accumulators. The generic form is given as a pattern: `combine(x, y)` builds the k results from left and right
/// operands.
struct Reducer {
  static constexpr const char* registry_name = "reducer";
  std::string name;
  int arity = 1;
  /// k accumulator types → whether the reducer is defined on them.
  std::function<bool(const std::vector<DType>&)> accepts;
  std::function<std::vector<Expr>(const std::vector<DType>&)> identity;  ///< null element: any constant (an index)
  std::function<std::vector<Expr>(const std::vector<Expr>& x, const std::vector<Expr>& y)> combine;
  /// How a single value v enters, where that is written shorter than combine(x, lift(v)); both may be empty. The value
  /// has the first accumulator's type.
  std::function<std::vector<Expr>(const std::vector<Expr>& x, const Expr& v)> step = {};
  std::function<std::vector<Expr>(const Expr& v, const std::vector<DType>& types)> lift = {};
  /// Integers only or exact (min, max, and…): re-association never changes bits.
  bool exact = false;
};

struct MatchedReducer {
  const Reducer* reducer = nullptr;
  std::vector<Buffer> buffers;             ///< accumulators, in the reducer's order
  std::vector<std::vector<Expr>> indices;  ///< where each is stored
  std::vector<Expr> values;                ///< y: what one step adds
  std::vector<Expr> identity;
};

/// Matches the k stores of an init and of an update. `update` may start with Bind statements (tuple reducers).
std::optional<MatchedReducer> match_reducer(const Stmt& init, const Stmt& update);
std::optional<MatchedReducer> match_reducer(const Block& block);
/// The one-accumulator case: the reducer that `combined` = combine(`accumulator`, y) is; sets y.
const Reducer* match_combine(const Expr& accumulator, const Expr& combined, Expr* y);

}  // namespace tilewright
