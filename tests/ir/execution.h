// Semantics by execution: two programs are run by the interpreter on the same inputs and must leave the same values in
// every parameter. Used by the golden runner (before against after) and by property tests of rewrites and passes.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ir/interpret/interpret.h"
#include "support/diagnostic.h"

namespace tilewright {

struct ExecutionCheck {
  bool small_exact = true;    ///< reassociated: also exact on small integers (false where exp, division, … occur)
  bool reassociated = false;  ///< floats: exact on small integers, within `tolerance` on random values
  double tolerance = 1e-4;    ///< absolute and relative
  InputSet inputs = InputSet::random;
  uint64_t seed = 1;
  int64_t step_limit = int64_t{1} << 28;
  std::vector<std::pair<std::string, int64_t>> extents;  ///< of symbolic shapes and scalar parameters, by name
};

inline ::testing::AssertionResult ran(const Function& f, std::vector<Tensor>& args, const InterpretOptions& options) {
  Result<InterpretStats> stats = interpret(f, args, options);
  if (stats) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << render_text(stats.error().diagnostic());
}

/// `after` is run in forward, reverse and two random orders.
inline ::testing::AssertionResult equal_by_execution(const Function& before, const Function& after,
                                                     const ExecutionCheck& check = {}) {
  std::vector<InputSet> sets = {check.inputs};
  if (check.reassociated && check.small_exact) sets.push_back(InputSet::small);
  for (InputSet set : sets) {
    const std::vector<Tensor> inputs = make_arguments(before, set, check.seed, check.extents);
    std::vector<Tensor> expected = inputs;
    if (auto ok = ran(before, expected, {.step_limit = check.step_limit}); !ok) return ok << "(the program before)";
    const InterpretOptions runs[] = {
        {}, {.order = Order::reverse}, {.order = Order::random, .seed = 1}, {.order = Order::random, .seed = 2}};
    for (InterpretOptions options : runs) {
      options.step_limit = check.step_limit;
      static constexpr const char* names[] = {"forward", "reverse", "random"};
      const std::string order = names[static_cast<int>(options.order)];
      std::vector<Tensor> actual = inputs;
      if (auto ok = ran(after, actual, options); !ok) return ok << "(the program after, " << order << " order)";
      for (size_t i = 0; i < expected.size(); ++i) {
        const bool close = check.reassociated && set != InputSet::small && expected[i].dtype.is_float();
        const Status same = close ? expect_close(expected[i], actual[i], check.tolerance, check.tolerance)
                                  : expect_equal(expected[i], actual[i]);
        if (!same)
          return ::testing::AssertionFailure() << "parameter " << i << ", " << order << " order, seed " << check.seed
                                               << ": " << same.error().diagnostic().message;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

inline void expect_equal_by_execution(const Function& before, const Function& after, const ExecutionCheck& check = {}) {
  EXPECT_TRUE(equal_by_execution(before, after, check));
}
/// Of the main functions.
inline void expect_equal_by_execution(const Program& before, const Program& after, const ExecutionCheck& check = {}) {
  ASSERT_TRUE(before.main() && after.main()) << "both programs need a main function";
  expect_equal_by_execution(*before.main(), *after.main(), check);
}

}  // namespace tilewright
