#include "ir/simplify/linear.h"

#include <algorithm>

namespace tilewright {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw CoefficientOverflow{};
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw CoefficientOverflow{};
  return r;
}

bool is_index_type(DType t) { return t.is_int() && t.bits >= 32 && t.lanes == 1; }

namespace {

// The first variable met from the left; expressions over the same loop then stand together.
const VarNode* leading_var(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kVarNode:
      return static_cast<const VarNode*>(e.get());
    case ExprKind::kCast:
      return leading_var(static_cast<const Cast&>(*e).value);
    case ExprKind::kNot:
      return leading_var(static_cast<const Not&>(*e).a);
    case ExprKind::kBinary: {
      const Binary& b = static_cast<const Binary&>(*e);
      const VarNode* v = leading_var(b.a);
      return v ? v : leading_var(b.b);
    }
    case ExprKind::kLoad:
      for (const Expr& i : static_cast<const Load&>(*e).indices)
        if (const VarNode* v = leading_var(i)) return v;
      return nullptr;
    case ExprKind::kCall:
      for (const Expr& i : static_cast<const Call&>(*e).args)
        if (const VarNode* v = leading_var(i)) return v;
      return nullptr;
    case ExprKind::kSelect:
      return leading_var(static_cast<const Select&>(*e).condition);
    default:
      return nullptr;
  }
}

template <class T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

int kind_rank(ExprKind k) {
  switch (k) {
    case ExprKind::kVarNode:
      return 0;
    case ExprKind::kLoad:
      return 1;
    case ExprKind::kCast:
      return 2;
    default:
      return 3 + static_cast<int>(k);
  }
}

int compare_lists(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (int c = compare_exprs(a[i], b[i])) return c;
  return three_way(a.size(), b.size());
}

int compare_content(const Expr& a, const Expr& b) {
  switch (a->kind) {
    case ExprKind::kVarNode:
      return three_way(static_cast<const VarNode&>(*a).id, static_cast<const VarNode&>(*b).id);
    case ExprKind::kIntImm:
      return three_way(static_cast<const IntImm&>(*a).value, static_cast<const IntImm&>(*b).value);
    case ExprKind::kBinary: {
      const Binary &x = static_cast<const Binary&>(*a), &y = static_cast<const Binary&>(*b);
      if (int c = three_way(static_cast<int>(x.op), static_cast<int>(y.op))) return c;
      if (int c = compare_exprs(x.a, y.a)) return c;
      return compare_exprs(x.b, y.b);
    }
    case ExprKind::kCast:
      return compare_exprs(static_cast<const Cast&>(*a).value, static_cast<const Cast&>(*b).value);
    case ExprKind::kNot:
      return compare_exprs(static_cast<const Not&>(*a).a, static_cast<const Not&>(*b).a);
    case ExprKind::kLoad: {
      const Load &x = static_cast<const Load&>(*a), &y = static_cast<const Load&>(*b);
      if (int c = three_way(x.buffer->id, y.buffer->id)) return c;
      return compare_lists(x.indices, y.indices);
    }
    case ExprKind::kCall: {
      const Call &x = static_cast<const Call&>(*a), &y = static_cast<const Call&>(*b);
      if (int c = three_way(x.op->name, y.op->name)) return c;
      return compare_lists(x.args, y.args);
    }
    case ExprKind::kSelect: {
      const Select &x = static_cast<const Select&>(*a), &y = static_cast<const Select&>(*b);
      if (int c = compare_exprs(x.condition, y.condition)) return c;
      if (int c = compare_exprs(x.then_value, y.then_value)) return c;
      return compare_exprs(x.else_value, y.else_value);
    }
    default:
      return three_way(a->hash, b->hash);  // vectors, lets, strings: never terms of a sum
  }
}

}  // namespace

int compare_exprs(const Expr& a, const Expr& b) {
  if (a.same_as(b) || a->hash == b->hash) return 0;
  if (a->kind == ExprKind::kVarNode && b->kind == ExprKind::kVarNode) return compare_content(a, b);
  const VarNode *va = leading_var(a), *vb = leading_var(b);
  if (va != vb) {
    if (!va || !vb) return va ? -1 : 1;
    return three_way(va->id, vb->id);
  }
  if (a->kind != b->kind) return three_way(kind_rank(a->kind), kind_rank(b->kind));
  if (int c = compare_content(a, b)) return c;
  return three_way(a->dtype.key(), b->dtype.key());
}

void add_term(Linear& out, const Expr& atom, int64_t coeff) {
  if (coeff == 0) return;
  auto it = out.terms.begin();
  for (; it != out.terms.end(); ++it) {
    int c = compare_exprs(it->atom, atom);
    if (c < 0) continue;
    if (c > 0) break;
    it->coeff = checked_add(it->coeff, coeff);
    if (it->coeff == 0) out.terms.erase(it);
    return;
  }
  if (out.terms.capacity() == 0) {
    out.terms.reserve(4);
    it = out.terms.begin();
  }
  out.terms.insert(it, Term{atom, coeff});
}

void add_scaled(Linear& out, const Linear& x, int64_t k) {
  if (k == 0) return;
  out.constant = checked_add(out.constant, checked_mul(x.constant, k));
  for (const Term& t : x.terms) add_term(out, t.atom, checked_mul(t.coeff, k));
}

