// Operands of matrix products by layout: the first letter is A's, the second B's; n = as written (A[m,k], B[k,n]), t =
// transposed.
#pragma once

#include <string>
#include <vector>

#include "workloads/builder.h"
#include "workloads/operator.h"

namespace tilewright {

inline const std::vector<std::string> kMatmulLayouts = {"nn", "nt", "tn", "tt"};
inline const char* kMatmulLayoutDoc = "first letter: n = A[m,k], t = A[k,m]; second: n = B[k,n], t = B[n,k]";

struct MatmulOperands {
  bool a_transposed, b_transposed;
  explicit MatmulOperands(const std::string& layout) : a_transposed(layout[0] == 't'), b_transposed(layout[1] == 't') {}
  std::vector<int64_t> a_shape(int64_t m, int64_t k) const {
    return a_transposed ? std::vector{k, m} : std::vector{m, k};
  }
  std::vector<int64_t> b_shape(int64_t n, int64_t k) const {
    return b_transposed ? std::vector{n, k} : std::vector{k, n};
  }
  Point a(const Expr& i, const Expr& k) const { return a_transposed ? Point{k, i} : Point{i, k}; }
  Point b(const Expr& j, const Expr& k) const { return b_transposed ? Point{j, k} : Point{k, j}; }
};

}  // namespace tilewright
