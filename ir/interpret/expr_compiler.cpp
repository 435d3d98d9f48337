#include "ir/interpret/expr_compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ir/build.h"
#include "ir/interpret/small_float.h"
#include "ir/visit.h"

namespace tilewright::interpreter {

namespace {

int64_t clamp(__int128 v) {
  const __int128 limit = Interval::kUnknown;
  return static_cast<int64_t>(std::clamp(v, -limit, limit));
}

/// One open side makes the whole interval unknown: where a bound was cut off, the value may have wrapped past the
/// other.
Interval whole_or_nothing(Interval v) { return v.known() ? v : Interval{}; }

Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval scale(Interval a, int64_t k) {
  const __int128 x = static_cast<__int128>(a.lo) * k, y = static_cast<__int128>(a.hi) * k;
  if (k == 0) return {0, 0};
  return {clamp(std::min(x, y)), clamp(std::max(x, y))};
}

bool fits(Interval v, DType t) {
  const Interval all = interval_of(t);
  return v.known() && (all.known() ? v.inside(all.lo, all.hi) : !t.is_uint() || v.lo >= 0);
}

bool is_u64(DType t) { return t.is_uint() && t.bits == 64; }

/// Whether evaluating it without need could fail: it reads memory or divides.
bool may_fail(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (as<Load>(x)) found = true;
    if (const Call* c = as<Call>(x)) found = found || c->op->effect != OpEffect::pure;
    if (const Binary* b = as<Binary>(x); b && b->dtype.is_integer_like())
      found = found || b->op == BinaryOp::trunc_div || b->op == BinaryOp::trunc_mod || b->op == BinaryOp::floor_div ||
              b->op == BinaryOp::floor_mod;
    return !found;
  });
  return found;
}

}  // namespace

