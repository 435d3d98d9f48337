#include "ir/build.h"

#include <cmath>
#include <limits>

namespace tilewright {

namespace {

// Wraps a folded value to the width of its type, as the running program would.
int64_t wrap(int64_t v, DType t) {
  if (t.bits >= 64) return v;
  if (t.is_bool()) return v != 0;
  uint64_t mask = (uint64_t{1} << t.bits) - 1;
  uint64_t low = static_cast<uint64_t>(v) & mask;
  if (t.is_int() && (low >> (t.bits - 1))) low |= ~mask;
  return static_cast<int64_t>(low);
}

std::optional<double> const_float(const Expr& e) {
  if (const FloatImm* f = as<FloatImm>(e)) return f->value;
  return std::nullopt;
}

bool is_integer_literal(const Expr& e) { return e->kind == ExprKind::kIntImm && !e->dtype.is_vector(); }

/// A literal takes the other operand's type; a scalar is broadcast to the other's lanes.
void unify(Expr& a, Expr& b) {
  if (a->dtype == b->dtype) return;
  if (a->dtype.lanes != b->dtype.lanes) {
    if (a->dtype.lanes == 1)
      a = broadcast(a, b->dtype.lanes);
    else if (b->dtype.lanes == 1)
      b = broadcast(b, a->dtype.lanes);
  }
  if (a->dtype == b->dtype) return;
  if (is_integer_literal(b))
    b = cast(a->dtype, b);
  else if (is_integer_literal(a))
    a = cast(b->dtype, a);
}

Expr fold_identities(BinaryOp op, const Expr& a, const Expr& b) {
  std::optional<int64_t> ca = const_int(a), cb = const_int(b);
  switch (op) {
    case BinaryOp::add:
      if (cb == 0) return a;
      if (ca == 0) return b;
      break;
    case BinaryOp::sub:
      if (cb == 0) return a;
      break;
    case BinaryOp::mul:
      if (cb == 1) return a;
      if (ca == 1) return b;
      if (cb == 0) return b;
      if (ca == 0) return a;
      break;
    case BinaryOp::floor_div:
    case BinaryOp::trunc_div:
      if (cb == 1) return a;
      if (ca == 0 && cb.value_or(1) != 0) return a;
      break;
    case BinaryOp::floor_mod:
    case BinaryOp::trunc_mod:
      if (cb == 1) return zero_of(a->dtype);
      if (ca == 0 && cb.value_or(1) != 0) return a;
      break;
    case BinaryOp::min:
    case BinaryOp::max:
      if (a->hash == b->hash && a->dtype.is_integer_like()) return a;
      break;
    case BinaryOp::logical_and:
      if (ca) return *ca ? b : a;
      if (cb) return *cb ? a : b;
      break;
    case BinaryOp::logical_or:
      if (ca) return *ca ? a : b;
      if (cb) return *cb ? b : a;
      break;
    default:
      break;
  }
  return nullptr;
}

}  // namespace

int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}
int64_t floor_mod(int64_t a, int64_t b) {
  int64_t r = a % b;
  return r != 0 && ((r < 0) != (b < 0)) ? r + b : r;
}

std::optional<int64_t> fold_int(BinaryOp op, int64_t a, int64_t b) {
  int64_t r = 0;
  bool divides =
      op == BinaryOp::trunc_div || op == BinaryOp::trunc_mod || op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  if (divides && (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min()))) return std::nullopt;
  switch (op) {
    case BinaryOp::add:
      return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::sub:
      return __builtin_sub_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::mul:
      return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional(r);
    case BinaryOp::div:
      return std::nullopt;
    case BinaryOp::trunc_div:
      return a / b;
    case BinaryOp::trunc_mod:
      return a % b;
    case BinaryOp::floor_div:
      return floor_div(a, b);
    case BinaryOp::floor_mod:
      return floor_mod(a, b);
    case BinaryOp::min:
      return std::min(a, b);
    case BinaryOp::max:
      return std::max(a, b);
    case BinaryOp::eq:
      return a == b;
    case BinaryOp::ne:
      return a != b;
    case BinaryOp::lt:
      return a < b;
    case BinaryOp::le:
      return a <= b;
    case BinaryOp::gt:
      return a > b;
    case BinaryOp::ge:
      return a >= b;
    case BinaryOp::logical_and:
      return a && b;
    case BinaryOp::logical_or:
      return a || b;
  }
  return std::nullopt;
}

bool is_comparison(BinaryOp op) { return op >= BinaryOp::eq && op <= BinaryOp::ge; }

Expr int_imm(int64_t value, DType dtype) {
  if (dtype.is_float()) return float_imm(static_cast<double>(value), dtype);
  if (dtype.is_vector()) return broadcast(int_imm(value, dtype.element()), dtype.lanes);
  return make<IntImm>(dtype, wrap(value, dtype));
}
Expr float_imm(double value, DType dtype) {
  if (dtype.is_vector()) return broadcast(float_imm(value, dtype.element()), dtype.lanes);
  return make<FloatImm>(dtype, value);
}
Expr bool_imm(bool value) { return make<IntImm>(kBool, static_cast<int64_t>(value)); }
Expr const_of(double value, DType dtype) {
  return dtype.is_float() ? float_imm(value, dtype) : int_imm(static_cast<int64_t>(value), dtype);
}
Expr zero_of(DType dtype) { return const_of(0, dtype); }

