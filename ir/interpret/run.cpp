// The register machine. Failures leave the loop with the instruction's site; everything that costs (names, places) is
// made then.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "ir/build.h"
#include "ir/interpret/code.h"
#include "ir/interpret/math_table.h"
#include "ir/interpret/small_float.h"
#include "support/rng.h"

namespace tilewright::interpreter {

namespace {

/// The place of a failure: "in block "C" at i = 1, vi = 1".
std::string place_text(const InterpreterCode& code, const Site& site, std::span<const Reg> r) {
  const Context& context = code.contexts[static_cast<size_t>(site.context)];
  std::string out = fmt::format("function {}", code.function);
  if (!context.block.empty()) out += fmt::format(", block \"{}\"", context.block);
  std::string values;
  for (const Shown& v : context.values)
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", v.name, r[static_cast<size_t>(v.reg)].i);
  return values.empty() ? "in " + out : fmt::format("in {}, at {}", out, values);
}

enum class Stop : uint8_t { division, outside, unwritten, steps, check, demand };

/// The refusal of the instruction at `at`, which stopped for that reason.
tl::unexpected<Refusal> report(const InterpreterCode& code, size_t at, Stop why, std::span<const Reg> r,
                               std::span<const Memory> memory) {
  const Instr& in = code.code[at];
  TW_CHECK(code.site_of[at] >= 0, "instruction {} ({}) failed without a site", at, op_name(in.op));
  const Site& site = code.sites[static_cast<size_t>(code.site_of[at])];
  auto reg = [&](int index) { return r[static_cast<size_t>(index)].i; };
  const RefusalCode* refusal = site.code;
  std::string text;
  switch (why) {
    case Stop::division:
      text = fmt::format("{} has divisor 0", site.what);
      break;
    case Stop::outside:
      refusal = &access_out_of_bounds;
      text = fmt::format("element {} of {} lies outside its memory of {} bytes", reg(in.a), site.what,
                         memory[static_cast<size_t>(in.b)].bytes);
      break;
    case Stop::unwritten:
      refusal = &read_before_write;
      text = fmt::format("element {} of {} is read and was never written", reg(in.a), site.what);
      break;
    case Stop::steps:
      refusal = &step_limit_reached;
      text = fmt::format("{} runs on after {} loop iterations, the limit", site.what, code.options.step_limit);
      break;
    case Stop::demand:
      text = fmt::format("{} cannot be computed", site.what);
      break;
    case Stop::check:
      if (in.op == Op::check_range)
        text = fmt::format("{} is {}, expected a value from {} to {}", site.what, reg(in.a), reg(in.b), reg(in.c) - 1);
      else if (in.op == Op::check_equal)
        text = fmt::format("{}: expected {}, found {}", site.what, reg(in.a), reg(in.b));
      else if (in.op == Op::check_true)
        text = fmt::format("{} does not hold", site.what);
      else
        text = fmt::format("{} updates an element that its first instance has not initialised", site.what);
      break;
  }
  return refuse(Refusal(*refusal, text).with_note([place = place_text(code, site, r)] { return Note{place, {}}; }));
}

/// IEEE maximum and minimum: NaN is passed on, -0 < +0.
template <class F>
F max_of(F a, F b) {
  if (a != a || b != b) return a + b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class F>
F min_of(F a, F b) {
  if (a != a || b != b) return a + b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

int64_t add_wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t mul_wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

int64_t narrow(int64_t v, int bits, bool is_signed) {
  const int drop = 64 - bits;
  const uint64_t up = static_cast<uint64_t>(v) << drop;
  return is_signed ? static_cast<int64_t>(up) >> drop : static_cast<int64_t>(up >> drop);
}

/// Truncates; values outside the range give its nearest end, NaN gives 0.
int64_t to_int64(double x) {
  if (x != x) return 0;
  if (x >= 0x1p63) return INT64_MAX;
  return x < -0x1p63 ? INT64_MIN : static_cast<int64_t>(x);
}
uint64_t to_uint64(double x) {
  if (x >= 0x1p63) return x >= 0x1p64 ? UINT64_MAX : static_cast<uint64_t>(x);
  return static_cast<uint64_t>(to_int64(x));
}

int64_t dot4(int64_t a, int64_t b, bool is_signed) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += narrow(a >> (8 * i), 8, is_signed) * narrow(b >> (8 * i), 8, is_signed);
  return sum;
}

uint64_t bits_of(Reg v, DType t) {
  if (!t.is_float()) return static_cast<uint64_t>(v.i);
  if (t.bits == 64) return std::bit_cast<uint64_t>(v.d);
  if (t.bits == 32) return std::bit_cast<uint32_t>(v.f);
  if (t.code == TypeCode::bfloat) return bfloat16_bits(v.f);
  return t.bits == 16 ? float16_bits(v.f) : small_bits(t.code, v.f);
}
Reg of_bits(uint64_t u, DType t) {
  Reg r{};
  if (!t.is_float())
    r.i = t.bits < 64 ? narrow(static_cast<int64_t>(u), t.is_bool() ? 8 : t.bits, t.is_int()) : static_cast<int64_t>(u);
  else if (t.bits == 64)
    r.d = std::bit_cast<double>(u);
  else if (t.bits == 32)
    r.f = std::bit_cast<float>(static_cast<uint32_t>(u));
  else if (t.code == TypeCode::bfloat)
    r.f = bfloat16_value(static_cast<uint16_t>(u));
  else
    r.f = t.bits == 16 ? float16_value(static_cast<uint16_t>(u)) : small_values(t.code)[u];
  return r;
}

template <class T>
T read(const std::byte* p) {
  T x;
  std::memcpy(&x, p, sizeof(T));
  return x;
}

bool all_written(const Memory& m, int64_t at, size_t size) {
  uint64_t mask = 0;
  std::memcpy(&mask, m.written + at, size);
  return mask == (size == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * size)) - 1);
}

/// What a run owns besides registers and parameters.
struct Scratch {
  explicit Scratch(const InterpreterCode& code)
      : allocations(code.memory.size()), permutations(static_cast<size_t>(code.permutations)) {
    for (int64_t points : code.init_trackers) marks.emplace_back(static_cast<size_t>(points));
  }
  void allocate(Memory& m, size_t slot, DType t, int64_t elements) {
    const size_t bytes = static_cast<size_t>(packed_bytes(t, elements));
    AllocatedMemory& own = allocations[slot];
    if (own.data.size() < bytes) own.data.resize(bytes), own.written.resize(bytes);
    std::memset(own.written.data(), 0, bytes);
    m = {own.data.data(), static_cast<int64_t>(bytes), own.written.data()};
  }
  std::vector<AllocatedMemory> allocations;
  std::vector<std::vector<int64_t>> permutations;
  std::vector<std::vector<uint8_t>> marks;
  uint64_t shuffles = 0;
};

}  // namespace

