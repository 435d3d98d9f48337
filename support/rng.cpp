#include "support/rng.h"

#include <Random123/philox.h>

#include "support/check.h"

namespace tilewright {

std::array<uint32_t, 4> philox_block(uint64_t key, uint64_t counter) {
  r123::Philox4x32 philox;
  r123::Philox4x32::ctr_type in = {{static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32), 0, 0}};
  r123::Philox4x32::ctr_type out = philox(in, {{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)}});
  return {out[0], out[1], out[2], out[3]};
}

uint32_t Rng::next_u32() {
  if (left_ == 0) {
    block_ = philox_block(key_, counter_++);
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
