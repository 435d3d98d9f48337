#include "ir/dtype.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace tilewright {

namespace {

struct Named {
  const char* name;
  DType dtype;
};

constexpr DType int_type(int bits) { return {TypeCode::integer, static_cast<uint8_t>(bits), 1}; }
constexpr DType uint_type(int bits) { return {TypeCode::unsigned_integer, static_cast<uint8_t>(bits), 1}; }

// Printed name first; later rows with the same type are aliases.
constexpr std::array kNames{
    Named{"bool", kBool},
    Named{"int1", int_type(1)},
    Named{"int4", int_type(4)},
    Named{"int8", int_type(8)},
    Named{"int16", int_type(16)},
    Named{"int32", int_type(32)},
    Named{"int64", int_type(64)},
    Named{"uint1", uint_type(1)},
    Named{"uint4", uint_type(4)},
    Named{"uint8", uint_type(8)},
    Named{"uint16", uint_type(16)},
    Named{"uint32", uint_type(32)},
    Named{"uint64", uint_type(64)},
    Named{"float16", kFloat16},
    Named{"float32", kFloat32},
    Named{"float64", kFloat64},
    Named{"bfloat16", kBFloat16},
    Named{"float8_e4m3fn", DType{TypeCode::float8_e4m3fn, 8, 1}},
    Named{"float8_e5m2", DType{TypeCode::float8_e5m2, 8, 1}},
    Named{"float8_e8m0fnu", DType{TypeCode::float8_e8m0fnu, 8, 1}},
    Named{"float4_e2m1fn", DType{TypeCode::float4_e2m1fn, 4, 1}},
    Named{"handle", kHandle},
    Named{"void", kVoid},
    Named{"boolean", kBool},
    Named{"i8", int_type(8)},
    Named{"i16", int_type(16)},
    Named{"i32", int_type(32)},
    Named{"i64", int_type(64)},
    Named{"u8", uint_type(8)},
    Named{"u16", uint_type(16)},
    Named{"u32", uint_type(32)},
    Named{"u64", uint_type(64)},
    Named{"f16", kFloat16},
    Named{"f32", kFloat32},
    Named{"f64", kFloat64},
    Named{"bf16", kBFloat16},
    Named{"float8_e4m3", DType{TypeCode::float8_e4m3fn, 8, 1}},
    Named{"e4m3", DType{TypeCode::float8_e4m3fn, 8, 1}},
    Named{"e5m2", DType{TypeCode::float8_e5m2, 8, 1}},
};

}  // namespace

std::string DType::str() const {
  std::string name = "unknown";
  for (const Named& row : kNames)
    if (row.dtype == element()) {
      name = row.name;
      break;
    }
  return lanes == 1 ? name : fmt::format("{}x{}", name, lanes);
}

std::optional<DType> DType::parse(std::string_view text) {
  for (const Named& row : kNames)
    if (row.name == text) return row.dtype;
  size_t x = text.rfind('x');
  if (x == std::string_view::npos || x + 1 == text.size()) return std::nullopt;
  std::optional<DType> base = parse(text.substr(0, x));
  int lanes = 0;
  auto [end, error] = std::from_chars(text.data() + x + 1, text.data() + text.size(), lanes);
  if (!base || base->is_vector() || error != std::errc{} || end != text.data() + text.size() || lanes < 2 || lanes > 64)
    return std::nullopt;
  return base->with_lanes(lanes);
}

}  // namespace tilewright