void scale(Linear& x, int64_t k) {
  if (k == 0) x.terms.clear();
  x.constant = checked_mul(x.constant, k);
  for (Term& t : x.terms) t.coeff = checked_mul(t.coeff, k);
}

namespace {
Expr node(BinaryOp op, Expr a, Expr b) {
  DType t = a->dtype;
  return make<Binary>(t, op, std::move(a), std::move(b));
}
}  // namespace

Expr checked_imm(int64_t value, DType t) {
  if (t.bits == 32 && value != static_cast<int32_t>(value)) throw CoefficientOverflow{};
  return int_imm(value, t);
}

Expr to_expr(const Linear& x) {
  Expr sum;
  auto scaled = [&](const Term& t, int64_t k) {
    return k == 1 ? t.atom : node(BinaryOp::mul, t.atom, checked_imm(k, x.dtype));
  };
  for (const Term& t : x.terms)
    if (t.coeff > 0) sum = sum ? node(BinaryOp::add, sum, scaled(t, t.coeff)) : scaled(t, t.coeff);
  bool constant_first = !sum && !x.terms.empty() && x.constant > 0;
  if (constant_first) sum = checked_imm(x.constant, x.dtype);
  for (const Term& t : x.terms)
    if (t.coeff < 0) {
      bool negatable = t.coeff != Interval::kMin;
      sum = !sum || !negatable ? (sum ? node(BinaryOp::add, sum, scaled(t, t.coeff)) : scaled(t, t.coeff))
                               : node(BinaryOp::sub, sum, scaled(t, -t.coeff));
    }
  if (!sum) return checked_imm(x.constant, x.dtype);
  if (constant_first || x.constant == 0) return sum;
  if (x.constant > 0 || x.constant == Interval::kMin) return node(BinaryOp::add, sum, checked_imm(x.constant, x.dtype));
  return node(BinaryOp::sub, sum, checked_imm(-x.constant, x.dtype));
}

namespace {
const Binary* division_by_const(const Expr& e, BinaryOp op, int64_t* divisor) {
  const Binary* b = as<Binary>(e);
  if (!b || b->op != op) return nullptr;
  const IntImm* c = as<IntImm>(b->b);
  if (!c || c->value <= 0) return nullptr;
  *divisor = c->value;
  return b;
}
}  // namespace

Digit decode_digit(const Expr& atom) {
  Digit d{atom, 1, 0};
  if (const Binary* mod = division_by_const(d.source, BinaryOp::floor_mod, &d.modulus)) d.source = mod->a;
  if (const Binary* div = division_by_const(d.source, BinaryOp::floor_div, &d.lower)) d.source = div->a;
  return d;
}

void collect_factors(const Expr& atom, std::vector<Expr>& out) {
  const Binary* b = as<Binary>(atom);
  if (b && b->op == BinaryOp::mul) {
    collect_factors(b->a, out);
    collect_factors(b->b, out);
  } else {
    out.push_back(atom);
  }
}

Expr product_of(std::vector<Expr> factors) {
  std::stable_sort(factors.begin(), factors.end(),
                   [](const Expr& a, const Expr& b) { return compare_exprs(a, b) < 0; });
  Expr out = factors.at(0);
  for (size_t i = 1; i < factors.size(); ++i) out = node(BinaryOp::mul, out, factors[i]);
  return out;
}

// --- intervals -------------------------------------------------------------------------------------------------------

namespace {
int64_t add_bound(int64_t a, int64_t b, int64_t infinity) {
  int64_t r;
  if (a == infinity || b == infinity || __builtin_add_overflow(a, b, &r)) return infinity;
  return r;
}
// A finite product that overflows, or an infinite factor, saturates with the right sign.
int64_t mul_bound(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  bool infinite = a == Interval::kMin || a == Interval::kMax || b == Interval::kMin || b == Interval::kMax;
  int64_t r;
  if (infinite || __builtin_mul_overflow(a, b, &r)) return (a < 0) != (b < 0) ? Interval::kMin : Interval::kMax;
  return r;
}
}  // namespace

Interval operator+(const Interval& a, const Interval& b) {
  return {add_bound(a.min, b.min, Interval::kMin), add_bound(a.max, b.max, Interval::kMax)};
}
Interval operator*(const Interval& a, int64_t k) {
  int64_t x = mul_bound(a.min, k), y = mul_bound(a.max, k);
  return k < 0 ? Interval{y, x} : Interval{x, y};
}
Interval operator*(const Interval& a, const Interval& b) {
  int64_t p[] = {mul_bound(a.min, b.min), mul_bound(a.min, b.max), mul_bound(a.max, b.min), mul_bound(a.max, b.max)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}
Interval floor_div(const Interval& a, int64_t c) {
  return {a.min == Interval::kMin ? a.min : floor_div(a.min, c), a.max == Interval::kMax ? a.max : floor_div(a.max, c)};
}
Interval hull(const Interval& a, const Interval& b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }
Interval intersect(const Interval& a, const Interval& b) { return {std::max(a.min, b.min), std::min(a.max, b.max)}; }

Interval type_bounds(DType t) {
  if (t.is_bool()) return {0, 1};
  if (t.is_uint()) return {0, t.bits >= 63 ? Interval::kMax : (int64_t{1} << t.bits) - 1};
  if (t.is_int() && t.bits < 32) return {-(int64_t{1} << (t.bits - 1)), (int64_t{1} << (t.bits - 1)) - 1};
  return {};  // wide signed integers: treated as mathematical integers
}

}  // namespace tilewright
