// Comparisons, logic, minima and conditionals. Every integer comparison becomes "x >= 0" or "x == 0" of one linear form
// and is printed from that form alone, so equal conditions look equal: `<` and `==` with positive terms on their own
// sides.
#include <numeric>

#include "ir/rewrite.h"
#include "ir/simplify/state.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

int64_t coefficient_gcd(const Linear& x) {
  int64_t g = 0;
  for (const Term& t : x.terms) g = std::gcd(g, t.coeff);
  return g;
}

Expr compare_node(BinaryOp op, Expr a, Expr b) { return make<Binary>(kBool, op, std::move(a), std::move(b)); }

/// `negative op positive` for x = positive - negative; the constant goes right, or left if it would be negative there
/// beside other terms.
Expr two_sided(BinaryOp op, const Linear& x, int64_t constant) {
  Linear left{{}, 0, x.dtype}, right{{}, 0, x.dtype};
  for (const Term& t : x.terms) (t.coeff < 0 ? left : right).terms.push_back({t.atom, std::abs(t.coeff)});
  if (left.is_const())
    left.constant = checked_mul(constant, -1);
  else if (right.is_const() || constant > 0)
    right.constant = constant;
  else
    left.constant = checked_mul(constant, -1);
  return compare_node(op, to_expr(left), to_expr(right));
}

}  // namespace

Expr Simplifier::not_negative_condition(Linear x) {
  for (int step = 0; step < 16; ++step) {
    if (std::optional<bool> known = decide_not_negative(x)) return bool_imm(*known);
    int64_t g = coefficient_gcd(x);
    if (g > 1) {
      for (Term& t : x.terms) t.coeff /= g;
      x.constant = floor_div(x.constant, g);
      continue;
    }
    // ±(n // c) + k >= 0 is a bound of n itself.
    if (x.terms.size() == 1 && std::abs(x.terms[0].coeff) == 1) {
      Digit d = decode_digit(x.terms[0].atom);
      if (d.lower > 1 && !d.modulus) {
        Linear n = linear(d.source);
        if (x.terms[0].coeff > 0) {  // n // c >= -k
          n.constant = checked_add(n.constant, checked_mul(x.constant, d.lower));
        } else {  // n // c <= k  <=>  n <= k·c + c - 1
          scale(n, -1);
          n.constant = checked_add(n.constant, checked_add(checked_mul(x.constant, d.lower), d.lower - 1));
        }
        x = std::move(n);
        continue;
      }
    }
    // x = g·t + y with y in [q·g, q·g + g): x >= 0 <=> t + q >= 0
    bool dropped = false;
    int64_t tried = 0;
    for (const Term& t : x.terms) {
      int64_t big = std::abs(t.coeff);
      if (big == 1 || big == tried) continue;
      tried = big;
      Linear high{{}, 0, x.dtype}, rest{{}, floor_mod(x.constant, big), x.dtype};
      for (const Term& o : x.terms) (o.coeff % big == 0 ? high : rest).terms.push_back(o);
      Interval b = bounds(rest);
      if (!b.bounded() || floor_div(b.min, big) != floor_div(b.max, big)) continue;
      high.constant = checked_add(x.constant - rest.constant, checked_mul(floor_div(b.min, big), big));
      x = std::move(high);
      dropped = true;
      break;
    }
    if (!dropped) break;
  }
  // negative <= positive + constant, as negative < positive + (constant + 1)
  return two_sided(BinaryOp::lt, x, checked_add(x.constant, 1));
}

Expr Simplifier::equal_zero_condition(Linear x) {
  if (x.is_const()) return bool_imm(x.constant == 0);
  int64_t g = coefficient_gcd(x);
  if (x.constant % g != 0) return bool_imm(false);
  for (Term& t : x.terms) t.coeff /= g;
  x.constant /= g;
  Interval b = bounds(x);
  if (b.min > 0 || b.max < 0) return bool_imm(false);
  if (b.min == 0 && b.max == 0) return bool_imm(true);
  ModularSet m = modular(x);
  if (m.coefficient > 1 && m.base != 0) return bool_imm(false);
  if (m.coefficient == 0) return bool_imm(m.base == 0);
  std::optional<bool> above = decide_not_negative(x);
  if (above == false) return bool_imm(false);
  Linear opposite = x;
  scale(opposite, -1);
  std::optional<bool> below = decide_not_negative(opposite);
  if (below == false) return bool_imm(false);
  if (above == true && below == true) return bool_imm(true);
  if (x.terms[0].coeff > 0) scale(x, -1);  // the first term stands on the left
  return two_sided(BinaryOp::eq, x, x.constant);
}