Expr binary(BinaryOp op, Expr a, Expr b) {
  TW_CHECK(a && b, "binary operation on a null expression");
  unify(a, b);
  TW_CHECK(a->dtype == b->dtype, "operands have types {} and {}", a->dtype.str(), b->dtype.str());
  bool logical = op == BinaryOp::logical_and || op == BinaryOp::logical_or;
  DType dtype = is_comparison(op) || logical ? kBool.with_lanes(a->dtype.lanes) : a->dtype;
  std::optional<int64_t> ca = const_int(a), cb = const_int(b);
  // Unsigned 64-bit constants are bit patterns: signed folding would be wrong for them.
  if (ca && cb && !(a->dtype.is_uint() && a->dtype.bits == 64))
    if (std::optional<int64_t> folded = fold_int(op, *ca, *cb)) return int_imm(*folded, dtype);
  if (Expr simple = fold_identities(op, a, b)) return simple;
  return make<Binary>(dtype, op, std::move(a), std::move(b));
}

Expr and_of(Expr a, Expr b) {
  if (!a || is_const(a, 1)) return b;
  if (!b || is_const(b, 1)) return a;
  return binary(BinaryOp::logical_and, std::move(a), std::move(b));
}

Expr not_of(Expr a) {
  if (std::optional<int64_t> c = const_int(a)) return bool_imm(!*c);
  if (const Not* n = as<Not>(a)) return n->a;
  return make<Not>(a->dtype, a);
}

Expr cast(DType dtype, Expr value) {
  if (value->dtype == dtype) return value;
  if (dtype.lanes != value->dtype.lanes && value->dtype.lanes == 1) value = broadcast(value, dtype.lanes);
  if (const IntImm* c = as<IntImm>(value)) {
    if (dtype.is_integer_like()) return int_imm(dtype.is_bool() ? c->value != 0 : c->value, dtype);
    if (dtype.is_float() && !(value->dtype.is_uint() && value->dtype.bits == 64))
      return float_imm(static_cast<double>(c->value), dtype);
  }
  if (const Broadcast* b = as<Broadcast>(value)) return broadcast(cast(dtype.element(), b->value), b->lanes);
  // A float constant of another float type keeps its double only where the narrower type holds it exactly.
  if (std::optional<double> c = const_float(value); c && dtype == kFloat64) return float_imm(*c, dtype);
  return make<Cast>(dtype, std::move(value));
}

Expr select(Expr condition, Expr then_value, Expr else_value) {
  if (std::optional<int64_t> c = const_int(condition)) return *c ? then_value : else_value;
  unify(then_value, else_value);
  TW_CHECK(then_value->dtype == else_value->dtype, "select arms have types {} and {}", then_value->dtype.str(),
           else_value->dtype.str());
  DType dtype = then_value->dtype;
  return make<Select>(dtype, std::move(condition), std::move(then_value), std::move(else_value));
}

Expr load(Buffer buffer, std::vector<Expr> indices) {
  TW_CHECK(static_cast<int>(indices.size()) == buffer->rank(), "{} indices for buffer {} of rank {}", indices.size(),
           buffer->name, buffer->rank());
  int lanes = indices.empty() ? 1 : indices.back()->dtype.lanes;
  DType dtype = buffer->dtype.with_lanes(lanes * buffer->dtype.lanes);
  return make<Load>(dtype, std::move(buffer), std::move(indices));
}

Expr ramp(Expr base, Expr stride, int lanes) {
  if (lanes == 1) return base;
  DType dtype = base->dtype.with_lanes(lanes);
  return make<Ramp>(dtype, std::move(base), std::move(stride), lanes);
}

Expr broadcast(Expr value, int lanes) {
  if (lanes == 1) return value;
  DType dtype = value->dtype.with_lanes(lanes);
  return make<Broadcast>(dtype, std::move(value), lanes);
}

Expr call(DType dtype, const Operation* op, std::vector<Expr> args) { return make<Call>(dtype, op, std::move(args)); }

Expr call(std::string_view name, std::vector<Expr> args) {
  DType dtype = args.at(0)->dtype;
  return call(dtype, operation(name), std::move(args));
}

Expr if_then_else(Expr condition, Expr then_value, Expr else_value) {
  if (std::optional<int64_t> c = const_int(condition)) return *c ? then_value : else_value;
  unify(then_value, else_value);
  DType dtype = then_value->dtype;
  return call(dtype, operation("if_then_else"), {std::move(condition), std::move(then_value), std::move(else_value)});
}

std::optional<int64_t> const_int(const Expr& e) {
  if (const IntImm* imm = as<IntImm>(e)) return imm->value;
  return std::nullopt;
}

bool is_true(const Expr& e) { return !e || is_const(e, 1); }

std::vector<Expr> conjuncts(const Expr& e) {
  if (is_true(e)) return {};
  const Binary* b = as<Binary>(e);
  if (!b || b->op != BinaryOp::logical_and) return {e};
  std::vector<Expr> out = conjuncts(b->a);
  for (const Expr& x : conjuncts(b->b)) out.push_back(x);
  return out;
}

}  // namespace tilewright
