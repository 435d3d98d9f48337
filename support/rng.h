// Counter-based random streams (Philox 4x32-10, Random123). A stream is a pure function of its key, so a search draws
// the same numbers whatever the number of threads. No std:: distribution is used anywhere: they differ between
// libraries.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "support/hash.h"

namespace tilewright {

/// One block of Philox 4x32-10: 128 random bits that are a pure function of (key, counter).
std::array<uint32_t, 4> philox_block(uint64_t key, uint64_t counter);

class Rng {
 public:
  /// `key` identifies the stream (for the search: seed, task, round, slot, purpose, mixed by hash_combine).
  explicit Rng(uint64_t key) : key_(key) {}
  template <class... Parts>
  static Rng keyed(uint64_t seed, Parts... parts) {
    uint64_t key = seed;
    ((key = hash_combine(key, static_cast<uint64_t>(parts))), ...);
    return Rng(key);
  }

  uint32_t next_u32();
  uint64_t next_u64() {
    uint64_t high = next_u32();
    return high << 32 | next_u32();
  }
  /// Uniform in [0, n), exact (rejection, no modulo bias). n >= 1.
  uint64_t below(uint64_t n);
  /// Uniform in [lo, hi], both ends included.
  int64_t between(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(below(static_cast<uint64_t>(hi - lo) + 1));
  }
  /// Uniform in [0, 1) with 53 bits.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }
  bool chance(double p) { return uniform() < p; }
  /// Index drawn with probability proportional to `weights` (non-negative, positive sum).
  size_t weighted(std::span<const double> weights);
  template <class T>
  void shuffle(std::span<T> items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t key_;
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int left_ = 0;
};

}  // namespace tilewright
