#include "measure/check/inputs.h"

#include "support/check.h"
#include "support/hash.h"
#include "support/rng.h"

namespace tilewright::measure {

size_t BufferPlan::bytes() const { return static_cast<size_t>(packed_bytes(dtype, elements())); }

Tensor make_input(const CheckPlan& plan, size_t buffer, CheckSet set, uint64_t seed) {
  const BufferPlan& b = plan.buffers[buffer];
  Tensor tensor(b.dtype, b.shape);
  uint64_t key = hash_combine(seed, static_cast<uint64_t>(set));
  if (b.fill == Fill::mask || b.fill == Fill::index) {
    int64_t low = b.fill == Fill::mask ? 0 : b.low, high = b.fill == Fill::mask ? 2 : b.high;
    TW_CHECK(high > low, "index buffer {} has an empty range", b.name);
    auto range = static_cast<uint64_t>(high - low);
    for (int64_t i = 0; i < tensor.size(); ++i) {
      uint32_t u = philox_block(hash_combine(key, buffer), static_cast<uint64_t>(i) / 4)[static_cast<size_t>(i % 4)];
      tensor.set_int(i, low + static_cast<int64_t>(u * range >> 32));
    }
    return tensor;
  }
  InputSet values = set == CheckSet::exact     ? InputSet::small
                    : b.fill == Fill::positive ? InputSet::positive
                                               : InputSet::random;
  fill(tensor, values, key, buffer);
  return tensor;
}

}  // namespace tilewright::measure
