// Statistics of times: order statistics only, because times are skewed and sometimes bimodal.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright::measure {

struct Interval {
  double lo = 0, hi = 0;
};

struct Summary {
  size_t n = 0;
  double min = 0, q1 = 0, median = 0, q3 = 0, mad = 0;
  Interval ci;        ///< 95 % interval of the median
  size_t marked = 0;  ///< samples above q3 + 3·(q3 − q1)
};

/// Quantile q ∈ [0, 1] of sorted values, linear between neighbours.
double quantile(std::span<const double> sorted, double q);
double median(std::vector<double> values);
/// 95 % interval of the median from binomial order statistics; [min, max] below 6 values, where no such interval
/// exists.
Interval median_interval(std::span<const double> sorted);
Summary summarize(std::span<const double> values);

/// Median of all pairwise means: the location of a symmetric difference.
double hodges_lehmann(std::span<const double> differences);
/// 95 % interval of it, from the order statistics of the pairwise means (Wilcoxon signed rank, normal approximation).
Interval hodges_lehmann_interval(std::span<const double> differences);
/// Two-sided sign test of "the median difference is 0"; zeros are left out.
double sign_test(std::span<const double> differences);

}  // namespace tilewright::measure
