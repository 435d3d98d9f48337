// The seed of a random test: fixed in CI, chosen freshly by `scripts/dev fuzz` through TILEWRIGHT_SEED, printed on
// failure.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace tilewright {

/// TILEWRIGHT_SEED if set, else `fixed`. Use: `uint64_t seed = test_seed(1); SCOPED_TRACE(repeat_with(seed));`
inline uint64_t test_seed(uint64_t fixed) {
  const char* text = std::getenv("TILEWRIGHT_SEED");
  return text && *text ? std::strtoull(text, nullptr, 10) : fixed;
}

/// The command that repeats the running test with this seed.
inline std::string repeat_with(uint64_t seed) {
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  std::string name = info ? std::string(info->test_suite_name()) + "." + info->name() : "";
  return "repeat: TILEWRIGHT_SEED=" + std::to_string(seed) + " scripts/dev test " + name;
}

}  // namespace tilewright
