#include "support/rng.h"

#include <Random123/philox.h>

#include "support/check.h"

namespace tilewright {

uint32_t Rng::next_u32() {
  if (left_ == 0) {
    r123::Philox4x32 philox;
    r123::Philox4x32::ctr_type counter = {{static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0, 0}};
    r123::Philox4x32::key_type key = {{static_cast<uint32_t>(key_), static_cast<uint32_t>(key_ >> 32)}};
    r123::Philox4x32::ctr_type out = philox(counter, key);
    for (int i = 0; i < 4; ++i) block_[i] = out[i];
    ++counter_;
    left_ = 4;
  }
  return block_[4 - left_--];
}

uint64_t Rng::below(uint64_t n) {
  TW_CHECK(n >= 1);
  if (n == 1) return 0;
  const uint64_t limit = UINT64_MAX - UINT64_MAX % n;  // largest multiple of n, minus nothing
  uint64_t x = next_u64();
  while (x >= limit) x = next_u64();
  return x % n;
}

size_t Rng::weighted(std::span<const double> weights) {
  double sum = 0;
  for (double w : weights) sum += w;
  TW_CHECK(sum > 0, "weights sum to {}", sum);
  double x = uniform() * sum;
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    if (x < weights[i]) return i;
    x -= weights[i];
  }
  return last;
}

}  // namespace tilewright