Interval interval_of(DType t) {
  if (t.is_bool()) return {0, 1};
  if (!t.is_integer_like() || t.bits >= 64) return {};
  return t.is_uint() ? Interval{0, (int64_t{1} << t.bits) - 1}
                     : Interval{-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
}

// --- emission --------------------------------------------------------------------------------------------------------

int ExprCompiler::fresh(Interval v) {
  code_.registers.push_back({});
  intervals_.push_back(whole_or_nothing(v));
  return static_cast<int>(code_.registers.size()) - 1;
}

int ExprCompiler::constant(int64_t value) {
  auto [it, inserted] = constants_.emplace(value, 0);
  if (inserted) {
    it->second = fresh({clamp(value), clamp(value)});
    code_.registers.back().i = value;
  }
  return it->second;
}

int ExprCompiler::constant_float(DType t, double value) {
  Reg reg{};
  if (t.bits == 64)
    reg.d = value;
  else
    reg.f = round_to_type(t.code, t.bits, value);
  auto [it, inserted] = float_constants_.emplace(std::pair(t.key(), static_cast<uint64_t>(reg.i)), 0);
  if (inserted) {
    it->second = fresh();
    code_.registers.back() = reg;
  }
  return it->second;
}

size_t ExprCompiler::emit_to(Op op, int d, int a, int b, int c, uint16_t x) {
  code_.code.push_back({op, x, d, a, b, c});
  code_.site_of.push_back(-1);
  return code_.code.size() - 1;
}

int ExprCompiler::emit(Op op, int a, int b, int c, uint16_t x, Interval v) {
  const int d = fresh(v);
  emit_to(op, d, a, b, c, x);
  return d;
}

void ExprCompiler::fails_with(const RefusalCode& refusal, std::string what) {
  if (!context_stored_) code_.contexts.push_back(context_);
  context_stored_ = true;
  code_.site_of.back() = static_cast<int>(code_.sites.size());
  code_.sites.push_back({&refusal, std::move(what), static_cast<int>(code_.contexts.size()) - 1});
}

Context ExprCompiler::enter(std::string name, int reg) {
  Context before = context_;
  context_.values.push_back({std::move(name), reg});
  context_stored_ = false;
  return before;
}

Context ExprCompiler::enter_block(std::string name) {
  Context before = context_;
  context_.block = std::move(name);
  context_stored_ = false;
  return before;
}

void ExprCompiler::not_supported(const std::string& what) const {
  std::string place = context_.block.empty() ? "" : fmt::format(", in block \"{}\"", context_.block);
  throw CompileFailure{Refusal(not_interpretable, fmt::format("the interpreter has no meaning for {}{}", what, place))};
}

// --- integers without wrap ---------------------------------------------------------------------------

Linear ExprCompiler::scaled(Linear v, int64_t factor) const {
  if (factor == 0) return {};
  v.too_large |= __builtin_mul_overflow(v.constant, factor, &v.constant);
  for (auto& [reg, k] : v.terms) v.too_large |= __builtin_mul_overflow(k, factor, &k);
  return v;
}

Linear ExprCompiler::sum(Linear a, const Linear& b) const {
  a.too_large |= b.too_large | __builtin_add_overflow(a.constant, b.constant, &a.constant);
  for (const auto& [reg, k] : b.terms) {
    auto it = std::find_if(a.terms.begin(), a.terms.end(), [r = reg](const auto& term) { return term.first == r; });
    if (it == a.terms.end())
      a.terms.emplace_back(reg, k);
    else
      a.too_large |= __builtin_add_overflow(it->second, k, &it->second);
  }
  std::erase_if(a.terms, [](const auto& term) { return term.second == 0; });
  return a;
}

Interval ExprCompiler::interval(const Linear& v) const {
  if (v.too_large) return {};
  __int128 lo = v.constant, hi = v.constant;
  for (const auto& [reg, k] : v.terms) {
    const Interval part = scale(interval(reg), k);
    if (!part.known()) return {};
    lo += part.lo;
    hi += part.hi;
  }
  return {clamp(lo), clamp(hi)};
}

Linear ExprCompiler::linear(const Expr& e, int lane) {
  // A value that is in a register already is not taken apart again (nor is the work of doing so repeated).
  const bool computed = memo_.contains(std::pair(e->hash, lane));
  if (e->dtype.is_integer_like() && !e->dtype.is_bool() && !computed) {
    if (const IntImm* imm = as<IntImm>(e); imm && !is_u64(e->dtype)) return {imm->value, {}};
    if (const Ramp* r = as<Ramp>(e)) {
      Linear v = sum(linear(r->base), scaled(linear(r->stride), lane));
      if (fits(interval(v), e->dtype.element())) return v;
    }
    if (const Broadcast* b = as<Broadcast>(e)) return linear(b->value, lane % b->value->dtype.lanes);
    const Cast* cast_node = as<Cast>(e);
    if (cast_node && cast_node->value->dtype.is_integer_like()) {
      Linear v = linear(cast_node->value, lane);
      if (fits(interval(v), e->dtype.element())) return v;
    }
    if (const Binary* b = as<Binary>(e)) {
      const bool adds = b->op == BinaryOp::add || b->op == BinaryOp::sub;
      if (adds || b->op == BinaryOp::mul) {
        Linear x = linear(b->a, lane), y = linear(b->b, lane), v;
        if (adds)
          v = sum(x, b->op == BinaryOp::add ? y : scaled(y, -1));
        else if (y.terms.empty())
          v = scaled(x, y.constant);
        else if (x.terms.empty())
          v = scaled(y, x.constant);
        else
          v.terms = {{scalar(e, lane), 1}};
        if (fits(interval(v), e->dtype.element())) return v;
      }
    }
  }
  return linear_of(scalar(e, lane));
}

Linear ExprCompiler::linear_of(int reg) const {
  const Interval v = interval(reg);
  if (v.lo == v.hi && v.known()) return {v.lo, {}};
  return {0, {{reg, 1}}};
}

int ExprCompiler::materialize(const Linear& v) {
  if (v.too_large) not_supported("an address beyond 64 bits");
  if (v.terms.empty()) return constant(v.constant);
  if (v.terms.size() == 1 && v.constant == 0 && v.terms[0].second == 1) return v.terms[0].first;
  const Interval range = interval(v);
  Lea lea;
  lea.constant = v.constant;
  int out = -1;
  for (const auto& [reg, k] : v.terms) {
    if (lea.terms == Lea::kMaxTerms) {  // carry the partial sum on
      code_.leas.push_back(lea);
      out = emit(Op::lea, 0, static_cast<int>(code_.leas.size()) - 1);
      lea = {0, 1, {out}, {1}};
    }
    lea.reg[lea.terms] = reg;
    lea.coefficient[lea.terms++] = k;
  }
  code_.leas.push_back(lea);
  return emit(Op::lea, 0, static_cast<int>(code_.leas.size()) - 1, 0, static_cast<uint16_t>(lea.terms), range);
}

int ExprCompiler::wrap(int reg, DType t, Interval v) {
  if (t.is_bool() || t.bits >= 64 || fits(v, t)) return reg;
  return emit(Op::wrap, reg, 0, t.is_int(), t.bits, interval_of(t));
}

// --- expressions ---------------------------------------------------------------------------

std::vector<int> ExprCompiler::lanes(const Expr& e) {
  std::vector<int> out;
  for (int i = 0; i < e->dtype.lanes; ++i) out.push_back(scalar(e, i));
  return out;
}

int ExprCompiler::scalar(const Expr& e, int lane) {
  if (const VarNode* v = as<VarNode>(e)) {
    auto it = env_.find(v);
    if (it == env_.end()) not_supported(fmt::format("variable {} outside its scope", v->name));
    return it->second.at(static_cast<size_t>(lane));
  }
  const auto key = std::pair(e->hash, lane);
  if (auto it = memo_.find(key); it != memo_.end()) return it->second;
  const int reg = scalar_uncached(e, lane);
  if (!has_effect(e)) memo_.emplace(key, reg);
  return reg;
}

int ExprCompiler::scalar_uncached(const Expr& e, int lane) {
  switch (e->kind) {
    case ExprKind::kVarNode:
      break;
    case ExprKind::kIntImm:
      return constant(as<IntImm>(e)->value);
    case ExprKind::kFloatImm:
      return constant_float(e->dtype, as<FloatImm>(e)->value);
    case ExprKind::kStringImm:
      not_supported("a string as a value");
    case ExprKind::kCast: {
      const Cast* node = as<Cast>(e);
      return convert(scalar(node->value, lane), node->value->dtype.element(), e->dtype.element());
    }
    case ExprKind::kBinary:
      return binary(*as<Binary>(e), lane);
    case ExprKind::kNot:
      return emit(Op::eq_i, scalar(as<Not>(e)->a, lane), constant(0), 0, 0, {0, 1});
    case ExprKind::kSelect: {
      const Select* s = as<Select>(e);
      return choose(s->condition, s->then_value, s->else_value, lane,
                    may_fail(s->then_value) || may_fail(s->else_value));
    }
    case ExprKind::kLoad:
      return load_lane(*as<Load>(e), lane);
    case ExprKind::kRamp: {
      const Ramp* r = as<Ramp>(e);
      const Linear v = sum(linear(r->base), scaled(linear(r->stride), lane));
      if (fits(interval(v), e->dtype.element())) return materialize(v);
      const int step = wrap(emit(Op::mul_i, scalar(r->stride), constant(lane)), e->dtype.element(), {});
      return wrap(emit(Op::add_i, scalar(r->base), step), e->dtype.element(), {});
    }
    case ExprKind::kBroadcast: {
      const Broadcast* b = as<Broadcast>(e);
      return scalar(b->value, lane % b->value->dtype.lanes);
    }
    case ExprKind::kShuffle: {
      const Shuffle* s = as<Shuffle>(e);
      std::optional<int64_t> pick = const_int(s->indices.at(static_cast<size_t>(lane)));
      if (!pick) not_supported("a shuffle by a lane that is not constant");
      for (const Expr& v : s->vectors) {
        if (*pick < v->dtype.lanes) return scalar(v, static_cast<int>(*pick));
        *pick -= v->dtype.lanes;
      }
      not_supported("a shuffle of a lane that its vectors do not have");
    }
    case ExprKind::kLet: {
      const Let* l = as<Let>(e);
      bind(l->var.get(), lanes(l->value));
      return scalar(l->body, lane);
    }
    case ExprKind::kCall:
      return call(*as<Call>(e), lane);
  }
  TW_UNREACHABLE();
}

int ExprCompiler::binary(const Binary& e, int lane) {
  const DType t = e.a->dtype.element();
  const bool logical = e.op == BinaryOp::logical_and || e.op == BinaryOp::logical_or;
  if (logical && may_fail(e.b)) {
    const Expr yes = bool_imm(true), no = bool_imm(false);
    return e.op == BinaryOp::logical_and ? choose(e.a, e.b, no, lane, true) : choose(e.a, yes, e.b, lane, true);
  }
  const bool sums = e.op == BinaryOp::add || e.op == BinaryOp::sub || e.op == BinaryOp::mul;
  if (sums && t.is_integer_like() && !t.is_bool()) {
    Linear x = linear(e.a, lane), y = linear(e.b, lane), v;
    const bool product = e.op == BinaryOp::mul;
    if (!product || x.terms.empty() || y.terms.empty()) {
      v = !product          ? sum(x, e.op == BinaryOp::add ? y : scaled(y, -1))
          : y.terms.empty() ? scaled(x, y.constant)
                            : scaled(y, x.constant);
      if (fits(interval(v), t)) return materialize(v);
    }
    return integer_binary(e.op, t, materialize(x), materialize(y));
  }
  const int a = scalar(e.a, lane), b = scalar(e.b, lane);
  return t.is_float() ? float_binary(e.op, t, a, b) : integer_binary(e.op, t, a, b);
}

int ExprCompiler::integer_binary(BinaryOp op, DType t, int a, int b) {
  const Interval x = interval(a), y = interval(b);
  const bool u64 = is_u64(t) && !(fits(x, t) && fits(y, t));
  auto divide = [&](Op code, Interval range) {
    const int d = emit(code, a, b, 0, 0, range);
    if (y.lo <= 0 && y.hi >= 0) fails_with(division_by_zero, "a division");
    return d;
  };
  const bool positive = y.lo > 0 && y.known() && x.known();
  switch (op) {
    case BinaryOp::add: {
      const Interval v{clamp(static_cast<__int128>(x.lo) + y.lo), clamp(static_cast<__int128>(x.hi) + y.hi)};
      return wrap(emit(Op::add_i, a, b, 0, 0, x.known() && y.known() ? v : Interval{}), t,
                  x.known() && y.known() ? v : Interval{});
    }
    case BinaryOp::sub: {
      const Interval v{clamp(static_cast<__int128>(x.lo) - y.hi), clamp(static_cast<__int128>(x.hi) - y.lo)};
      return wrap(emit(Op::sub_i, a, b, 0, 0, x.known() && y.known() ? v : Interval{}), t,
                  x.known() && y.known() ? v : Interval{});
    }
    case BinaryOp::mul: {
      const Interval v = x.known() && y.known() ? hull(scale(x, y.lo), scale(x, y.hi)) : Interval{};
      return wrap(emit(Op::mul_i, a, b, 0, 0, v), t, v);
    }
    case BinaryOp::floor_div: {
      if (u64) return divide(Op::div_u, {});
      if (!positive) return wrap(divide(Op::floor_div_i, {}), t, {});
      const Interval by_least{floor_div(x.lo, y.lo), floor_div(x.hi, y.lo)},
          by_most{floor_div(x.lo, y.hi), floor_div(x.hi, y.hi)};
      const int64_t divisor = y.lo;
      if (y.lo == y.hi && std::has_single_bit(static_cast<uint64_t>(divisor)))
        return emit(Op::shift_right_i, a, constant(std::countr_zero(static_cast<uint64_t>(divisor))), 0, 0, by_least);
      return divide(Op::floor_div_i, hull(by_least, by_most));
    }
    case BinaryOp::floor_mod: {
      if (u64) return divide(Op::mod_u, {});
      if (!positive) return divide(Op::floor_mod_i, interval_of(t));
      if (x.inside(0, y.lo - 1)) return a;
      if (y.lo == y.hi && std::has_single_bit(static_cast<uint64_t>(y.lo)))
        return emit(Op::and_i, a, constant(y.lo - 1), 0, 0, {0, y.hi - 1});
      return divide(Op::floor_mod_i, {0, y.hi - 1});
    }
    case BinaryOp::trunc_div:
      return u64 ? divide(Op::div_u, {}) : wrap(divide(Op::trunc_div_i, {}), t, {});
    case BinaryOp::trunc_mod:
      return divide(u64 ? Op::mod_u : Op::trunc_mod_i, interval_of(t));
    // Of unsigned 64-bit values the intervals speak of the bit patterns: the order is another, the result one of the
    // two.
    case BinaryOp::min:
      if (u64) return emit(Op::min_u, a, b, 0, 0, hull(x, y));
      return emit(Op::min_i, a, b, 0, 0, {std::min(x.lo, y.lo), std::min(x.hi, y.hi)});
    case BinaryOp::max:
      if (u64) return emit(Op::max_u, a, b, 0, 0, hull(x, y));
      return emit(Op::max_i, a, b, 0, 0, {std::max(x.lo, y.lo), std::max(x.hi, y.hi)});
    case BinaryOp::eq:
      return emit(Op::eq_i, a, b, 0, 0, {0, 1});
    case BinaryOp::ne:
      return emit(Op::ne_i, a, b, 0, 0, {0, 1});
    case BinaryOp::lt:
      return emit(u64 ? Op::lt_u : Op::lt_i, a, b, 0, 0, {0, 1});
    case BinaryOp::le:
      return emit(u64 ? Op::le_u : Op::le_i, a, b, 0, 0, {0, 1});
    case BinaryOp::gt:
      return emit(u64 ? Op::lt_u : Op::lt_i, b, a, 0, 0, {0, 1});
    case BinaryOp::ge:
      return emit(u64 ? Op::le_u : Op::le_i, b, a, 0, 0, {0, 1});
    case BinaryOp::logical_and:
      return emit(Op::and_i, a, b, 0, 0, {0, 1});
    case BinaryOp::logical_or:
      return emit(Op::or_i, a, b, 0, 0, {0, 1});
    case BinaryOp::div:
      break;
  }
  not_supported("/ on integers");
}

int ExprCompiler::float_binary(BinaryOp op, DType t, int a, int b) {
  const bool wide = t.bits == 64;
  auto arithmetic = [&](Op narrow_op, Op wide_op) { return round_if_small(emit(wide ? wide_op : narrow_op, a, b), t); };
  auto compare = [&](Op narrow_op, Op wide_op, int x, int y) {
    return emit(wide ? wide_op : narrow_op, x, y, 0, 0, {0, 1});
  };
  switch (op) {
    case BinaryOp::add:
      return arithmetic(Op::add_f, Op::add_d);
    case BinaryOp::sub:
      return arithmetic(Op::sub_f, Op::sub_d);
    case BinaryOp::mul:
      return arithmetic(Op::mul_f, Op::mul_d);
    case BinaryOp::div:
      return arithmetic(Op::div_f, Op::div_d);
    case BinaryOp::min:
      return emit(wide ? Op::min_d : Op::min_f, a, b);
    case BinaryOp::max:
      return emit(wide ? Op::max_d : Op::max_f, a, b);
    case BinaryOp::eq:
      return compare(Op::eq_f, Op::eq_d, a, b);
    case BinaryOp::ne:
      return compare(Op::ne_f, Op::ne_d, a, b);
    case BinaryOp::lt:
      return compare(Op::lt_f, Op::lt_d, a, b);
    case BinaryOp::le:
      return compare(Op::le_f, Op::le_d, a, b);
    case BinaryOp::gt:
      return compare(Op::lt_f, Op::lt_d, b, a);
    case BinaryOp::ge:
      return compare(Op::le_f, Op::le_d, b, a);
    default:
      not_supported(fmt::format("an integer operation on {}", t.str()));
  }
}

int ExprCompiler::round_if_small(int reg, DType t) {
  if (t.bits >= 32) return reg;
  return emit(Op::round_f, reg, 0, 0, type_key(t));
}

int ExprCompiler::convert(int reg, DType from, DType to) {
  if (from == to) return reg;
  if (from.is_handle() || to.is_handle()) not_supported("a conversion of pointers");
  if (from.is_float() && to.is_float()) {
    if (to.bits == 64) return emit(Op::f_to_d, reg);
    if (from.bits == 64) return emit(Op::round_d, reg, 0, 0, type_key(to));
    return round_if_small(reg, to);  // to float32: already exact
  }
  if (from.is_float()) {
    if (to.is_bool()) return emit(from.bits == 64 ? Op::ne_d : Op::ne_f, reg, constant_float(from, 0), 0, 0, {0, 1});
    const int wide = from.bits == 64 ? reg : emit(Op::f_to_d, reg);
    return wrap(emit(is_u64(to) ? Op::d_to_u : Op::d_to_i, wide), to, {});
  }
  if (to.is_float()) {
    const bool u64 = is_u64(from) && !fits(interval(reg), from);
    if (to.bits == 64) return emit(u64 ? Op::u_to_d : Op::i_to_d, reg);
    if (to.bits == 32) return emit(u64 ? Op::u_to_f : Op::i_to_f, reg);
    // Narrower types have a coarser grid than double: one rounding for every integer below 2^53.
    return emit(Op::round_d, emit(u64 ? Op::u_to_d : Op::i_to_d, reg), 0, 0, type_key(to));
  }
  if (to.is_bool()) return from.is_bool() ? reg : emit(Op::ne_i, reg, constant(0), 0, 0, {0, 1});
  return wrap(reg, to, interval(reg));
}

int ExprCompiler::choose(const Expr& condition, const Expr& then_value, const Expr& else_value, int lane, bool lazy) {
  const int c = scalar(condition, condition->dtype.is_vector() ? lane : 0);
  if (interval(c).lo == interval(c).hi) return scalar(interval(c).lo ? then_value : else_value, lane);
  if (!lazy) {
    const int a = scalar(then_value, lane), b = scalar(else_value, lane);
    return emit(Op::select, c, a, b, 0, hull(interval(a), interval(b)));
  }
  // What an arm computes is not there for the other arm or for later code.
  const int out = fresh();
  const auto before = memo_;
  const size_t to_else = emit_to(Op::jump_zero, 0, c);
  const int a = scalar(then_value, lane);
  emit_to(Op::mov, out, a);
  const size_t to_end = emit_to(Op::jump, 0);
  patch(to_else);
  memo_ = before;
  const int b = scalar(else_value, lane);
  emit_to(Op::mov, out, b);
  patch(to_end);
  memo_ = before;
  intervals_[static_cast<size_t>(out)] = whole_or_nothing(hull(interval(a), interval(b)));
  return out;
}

// --- calls ---------------------------------------------------------------------------

int ExprCompiler::call(const Call& e, int lane) {
  const std::string& name = e.op->name;
  switch (e.op->group) {
    case OpGroup::math:
      return math_call(e, lane);
    case OpGroup::integer:
      return integer_call(e, lane);
    case OpGroup::control: {
      if (name == "if_then_else") return choose(e.args[0], e.args[1], e.args[2], lane, true);
      if (name == "likely" || name == "ignore_loop_partition") return scalar(e.args[0], lane);
      if (name == "undef") return e.dtype.is_float() ? constant_float(e.dtype.element(), 0) : constant(0);
      if (name == "assume") {
        emit_to(Op::check_true, 0, scalar(e.args[0]));
        fails_with(assertion_failed, "an assumption");
        return constant(0);
      }
      break;
    }
    case OpGroup::extern_call:
      if (name == "call_llvm_pure_intrin") return llvm_call(e, lane);
      break;
    default:
      break;
  }
  not_supported(fmt::format("operation {}", name));
}

namespace {

struct FnName {
  const char* name;
  MathFn fn;
};
constexpr FnName kFunctions[] = {
    {"abs", MathFn::abs},     {"fabs", MathFn::abs},          {"sqrt", MathFn::sqrt},
    {"rsqrt", MathFn::rsqrt}, {"exp", MathFn::exp},           {"exp2", MathFn::exp2},
    {"exp10", MathFn::exp10}, {"log", MathFn::log},           {"log2", MathFn::log2},
    {"log10", MathFn::log10}, {"log1p", MathFn::log1p},       {"sigmoid", MathFn::sigmoid},
    {"tanh", MathFn::tanh},   {"erf", MathFn::erf},           {"sin", MathFn::sin},
    {"cos", MathFn::cos},     {"tan", MathFn::tan},           {"sinh", MathFn::sinh},
    {"cosh", MathFn::cosh},   {"asin", MathFn::asin},         {"acos", MathFn::acos},
    {"atan", MathFn::atan},   {"asinh", MathFn::asinh},       {"acosh", MathFn::acosh},
    {"atanh", MathFn::atanh}, {"floor", MathFn::floor},       {"ceil", MathFn::ceil},
    {"trunc", MathFn::trunc}, {"round", MathFn::nearbyint},   {"nearbyint", MathFn::nearbyint},
    {"isnan", MathFn::isnan}, {"isinf", MathFn::isinf},       {"isfinite", MathFn::isfinite},
    {"pow", MathFn::pow},     {"atan2", MathFn::atan2},       {"fmod", MathFn::fmod},
    {"hypot", MathFn::hypot}, {"copysign", MathFn::copysign}, {"nextafter", MathFn::nextafter},
    {"ldexp", MathFn::ldexp},
};

}  // namespace

int ExprCompiler::math_call(const Call& e, int lane) {
  const std::string& name = e.op->name;
  const DType t = e.args[0]->dtype.element();
  if (t.is_integer_like()) {
    const int a = scalar(e.args[0], lane);
    if (name == "popcount") {
      const int masked = t.is_int() && t.bits < 64 ? emit(Op::wrap, a, 0, 0, t.bits) : a;
      return emit(Op::popcount_i, masked, 0, 0, 0, {0, t.bits});
    }
    if (name == "clz") return emit(Op::clz_i, a, 0, 0, t.bits, {0, t.bits});
    if (name == "abs") return wrap(emit(Op::max_i, a, emit(Op::sub_i, constant(0), a)), t, {});
    if (name == "isnan" || name == "isinf") return constant(0);
    if (name == "isfinite") return constant(1);
    const bool identity =
        name == "floor" || name == "ceil" || name == "trunc" || name == "round" || name == "nearbyint";
    if (identity) return a;
    not_supported(fmt::format("{} of {}", name, t.str()));
  }
  const bool wide = t.bits == 64;
  if (name == "fma") {
    const int a = scalar(e.args[0], lane), b = scalar(e.args[1], lane), c = scalar(e.args[2], lane);
    return round_if_small(emit(wide ? Op::fma_d : Op::fma_f, a, b, c), t);
  }
  const auto* row =
      std::find_if(std::begin(kFunctions), std::end(kFunctions), [&](const FnName& f) { return name == f.name; });
  if (row == std::end(kFunctions)) not_supported(fmt::format("{} of {}", name, t.str()));
  const int a = scalar(e.args[0], lane);
  int b = 0;
  if (e.args.size() > 1)
    b = convert(scalar(e.args[1], lane), e.args[1]->dtype.element(), t.bits == 64 ? kFloat64 : kFloat32);
  const int result = emit(wide ? Op::call_d : Op::call_f, a, b, 0, static_cast<uint16_t>(row->fn));
  const bool predicate = row->fn == MathFn::isnan || row->fn == MathFn::isinf || row->fn == MathFn::isfinite;
  if (predicate)
    return emit(wide ? Op::ne_d : Op::ne_f, result, constant_float(wide ? kFloat64 : kFloat32, 0), 0, 0, {0, 1});
  return round_if_small(result, t);
}

int ExprCompiler::integer_call(const Call& e, int lane) {
  const std::string& name = e.op->name;
  const DType t = e.dtype.element();
  if (name == "dp4a") {
    const DType va = e.args[0]->dtype, vb = e.args[1]->dtype;
    if (va.lanes == 4 * e.dtype.lanes) {
      int total = scalar(e.args[2], lane);
      for (int i = 0; i < 4; ++i) {
        const int product = emit(Op::mul_i, scalar(e.args[0], 4 * lane + i), scalar(e.args[1], 4 * lane + i));
        total = emit(Op::add_i, total, product);
      }
      return wrap(total, t, {});
    }
    if (va.bits != 32 || va.code != vb.code) not_supported("dp4a of these types");
    const int dot = emit(va.is_int() ? Op::dp4a_s : Op::dp4a_u, scalar(e.args[0], lane), scalar(e.args[1], lane));
    return wrap(emit(Op::add_i, dot, scalar(e.args[2], lane)), t, {});
  }
  if (name == "reinterpret") return reinterpret(e, lane);
  const int a = scalar(e.args[0], lane);
  if (name == "bitwise_not") {
    if (t.is_bool()) return emit(Op::eq_i, a, constant(0), 0, 0, {0, 1});
    return wrap(emit(Op::xor_i, a, constant(-1)), t, {});
  }
  if (name == "q_multiply_shift") {
    const std::optional<int64_t> q = const_int(e.args[2]), s = const_int(e.args[3]);
    if (!q || !s) not_supported("q_multiply_shift by amounts that are not constant");
    const int left = constant(std::max<int64_t>(*s, 0)), right = constant(*q + std::max<int64_t>(-*s, 0));
    return wrap(fixed_point(a, scalar(e.args[1], lane), left, right), t, {});
  }
  if (name == "q_multiply_shift_per_axis") {
    const int left = scalar(e.args[2], lane), right = emit(Op::add_i, scalar(e.args[3], lane), scalar(e.args[4], lane));
    return wrap(fixed_point(a, scalar(e.args[1], lane), left, right), t, {});
  }
  const int b = scalar(e.args[1], lane);
  const Interval x = interval(a), y = interval(b);
  if (name == "shift_left") return wrap(emit(Op::shift_left_i, a, b), t, {});
  if (name == "shift_right") {
    if (is_u64(t)) return emit(Op::shift_right_u, a, b);
    return emit(Op::shift_right_i, a, b, 0, 0,
                x.known() ? Interval{std::min<int64_t>(x.lo, 0), std::max<int64_t>(x.hi, 0)} : Interval{});
  }
  // and, or, xor of two sign- or zero-extended values are again extended values of the type.
  if (name == "bitwise_and")
    return emit(Op::and_i, a, b, 0, 0, x.lo >= 0 && y.lo >= 0 ? Interval{0, std::min(x.hi, y.hi)} : interval_of(t));
  if (name == "bitwise_or") return emit(Op::or_i, a, b, 0, 0, interval_of(t));
  if (name == "bitwise_xor") return emit(Op::xor_i, a, b, 0, 0, interval_of(t));
  not_supported(fmt::format("operation {}", name));
}

/// ((x << left) · y + half) >> right, half = 2^(right - 1): fixed-point product rounded half up, in 64 bits.
int ExprCompiler::fixed_point(int x, int y, int left, int right) {
  const int product = emit(Op::mul_i, emit(Op::shift_left_i, x, left), y);
  const int half = emit(Op::shift_left_i, constant(1), emit(Op::sub_i, right, constant(1)));
  return emit(Op::shift_right_i, emit(Op::add_i, product, half), right);
}

}  // namespace tilewright::interpreter
