// Runs the real binary in an empty folder of its own and keeps what it said.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "support/json.h"

namespace tilewright {

struct Ran {
  int code = -1;
  std::string out, err;
  Json json() const { return Json::parse(out, nullptr, false); }
};

class ToolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tilewright-tool-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(pattern.data()));
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return name;
  }
  std::string read(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(folder_ / name).rdbuf();
    return out.str();
  }
  const std::filesystem::path& folder() const { return folder_; }

  Ran run(const std::vector<std::string>& arguments, const std::string& input = "") const {
    write(".in", input);
    // The default database is one of the folder's own, not the developer's.
    std::string command = "cd '" + folder_.string() + "' && XDG_DATA_HOME=.data '" TW_BINARY_DIR "/bin/tilewright'";
    for (const std::string& a : arguments) command += " '" + a + "'";
    int status = std::system((command + " <.in >.out 2>.err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read(".out"), read(".err")};
  }

 private:
  std::filesystem::path folder_;
};

inline constexpr const char* kMatmul = R"(@T.prim_func
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
    for i, j, k in T.grid(64, 64, 64):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

}  // namespace tilewright
