// A directory of a test's own, removed at its end.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tilewright {

class Scratch {
 public:
  Scratch() {
    // In memory where there is such a place: these tests sync thousands of times, and none of them cuts the power.
    namespace fs = std::filesystem;
    fs::path base = fs::is_directory("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string pattern = (base / "tilewright-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <class R>
std::string error_text(const R& result) {
  return result ? "no error" : render_text(result.error().diagnostic());
}

}  // namespace tilewright

#define ASSERT_OK(...) ASSERT_EQ(::tilewright::error_text(__VA_ARGS__), "no error")
#define EXPECT_OK(...) EXPECT_EQ(::tilewright::error_text(__VA_ARGS__), "no error")
