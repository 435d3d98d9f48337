// Golden files: text under tests/golden/ that a test's output must equal. `scripts/dev golden` rewrites them (it sets
// TILEWRIGHT_UPDATE_GOLDEN); a missing file fails and says so.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tilewright {

/// Expects tests/golden/<name> to hold exactly `actual`.
inline void expect_golden(const std::string& name, const std::string& actual) {
  std::filesystem::path path = std::filesystem::path(TW_SOURCE_DIR) / "tests" / "golden" / name;
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDEN")) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << actual;
    return;
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << "expected the golden file " << path << ", found none; scripts/dev golden writes it";
  std::string expected{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(expected, actual) << "tests/golden/" << name << " differs; scripts/dev golden rewrites it";
}

}  // namespace tilewright