Expr Simplifier::comparison(const Binary& e) {
  const Expr &a = e.a, &b = e.b;
  if (!is_index_type(a->dtype) || reads_memory(a) || reads_memory(b)) {
    Expr x = simplify(a), y = simplify(b);
    if (x->hash == y->hash && x->dtype.is_integer_like())
      return bool_imm(e.op == BinaryOp::eq || e.op == BinaryOp::le || e.op == BinaryOp::ge);
    return binary(e.op, x, y);
  }
  bool swapped = e.op == BinaryOp::gt || e.op == BinaryOp::ge;
  Linear d{{}, 0, a->dtype};  // right - left of < or <=
  add(d, swapped ? a : b, 1);
  add(d, swapped ? b : a, -1);
  merge_digits(d);
  switch (e.op) {
    case BinaryOp::lt:
    case BinaryOp::gt:
      d.constant = checked_add(d.constant, -1);
      return not_negative_condition(std::move(d));
    case BinaryOp::le:
    case BinaryOp::ge:
      return not_negative_condition(std::move(d));
    case BinaryOp::eq:
      return equal_zero_condition(std::move(d));
    default: {
      Expr equal = equal_zero_condition(std::move(d));
      if (std::optional<int64_t> c = const_int(equal)) return bool_imm(!*c);
      const Binary& n = static_cast<const Binary&>(*equal);
      return compare_node(BinaryOp::ne, n.a, n.b);
    }
  }
}

bool Simplifier::known_true(const Expr& e) {
  for (const Expr& t : s_.truths)
    if (t->hash == e->hash) return true;
  return false;
}

Expr Simplifier::simplify_bool(const Expr& e) {
  Expr out;
  if (const Binary* b = as<Binary>(e)) {
    bool logic = b->op == BinaryOp::logical_and || b->op == BinaryOp::logical_or;
    if (is_comparison(b->op))
      out = comparison(*b);
    else
      out = logic ? logical(*b) : map_children(e, [&](const Expr& child) { return simplify(child); });
  } else if (const Not* n = as<Not>(e)) {
    Expr a = simplify(n->a);
    const Binary* c = as<Binary>(a);
    if (c && is_comparison(c->op) && c->a->dtype.is_integer_like()) {
      constexpr BinaryOp kOpposite[] = {BinaryOp::ne, BinaryOp::eq, BinaryOp::ge,
                                        BinaryOp::gt, BinaryOp::le, BinaryOp::lt};
      BinaryOp op = kOpposite[static_cast<int>(c->op) - static_cast<int>(BinaryOp::eq)];
      out = simplify_bool(binary(op, c->a, c->b));
    } else if (c && (c->op == BinaryOp::logical_and || c->op == BinaryOp::logical_or)) {
      BinaryOp op = c->op == BinaryOp::logical_and ? BinaryOp::logical_or : BinaryOp::logical_and;
      out = simplify(binary(op, not_of(c->a), not_of(c->b)));
    } else {
      out = a.same_as(n->a) ? e : not_of(a);
    }
  } else {
    out = simplify_other(e);
  }
  if (s_.truths.empty() || const_int(out)) return out;
  if (known_true(out)) return bool_imm(true);
  for (const Expr& t : s_.truths)
    if (const Not* n = as<Not>(t); n && n->a->hash == out->hash) return bool_imm(false);
  return out;
}

namespace {
void flatten(BinaryOp op, const Expr& e, std::vector<Expr>& out) {
  const Binary* b = as<Binary>(e);
  if (b && b->op == op) {
    flatten(op, b->a, out);
    flatten(op, b->b, out);
  } else {
    out.push_back(e);
  }
}

/// The opposite of a comparison in normal form; null for anything else.
Expr negated(const Expr& e) {
  const Binary* b = as<Binary>(e);
  if (!b || !is_index_type(b->a->dtype)) return not_of(e);
  if (b->op == BinaryOp::lt) return less_equal(b->b, b->a);
  if (b->op == BinaryOp::eq) return binary(BinaryOp::ne, b->a, b->b);
  if (b->op == BinaryOp::ne) return equal(b->a, b->b);
  return not_of(e);
}
}  // namespace

