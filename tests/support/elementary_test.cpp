#include "support/elementary.h"

#include <gtest/gtest.h>

#include "support/rng.h"

namespace tilewright {
namespace {

TEST(Elementary, Log2IsExactAtPowersOfTwoAndCloseElsewhere) {
  for (int k = -1074; k <= 1023; ++k) EXPECT_EQ(portable_log2(std::ldexp(1.0, k)), k);
  Rng rng(1);
  for (int i = 0; i < 20000; ++i) {
    double x = std::ldexp(1 + rng.uniform(), static_cast<int>(rng.between(-60, 60)));
    EXPECT_NEAR(portable_log2(x), std::log2(x), 4e-16 * std::max(1.0, std::abs(std::log2(x)))) << x;
  }
  EXPECT_EQ(portable_log2(0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(portable_log2(-1)));
  EXPECT_TRUE(std::isinf(portable_log2(std::numeric_limits<double>::infinity())));
}

TEST(Elementary, ExpIsExactAtIntegersAndCloseElsewhere) {
  for (int k = -1022; k <= 1023; ++k) EXPECT_EQ(portable_exp2(k), std::ldexp(1.0, k));
  Rng rng(2);
  for (int i = 0; i < 20000; ++i) {
    double x = (rng.uniform() - 0.5) * 80;
    EXPECT_NEAR(portable_exp(x) / std::exp(x), 1, 2e-14) << x;
  }
  EXPECT_EQ(portable_exp(-1e9), 0);
  EXPECT_TRUE(std::isinf(portable_exp2(1024)));
  EXPECT_GT(portable_exp2(1023.9), 1e308);
  EXPECT_TRUE(std::isnan(portable_exp(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace tilewright
