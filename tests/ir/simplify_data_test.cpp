// Loaded values wrap: what is right for indices (mathematical integers) is not done to them.
#include <gtest/gtest.h>

#include "ir/print.h"
#include "ir/simplify/analyzer.h"

namespace tilewright {
namespace {

struct Data {
  Buffer a = make_buffer("a", kInt32, {int_imm(8)}), b = make_buffer("b", kInt32, {int_imm(8)});
  Expr x = load(a, {int_imm(0)}), y = load(b, {int_imm(0)});
  std::string simplified(const Expr& e) const { return print(simplify(e)); }
};

TEST(SimplifyData, ComparisonsKeepTheirSides) {
  Data d;
  EXPECT_EQ(d.simplified(less(d.x + d.y, d.x)), "a[0] + b[0] < a[0]");
  EXPECT_EQ(d.simplified(less(d.x - d.y, d.y)), "a[0] - b[0] < b[0]");
  EXPECT_EQ(d.simplified(equal(d.x + 1, d.y + 1)), "a[0] + 1 == b[0] + 1");
}

TEST(SimplifyData, DivisionAndMinimaAreNotTakenApart) {
  Data d;
  EXPECT_EQ(d.simplified(floor_div(d.x * 4 + d.y, 4)), "(a[0] * 4 + b[0]) // 4");
  EXPECT_EQ(d.simplified(floor_mod(d.x * 4 + d.y, 4)), "(a[0] * 4 + b[0]) % 4");
  EXPECT_EQ(d.simplified(max_of(d.x + 1, d.x)), "T.max(a[0] + 1, a[0])");
}

TEST(SimplifyData, SumsAreRightModuloAPowerOfTwo) {
  Data d;
  EXPECT_EQ(d.simplified(d.x + d.y - d.x), "b[0]");
  EXPECT_EQ(d.simplified(d.x * 2 + d.x), "a[0] * 3");
}

}  // namespace
}  // namespace tilewright