const char* op_name(Op op) {
  static constexpr const char* names[] = {
#define TW_OP(name) #name,
      TW_INTERPRETER_OPS(TW_OP)
#undef TW_OP
  };
  return names[static_cast<size_t>(op)];
}

float call_float(MathFn fn, float a, float b) {
  constexpr math::FloatArithmetic table;
  switch (fn) {
    case MathFn::abs:
      return std::fabs(a);
    case MathFn::sqrt:
      return std::sqrt(a);
    case MathFn::rsqrt:
      return 1.0f / std::sqrt(a);
    case MathFn::exp:
      return math::exp(table, a);
    case MathFn::exp2:
      return math::exp2(table, a);
    case MathFn::exp10:
      return std::pow(10.0f, a);
    case MathFn::log:
      return math::log(table, a);
    case MathFn::log2:
      return std::log2(a);
    case MathFn::log10:
      return std::log10(a);
    case MathFn::log1p:
      return std::log1p(a);
    case MathFn::sigmoid:
      return math::sigmoid(table, a);
    case MathFn::tanh:
      return math::tanh(table, a);
    case MathFn::erf:
      return math::erf(table, a);
    case MathFn::sin:
      return std::sin(a);
    case MathFn::cos:
      return std::cos(a);
    case MathFn::tan:
      return std::tan(a);
    case MathFn::sinh:
      return std::sinh(a);
    case MathFn::cosh:
      return std::cosh(a);
    case MathFn::asin:
      return std::asin(a);
    case MathFn::acos:
      return std::acos(a);
    case MathFn::atan:
      return std::atan(a);
    case MathFn::asinh:
      return std::asinh(a);
    case MathFn::acosh:
      return std::acosh(a);
    case MathFn::atanh:
      return std::atanh(a);
    case MathFn::floor:
      return std::floor(a);
    case MathFn::ceil:
      return std::ceil(a);
    case MathFn::trunc:
      return std::trunc(a);
    case MathFn::nearbyint:
      return std::nearbyint(a);
    case MathFn::isnan:
      return std::isnan(a);
    case MathFn::isinf:
      return std::isinf(a);
    case MathFn::isfinite:
      return std::isfinite(a);
    case MathFn::pow:
      return std::pow(a, b);
    case MathFn::atan2:
      return std::atan2(a, b);
    case MathFn::fmod:
      return std::fmod(a, b);
    case MathFn::hypot:
      return std::hypot(a, b);
    case MathFn::copysign:
      return std::copysign(a, b);
    case MathFn::nextafter:
      return std::nextafter(a, b);
    case MathFn::ldexp:
      return std::ldexp(a, static_cast<int>(to_int64(b)));
  }
  TW_UNREACHABLE();
}

