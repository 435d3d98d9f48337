// What exported kernels are compared with: a library's function, or plain loops, for the same operator on the same
// buffers. One file for each peer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "support/registry.h"

namespace tilewright::bench {

/// An operator with its parameters, as `--op` names it.
struct Problem {
  std::string op;
  std::map<std::string, int64_t> sizes;
  std::map<std::string, std::string> words;  ///< dtype, layout
  int threads = 1;

  int64_t size(const std::string& name, int64_t otherwise = 0) const {
    auto it = sizes.find(name);
    return it == sizes.end() ? otherwise : it->second;
  }
};

/// Buffers in the operator's parameter order, row-major.
using Run = std::function<void(void* const* buffers)>;

struct Peer {
  static constexpr const char* registry_name = "peer";
  /// Sets up once, off the clock; an empty function: this peer does not have the operator.
  std::function<Run(const Problem&)> prepare;
};

}  // namespace tilewright::bench
