#include "support/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace tilewright {

Hash64 hash_bytes(const void* data, size_t size, Hash64 seed) { return XXH3_64bits_withSeed(data, size, seed); }

Key128 content_key(std::string_view bytes) {
  XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

std::string Key128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::string hex64(Hash64 h) { return fmt::format("{:016x}", h); }

}  // namespace tilewright