double call_double(MathFn fn, double a, double b) {
  switch (fn) {
    case MathFn::abs:
      return std::fabs(a);
    case MathFn::sqrt:
      return std::sqrt(a);
    case MathFn::rsqrt:
      return 1.0 / std::sqrt(a);
    case MathFn::exp:
      return std::exp(a);
    case MathFn::exp2:
      return std::exp2(a);
    case MathFn::exp10:
      return std::pow(10.0, a);
    case MathFn::log:
      return std::log(a);
    case MathFn::log2:
      return std::log2(a);
    case MathFn::log10:
      return std::log10(a);
    case MathFn::log1p:
      return std::log1p(a);
    case MathFn::sigmoid:
      return 1.0 / (1.0 + std::exp(-a));
    case MathFn::tanh:
      return std::tanh(a);
    case MathFn::erf:
      return std::erf(a);
    case MathFn::sin:
      return std::sin(a);
    case MathFn::cos:
      return std::cos(a);
    case MathFn::tan:
      return std::tan(a);
    case MathFn::sinh:
      return std::sinh(a);
    case MathFn::cosh:
      return std::cosh(a);
    case MathFn::asin:
      return std::asin(a);
    case MathFn::acos:
      return std::acos(a);
    case MathFn::atan:
      return std::atan(a);
    case MathFn::asinh:
      return std::asinh(a);
    case MathFn::acosh:
      return std::acosh(a);
    case MathFn::atanh:
      return std::atanh(a);
    case MathFn::floor:
      return std::floor(a);
    case MathFn::ceil:
      return std::ceil(a);
    case MathFn::trunc:
      return std::trunc(a);
    case MathFn::nearbyint:
      return std::nearbyint(a);
    case MathFn::isnan:
      return std::isnan(a);
    case MathFn::isinf:
      return std::isinf(a);
    case MathFn::isfinite:
      return std::isfinite(a);
    case MathFn::pow:
      return std::pow(a, b);
    case MathFn::atan2:
      return std::atan2(a, b);
    case MathFn::fmod:
      return std::fmod(a, b);
    case MathFn::hypot:
      return std::hypot(a, b);
    case MathFn::copysign:
      return std::copysign(a, b);
    case MathFn::nextafter:
      return std::nextafter(a, b);
    case MathFn::ldexp:
      return std::ldexp(a, static_cast<int>(to_int64(b)));
  }
  TW_UNREACHABLE();
}

