#include "measure/timing/statistics.h"

#include <algorithm>
#include <cmath>

namespace tilewright::measure {

namespace {

/// P(Binomial(n, ½) ≤ k).
double binomial_cdf(size_t n, size_t k) {
  double sum = 0, log_choose = 0, log_half_n = static_cast<double>(n) * std::log(0.5);
  for (size_t i = 0; i <= k; ++i) {
    if (i > 0) log_choose += std::log(static_cast<double>(n - i + 1)) - std::log(static_cast<double>(i));
    sum += std::exp(log_choose + log_half_n);
  }
  return std::min(sum, 1.0);
}

std::vector<double> pairwise_means(std::span<const double> d) {
  std::vector<double> means;
  means.reserve(d.size() * (d.size() + 1) / 2);
  for (size_t i = 0; i < d.size(); ++i)
    for (size_t j = i; j < d.size(); ++j) means.push_back((d[i] + d[j]) / 2);
  std::sort(means.begin(), means.end());
  return means;
}

}  // namespace

double quantile(std::span<const double> sorted, double q) {
  if (sorted.empty()) return 0;
  double at = q * static_cast<double>(sorted.size() - 1);
  auto i = static_cast<size_t>(at);
  if (i + 1 >= sorted.size()) return sorted.back();
  double f = at - static_cast<double>(i);
  return sorted[i] * (1 - f) + sorted[i + 1] * f;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

Interval median_interval(std::span<const double> sorted) {
  if (sorted.empty()) return {};
  size_t n = sorted.size(), k = 0;
  // Largest k with P(X < k) ≤ 2.5 %: the interval is [x(k), x(n−k+1)], counted from 1.
  while (k + 1 <= n / 2 && binomial_cdf(n, k) <= 0.025) ++k;
  if (k == 0) return {sorted.front(), sorted.back()};
  return {sorted[k - 1], sorted[n - k]};
}

Summary summarize(std::span<const double> values) {
  Summary s;
  if (values.empty()) return s;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  s.n = sorted.size();
  s.min = sorted.front();
  s.q1 = quantile(sorted, 0.25);
  s.median = quantile(sorted, 0.5);
  s.q3 = quantile(sorted, 0.75);
  s.ci = median_interval(sorted);
  double fence = s.q3 + 3 * (s.q3 - s.q1);
  s.marked = static_cast<size_t>(sorted.end() - std::upper_bound(sorted.begin(), sorted.end(), fence));
  for (double& x : sorted) x = std::fabs(x - s.median);
  s.mad = median(std::move(sorted));
  return s;
}

double hodges_lehmann(std::span<const double> d) { return quantile(pairwise_means(d), 0.5); }

Interval hodges_lehmann_interval(std::span<const double> d) {
  std::vector<double> means = pairwise_means(d);
  if (means.empty()) return {};
  auto n = static_cast<double>(d.size());
  double center = n * (n + 1) / 4, deviation = std::sqrt(n * (n + 1) * (2 * n + 1) / 24);
  double k = std::floor(center - 1.959964 * deviation);
  if (k < 1) return {means.front(), means.back()};
  auto at = static_cast<size_t>(k);
  return {means[at - 1], means[means.size() - at]};
}

double sign_test(std::span<const double> d) {
  size_t n = 0, below = 0;
  for (double x : d) {
    if (x == 0) continue;
    ++n;
    below += x < 0;
  }
  if (n == 0) return 1;
  return std::min(1.0, 2 * binomial_cdf(n, std::min(below, n - below)));
}

}  // namespace tilewright::measure
