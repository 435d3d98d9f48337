#include "support/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <charconv>

namespace tilewright {

Hash64 hash_bytes(const void* data, size_t size, Hash64 seed) { return XXH3_64bits_withSeed(data, size, seed); }

Key128 content_key(std::string_view bytes) {
  XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

std::string Key128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

std::string hex64(Hash64 h) { return fmt::format("{:016x}", h); }

std::optional<Hash64> parse_hex64(std::string_view text) {
  Hash64 value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (text.size() != 16 || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Key128> Key128::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  auto high = parse_hex64(text.substr(0, 16)), low = parse_hex64(text.substr(16));
  if (!high || !low) return std::nullopt;
  return Key128{*high, *low};
}

}  // namespace tilewright