// One switch on purpose: registers of the loop stay in machine registers, and the compiler makes one jump table.
Status run_code(const InterpreterCode& code, size_t entry, std::span<Reg> registers, std::span<Memory> memory,
                int64_t& steps, DemandHost* demand) {
  Scratch scratch(code);
  Reg* const r = registers.data();
  const Instr* const base = code.code.data();
  const Instr* pc = base + entry;
  // Nothing may take pc's address: it has to stay in a register.
  Stop why = Stop::check;
#define STOP(reason)    \
  do {                  \
    why = Stop::reason; \
    goto stopped;       \
  } while (false)
  int64_t steps_left = code.options.step_limit - steps;

#define D r[pc->d]
#define A r[pc->a]
#define B r[pc->b]
#define C r[pc->c]
#define BINARY(name, field, result, expression) \
  case Op::name: {                              \
    const auto x = A.field, y = B.field;        \
    D.result = (expression);                    \
    ++pc;                                       \
    continue;                                   \
  }
#define UNARY(name, field, result, expression) \
  case Op::name: {                             \
    const auto x = A.field;                    \
    D.result = (expression);                   \
    ++pc;                                      \
    continue;                                  \
  }
#define DIVISION(name, expression)  \
  case Op::name: {                  \
    const int64_t x = A.i, y = B.i; \
    if (y == 0) STOP(division);     \
    D.i = (expression);             \
    ++pc;                           \
    continue;                       \
  }
#define LOAD(name, Type, field, expression)                                         \
  case Op::name: {                                                                  \
    const Memory& m = memory[static_cast<size_t>(pc->b)];                           \
    const int64_t at = A.i * static_cast<int64_t>(sizeof(Type));                    \
    if (at < 0 || at + static_cast<int64_t>(sizeof(Type)) > m.bytes) STOP(outside); \
    if (m.written && !all_written(m, at, sizeof(Type))) STOP(unwritten);            \
    const Type x = read<Type>(m.data + at);                                         \
    D.field = (expression);                                                         \
    ++pc;                                                                           \
    continue;                                                                       \
  }
#define STORE(name, Type, expression)                                               \
  case Op::name: {                                                                  \
    const Memory& m = memory[static_cast<size_t>(pc->b)];                           \
    const int64_t at = A.i * static_cast<int64_t>(sizeof(Type));                    \
    if (at < 0 || at + static_cast<int64_t>(sizeof(Type)) > m.bytes) STOP(outside); \
    if (m.written) std::memset(m.written + at, 0xff, sizeof(Type));                 \
    const Type x = (expression);                                                    \
    std::memcpy(m.data + at, &x, sizeof(Type));                                     \
    ++pc;                                                                           \
    continue;                                                                       \
  }
  while (true) {
    switch (pc->op) {
      UNARY(mov, i, i, x)
      case Op::lea: {
        const Lea& lea = code.leas[static_cast<size_t>(pc->b)];
        int64_t sum = lea.constant;
        for (int i = 0; i < lea.terms; ++i) sum += r[lea.reg[i]].i * lea.coefficient[i];
        D.i = sum;
        ++pc;
        continue;
      }
      case Op::select:
        D = A.i ? B : C;
        ++pc;
        continue;
        BINARY(add_i, i, i, add_wrapping(x, y))
        BINARY(sub_i, i, i, static_cast<int64_t>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y)))
        BINARY(mul_i, i, i, mul_wrapping(x, y))
        DIVISION(floor_div_i, y == -1 ? mul_wrapping(x, -1) : floor_div(x, y))
        DIVISION(floor_mod_i, y == -1 ? 0 : floor_mod(x, y))
        DIVISION(trunc_div_i, y == -1 ? mul_wrapping(x, -1) : x / y)
        DIVISION(trunc_mod_i, y == -1 ? 0 : x % y)
        DIVISION(div_u, static_cast<int64_t>(static_cast<uint64_t>(x) / static_cast<uint64_t>(y)))
        DIVISION(mod_u, static_cast<int64_t>(static_cast<uint64_t>(x) % static_cast<uint64_t>(y)))
        BINARY(min_i, i, i, x < y ? x : y)
        BINARY(max_i, i, i, x > y ? x : y)
        BINARY(min_u, i, i, static_cast<uint64_t>(x) < static_cast<uint64_t>(y) ? x : y)
        BINARY(max_u, i, i, static_cast<uint64_t>(x) > static_cast<uint64_t>(y) ? x : y)
        BINARY(and_i, i, i, x & y)
        BINARY(or_i, i, i, x | y)
        BINARY(xor_i, i, i, x ^ y)
        BINARY(shift_left_i, i, i, y < 0 || y > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) << y))
        BINARY(shift_right_i, i, i, x >> (y < 0 || y > 63 ? 63 : y))
        BINARY(shift_right_u, i, i, y < 0 || y > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(x) >> y))
        BINARY(eq_i, i, i, x == y)
        BINARY(ne_i, i, i, x != y)
        BINARY(lt_i, i, i, x < y)
        BINARY(le_i, i, i, x <= y)
        BINARY(lt_u, i, i, static_cast<uint64_t>(x) < static_cast<uint64_t>(y))
        BINARY(le_u, i, i, static_cast<uint64_t>(x) <= static_cast<uint64_t>(y))
        UNARY(wrap, i, i, narrow(x, pc->x, pc->c != 0))
        UNARY(popcount_i, i, i, std::popcount(static_cast<uint64_t>(x)))
        UNARY(clz_i, i, i, std::countl_zero(static_cast<uint64_t>(narrow(x, pc->x, false))) - (64 - pc->x))
        BINARY(dp4a_s, i, i, dot4(x, y, true))
        BINARY(dp4a_u, i, i, dot4(x, y, false))

        BINARY(add_f, f, f, x + y)
        BINARY(sub_f, f, f, x - y)
        BINARY(mul_f, f, f, x * y)
        BINARY(div_f, f, f, x / y)
        BINARY(min_f, f, f, min_of(x, y))
        BINARY(max_f, f, f, max_of(x, y))
        BINARY(eq_f, f, i, x == y)
        BINARY(ne_f, f, i, x != y)
        BINARY(lt_f, f, i, x < y)
        BINARY(le_f, f, i, x <= y)
      case Op::fma_f:
        D.f = std::fma(A.f, B.f, C.f);
        ++pc;
        continue;
        BINARY(call_f, f, f, call_float(static_cast<MathFn>(pc->x), x, y))
        BINARY(add_d, d, d, x + y)
        BINARY(sub_d, d, d, x - y)
        BINARY(mul_d, d, d, x * y)
        BINARY(div_d, d, d, x / y)
        BINARY(min_d, d, d, min_of(x, y))
        BINARY(max_d, d, d, max_of(x, y))
        BINARY(eq_d, d, i, x == y)
        BINARY(ne_d, d, i, x != y)
        BINARY(lt_d, d, i, x < y)
        BINARY(le_d, d, i, x <= y)
      case Op::fma_d:
        D.d = std::fma(A.d, B.d, C.d);
        ++pc;
        continue;
        BINARY(call_d, d, d, call_double(static_cast<MathFn>(pc->x), x, y))

        UNARY(round_f, f, f, round_to_type(type_of_key(pc->x).code, type_of_key(pc->x).bits, x))
        UNARY(round_d, d, f, round_to_type(type_of_key(pc->x).code, type_of_key(pc->x).bits, x))
        UNARY(i_to_f, i, f, static_cast<float>(x))
        UNARY(i_to_d, i, d, static_cast<double>(x))
        UNARY(u_to_f, i, f, static_cast<float>(static_cast<uint64_t>(x)))
        UNARY(u_to_d, i, d, static_cast<double>(static_cast<uint64_t>(x)))
        UNARY(f_to_d, f, d, static_cast<double>(x))
        UNARY(d_to_i, d, i, to_int64(x))
        UNARY(d_to_u, d, i, static_cast<int64_t>(to_uint64(x)))
      case Op::reinterpret:
        D = of_bits(bits_of(A, type_of_key(static_cast<uint16_t>(pc->c))), type_of_key(pc->x));
        ++pc;
        continue;

        LOAD(load_i8, int8_t, i, x)
        LOAD(load_u8, uint8_t, i, x)
        LOAD(load_i16, int16_t, i, x)
        LOAD(load_u16, uint16_t, i, x)
        LOAD(load_i32, int32_t, i, x)
        LOAD(load_u32, uint32_t, i, x)
        LOAD(load_64, int64_t, i, x)
        LOAD(load_f32, float, f, x)
        LOAD(load_f16, uint16_t, f, float16_value(x))
        LOAD(load_bf16, uint16_t, f, bfloat16_value(x))
        LOAD(load_small, uint8_t, f, small_values(type_of_key(pc->x).code)[x])
        STORE(store_8, uint8_t, static_cast<uint8_t>(D.i))
        STORE(store_16, uint16_t, static_cast<uint16_t>(D.i))
        STORE(store_32, uint32_t, read<uint32_t>(reinterpret_cast<const std::byte*>(&D)))
        STORE(store_64, int64_t, D.i)
        STORE(store_f16, uint16_t, float16_bits(D.f))
        STORE(store_bf16, uint16_t, bfloat16_bits(D.f))
        STORE(store_small, uint8_t, static_cast<uint8_t>(small_bits(type_of_key(pc->x).code, D.f)))
      case Op::load_packed:
      case Op::store_packed: {
        const Memory& m = memory[static_cast<size_t>(pc->b)];
        const DType t = type_of_key(pc->x);
        const int64_t bit = A.i * t.bits, at = bit >> 3;
        const int shift = static_cast<int>(bit & 7);
        if (A.i < 0 || at >= m.bytes) STOP(outside);
        const unsigned mask = (1u << t.bits) - 1, byte = read<uint8_t>(m.data + at);
        if (pc->op == Op::load_packed) {
          if (m.written && !all_written(m, at, 1)) STOP(unwritten);
          D = of_bits((byte >> shift) & mask, t);
        } else {
          if (m.written) m.written[at] = 0xff;
          const unsigned value = (static_cast<unsigned>(bits_of(D, t)) & mask) << shift;
          m.data[at] = static_cast<std::byte>((byte & ~(mask << shift)) | value);
        }
        ++pc;
        continue;
      }
      case Op::allocate:
        scratch.allocate(memory[static_cast<size_t>(pc->b)], static_cast<size_t>(pc->b), type_of_key(pc->x), A.i);
        ++pc;
        continue;

      case Op::jump:
        pc = base + pc->d;
        continue;
      case Op::jump_zero:
        pc = A.i ? pc + 1 : base + pc->d;
        continue;
      case Op::jump_nonzero:
        pc = A.i ? base + pc->d : pc + 1;
        continue;
      case Op::jump_ne:
        pc = A.i != B.i ? base + pc->d : pc + 1;
        continue;
      case Op::loop_enter:
        pc = A.i < B.i ? pc + 1 : base + pc->d;
        continue;
      case Op::loop_next: {
        if (--steps_left < 0) STOP(steps);
        const int64_t next = A.i += C.i;
        pc = next < B.i ? base + pc->d : pc + 1;
        continue;
      }
      case Op::shuffle: {
        auto& order = scratch.permutations[static_cast<size_t>(pc->b)];
        order.resize(static_cast<size_t>(std::max<int64_t>(A.i, 0)));
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
        Rng::keyed(code.options.seed, pc->b, scratch.shuffles++).shuffle(std::span<int64_t>(order));
        ++pc;
        continue;
      }
      case Op::permute:
        D.i = scratch.permutations[static_cast<size_t>(pc->b)][static_cast<size_t>(A.i)];
        ++pc;
        continue;
      case Op::halt:
        steps = code.options.step_limit - steps_left;
        return {};

      case Op::check_range:
        if (A.i < B.i || A.i >= C.i) STOP(check);
        ++pc;
        continue;
      case Op::check_equal:
        if (A.i != B.i) STOP(check);
        ++pc;
        continue;
      case Op::check_true:
        if (!A.i) STOP(check);
        ++pc;
        continue;
      case Op::init_mark:
        scratch.marks[static_cast<size_t>(pc->b)][static_cast<size_t>(A.i)] = 1;
        ++pc;
        continue;
      case Op::init_check:
        if (!scratch.marks[static_cast<size_t>(pc->b)][static_cast<size_t>(A.i)]) STOP(check);
        ++pc;
        continue;
      case Op::demand:
        if (!demand->value(pc->b, A.i, D)) STOP(demand);
        ++pc;
        continue;
    }
    TW_UNREACHABLE("instruction {}", static_cast<int>(pc->op));
  }
stopped:
  return report(code, static_cast<size_t>(pc - base), why, registers, memory);
#undef STOP
#undef D
#undef A
#undef B
#undef C
#undef BINARY
#undef UNARY
#undef DIVISION
#undef LOAD
#undef STORE
}

}  // namespace tilewright::interpreter
