// Host tensors: what the interpreter runs on, what tests fill and compare. Row-major and compact; sub-byte elements are
// packed, low bits first; a bool is one byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/dtype.h"
#include "ir/program.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(tensors_differ, "tensors-differ", "two tensors that should hold the same values do not");

struct Tensor {
  DType dtype = kFloat32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;

  Tensor() = default;
  /// All bytes zero.
  Tensor(DType, std::vector<int64_t> shape);
  /// Rank 0, for scalar parameters.
  static Tensor scalar(DType, double value);

  int64_t size() const;  ///< elements, vector lanes counted
  /// Element by linear index, converted; integers beyond 2^53 lose digits (use get_int).
  double get(int64_t i) const;
  int64_t get_int(int64_t i) const;
  void set(int64_t i, double value);  ///< rounds to nearest even; integers truncate and wrap
  void set_int(int64_t i, int64_t value);
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
};

/// Bytes of `elements` elements of that type, packed.
int64_t packed_bytes(DType, int64_t elements);

/// The input sets of the correctness check. Each element is a function of (seed, tensor, element), so any part can be
/// made anywhere.
enum class InputSet : uint8_t {
  random,    ///< floats uniform in [-1, 1), integers over their full range, bool a fair coin
  positive,  ///< floats uniform in [0.5, 2): divisors, operands of log and sqrt; otherwise as random
  small,     ///< integers -4 … 4 in any type (0 … 4 when unsigned): sums are exact in any order
};
void fill(Tensor&, InputSet, uint64_t seed, uint64_t tensor_index);
void fill_bytes(Tensor&, unsigned char value);  ///< 0xFF poisons outputs

/// One tensor per parameter of the function, in order: `set` for every buffer, 0 for scalars. Extents must be constant
/// or bound by name in `extents`.
std::vector<Tensor> make_arguments(const Function&, InputSet, uint64_t seed,
                                   const std::vector<std::pair<std::string, int64_t>>& extents = {});

/// Equal bits, except that any NaN equals any NaN.
Status expect_equal(const Tensor& expected, const Tensor& actual);
/// |expected - actual| <= absolute + relative·|expected| for each element; NaN and infinities must coincide.
Status expect_close(const Tensor& expected, const Tensor& actual, double absolute, double relative);

}  // namespace tilewright
