// Element types: every encoding decodes and encodes back; rounding picks the nearest value, ties to even.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/interpret/small_float.h"
#include "ir/interpret/tensor.h"
#include "support/rng.h"

namespace tilewright {
namespace {

DType parse(const char* name) { return *DType::parse(name); }

std::vector<double> finite_values(DType t) {
  std::vector<double> out;
  Tensor x(t, {1});
  for (uint32_t bits = 0; bits < (1u << t.bits); ++bits) {
    std::memcpy(x.bytes.data(), &bits, x.bytes.size());
    if (std::isfinite(x.get(0))) out.push_back(x.get(0));
  }
  std::sort(out.begin(), out.end());
  return out;
}

TEST(InterpretTensor, EveryEncodingSurvivesARoundTrip) {
  for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float4_e2m1fn"}) {
    const DType t = parse(name);
    Tensor x(t, {1}), y(t, {1});
    for (uint32_t bits = 0; bits < (1u << t.bits); ++bits) {
      std::memcpy(x.bytes.data(), &bits, x.bytes.size());
      const double value = x.get(0);
      if (std::isnan(value) || std::isinf(value)) continue;  // float8 saturates, NaNs have several encodings
      y.set(0, value);
      EXPECT_EQ(x.bytes[0], y.bytes[0]) << name << " " << bits << " = " << value;
      EXPECT_TRUE(expect_equal(x, y)) << name << " " << bits;
    }
  }
}

TEST(InterpretTensor, RoundingIsToTheNearestValueTiesToEven) {
  for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const DType t = parse(name);
    const std::vector<double> grid = finite_values(t);
    const double max = grid.back();
    Tensor x(t, {1});
    auto check = [&](double v) {
      x.set(0, v);
      const double got = x.get(0);
      auto above = std::lower_bound(grid.begin(), grid.end(), v);
      ASSERT_NE(above, grid.end());
      const double hi = *above, lo = above == grid.begin() ? hi : *(above - 1);
      EXPECT_LE(std::abs(got - v), std::min(std::abs(hi - v), std::abs(lo - v))) << name << " of " << v;
      if (hi - v == v - lo && hi != lo) {
        uint32_t bits = 0;
        std::memcpy(&bits, x.bytes.data(), x.bytes.size());
        EXPECT_EQ(bits & 1, 0u) << name << ": tie " << v << " went to the odd neighbour " << got;
      }
    };
    for (size_t i = 0; i + 1 < grid.size(); i += 1 + grid.size() / 4096) check((grid[i] + grid[i + 1]) / 2);
    Rng rng(17);
    for (int i = 0; i < 20000; ++i) check(std::ldexp(2 * rng.uniform() - 1, static_cast<int>(rng.between(-30, 8))));
    x.set(0, max * 4);
    if (t.bits == 8)
      EXPECT_EQ(x.get(0), max) << name << " saturates";
    else
      EXPECT_TRUE(std::isinf(x.get(0))) << name << " overflows";
    x.set(0, std::nan(""));
    EXPECT_TRUE(std::isnan(x.get(0))) << name;
  }
}

TEST(InterpretTensor, DoubleIsRoundedOnce) {
  // 1 + 2^-11 + 2^-40 lies above the tie of float16; through float32 it would become the tie and round down.
  Tensor h(kFloat16, {1});
  h.set(0, 1 + 0x1p-11 + 0x1p-40);
  EXPECT_EQ(h.get(0), 1 + 0x1p-10);
}

TEST(InterpretTensor, SubByteElementsArePackedLowBitsFirst) {
  Tensor t(parse("int4"), {4});
  ASSERT_EQ(t.bytes.size(), 2u);
  const int values[] = {1, -2, 7, -8};
  for (int i = 0; i < 4; ++i) t.set_int(i, values[i]);
  EXPECT_EQ(static_cast<int>(t.bytes[0]), 0xe1);
  EXPECT_EQ(static_cast<int>(t.bytes[1]), 0x87);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(t.get_int(i), values[i]);
}

TEST(InterpretTensor, FillDependsOnSeedTensorAndElementOnly) {
  Tensor a(kFloat32, {8}), b(kFloat32, {16}), c(kFloat32, {8});
  fill(a, InputSet::random, 1, 0);
  fill(b, InputSet::random, 1, 0);
  fill(c, InputSet::random, 1, 1);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(a.get(i), b.get(i));
  EXPECT_FALSE(expect_equal(a, c));
  Tensor p(kFloat32, {100});
  fill(p, InputSet::positive, 3, 0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(p.get(i) >= 0.5 && p.get(i) < 2);
  Tensor s(kUInt8, {100});
  fill(s, InputSet::small, 3, 0);
  for (int i = 0; i < 100; ++i) EXPECT_LE(s.get_int(i), 4);
}

TEST(InterpretTensor, ComparisonSaysWhere) {
  Tensor a(kFloat32, {2, 3}), b(kFloat32, {2, 3});
  b.set(4, 0.5);
  Status status = expect_equal(a, b);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().diagnostic().message,
            "1 of 6 elements differ (compared bit for bit); the first at [1, 1]: expected 0, found 0.5");
  EXPECT_TRUE(expect_close(a, b, 0.5, 0));
  EXPECT_FALSE(expect_close(a, b, 0.4, 0.5));
  a.set(0, std::nan(""));
  EXPECT_FALSE(expect_close(a, b, 1, 1));
  b.set(0, -std::nan(""));
  EXPECT_TRUE(expect_close(a, b, 0.5, 0)) << "NaN equals NaN whatever its sign";
  EXPECT_FALSE(expect_equal(Tensor(kFloat32, {6}), b)) << "shapes must agree";
}

}  // namespace
}  // namespace tilewright
