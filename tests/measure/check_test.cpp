#include "measure/check/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "measure/check/inputs.h"
#include "support/rng.h"

namespace tilewright::measure {
namespace {

std::string_view bytes_of(const Tensor& t) { return {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()}; }

BufferPlan output(DType dtype, int64_t elements, double reduction = 1) {
  BufferPlan b{"C", dtype, {elements}, Role::output};
  b.reduction = reduction;
  return b;
}

TEST(Check, InputsAreFunctionsOfSeedBufferAndSet) {
  CheckPlan plan;
  plan.buffers = {{"A", kFloat32, {1000}, Role::input}, {"B", kFloat32, {1000}, Role::input}};
  plan.exact = true;
  Tensor a = make_input(plan, 0, CheckSet::random, 1);
  EXPECT_EQ(a.bytes, make_input(plan, 0, CheckSet::random, 1).bytes);
  EXPECT_NE(a.bytes, make_input(plan, 0, CheckSet::random, 2).bytes);
  EXPECT_NE(a.bytes, make_input(plan, 1, CheckSet::random, 1).bytes);
  Tensor small = make_input(plan, 0, CheckSet::exact, 1);
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(-1 <= a.get(i) && a.get(i) < 1) << a.get(i);
    EXPECT_EQ(small.get(i), std::round(small.get(i)));
    EXPECT_LE(std::fabs(small.get(i)), 4);
  }
}

TEST(Check, IndexAndMaskBuffersStayInTheirRange) {
  CheckPlan plan;
  plan.buffers = {{"i", kInt32, {500}, Role::input, Fill::index, 3, 9},
                  {"m", kBool, {500}, Role::input, Fill::mask},
                  {"d", kFloat32, {500}, Role::input, Fill::positive}};
  Tensor index = make_input(plan, 0, CheckSet::exact, 5), mask = make_input(plan, 1, CheckSet::random, 5),
         divisor = make_input(plan, 2, CheckSet::random, 5);
  std::set<int64_t> seen, bits;
  for (int64_t i = 0; i < 500; ++i) {
    seen.insert(index.get_int(i)), bits.insert(mask.get_int(i));
    EXPECT_TRUE(0.5 <= divisor.get(i) && divisor.get(i) < 2) << divisor.get(i);
  }
  EXPECT_EQ(seen, (std::set<int64_t>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(bits, (std::set<int64_t>{0, 1}));
}

/// The tolerance accepts another order of summation and refuses one missing term, for every length.
TEST(Check, AnotherOrderOfSummationPassesAndAMissingTermFails) {
  for (int64_t k : {64, 1024, 16384}) {
    const int64_t n = 64;
    Rng rng = Rng::keyed(11, k);
    Tensor reference(kFloat32, {n}), reordered(kFloat32, {n}), missing(kFloat32, {n});
    for (int64_t i = 0; i < n; ++i) {
      std::vector<float> terms;
      for (int64_t j = 0; j < k; ++j)
        terms.push_back(static_cast<float>((2 * rng.uniform() - 1) * (2 * rng.uniform() - 1)));
      double exact = 0;
      for (float t : terms) exact += t;
      float backwards = 0, without = 0;
      for (int64_t j = k - 1; j >= 0; --j) backwards += terms[static_cast<size_t>(j)];
      for (int64_t j = 1; j < k; ++j) without += terms[static_cast<size_t>(j)];
      reference.set(i, exact), reordered.set(i, backwards), missing.set(i, without);
    }
    BufferPlan plan = output(kFloat32, n, static_cast<double>(k));
    Tolerance t = tolerance_of(plan, CheckSet::random, rms(plan, bytes_of(reference)));
    CheckReport good, bad;
    EXPECT_TRUE(compare_output(plan, t, bytes_of(reference), bytes_of(reordered), good)) << k << ": " << good.max_rel;
    EXPECT_FALSE(compare_output(plan, t, bytes_of(reference), bytes_of(missing), bad)) << k;
    EXPECT_GT(bad.mismatches, static_cast<uint64_t>(n) / 2) << k;
  }
}

TEST(Check, ASerialSumOfMillionsOfSquaresPasses) {
  constexpr int64_t k = 4'194'304;
  Rng rng(7);
  double exact = 0;
  float serial = 0;
  for (int64_t j = 0; j < k; ++j) {
    float x = static_cast<float>(2 * rng.uniform() - 1);
    exact += static_cast<double>(x) * x;
    serial += x * x;
  }
  Tensor reference(kFloat32, {1}), found(kFloat32, {1});
  reference.set(0, exact), found.set(0, serial);
  BufferPlan plan = output(kFloat32, 1, static_cast<double>(k));
  Tolerance t = tolerance_of(plan, CheckSet::random, rms(plan, bytes_of(reference)));
  CheckReport report;
  EXPECT_TRUE(compare_output(plan, t, bytes_of(reference), bytes_of(found), report)) << exact << " " << serial;
  EXPECT_GT(std::abs(serial / exact - 1), 1e-4) << "the sum is too good to test anything";
}

TEST(Check, NotANumberAndInfinityMustCoincide) {
  Tensor r(kFloat32, {4}), x(kFloat32, {4});
  r.set(0, NAN), r.set(1, INFINITY), r.set(2, 1), r.set(3, 1);
  x = r;
  BufferPlan plan = output(kFloat32, 4);
  Tolerance t = tolerance_of(plan, CheckSet::random, rms(plan, bytes_of(r)));
  CheckReport report;
  x.set(3, std::nextafterf(1, 2));
  EXPECT_TRUE(compare_output(plan, t, bytes_of(r), bytes_of(x), report));
  for (auto [at, value] :
       {std::pair{0, 1.0}, {1, -double(INFINITY)}, {1, 3e38}, {2, double(NAN)}, {2, double(INFINITY)}}) {
    Tensor wrong = x;
    wrong.set(at, value);
    CheckReport one;
    EXPECT_FALSE(compare_output(plan, t, bytes_of(r), bytes_of(wrong), one));
    EXPECT_EQ(one.mismatches, 1u);
    EXPECT_EQ(one.first.at(0).index, static_cast<uint64_t>(at));
  }
}

TEST(Check, IntegersAndTheExactSetAreBitEqual) {
  Tensor r(kInt32, {8}), x(kInt32, {8});
  x.set_int(3, 1);
  BufferPlan ints = output(kInt32, 8);
  CheckReport report;
  EXPECT_FALSE(compare_output(ints, tolerance_of(ints, CheckSet::random, 1), bytes_of(r), bytes_of(x), report));
  Tensor f(kFloat32, {2}), g(kFloat32, {2});
  f.set(0, 1), g.set(0, 1 + 0x1p-23);
  BufferPlan floats = output(kFloat32, 2, 1024);
  EXPECT_TRUE(compare_output(floats, tolerance_of(floats, CheckSet::random, 1), bytes_of(f), bytes_of(g), report));
  EXPECT_FALSE(compare_output(floats, tolerance_of(floats, CheckSet::exact, 1), bytes_of(f), bytes_of(g), report));
}

TEST(Check, UnwrittenElementsAreCountedInEveryType) {
  for (DType dtype : {kFloat32, kFloat16, kBFloat16, kInt8, kFloat64}) {
    Tensor r(dtype, {10}), x(dtype, {10});
    for (int64_t i = 0; i < 10; ++i) r.set(i, 1), x.set(i, 1);
    auto width = static_cast<size_t>(dtype.element_bytes());
    std::memset(x.bytes.data() + 4 * width, poison_byte, 2 * width);
    BufferPlan plan = output(dtype, 10);
    CheckReport report;
    EXPECT_FALSE(compare_output(plan, tolerance_of(plan, CheckSet::random, 1), bytes_of(r), bytes_of(x), report))
        << dtype.str();
    EXPECT_EQ(report.mismatches, 2u) << dtype.str();
    EXPECT_EQ(report.unwritten, 2u) << dtype.str();
  }
}

}  // namespace
}  // namespace tilewright::measure
