// The float32 math functions that every target computes to the same bits (lowering.md §2.4): exp, exp2, log, tanh, erf,
// sigmoid. Each is a straight-line scheme over an arithmetic policy A: the interpreter instantiates it with floats
// (FloatArithmetic below), the lowering pass expand_math with expressions. What one computes the other computes,
// operation by operation.
//
// A policy has types Float, Int (32 bits), Bool and
//   Float constant(float) · fma(a, b, c) (one rounding) · add sub mul div · rint (ties to even) · abs ·
//   copysign(magnitude, sign) Int to_int(Float) (exact integers only) · Float to_float(Int) · Int bits(Float) · Float
//   from_bits(Int) Int add(Int, int32_t) · sub(Int, Int) · shift_left(Int, int) · shift_right(Int, int) (arithmetic) ·
//   bit_and(Int, int32_t) Bool less(Float, Float) (false on NaN), is_nan(Float) · Float select(Bool, Float, Float)
//   Float named(Float), Int named(Int): the value is used several times (expressions bind it, floats do nothing)
// Largest errors over all floats, in units in the last place, against double: exp 1.02, exp2 0.88, log 0.86, tanh 1.34,
// erf 1.11, sigmoid 2.83. Special values are exact and NaN is passed through.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tilewright::math {

// Polynomial coefficients, lowest power first.
inline constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b2p-5f, 0x1.12398ep-7f, 0x1.6a4b36p-10f};
inline constexpr float kExp2[] = {1.0f,           0x1.62e43p-1f,   0x1.ebfbdcp-3f, 0x1.c6af7ap-5f,
                                  0x1.3b2dd2p-7f, 0x1.5f094ap-10f, 0x1.417ab8p-13f};
inline constexpr float kLog[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a01ep-3f, -0x1.54728ep-3f,
                                 0x1.22d8fep-3f, -0x1.0d81ep-3f,  0x1.055fep-3f,  -0x1.38ce9ap-4f};
inline constexpr float kTanh[] = {-0x1.555532p-2f, 0x1.110702p-3f, -0x1.b83844p-5f, 0x1.520f2ap-6f, -0x1.7583a4p-8f};
inline constexpr float kErfNear[] = {0x1.06eba6p-3f,  -0x1.8126f4p-2f, 0x1.ce1d3ap-4f,
                                     -0x1.b6b7e2p-6f, 0x1.485342p-8f,  -0x1.3ecd78p-11f};
inline constexpr float kErfFar[] = {-0x1.20e818p0f,  -0x1.4576eep-1f, -0x1.aec696p-4f, 0x1.71e2cap-6f,
                                    -0x1.7819a6p-9f, 0x1.ce4912p-16f, 0x1.a2b6aap-15f, -0x1.635166p-18f};
inline constexpr float kLog2E = 0x1.715476p0f;
inline constexpr float kLn2High = 0x1.62e4p-1f;  ///< few enough digits that n · high is exact for |n| < 2^8
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
inline constexpr float kTanhNear = 0.625f, kErfNearLimit = 0.9f;

template <class A, size_t n>
typename A::Float horner(const A& a, const float (&coefficients)[n], typename A::Float x) {
  typename A::Float p = a.constant(coefficients[n - 1]);
  for (size_t i = n - 1; i-- > 0;) p = a.fma(p, x, a.constant(coefficients[i]));
  return p;
}

/// low or high for NaN never matters: the result is replaced by the NaN at the end.
template <class A>
typename A::Float clamp(const A& a, typename A::Float x, float low, float high) {
  typename A::Float below = a.named(a.select(a.less(x, a.constant(high)), x, a.constant(high)));
  return a.named(a.select(a.less(a.constant(low), below), below, a.constant(low)));
}

template <class A>
typename A::Float keep_nan(const A& a, typename A::Float x, typename A::Float y) {
  return a.select(a.is_nan(x), x, y);
}

/// y · 2^n in two exact factors, so that neither overflows on the way: -252 <= n <= 254.
template <class A>
typename A::Float scale(const A& a, typename A::Float y, typename A::Int n) {
  typename A::Int half = a.named(a.shift_right(n, 1));
  typename A::Float first = a.from_bits(a.shift_left(a.add(half, 127), 23));
  typename A::Float second = a.from_bits(a.shift_left(a.add(a.sub(n, half), 127), 23));
  return a.mul(a.mul(y, first), second);
}

/// exp of a value that is not NaN.
template <class A>
typename A::Float exp_core(const A& a, typename A::Float x) {
  typename A::Float t = clamp(a, x, -104.0f, 89.0f);
  typename A::Float n = a.named(a.rint(a.mul(t, a.constant(kLog2E))));
  typename A::Float r = a.fma(n, a.constant(-kLn2High), t);
  r = a.named(a.fma(n, a.constant(-kLn2Low), r));
  typename A::Float y = a.fma(a.mul(r, r), horner(a, kExp, r), r);
  return scale(a, a.add(y, a.constant(1.0f)), a.named(a.to_int(n)));
}

template <class A>
typename A::Float exp(const A& a, typename A::Float x) {
  return keep_nan(a, x, exp_core(a, x));
}

template <class A>
typename A::Float exp2(const A& a, typename A::Float x) {
  typename A::Float t = clamp(a, x, -151.0f, 129.0f);
  typename A::Float n = a.named(a.rint(t));
  typename A::Float r = a.named(a.sub(t, n));
  return keep_nan(a, x, scale(a, horner(a, kExp2, r), a.named(a.to_int(n))));
}

