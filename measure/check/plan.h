// How the buffers of a program are filled and how its outputs are compared. Made once per program (from its IR by the
// build worker, or by a test); plain data afterwards, so that exec needs no program text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/dtype.h"

namespace tilewright::measure {

enum class Role : uint8_t { input, output, inout };

/// Values of the `random` set. The `exact` set holds −4 … 4 in all of them but `index` and `mask`.
enum class Fill : uint8_t {
  uniform,   ///< floats in [−1, 1); integers over their full range
  positive,  ///< [0.5, 2): divisors, operands of log and sqrt
  mask,      ///< 0 or 1
  index,     ///< integers in [low, high)
};

struct BufferPlan {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  Role role = Role::input;
  Fill fill = Fill::uniform;
  int64_t low = 0, high = 0;
  // Terms of the tolerance of this output (check/compare.h); ignored for integers and bool, which are exact.
  double u_acc = 0x1p-24;  ///< unit roundoff of the accumulation
  double reduction = 1;    ///< K': reduction length on the path
  double u_in = 0;         ///< rounding of operands on load (tf32)
  double e_fn = 0;         ///< summed relative error of the intrinsics on the path

  int64_t elements() const {
    int64_t n = 1;
    for (int64_t d : shape) n *= d;
    return n;
  }
  size_t bytes() const;  ///< packed, row major
  bool is_output() const { return role != Role::input; }
};

enum class CheckSet : uint8_t { exact, random };
constexpr const char* to_string(CheckSet set) { return set == CheckSet::exact ? "exact" : "random"; }

struct CheckPlan {
  std::vector<BufferPlan> buffers;  ///< the parameters of the program, in order
  /// The outputs on small integers do not depend on the order of summation, so that set is compared bit by bit.
  bool exact = false;

  /// In the order in which they are checked; times are taken on the last.
  std::vector<CheckSet> sets() const {
    return exact ? std::vector{CheckSet::exact, CheckSet::random} : std::vector{CheckSet::random};
  }
};

/// Where an artifact's code starts and what it needs.
struct EntryInfo {
  std::string symbol;
  uint64_t workspace_bytes = 0;  ///< shared part
  uint64_t worker_bytes = 0;     ///< a slice per worker, behind it
};

}  // namespace tilewright::measure
