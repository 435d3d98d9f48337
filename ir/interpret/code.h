// The register code that the interpreter runs. One 64-bit register holds an integer (any width, sign- or
// zero-extended), a double, or a float (also for every type narrower than float32, as a value on that type's grid).
// Vectors are unrolled lane by lane by the compiler, so every instruction is scalar. Read next: expr_compiler.h,
// compile.cpp, run.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/dtype.h"
#include "ir/interpret/interpret.h"

namespace tilewright::interpreter {

// name(meaning), registers named d (dst), a, b, c; x is a 16-bit immediate.
// clang-format off
#define TW_INTERPRETER_OPS(OP)                                                                                         \
  /* moves, addresses: lea d = leas[b].constant + sum of register · coefficient */                                     \
  OP(mov)                                                                                                              \
  OP(lea)                                                                                                              \
  OP(select) /* 64-bit integers; wrap narrows to x bits, signed when c is 1 */                                         \
  OP(add_i)                                                                                                            \
  OP(sub_i) OP(mul_i) OP(floor_div_i) OP(floor_mod_i) OP(trunc_div_i) OP(trunc_mod_i) OP(div_u) OP(mod_u) OP(min_i)    \
      OP(max_i) OP(min_u) OP(max_u) OP(and_i) OP(or_i) OP(xor_i) OP(shift_left_i) OP(shift_right_i) OP(shift_right_u)  \
          OP(eq_i) OP(ne_i) OP(lt_i) OP(le_i) OP(lt_u) OP(le_u) OP(wrap) OP(popcount_i) OP(clz_i) OP(dp4a_s)           \
              OP(dp4a_u) /* float32 and float64 */                                                                     \
      OP(add_f) OP(sub_f) OP(mul_f) OP(div_f) OP(min_f) OP(max_f) OP(eq_f) OP(ne_f) OP(lt_f) OP(le_f) OP(fma_f)        \
          OP(call_f) OP(add_d) OP(sub_d) OP(mul_d) OP(div_d) OP(min_d) OP(max_d) OP(eq_d) OP(ne_d) OP(lt_d) OP(le_d)   \
              OP(fma_d) OP(call_d) /* conversions; x is a type key where one is needed */                              \
      OP(round_f) OP(round_d) OP(i_to_f) OP(i_to_d) OP(u_to_f) OP(u_to_d) OP(f_to_d) OP(d_to_i) OP(d_to_u)             \
          OP(reinterpret) /* memory: element a of memory b; bounds and, for allocations, written bytes are always      \
                             checked */                                                                                \
      OP(load_i8) OP(load_u8) OP(load_i16) OP(load_u16) OP(load_i32) OP(load_u32) OP(load_64) OP(load_f32)             \
          OP(load_f16) OP(load_bf16) OP(load_small) OP(load_packed) OP(store_8) OP(store_16) OP(store_32) OP(store_64) \
              OP(store_f16) OP(store_bf16) OP(store_small) OP(store_packed)                                            \
                  OP(allocate) /* control: d is the target */                                                          \
      OP(jump) OP(jump_zero) OP(jump_nonzero) OP(jump_ne) OP(loop_enter) OP(loop_next) OP(shuffle) OP(permute) OP(     \
          halt) /* checks: a >= b and a < c · a equals b · a is not 0 · reductions begin with their first instance */  \
      OP(check_range) OP(check_equal) OP(check_true) OP(init_mark)                                                     \
          OP(init_check) /* demand mode: element a of stage b */                                                       \
      OP(demand)
// clang-format on

enum class Op : uint16_t {
#define TW_OP(name) name,
  TW_INTERPRETER_OPS(TW_OP)
#undef TW_OP
};
const char* op_name(Op);

struct Instr {
  Op op;
  uint16_t x = 0;
  int32_t d = 0, a = 0, b = 0, c = 0;
};

union Reg {
  int64_t i;
  double d;
  float f;
};

struct Lea {
  static constexpr int kMaxTerms = 4;
  int64_t constant = 0;
  int terms = 0;
  int reg[kMaxTerms] = {};
  int64_t coefficient[kMaxTerms] = {};
};

/// A type as a 16-bit immediate: code and width.
inline uint16_t type_key(DType t) { return static_cast<uint16_t>(static_cast<unsigned>(t.code) << 8 | t.bits); }
inline DType type_of_key(uint16_t key) {
  return {static_cast<TypeCode>(key >> 8), static_cast<uint8_t>(key & 0xff), 1};
}

/// Functions of call_f and call_d.
enum class MathFn : uint16_t {
  abs,
  sqrt,
  rsqrt,
  exp,
  exp2,
  exp10,
  log,
  log2,
  log10,
  log1p,
  sigmoid,
  tanh,
  erf,
  sin,
  cos,
  tan,
  sinh,
  cosh,
  asin,
  acos,
  atan,
  asinh,
  acosh,
  atanh,
  floor,
  ceil,
  trunc,
  nearbyint,
  isnan,
  isinf,
  isfinite,
  pow,
  atan2,
  fmod,
  hypot,
  copysign,
  nextafter,
  ldexp,
};
float call_float(MathFn, float a, float b);
double call_double(MathFn, double a, double b);

/// A value shown when something goes wrong: a loop variable or a block iter.
struct Shown {
  std::string name;
  int reg;
};
/// The surroundings of an instruction: its block and the loops and iters around it, outermost first.
struct Context {
  std::string block;  ///< innermost block, or ""
  std::vector<Shown> values;
};
/// Where an instruction that may fail comes from.
struct Site {
  const RefusalCode* code;
  std::string what;  ///< "index 1 of A", "iter vi", …
  int context;
};

/// Memory of one data pointer: a parameter or an allocation.
struct MemorySlot {
  std::string name;
  DType dtype;         ///< of its buffer, for messages
  int parameter = -1;  ///< index of the parameter, or -1: allocated
};

struct ParameterBinding {
  std::string name;
  DType dtype;
  bool is_buffer = false, is_handle = false;
  int value_reg = -1;            ///< scalars
  int memory = -1;               ///< buffers and handles
  std::vector<int> extent_regs;  ///< one per dimension
  std::vector<int64_t> extents;  ///< required extent, -1: any
};

struct InterpreterCode {
  std::string function;
  InterpretOptions options;
  std::vector<Instr> code;
  std::vector<int> site_of;  ///< per instruction, -1: cannot fail
  std::vector<Site> sites;
  std::vector<Context> contexts;
  std::vector<Lea> leas;
  std::vector<Reg> registers;  ///< initial values: constants
  std::vector<MemorySlot> memory;
  std::vector<ParameterBinding> parameters;
  std::vector<int64_t> init_trackers;  ///< points of the spatial domain of each tracked reduction
  int permutations = 0;
};

/// Demand mode: gives element `index` of stage `stage`; false when it failed (the host keeps the refusal).
struct DemandHost {
  virtual bool value(int stage, int64_t index, Reg& out) = 0;

 protected:
  ~DemandHost() = default;
};

struct Memory {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  uint8_t* written = nullptr;  ///< one byte per byte, 0xff = written; null: not tracked
};

/// Runs code[entry…] until halt. `steps` is added to.
Status run_code(const InterpreterCode&, size_t entry, std::span<Reg> registers, std::span<Memory> memory,
                int64_t& steps, DemandHost* demand = nullptr);
/// Owns the allocations behind `memory` entries that are not parameters.
struct AllocatedMemory {
  std::vector<std::byte> data;
  std::vector<uint8_t> written;
};

Result<InterpreterCode> compile_function(const Function&, const InterpretOptions&);

/// Checks the arguments and puts them into registers and memory.
Status bind_arguments(const InterpreterCode&, std::span<Tensor> args, std::span<Reg> registers,
                      std::span<Memory> memory);

}  // namespace tilewright::interpreter
