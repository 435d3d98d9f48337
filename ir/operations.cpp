// The operations that do not belong to any hardware: math, integers, control, pointers (schedule-language.md §1.6).
#include "ir/operation.h"

namespace tilewright {

const Operation* find_operation(std::string_view name) { return Registry<Operation>::instance().find(name); }

const Operation* operation(std::string_view name) {
  const Operation* op = find_operation(name);
  TW_CHECK(op, "operation {} is not registered", name);
  return op;
}

namespace {

struct Rows {
  Rows(OpGroup group, OpEffect effect, int min_args, int max_args, std::initializer_list<const char*> names) {
    for (const char* name : names) Register<Operation>(name, "", Operation{name, min_args, max_args, effect, group});
  }
};

using enum OpEffect;
const Rows unary_math{
    OpGroup::math, pure, 1, 1, {"abs",   "fabs",      "sqrt",  "rsqrt", "exp",      "exp2",     "exp10",
                                "log",   "log2",      "log10", "log1p", "sigmoid",  "tanh",     "erf",
                                "sin",   "cos",       "tan",   "sinh",  "cosh",     "asin",     "acos",
                                "atan",  "asinh",     "acosh", "atanh", "floor",    "ceil",     "trunc",
                                "round", "nearbyint", "isnan", "isinf", "isfinite", "popcount", "clz"}};
const Rows binary_math{OpGroup::math, pure, 2, 2, {"pow", "atan2", "fmod", "hypot", "copysign", "nextafter", "ldexp"}};
const Rows ternary_math{OpGroup::math, pure, 3, 3, {"fma"}};
const Rows bits{
    OpGroup::integer, pure, 2, 2, {"shift_left", "shift_right", "bitwise_and", "bitwise_or", "bitwise_xor"}};
const Rows bit_not{OpGroup::integer, pure, 1, 1, {"bitwise_not", "reinterpret"}};
const Rows fixed_point{OpGroup::integer, pure, 4, 4, {"q_multiply_shift"}};
const Rows fixed_point_axis{OpGroup::integer, pure, 7, 7, {"q_multiply_shift_per_axis"}};
const Rows dot{OpGroup::integer, pure, 3, 3, {"dp4a"}};
const Rows choice{OpGroup::control, pure, 3, 3, {"if_then_else"}};
const Rows hints{OpGroup::control, pure, 1, 1, {"likely", "ignore_loop_partition"}};
const Rows assumption{OpGroup::control, opaque, 1, 1, {"assume"}};
const Rows undefined{OpGroup::control, pure, 0, 0, {"undef"}};
const Rows pointers{OpGroup::pointer, pure, 1, 1, {"address_of"}};
const Rows access{OpGroup::pointer, pure, 5, 5, {"tvm_access_ptr"}};
const Rows extern_calls{OpGroup::extern_call, opaque, 1, -1, {"call_extern", "call_llvm_intrin"}};
const Rows pure_extern_calls{OpGroup::extern_call, pure, 1, -1, {"call_pure_extern", "call_llvm_pure_intrin"}};

}  // namespace

}  // namespace tilewright
