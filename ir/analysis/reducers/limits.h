// Lowest and highest value of a type, as reducers use them for identities.
#pragma once

#include <limits>

#include "ir/build.h"

namespace tilewright {

/// The largest finite value; the lowest one is its negative for floats.
inline double largest_finite(DType t) {
  switch (t.code) {
    case TypeCode::ieee_float:
      return t.bits == 16   ? 65504.0
             : t.bits == 32 ? std::numeric_limits<float>::max()
                            : std::numeric_limits<double>::max();
    case TypeCode::bfloat:
      return 0x1.fep127;
    case TypeCode::float8_e4m3fn:
      return 448.0;
    case TypeCode::float8_e5m2:
      return 57344.0;
    default:
      return 6.0;
  }
}
inline Expr lowest_of(DType t) {
  if (t.is_float()) return float_imm(-largest_finite(t), t);
  if (t.is_uint() || t.is_bool()) return int_imm(0, t);
  return int_imm(t.bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (t.bits - 1)), t);
}
inline Expr highest_of(DType t) {
  if (t.is_float()) return float_imm(largest_finite(t), t);
  if (t.is_bool()) return int_imm(1, t);
  if (t.is_uint()) return int_imm(t.bits == 64 ? -1 : (int64_t{1} << t.bits) - 1, t);
  return int_imm(t.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (t.bits - 1)) - 1, t);
}

}  // namespace tilewright
