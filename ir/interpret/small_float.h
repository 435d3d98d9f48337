// Floating types narrower than float32, as the interpreter computes with them: a value is held as a float that lies on
// the type's grid; rounding is to nearest even. float8 and float4 saturate (overflow and infinity give the largest
// finite value); float16 and bfloat16 overflow to infinity.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ir/dtype.h"

namespace tilewright {

struct SmallFormat {
  int mantissa;      ///< stored bits
  int min_exponent;  ///< of the smallest normal number; the bias is 1 - min_exponent
  double max;        ///< largest finite value
  bool saturates;
  uint32_t inf_bits, nan_bits;  ///< encodings without sign; 0 = the type has none
};

inline constexpr SmallFormat kFloat16Format{10, -14, 65504, false, 0x7c00, 0x7e00};
inline constexpr SmallFormat kBFloat16Format{7, -126, 0x1.fep127, false, 0x7f80, 0x7fc0};
inline constexpr SmallFormat kE4M3Format{3, -6, 448, true, 0, 0x7f};
inline constexpr SmallFormat kE5M2Format{2, -14, 57344, true, 0x7c, 0x7f};
/// A NaN becomes the largest value, as the hardware's conversion does.
inline constexpr SmallFormat kE2M1Format{1, 0, 6, true, 0, 0};

/// Rounds a float or double once; the result lies on the grid of `f`.
template <class F, class Source>
inline float round_to(const F& f, Source x) {
  using Bits = std::conditional_t<sizeof(Source) == 4, uint32_t, uint64_t>;
  constexpr int digits = std::numeric_limits<Source>::digits - 1;  // 23 or 52
  constexpr int bias = std::numeric_limits<Source>::max_exponent - 1;
  if (std::isnan(x)) return f.nan_bits ? static_cast<float>(x) : static_cast<float>(f.max);
  Bits bits = std::bit_cast<Bits>(x);
  const Bits sign = bits & (Bits{1} << (sizeof(Source) * 8 - 1));
  bits ^= sign;
  Source magnitude = std::bit_cast<Source>(bits);
  if (magnitude <= std::numeric_limits<Source>::max()) {
    if (static_cast<int>(bits >> digits) - bias >= f.min_exponent) {
      const int drop = digits - f.mantissa;
      bits += ((Bits{1} << (drop - 1)) - 1) + ((bits >> drop) & 1);
      magnitude = std::bit_cast<Source>(bits >> drop << drop);
    } else {
      // Below the normal range the grid is even: adding a number whose last digit is one grid step rounds to it.
      const Source anchor =
          std::bit_cast<Source>(static_cast<Bits>(digits - f.mantissa + f.min_exponent + bias) << digits);
      magnitude = (magnitude + anchor) - anchor;
    }
  }
  if (magnitude > static_cast<Source>(f.max))
    magnitude = f.saturates ? static_cast<Source>(f.max) : std::numeric_limits<Source>::infinity();
  const float out = static_cast<float>(magnitude);
  return sign ? -out : out;
}

/// Bits of a value on the grid.
template <class F>
inline uint32_t encode_small(const F& f, float x, int bits) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (u >> 31) << (bits - 1);
  u &= 0x7fffffff;
  if (u > 0x7f800000) return sign | f.nan_bits;
  if (u == 0x7f800000) return sign | f.inf_bits;
  const int exponent = static_cast<int>(u >> 23) - 127;
  if (exponent >= f.min_exponent)
    return sign | static_cast<uint32_t>(exponent + 1 - f.min_exponent) << f.mantissa |
           (u & 0x7fffff) >> (23 - f.mantissa);
  return sign | static_cast<uint32_t>(std::ldexp(std::bit_cast<float>(u), f.mantissa - f.min_exponent));
}

