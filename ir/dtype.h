// Element types (schedule-language.md §1.7): a code, a width in bits and a number of vector lanes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright {

enum class TypeCode : uint8_t {
  boolean,
  integer,
  unsigned_integer,
  ieee_float,
  bfloat,
  float8_e4m3fn,
  float8_e5m2,
  float8_e8m0fnu,
  float4_e2m1fn,
  handle,
  void_type
};

struct DType {
  TypeCode code = TypeCode::void_type;
  uint8_t bits = 0;
  uint16_t lanes = 1;

  bool operator==(const DType&) const = default;
  bool is_bool() const { return code == TypeCode::boolean; }
  bool is_int() const { return code == TypeCode::integer; }
  bool is_uint() const { return code == TypeCode::unsigned_integer; }
  bool is_integer_like() const { return is_int() || is_uint() || is_bool(); }
  /// Any floating type: IEEE, bfloat16, float8, float4.
  bool is_float() const { return code >= TypeCode::ieee_float && code <= TypeCode::float4_e2m1fn; }
  bool is_handle() const { return code == TypeCode::handle; }
  bool is_void() const { return code == TypeCode::void_type; }
  bool is_vector() const { return lanes > 1; }
  DType element() const { return {code, bits, 1}; }
  DType with_lanes(int n) const { return {code, bits, static_cast<uint16_t>(n)}; }
  /// Bytes of one stored element (bool is stored as one byte); sub-byte types round up.
  int element_bytes() const { return is_handle() ? 8 : (bits + 7) / 8; }

  /// "float32", "int8", "bfloat16", "float32x4", "bool", "handle", "void".
  std::string str() const;
  /// Accepts the names of §1.7 and the short aliases (f16 bf16 f32 f64 i8 … u64, e4m3, e5m2).
  static std::optional<DType> parse(std::string_view text);
  uint32_t key() const { return static_cast<uint32_t>(code) << 24 | static_cast<uint32_t>(bits) << 16 | lanes; }
};

inline constexpr DType kBool{TypeCode::boolean, 1, 1};
inline constexpr DType kInt8{TypeCode::integer, 8, 1};
inline constexpr DType kInt32{TypeCode::integer, 32, 1};
inline constexpr DType kInt64{TypeCode::integer, 64, 1};
inline constexpr DType kUInt8{TypeCode::unsigned_integer, 8, 1};
inline constexpr DType kFloat16{TypeCode::ieee_float, 16, 1};
inline constexpr DType kFloat32{TypeCode::ieee_float, 32, 1};
inline constexpr DType kFloat64{TypeCode::ieee_float, 64, 1};
inline constexpr DType kBFloat16{TypeCode::bfloat, 16, 1};
inline constexpr DType kHandle{TypeCode::handle, 64, 1};
inline constexpr DType kVoid{TypeCode::void_type, 0, 1};

}  // namespace tilewright
