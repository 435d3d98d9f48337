// Operations: everything a Call may name (math, lane exchange, asynchronous copies, tensor instructions…). One record
// each, registered from the file that owns it: ir/operations.cpp for math and control, schedule/intrinsics/ for
// hardware.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/expr.h"
#include "support/registry.h"

namespace tilewright {

enum class OpEffect : uint8_t {
  pure,    ///< value depends on the arguments only; may be duplicated, moved, removed
  reads,   ///< reads memory through a pointer argument
  opaque,  ///< writes memory, synchronises or otherwise has an effect
};

enum class OpGroup : uint8_t { math, integer, control, pointer, lanes, extern_call, hardware };

struct Operation {
  static constexpr const char* registry_name = "operation";
  std::string name;                ///< as printed after "T.": "exp", "if_then_else", "ptx.cp_async"
  int min_args = 1, max_args = 1;  ///< max_args -1: any number
  OpEffect effect = OpEffect::pure;
  OpGroup group = OpGroup::math;
};

/// The operation of that name, or null. Pointers are stable.
const Operation* find_operation(std::string_view name);
/// The operation of that name; InternalError if it is not registered.
const Operation* operation(std::string_view name);

}  // namespace tilewright
