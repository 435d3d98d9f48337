// The one place that names a hash function (xxHash, XXH3). Hashes are the same on every host.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright {

using Hash64 = uint64_t;

Hash64 hash_bytes(const void* data, size_t size, Hash64 seed = 0);
inline Hash64 hash_text(std::string_view text, Hash64 seed = 0) { return hash_bytes(text.data(), text.size(), seed); }

/// Mixes `value` into `seed`; order matters. (Finaliser of splitmix64: cheap, inline, good enough for tree hashes.)
constexpr Hash64 hash_combine(Hash64 seed, Hash64 value) {
  uint64_t z = seed * 0x9e3779b97f4a7c15u + value + 0x165667b19e3779f9u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/// 128-bit content key for records, artifacts and traces.
struct Key128 {
  uint64_t high = 0, low = 0;
  auto operator<=>(const Key128&) const = default;
  std::string hex() const;  ///< 32 lower-case digits
  static std::optional<Key128> from_hex(std::string_view);
};
Key128 content_key(std::string_view bytes);
/// A 64-bit identity that text shows as hex digits, not as a number.
struct Id64 {
  uint64_t value = 0;
  auto operator<=>(const Id64&) const = default;
};
std::string hex64(Hash64);  ///< 16 lower-case digits
std::optional<Hash64> parse_hex64(std::string_view);

}  // namespace tilewright