// Operands that follow from the others disappear: in a conjunction those that the rest implies, in a disjunction those
// that imply the rest (their negation follows from the others' negations).
Expr Simplifier::logical(const Binary& e) {
  bool conjunction = e.op == BinaryOp::logical_and;
  std::vector<Expr> raw, parts;
  flatten(e.op, e.a, raw);
  flatten(e.op, e.b, raw);
  for (const Expr& r : raw) {
    Expr p = simplify(r);
    if (std::optional<int64_t> c = const_int(p)) {
      if ((*c != 0) != conjunction) return p;
      continue;
    }
    std::vector<Expr> flat;
    flatten(e.op, p, flat);
    for (const Expr& f : flat) {
      bool seen = false;
      for (const Expr& q : parts) seen |= q->hash == f->hash;
      if (!seen) parts.push_back(f);
    }
  }
  if (parts.empty()) return bool_imm(conjunction);
  for (size_t i = parts.size(); parts.size() > 1 && i-- > 0;) {
    size_t mark = s_.log.size();
    for (size_t j = 0; j < parts.size(); ++j)
      if (j != i) assume(conjunction ? parts[j] : negated(parts[j]));
    Expr p = simplify(parts[i]);
    s_.undo_to(mark);
    std::optional<int64_t> c = const_int(p);
    if (!c) continue;
    if ((*c != 0) != conjunction) return p;  // contradicts the others
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
  }
  Expr out = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) out = make<Binary>(kBool, e.op, out, parts[i]);
  return out;
}

Expr Simplifier::min_max(const Binary& e) {
  bool is_min = e.op == BinaryOp::min;
  Linear a = linear(e.a), b = linear(e.b), d = a;
  add_scaled(d, b, -1);  // a - b
  std::optional<bool> a_not_less = decide_not_negative(d);
  if (!a_not_less) {
    scale(d, -1);
    if (not_negative(d)) a_not_less = false;  // a <= b
  }
  if (a_not_less) return to_expr(*a_not_less == is_min ? b : a);
  Expr x = to_expr(a), y = to_expr(b);
  // min(min(p, q), b): an operand that the other one dominates disappears.
  for (int side = 0; side < 2; ++side) {
    const Binary* inner = as<Binary>(side ? y : x);
    const Linear& other = side ? a : b;
    if (!inner || inner->op != e.op) continue;
    Linear p = linear(inner->a), q = linear(inner->b);
    for (int i = 0; i < 2; ++i) {
      Linear difference = i ? q : p;  // operand - other, signed so that >= 0 means that the other one wins
      add_scaled(difference, other, -1);
      if (!is_min) scale(difference, -1);
      const Expr& kept = i ? inner->a : inner->b;
      if (not_negative(difference)) return min_max(*make<Binary>(e.dtype, e.op, kept, to_expr(other)));
      scale(difference, -1);
      if (not_negative(difference)) return side ? y : x;  // the inner operand is beyond the other one already
    }
  }
  bool in_order = const_int(x) ? false : const_int(y) ? true : compare_exprs(x, y) <= 0;
  return in_order ? make<Binary>(e.dtype, e.op, x, y) : make<Binary>(e.dtype, e.op, y, x);
}

// Each arm is simplified knowing the condition.
Expr Simplifier::choice(const Expr& e, const Expr& condition, const Expr& a, const Expr& b) {
  if (condition->dtype.is_vector()) return map_children(e, [&](const Expr& child) { return simplify(child); });
  Expr c = simplify(condition);
  if (std::optional<int64_t> known = const_int(c)) return simplify(*known ? a : b);
  size_t mark = s_.log.size();
  assume(c);
  Expr x = simplify(a);
  s_.undo_to(mark);
  assume(negated(c));
  Expr y = simplify(b);
  s_.undo_to(mark);
  if (x->hash == y->hash) return x;
  if (c.same_as(condition) && x.same_as(a) && y.same_as(b)) return e;
  return e->kind == ExprKind::kSelect ? select(c, x, y) : if_then_else(c, x, y);
}

}  // namespace tilewright