template <class F>
inline float decode_small(const F& f, uint32_t u, int bits) {
  const bool negative = (u >> (bits - 1)) & 1;
  u &= (1u << (bits - 1)) - 1;
  float x;
  if (f.inf_bits && u == f.inf_bits)
    x = std::numeric_limits<float>::infinity();
  else if (f.inf_bits ? u > f.inf_bits : f.nan_bits && u == f.nan_bits)
    x = std::numeric_limits<float>::quiet_NaN();
  else {
    const int exponent = static_cast<int>(u >> f.mantissa);
    const float fraction = static_cast<float>(u & ((1u << f.mantissa) - 1));
    x = exponent
            ? std::ldexp(fraction + static_cast<float>(1u << f.mantissa), exponent - 1 + f.min_exponent - f.mantissa)
            : std::ldexp(fraction, f.min_exponent - f.mantissa);
  }
  return negative ? -x : x;
}

/// float8_e8m0fnu: 2^(bits - 127), 0xff is NaN. Rounds to the nearest power of two (ties upwards, there is no even);
/// negative values and NaN give NaN, zero the smallest power.
inline float round_e8m0(double x) {
  if (!(x >= 0)) return std::numeric_limits<float>::quiet_NaN();
  if (x <= 0x1p-127) return 0x1p-127f;
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);  // in [0.5, 1)
  exponent = fraction >= 0.75 ? exponent : exponent - 1;
  return exponent > 127 || std::isinf(x) ? 0x1p127f : static_cast<float>(std::ldexp(1.0, exponent));
}

inline float bfloat16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
inline uint16_t bfloat16_bits(float on_grid) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(on_grid) >> 16); }

inline float float16_value(uint16_t h) {
  const uint32_t magnitude = h & 0x7fffu;
  uint32_t u;
  if (magnitude >= 0x7c00)
    u = 0x7f800000u | (magnitude & 0x3ff) << 13;
  else if (magnitude >= 0x400)
    u = (magnitude << 13) + (112u << 23);
  else
    u = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f);
  return std::bit_cast<float>(u | static_cast<uint32_t>(h & 0x8000u) << 16);
}
inline uint16_t float16_bits(float on_grid) { return static_cast<uint16_t>(encode_small(kFloat16Format, on_grid, 16)); }

/// A value rounded to a floating type of at most 32 bits (float32: once, from double).
template <class Source>
float round_to_type(TypeCode code, int bits, Source x) {
  switch (code) {
    case TypeCode::ieee_float:
      return bits == 16 ? round_to(kFloat16Format, x) : static_cast<float>(x);
    case TypeCode::bfloat:
      return round_to(kBFloat16Format, x);
    case TypeCode::float8_e4m3fn:
      return round_to(kE4M3Format, x);
    case TypeCode::float8_e5m2:
      return round_to(kE5M2Format, x);
    case TypeCode::float8_e8m0fnu:
      return round_e8m0(x);
    case TypeCode::float4_e2m1fn:
      return round_to(kE2M1Format, x);
    default:
      return static_cast<float>(x);
  }
}

/// Encoding of a value on the grid of an 8-bit or 4-bit type, and its inverse.
inline uint32_t small_bits(TypeCode code, float x) {
  switch (code) {
    case TypeCode::float8_e4m3fn:
      return encode_small(kE4M3Format, x, 8);
    case TypeCode::float8_e5m2:
      return encode_small(kE5M2Format, x, 8);
    case TypeCode::float8_e8m0fnu:
      return std::isnan(x) ? 0xffu : static_cast<uint32_t>(std::ilogb(x) + 127);
    default:
      return encode_small(kE2M1Format, x, 4);
  }
}
inline float small_value_slow(TypeCode code, uint32_t bits) {
  switch (code) {
    case TypeCode::float8_e4m3fn:
      return decode_small(kE4M3Format, bits, 8);
    case TypeCode::float8_e5m2:
      return decode_small(kE5M2Format, bits, 8);
    case TypeCode::float8_e8m0fnu:
      return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, static_cast<int>(bits) - 127);
    default:
      return decode_small(kE2M1Format, bits, 4);
  }
}
/// All values of an 8-bit (or smaller) type by encoding.
using SmallTable = std::array<float, 256>;
const SmallTable& small_values(TypeCode);

}  // namespace tilewright
