#include "costmodel/features/index_form.h"

#include <gtest/gtest.h>

#include "support/rng.h"

namespace tilewright {
namespace {

OpCounts counted(const FormArena& forms, const IndexForm& f) {
  OpCounts ops;
  forms.count(f, ops);
  return ops;
}

TEST(IndexForm, FusedAndSplitLoopsPartAgain) {
  FormArena forms;
  IndexForm outer = forms.atom(forms.add_loop(0, 8)), inner = forms.atom(forms.add_loop(0, 16));
  IndexForm fused = forms.add(forms.scale(outer, 16), inner);
  EXPECT_EQ(forms.quotient(fused, 16), outer);
  EXPECT_EQ(forms.remainder(fused, 16), inner);
  EXPECT_EQ(forms.quotient(fused, 64), forms.quotient(outer, 4));
  EXPECT_EQ(forms.remainder(fused, 64), forms.add(forms.scale(forms.remainder(outer, 4), 16), inner));
  EXPECT_EQ(forms.quotient(fused, 128), forms.constant(0));
  EXPECT_EQ(forms.remainder(fused, 128), fused);
  EXPECT_EQ(forms.quotient(forms.quotient(outer, 2), 2), forms.quotient(outer, 4));
  OpCounts ops = counted(forms, forms.remainder(fused, 64));  // outer % 4 * 16 + inner
  EXPECT_EQ(ops[OpClass::int_add], 1);
  EXPECT_EQ(ops[OpClass::int_mul], 1);
  EXPECT_EQ(ops[OpClass::int_div], 1);
}

TEST(IndexForm, RangesFollowTheRunningLoops) {
  FormArena forms;
  int a = forms.add_loop(0, 4), b = forms.add_loop(2, 10);
  IndexForm f = forms.add(forms.add(forms.scale(forms.atom(a), -3), forms.atom(b)), forms.constant(5));  // 5 - 3a + b
  IndexRange all = forms.full_range(f), some = forms.range(f, [&](int atom) { return atom == b; });
  EXPECT_EQ(all.lo, 5 - 9 + 2);
  EXPECT_EQ(all.hi, 5 + 11);
  EXPECT_EQ(some.lo, 7);
  EXPECT_EQ(some.hi, 16);
  EXPECT_FALSE(forms.full_range(forms.opaque({f}, {})).known);
  EXPECT_TRUE(forms.depends_on(forms.opaque({f}, {}), a));
}

TEST(IndexForm, CoefficientsAreSeenThroughDigits) {
  FormArena forms;
  int f = forms.add_loop(0, 100), g = forms.add_loop(0, 7);
  IndexForm x = forms.add(forms.scale(forms.atom(f), 3), forms.atom(g));
  EXPECT_EQ(forms.coefficient(x, f), 3);
  EXPECT_EQ(forms.coefficient(x, g), 1);
  EXPECT_EQ(forms.coefficient(forms.scale(forms.remainder(x, 50), 16), f), 48);
  EXPECT_EQ(forms.coefficient(forms.atom(g), f), 0);
}

/// Random expressions over loops: the form has the value that the arithmetic has, and stays inside its range.
TEST(IndexForm, ValuesAreThoseOfTheExpression) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    FormArena forms;
    struct Pair {
      IndexForm form;
      std::vector<int64_t> values;  // at each point
    };
    constexpr int loops = 3;
    std::vector<int64_t> min(loops), extent(loops);
    std::vector<int> atoms;
    for (int l = 0; l < loops; ++l) {
      min[l] = rng.chance(0.4) ? 0 : rng.between(-5, 30);
      extent[l] = rng.between(1, 9);
      atoms.push_back(forms.add_loop(min[l], extent[l]));
    }
    std::vector<std::vector<int64_t>> points;
    for (int64_t a = 0; a < extent[0]; ++a)
      for (int64_t b = 0; b < extent[1]; ++b)
        for (int64_t c = 0; c < extent[2]; ++c) points.push_back({min[0] + a, min[1] + b, min[2] + c});
    std::vector<Pair> pool;
    for (int l = 0; l < loops; ++l) {
      pool.push_back({forms.atom(atoms[l]), {}});
      for (const auto& p : points) pool.back().values.push_back(p[l]);
    }
    for (int step = 0; step < 12; ++step) {
      const Pair x = pool[rng.below(pool.size())], y = pool[rng.below(pool.size())];
      int64_t k = rng.between(1, 20);
      Pair z;
      uint64_t op = rng.below(6);
      if (op == 0) z.form = forms.add(x.form, y.form, k - 10);
      if (op == 1) z.form = forms.scale(x.form, k);
      if (op == 2) z.form = forms.quotient(x.form, k);
      if (op == 3) z.form = forms.remainder(x.form, k);
      if (op == 4) z.form = forms.minimum(x.form, y.form);
      if (op == 5) z.form = forms.maximum(x.form, y.form);
      for (size_t p = 0; p < points.size(); ++p) {
        int64_t a = x.values[p], b = y.values[p], q = floor_quotient(a, k);
        const int64_t results[] = {a + (k - 10) * b, a * k, q, a - k * q, std::min(a, b), std::max(a, b)};
        z.values.push_back(results[op]);
        IndexRange r = forms.full_range(z.form);
        ASSERT_TRUE(r.known && r.lo <= results[op] && results[op] <= r.hi);
      }
      // With no loop running the form is one number: its value where all loops stand at their minimum.
      IndexRange least = forms.range(z.form, [](int) { return false; });
      ASSERT_EQ(least.lo, z.values[0]);
      ASSERT_EQ(least.hi, z.values[0]);
      pool.push_back(std::move(z));
    }
  }
}

}  // namespace
}  // namespace tilewright
