// log2 and exp in portable arithmetic: the same bits on every host and libm, whatever the vector width. Features,
// models and the search use these instead of <cmath>, whose results differ in the last bit between libraries. Relative
// error below 1e-15 (log2; absolute near 1) and 1e-14 (exp). Compile with -ffp-contract=off, as the whole tree is.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tilewright {

/// x > 0 and finite, else NaN (x < 0, NaN), -infinity (0) or +infinity. Exact at powers of two.
inline double portable_log2(double x) {
  if (!(x > 0)) return x == 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  if (x > std::numeric_limits<double>::max()) return x;
  double exponent = 0;
  if (x < 0x1p-1022) x *= 0x1p54, exponent = -54;
  uint64_t bits = std::bit_cast<uint64_t>(x);
  exponent += static_cast<double>(static_cast<int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & 0xfffffffffffffu) | 0x3ff0000000000000u);  // in [1, 2)
  if (m > 1.4142135623730951) m *= 0.5, exponent += 1;
  // ln m = 2 artanh t with |t| <= 0.1716: eleven odd terms leave less than 1e-18.
  double t = (m - 1) / (m + 1), u = t * t;
  constexpr double inverse[] = {1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11,
                                1.0 / 9,  1.0 / 7,  1.0 / 5,  1.0 / 3,  1.0};
  double sum = 0;
  for (double c : inverse) sum = sum * u + c;
  return exponent + t * sum * 2.8853900817779268;  // 2 / ln 2
}

/// 2^x; 0 below -1022 (no subnormals), +infinity above 1024.
inline double portable_exp2(double x) {
  if (x != x) return x;
  if (x < -1022) return 0;
  if (x >= 1024) return std::numeric_limits<double>::infinity();
  double whole = std::floor(x + 0.5), y = (x - whole) * 0.69314718055994531;  // |y| <= 0.3466
  constexpr double inverse_factorial[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
      1.0 / 720,        1.0 / 120,       1.0 / 24,       1.0 / 6,       1.0 / 2,      1.0,         1.0};
  double sum = 0;
  for (double c : inverse_factorial) sum = sum * y + c;
  int64_t exponent = static_cast<int64_t>(whole);
  if (exponent == 1024) return sum * 0x1p1023 * 2;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

inline double portable_exp(double x) { return portable_exp2(x * 1.4426950408889634); }

}  // namespace tilewright