template <class A>
typename A::Float log(const A& a, typename A::Float x) {
  constexpr int32_t sqrt_half = 0x3f3504f3;  // bits of √½: mantissas are taken from [√½, √2)
  typename A::Bool subnormal = a.less(x, a.constant(0x1p-126f));
  typename A::Float scaled = a.select(subnormal, a.mul(x, a.constant(0x1p23f)), x);
  typename A::Int shifted = a.named(a.add(a.bits(scaled), 0x3f800000 - sqrt_half));
  typename A::Float e = a.to_float(a.add(a.shift_right(shifted, 23), -127));
  e = a.named(a.select(subnormal, a.sub(e, a.constant(23.0f)), e));
  typename A::Float m = a.from_bits(a.add(a.bit_and(shifted, 0x7fffff), sqrt_half));
  typename A::Float f = a.named(a.sub(m, a.constant(1.0f)));
  typename A::Float square = a.named(a.mul(f, f));
  typename A::Float s = a.fma(square, a.mul(horner(a, kLog, f), f), a.mul(e, a.constant(kLn2Low)));
  s = a.fma(square, a.constant(-0.5f), s);
  s = a.fma(e, a.constant(kLn2High), a.add(s, f));
  const float infinity = std::numeric_limits<float>::infinity();
  s = a.select(a.less(x, a.constant(0.0f)), a.constant(std::numeric_limits<float>::quiet_NaN()), s);
  s = a.select(a.less(a.abs(x), a.constant(0x1p-149f)), a.constant(-infinity), s);
  s = a.select(a.less(x, a.constant(infinity)), s, x);  // +infinity, and NaN
  return keep_nan(a, x, s);
}

template <class A>
typename A::Float tanh(const A& a, typename A::Float x) {
  typename A::Float magnitude = a.named(a.abs(x));
  typename A::Float square = a.named(a.mul(x, x));
  typename A::Float near = a.fma(a.mul(x, square), horner(a, kTanh, square), x);
  typename A::Float t = clamp(a, magnitude, 0.0f, 10.0f);
  typename A::Float e = exp_core(a, a.named(a.add(t, t)));
  typename A::Float far = a.sub(a.constant(1.0f), a.div(a.constant(2.0f), a.add(e, a.constant(1.0f))));
  return keep_nan(a, x, a.select(a.less(magnitude, a.constant(kTanhNear)), near, a.copysign(far, x)));
}

template <class A>
typename A::Float erf(const A& a, typename A::Float x) {
  typename A::Float magnitude = a.named(a.abs(x));
  typename A::Float near = a.fma(x, horner(a, kErfNear, a.named(a.mul(x, x))), x);
  typename A::Float t = clamp(a, magnitude, 0.0f, 4.0f);
  typename A::Float e = exp_core(a, a.named(a.mul(t, horner(a, kErfFar, t))));
  typename A::Float far = a.sub(a.constant(1.0f), e);
  return keep_nan(a, x, a.select(a.less(magnitude, a.constant(kErfNearLimit)), near, a.copysign(far, x)));
}

template <class A>
typename A::Float sigmoid(const A& a, typename A::Float x) {
  typename A::Float e = a.named(exp_core(a, a.named(a.sub(a.constant(0.0f), a.abs(x)))));
  typename A::Float t = a.named(a.div(a.constant(1.0f), a.add(e, a.constant(1.0f))));
  return keep_nan(a, x, a.select(a.less(x, a.constant(0.0f)), a.mul(e, t), t));
}

/// The policy of the interpreter.
struct FloatArithmetic {
  using Float = float;
  using Int = int32_t;
  using Bool = bool;
  static float constant(float x) { return x; }
  static float fma(float x, float y, float z) { return std::fma(x, y, z); }
  static float add(float x, float y) { return x + y; }
  static float sub(float x, float y) { return x - y; }
  static float mul(float x, float y) { return x * y; }
  static float div(float x, float y) { return x / y; }
  static float rint(float x) { return std::nearbyint(x); }
  static float abs(float x) { return std::fabs(x); }
  static float copysign(float x, float y) { return std::copysign(x, y); }
  static bool is_nan(float x) { return x != x; }
  static int32_t to_int(float x) { return static_cast<int32_t>(x); }
  static float to_float(int32_t x) { return static_cast<float>(x); }
  static int32_t bits(float x) { return std::bit_cast<int32_t>(x); }
  static float from_bits(int32_t x) { return std::bit_cast<float>(x); }
  // Through unsigned: wraps, as the program's integers do.
  static int32_t add(int32_t x, int32_t y) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) + static_cast<uint32_t>(y));
  }
  static int32_t sub(int32_t x, int32_t y) {
    return static_cast<int32_t>(static_cast<uint32_t>(x) - static_cast<uint32_t>(y));
  }
  static int32_t shift_left(int32_t x, int n) { return static_cast<int32_t>(static_cast<uint32_t>(x) << n); }
  static int32_t shift_right(int32_t x, int n) { return x >> n; }
  static int32_t bit_and(int32_t x, int32_t y) { return x & y; }
  static bool less(float x, float y) { return x < y; }
  static float select(bool c, float x, float y) { return c ? x : y; }
  static float named(float x) { return x; }
  static int32_t named(int32_t x) { return x; }
};

}  // namespace tilewright::math
