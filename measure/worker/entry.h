// What the hidden entries share: their arguments and the loop's limits. Each entry is a process of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::measure {

inline constexpr uint32_t protocol_version = 1;
inline constexpr int worker_socket = 3;
inline constexpr int exit_out_of_memory = 77;  ///< a worker's allocation failed: its last act is this exit code

/// `--name value` pairs.
class Arguments {
 public:
  Arguments(int argc, char** argv) : words_(argv, argv + argc) {}
  std::string get(std::string_view name, std::string otherwise = "") const {
    for (size_t i = 0; i + 1 < words_.size(); ++i)
      if (words_[i] == name) return words_[i + 1];
    return otherwise;
  }
  std::vector<std::string> all(std::string_view name) const {
    std::vector<std::string> out;
    for (size_t i = 0; i + 1 < words_.size(); ++i)
      if (words_[i] == name) out.push_back(words_[i + 1]);
    return out;
  }

 private:
  std::vector<std::string> words_;
};

int build_main(const Arguments& arguments);
int exec_main(const Arguments& arguments);
int agent_main(const Arguments& arguments);

}  // namespace tilewright::measure
