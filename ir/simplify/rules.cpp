// The normal form of integer sums, products, quotients and remainders.
//
// Quotients and remainders by constants (k, r integers; y the part that is not a multiple):
//   (c·k + y) // c           = k + y // c                     (c·k + y) % c           = y % c
//   y // c                   = q      if q·c <= y < q·c + c     y % c                   = y - q·c    then
//   (t + z // a) // c        = (a·t + z) // (a·c)             (t + z // a) % c        = ((a·t + z) // a) % c
//   (g·t + y) // (g·c)       = t // c   if 0 <= y < g           (g·t + y) % (g·c)       = g·(t % c) + y   if 0 <= y < g
//   (k·(z % m) + t) % c      = (k·z + t) % c   if c | k·m       (z % m) // c            = (z // c) % (m // c)   if c |
//   m
// Recombination: ((z // l) % m)·k + ((z // (l·m)) % n)·k·m = ((z // l) % (m·n))·k, and the same without the last
// remainder.
#include <cmath>
#include <numeric>

#include "ir/rewrite.h"
#include "ir/simplify/state.h"
#include "ir/visit.h"

namespace tilewright {

namespace {
constexpr int kRuleDepth = 24;        // nested rewrites of one quotient; real chains need five
constexpr size_t kProductTerms = 16;  // (a + b)·(c + d) is multiplied out up to this many terms
constexpr int64_t kMaxDivisor = int64_t{1} << 30;

bool is_quotient(const Expr& e, const Binary** out = nullptr) {
  const Binary* b = as<Binary>(e);
  if (!b || b->op != BinaryOp::floor_div) return false;
  std::optional<int64_t> c = const_int(b->b);
  if (!c || *c <= 0) return false;
  if (out) *out = b;
  return true;
}

Expr node(BinaryOp op, Expr a, Expr b) {
  DType t = a->dtype;
  return make<Binary>(t, op, std::move(a), std::move(b));
}

struct DepthGuard {
  int& depth;
  explicit DepthGuard(int& d) : depth(d) { ++depth; }
  ~DepthGuard() { --depth; }
};
}  // namespace

Linear Simplifier::linear(const Expr& e) {
  Linear out{{}, 0, e->dtype};
  add(out, e, 1);
  if (out.terms.size() > 1) merge_digits(out);
  return out;
}

Expr Simplifier::simplify(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kStringImm:
      return e;
    default:
      break;
  }
  Expr out;
  if (is_index_type(e->dtype)) {
    out = to_expr(linear(e));
  } else if (e->dtype == kBool) {
    out = simplify_bool(e);
  } else if (e->dtype.is_vector()) {
    out = simplify_vector(e);
  } else {
    out = simplify_other(e);
  }
  return out->hash == e->hash ? e : out;
}

void Simplifier::add(Linear& out, const Expr& e, int64_t k) {
  if (k == 0) return;
  if (const IntImm* c = as<IntImm>(e)) {
    out.constant = checked_add(out.constant, checked_mul(c->value, k));
    return;
  }
  if (e->kind == ExprKind::kVarNode) {
    if (const Analyzer::State::Entry* entry = s_.find(e)) {
      if (entry->value) return add(out, entry->value, k);
      if (entry->bounds.is_point()) {
        out.constant = checked_add(out.constant, checked_mul(entry->bounds.min, k));
        return;
      }
    }
    return add_term(out, e, k);
  }
  const Binary* b = as<Binary>(e);
  if (!b) return add_resolved(out, e, simplify_other(e), k);
  switch (b->op) {
    case BinaryOp::add:
      add(out, b->a, k);
      return add(out, b->b, k);
    case BinaryOp::sub:
      add(out, b->a, k);
      return add(out, b->b, checked_mul(k, -1));
    case BinaryOp::mul:
      if (const IntImm* c = as<IntImm>(b->b)) return add(out, b->a, checked_mul(k, c->value));
      if (const IntImm* c = as<IntImm>(b->a)) return add(out, b->b, checked_mul(k, c->value));
      return add_product(out, b->a, b->b, k);
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod: {
      if (reads_memory(e)) return add_data(out, *b, k);
      std::optional<int64_t> c = const_int(b->b);
      const Binary* inner = nullptr;
      if (c && *c > 0 && b->op == BinaryOp::floor_mod && is_quotient(b->a, &inner))
        return add_digit(out, linear(inner->a), *const_int(inner->b), *c, k);
      Linear n = linear(b->a);
      Linear d = c ? Linear{{}, *c, e->dtype} : linear(b->b);
      if (!d.is_const()) return add_symbolic_division(out, b->op, std::move(n), d, k);
      if (d.constant == 0) return add_term(out, node(b->op, to_expr(n), to_expr(d)), k);  // undefined: left as it is
      if (d.constant < 0) {  // n // -c = -n // c; n % -c = -(-n % c)
        scale(n, -1);
        if (b->op == BinaryOp::floor_div) return add_div(out, std::move(n), checked_mul(d.constant, -1), k);
        return add_mod(out, std::move(n), checked_mul(d.constant, -1), checked_mul(k, -1));
      }
      return b->op == BinaryOp::floor_div ? add_div(out, std::move(n), d.constant, k)
                                          : add_mod(out, std::move(n), d.constant, k);
    }
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod: {
      Expr x = simplify(b->a), y = simplify(b->b);
      if (bounds(x).min >= 0 && bounds(y).min >= 1) {
        BinaryOp op = b->op == BinaryOp::trunc_div ? BinaryOp::floor_div : BinaryOp::floor_mod;
        return add(out, binary(op, x, y), k);
      }
      return add_resolved(out, node(b->op, x, y), binary(b->op, x, y), k);
    }
    case BinaryOp::min:
    case BinaryOp::max:
      if (reads_memory(e)) return add_data(out, *b, k);
      return add_resolved(out, e, min_max(*b), k);
    default:
      return add_term(out, e, k);
  }
}

// `simplified` is in normal form: if it is still one atom it is a term, else its parts are.
/// What was loaded may wrap: division, minima (and comparisons) of it are not those of mathematical integers, and only
/// their operands are simplified. Sums are right modulo 2^n.
void Simplifier::add_data(Linear& out, const Binary& b, int64_t k) {
  Expr x = simplify(b.a), y = simplify(b.b);
  add_resolved(out, node(b.op, x, y), binary(b.op, x, y), k);
}

void Simplifier::add_resolved(Linear& out, const Expr& original, const Expr& simplified, int64_t k) {
  const Binary* b = as<Binary>(simplified);
  bool sum = b && b->op != BinaryOp::min && b->op != BinaryOp::max && b->op != BinaryOp::trunc_div &&
             b->op != BinaryOp::trunc_mod;
  bool leaf = simplified->kind == ExprKind::kVarNode || simplified->kind == ExprKind::kIntImm;
  if ((sum || leaf) && simplified->hash != original->hash) return add(out, simplified, k);
  // An atom known to be one value.
  if (const Analyzer::State::Entry* entry = s_.find(simplified); entry && entry->bounds.is_point()) {
    out.constant = checked_add(out.constant, checked_mul(entry->bounds.min, k));
    return;
  }
  add_term(out, simplified, k);
}

void Simplifier::add_product(Linear& out, const Expr& a, const Expr& b, int64_t k) {
  Linear x = linear(a), y = linear(b);
  if (x.is_const()) return add_scaled(out, y, checked_mul(k, x.constant));
  if (y.is_const()) return add_scaled(out, x, checked_mul(k, y.constant));
  if ((x.terms.size() + 1) * (y.terms.size() + 1) > kProductTerms) {
    return add_term(out, product_of({to_expr(x), to_expr(y)}), k);
  }
  for (const Term& s : x.terms)
    for (const Term& t : y.terms) {
      std::vector<Expr> factors;
      collect_factors(s.atom, factors);
      collect_factors(t.atom, factors);
      add_term(out, product_of(std::move(factors)), checked_mul(k, checked_mul(s.coeff, t.coeff)));
    }
  if (y.constant)
    for (const Term& s : x.terms) add_term(out, s.atom, checked_mul(k, checked_mul(s.coeff, y.constant)));
  if (x.constant)
    for (const Term& t : y.terms) add_term(out, t.atom, checked_mul(k, checked_mul(t.coeff, x.constant)));
  out.constant = checked_add(out.constant, checked_mul(k, checked_mul(x.constant, y.constant)));
}

namespace {

// Multiples of c leave n (towards zero for coefficients, to a remainder in [0, c) for the constant) and go to `out` if
// given.
void take_multiples(Linear& n, int64_t c, Linear* out, int64_t k) {
  size_t kept = 0;
  for (size_t i = 0; i < n.terms.size(); ++i) {
    int64_t q = n.terms[i].coeff / c, r = n.terms[i].coeff % c;
    if (out && q != 0) add_term(*out, n.terms[i].atom, checked_mul(q, k));
    if (r == 0) continue;
    n.terms[i].coeff = r;
    if (kept != i) n.terms[kept] = std::move(n.terms[i]);
    ++kept;
  }
  n.terms.resize(kept);
  if (out) out->constant = checked_add(out->constant, checked_mul(floor_div(n.constant, c), k));
  n.constant = floor_mod(n.constant, c);
}

/// The quotient q if all values of the interval lie in [q·c, q·c + c).
std::optional<int64_t> single_quotient(const Interval& b, int64_t c) {
  if (!b.bounded()) return std::nullopt;
  int64_t q = floor_div(b.min, c);
  return q == floor_div(b.max, c) ? std::optional(q) : std::nullopt;
}

}  // namespace

// n = g·t + y with g a common factor of c and of some coefficients, and y within one period of g: n becomes t, c
// becomes c / g, *low becomes y (reduced to [0, g)) and g is its `low->dtype`-free scale, returned through c's
// quotient. False: no such g.
bool Simplifier::drop_low_part(Linear& n, int64_t& c, Linear* low) {
  int64_t tried[8];
  int count = 0;
  for (const Term& t : n.terms) {
    int64_t g = std::gcd(t.coeff, c);
    if (g == 1) continue;
    bool seen = false;
    for (int i = 0; i < count; ++i) seen |= tried[i] == g;
    if (!seen && count < 8) tried[count++] = g;
  }
  for (int i = 0; i < count; ++i)  // largest first: one step instead of several
    for (int j = i + 1; j < count; ++j)
      if (tried[j] > tried[i]) std::swap(tried[i], tried[j]);
  for (int i = 0; i < count; ++i) {
    int64_t g = tried[i];
    Linear high{{}, 0, n.dtype}, rest{{}, floor_mod(n.constant, g), n.dtype};
    for (const Term& t : n.terms) (t.coeff % g == 0 ? high : rest).terms.push_back(t);
    std::optional<int64_t> q = single_quotient(bounds(rest), g);
    if (!q) continue;
    for (Term& t : high.terms) t.coeff /= g;
    high.constant = checked_add(floor_div(n.constant, g), *q);
    rest.constant = checked_add(rest.constant, -checked_mul(*q, g));
    n = std::move(high);
    c /= g;
    if (low) *low = std::move(rest);
    return true;
  }
  return false;
}

// t + z // a with one such quotient: n becomes a·t + z, factor becomes a.
bool Simplifier::absorb_quotient(Linear& n, int64_t& factor) {
  const Term* found = nullptr;
  for (const Term& t : n.terms)
    if (t.coeff == 1 && is_quotient(t.atom)) {
      if (found) return false;
      found = &t;
    }
  if (!found) return false;
  const Binary* q = as<Binary>(found->atom);
  factor = *const_int(q->b);
  Expr atom = found->atom, source = q->a;
  Linear wide = n;
  add_term(wide, atom, -1);
  scale(wide, factor);
  add(wide, source, 1);
  n = std::move(wide);
  return true;
}

void Simplifier::add_div(Linear& out, Linear n, int64_t c, int64_t k) {
  DepthGuard guard(depth_);
  for (int step = 0; step < kRuleDepth; ++step) {
    if (c == 1) return add_scaled(out, n, k);
    take_multiples(n, c, &out, k);
    if (n.is_const()) return;
    if (std::optional<int64_t> q = single_quotient(bounds(n), c)) {
      out.constant = checked_add(out.constant, checked_mul(*q, k));
      return;
    }
    if (depth_ > kRuleDepth) break;
    if (drop_low_part(n, c, nullptr)) continue;
    if (const Expr* atom = n.lone_atom()) {
      Digit d = decode_digit(*atom);
      if (d.modulus && d.modulus % c == 0)
        return add_digit(out, linear(d.source), checked_mul(d.lower, c), d.modulus / c, k);
    }
    Linear wide = n;
    int64_t factor = 1;
    if (absorb_quotient(wide, factor) && factor <= kMaxDivisor / c) {
      n = std::move(wide);
      c *= factor;
      continue;
    }
    break;
  }
  Expr quotient = node(BinaryOp::floor_div, to_expr(n), checked_imm(c, n.dtype));
  add_resolved(out, quotient, quotient, k);
}

void Simplifier::add_mod(Linear& out, Linear n, int64_t c, int64_t k) {
  DepthGuard guard(depth_);
  for (int step = 0; step < kRuleDepth; ++step) {
    if (c == 1) return;
    take_multiples(n, c, nullptr, 0);
    if (n.is_const()) {
      out.constant = checked_add(out.constant, checked_mul(n.constant, k));
      return;
    }
    if (std::optional<int64_t> q = single_quotient(bounds(n), c)) {
      n.constant = checked_add(n.constant, -checked_mul(*q, c));
      return add_scaled(out, n, k);
    }
    if (depth_ > kRuleDepth) break;
    bool replaced = false;
    for (const Term& t : n.terms) {
      Digit d = decode_digit(t.atom);
      if (!d.modulus || checked_mul(d.modulus, t.coeff) % c != 0) continue;
      Expr undigit = d.lower == 1 ? d.source : as<Binary>(t.atom)->a;
      Linear wide = n;
      add_term(wide, t.atom, -t.coeff);
      add(wide, undigit, t.coeff);
      n = std::move(wide);
      replaced = true;
      break;
    }
    if (replaced) continue;
    int64_t before = c;
    Linear low;
    if (drop_low_part(n, c, &low)) {
      add_scaled(out, low, k);
      k = checked_mul(k, before / c);
      continue;
    }
    Linear wide = n;
    int64_t factor = 1;
    if (absorb_quotient(wide, factor) && factor <= kMaxDivisor / c)
      return add_digit(out, std::move(wide), factor, c, k);
    break;
  }
  Expr remainder = node(BinaryOp::floor_mod, to_expr(n), checked_imm(c, n.dtype));
  add_resolved(out, remainder, remainder, k);
}

// ((source // lower) % modulus) · k
void Simplifier::add_digit(Linear& out, Linear source, int64_t lower, int64_t modulus, int64_t k) {
  DepthGuard guard(depth_);
  for (int step = 0; step < kRuleDepth; ++step) {
    if (modulus == 1) return;
    if (lower == 1) return add_mod(out, std::move(source), modulus, k);
    int64_t period = checked_mul(lower, modulus);
    take_multiples(source, period, nullptr, 0);
    if (source.is_const()) {
      out.constant = checked_add(out.constant, checked_mul(floor_div(source.constant, lower), k));
      return;
    }
    Interval b = bounds(source);
    if (std::optional<int64_t> q = single_quotient(b, lower)) {
      out.constant = checked_add(out.constant, checked_mul(floor_mod(*q, modulus), k));
      return;
    }
    if (std::optional<int64_t> q = single_quotient(b, period)) {
      source.constant = checked_add(source.constant, -checked_mul(*q, period));
      return add_div(out, std::move(source), lower, k);
    }
    if (depth_ > kRuleDepth) break;
    bool replaced = false;
    for (const Term& t : source.terms) {
      Digit d = decode_digit(t.atom);
      if (!d.modulus || checked_mul(d.modulus, t.coeff) % period != 0) continue;
      Expr undigit = d.lower == 1 ? d.source : as<Binary>(t.atom)->a;
      Linear wide = source;
      add_term(wide, t.atom, -t.coeff);
      add(wide, undigit, t.coeff);
      source = std::move(wide);
      replaced = true;
      break;
    }
    if (replaced) continue;
    int64_t c = lower;
    if (drop_low_part(source, c, nullptr)) {
      lower = c;
      continue;
    }
    // source = g·t + y, lower | g | period, y in [0, g): (g / lower)·(t % (period / g)) + y // lower
    int64_t wide_period = period;
    Linear high = source, low;
    if (drop_low_part(high, wide_period, &low) && (period / wide_period) % lower == 0) {
      int64_t g = period / wide_period;
      add_mod(out, std::move(high), wide_period, checked_mul(k, g / lower));
      return add_div(out, std::move(low), lower, k);
    }
    int64_t factor = 1;
    Linear wide = source;
    if (absorb_quotient(wide, factor) && factor <= kMaxDivisor / period) {
      source = std::move(wide);
      lower = checked_mul(lower, factor);
      continue;
    }
    break;
  }
  Expr quotient = node(BinaryOp::floor_div, to_expr(source), checked_imm(lower, source.dtype));
  Expr digit = node(BinaryOp::floor_mod, quotient, checked_imm(modulus, source.dtype));
  add_resolved(out, digit, digit, k);
}

namespace {
/// rest with atom = rest · divisor (a product atom that contains all factors of the divisor); null: not a multiple.
/// An exact match gives the constant 1 through *one.
Expr cofactor(const Expr& atom, const Expr& divisor, bool* one) {
  std::vector<Expr> factors, wanted;
  collect_factors(atom, factors);
  collect_factors(divisor, wanted);
  for (const Expr& w : wanted) {
    bool found = false;
    for (size_t i = 0; i < factors.size() && !found; ++i)
      if (factors[i]->hash == w->hash) {
        factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(i));
        found = true;
      }
    if (!found) return nullptr;
  }
  *one = factors.empty();
  return factors.empty() ? atom : product_of(std::move(factors));
}
}  // namespace

void Simplifier::add_symbolic_division(Linear& out, BinaryOp op, Linear n, const Linear& d, int64_t k) {
  bool div = op == BinaryOp::floor_div;
  if (d.terms.size() == 1 && d.constant == 0) {
    // Multiples of the divisor leave the dividend.
    Linear rest{{}, n.constant, n.dtype};
    for (const Term& t : n.terms) {
      bool one = false;
      Expr quotient = t.coeff % d.terms[0].coeff == 0 ? cofactor(t.atom, d.terms[0].atom, &one) : Expr();
      if (!quotient) {
        add_term(rest, t.atom, t.coeff);
      } else if (div) {
        int64_t q = checked_mul(k, t.coeff / d.terms[0].coeff);
        if (one)
          out.constant = checked_add(out.constant, q);
        else
          add_term(out, quotient, q);
      }
    }
    n = std::move(rest);
  } else if (!n.is_const() && n.terms[0].atom->hash == d.terms[0].atom->hash &&
             n.terms[0].coeff % d.terms[0].coeff == 0) {
    // n = q·d exactly?
    int64_t q = n.terms[0].coeff / d.terms[0].coeff;
    Linear difference = n;
    add_scaled(difference, d, checked_mul(q, -1));
    if (difference.is_const() && difference.constant == 0) {
      if (div) out.constant = checked_add(out.constant, checked_mul(q, k));
      return;
    }
  }
  if (n.is_const() && n.constant == 0) return;
  Linear below = d;  // d - 1 - n
  add_scaled(below, n, -1);
  below.constant = checked_add(below.constant, -1);
  bool within = not_negative(n) && not_negative(below);
  if (within) {
    if (!div) add_scaled(out, n, k);
    return;
  }
  Expr atom = node(op, to_expr(n), to_expr(d));
  add_resolved(out, atom, atom, k);
}

// --- recombination ---------------------------------------------------------------------------------------------------

void Simplifier::merge_digits(Linear& x) {
  while (merge_one(x) || merge_difference(x) || merge_symbolic(x)) {
  }
}

bool Simplifier::merge_one(Linear& x) {
  for (size_t i = 0; i < x.terms.size(); ++i) {
    if (x.terms[i].atom->kind != ExprKind::kBinary) continue;
    Digit low = decode_digit(x.terms[i].atom);
    if (!low.modulus) continue;
    int64_t period = checked_mul(low.lower, low.modulus), upper_coeff = checked_mul(x.terms[i].coeff, low.modulus);
    for (size_t j = 0; j < x.terms.size(); ++j) {
      if (j == i || x.terms[j].coeff != upper_coeff || x.terms[j].atom->kind != ExprKind::kBinary) continue;
      Digit high = decode_digit(x.terms[j].atom);
      if (high.trivial()) continue;
      Expr source = low.source;
      int64_t lower = low.lower;
      if (high.lower != period || high.source->hash != source->hash) {
        // The sources may have been reduced differently: compare what one says about the other.
        Linear other{{}, 0, x.dtype};
        const Expr* atom;
        if (!high.modulus) {
          add_div(other, linear(low.source), period, 1);
          atom = &x.terms[j].atom;
        } else {
          if (high.lower % low.modulus != 0) continue;
          source = high.source;
          lower = high.lower / low.modulus;
          add_digit(other, linear(high.source), lower, low.modulus, 1);
          atom = &x.terms[i].atom;
        }
        if (!other.lone_atom() || (*other.lone_atom())->hash != (*atom)->hash) continue;
      }
      int64_t k = x.terms[i].coeff;
      Expr a = x.terms[i].atom, b = x.terms[j].atom;
      add_term(x, a, checked_mul(k, -1));
      add_term(x, b, checked_mul(upper_coeff, -1));
      if (high.modulus)
        add_digit(x, linear(source), lower, checked_mul(low.modulus, high.modulus), k);
      else if (lower == 1)
        add(x, source, k);
      else
        add_div(x, linear(source), lower, k);
      return true;
    }
  }
  return false;
}

// n // a - (n // ab)·b = (n // a) % b
bool Simplifier::merge_difference(Linear& x) {
  for (size_t j = 0; j < x.terms.size(); ++j) {
    const Term high_term = x.terms[j];
    if (high_term.atom->kind != ExprKind::kBinary) continue;
    Digit high = decode_digit(high_term.atom);
    if (high.modulus || high.trivial()) continue;
    for (size_t i = 0; i < x.terms.size(); ++i) {
      const Term low_term = x.terms[i];
      if (i == j || (high_term.coeff < 0) == (low_term.coeff < 0) || high_term.coeff % low_term.coeff != 0) continue;
      const int64_t modulus = checked_mul(high_term.coeff / low_term.coeff, -1);
      if (modulus <= 1 || high.lower % modulus != 0) continue;
      Digit low = decode_digit(low_term.atom);
      if (low.modulus || low.lower != high.lower / modulus || low.source->hash != high.source->hash) continue;
      add_term(x, high_term.atom, checked_mul(high_term.coeff, -1));
      add_term(x, low_term.atom, checked_mul(low_term.coeff, -1));
      add_digit(x, linear(low.source), low.lower, modulus, low_term.coeff);
      return true;
    }
  }
  return false;
}

// (n // d)·d + n % d = n for a divisor that is not constant.
bool Simplifier::merge_symbolic(Linear& x) {
  for (const Term& t : x.terms) {
    const Binary* mod = as<Binary>(t.atom);
    if (!mod || mod->op != BinaryOp::floor_mod || const_int(mod->b)) continue;
    Expr quotient = node(BinaryOp::floor_div, mod->a, mod->b), n = mod->a, atom = t.atom;
    int64_t k = t.coeff;
    Linear whole{{}, 0, x.dtype};  // (n // d)·d
    Linear d = linear(mod->b);
    for (const Term& s : d.terms) {
      std::vector<Expr> factors{quotient};
      collect_factors(s.atom, factors);
      add_term(whole, product_of(std::move(factors)), s.coeff);
    }
    if (d.constant) add_term(whole, quotient, d.constant);
    bool present = true;
    for (const Term& w : whole.terms) {
      bool found = false;
      for (const Term& o : x.terms) found |= o.atom->hash == w.atom->hash && o.coeff == checked_mul(w.coeff, k);
      present &= found;
    }
    if (!present) continue;
    add_scaled(x, whole, checked_mul(k, -1));
    add_term(x, atom, checked_mul(k, -1));
    add(x, n, k);
    return true;
  }
  return false;
}

// --- everything that is not integer arithmetic -----------------------------------------------------------------------

Expr Simplifier::simplify_other(const Expr& e) {
  if (const Select* s = as<Select>(e)) return choice(e, s->condition, s->then_value, s->else_value);
  if (const Call* c = as<Call>(e); c && c->op->group == OpGroup::control) {
    if (c->op->name == "if_then_else") return choice(e, c->args[0], c->args[1], c->args[2]);
    if (c->op->name == "likely") return simplify(c->args[0]);
  }
  if (const Let* let = as<Let>(e)) {
    Expr value = simplify(let->value);
    if (const_int(value) || value->kind == ExprKind::kVarNode)
      return simplify(substitute(let->body, {{let->var.get(), value}}));
    return make<Let>(e->dtype, let->var, value, simplify(let->body));
  }
  if (const Cast* c = as<Cast>(e)) {
    Expr value = simplify(c->value);
    return value.same_as(c->value) ? cast(e->dtype, value) : cast(e->dtype, value);
  }
  if (e->dtype.is_float() && e->kind == ExprKind::kBinary) return simplify_float(e);
  if (e->kind == ExprKind::kVarNode) {
    const Analyzer::State::Entry* entry = s_.find(e);
    return entry && entry->value ? entry->value : e;
  }
  return map_children(e, [&](const Expr& child) { return simplify(child); });
}

// Only identities that hold for every value, -0.0, NaN and infinities included.
Expr Simplifier::simplify_float(const Expr& e) {
  const Binary& b = static_cast<const Binary&>(*e);
  Expr x = simplify(b.a), y = simplify(b.b);
  const FloatImm *cx = as<FloatImm>(x), *cy = as<FloatImm>(y);
  if (b.op == BinaryOp::mul && cy && cy->value == 1.0) return x;
  if (b.op == BinaryOp::mul && cx && cx->value == 1.0) return y;
  if (b.op == BinaryOp::div && cy && cy->value == 1.0) return x;
  if (b.op == BinaryOp::sub && cy && cy->value == 0.0 && !std::signbit(cy->value)) return x;
  return x.same_as(b.a) && y.same_as(b.b) ? e : binary(b.op, x, y);
}

Expr Simplifier::simplify_vector(const Expr& e) {
  const Binary* b = as<Binary>(e);
  if (!b) {
    if (const Ramp* r = as<Ramp>(e)) {
      Expr base = simplify(r->base), stride = simplify(r->stride);
      return is_const(stride, 0) ? broadcast(base, r->lanes) : ramp(base, stride, r->lanes);
    }
    return map_children(e, [&](const Expr& child) { return simplify(child); });
  }
  Expr x = simplify(b->a), y = simplify(b->b);
  struct Lanes {
    Expr base, stride;  // stride null: all lanes equal
  };
  auto lanes_of = [](const Expr& v) -> Lanes {
    if (const Broadcast* c = as<Broadcast>(v)) return {c->value, {}};
    if (const Ramp* r = as<Ramp>(v)) return {r->base, r->stride};
    return {};
  };
  Lanes p = lanes_of(x), q = lanes_of(y);
  int lanes = x->dtype.lanes;
  if (p.base && q.base) {
    if (!p.stride && !q.stride) return broadcast(simplify(binary(b->op, p.base, q.base)), lanes);
    if (is_index_type(p.base->dtype)) {
      Expr zero = zero_of(p.base->dtype);
      if (b->op == BinaryOp::add || b->op == BinaryOp::sub) {
        Expr stride = binary(b->op, p.stride ? p.stride : zero, q.stride ? q.stride : zero);
        return simplify_vector(ramp(binary(b->op, p.base, q.base), stride, lanes));
      }
      if (b->op == BinaryOp::mul && !(p.stride && q.stride)) {
        Expr stride = p.stride ? p.stride * q.base : q.stride * p.base;
        return simplify_vector(ramp(p.base * q.base, stride, lanes));
      }
      // 0: not a constant (a stride of 0 is a broadcast, a divisor of 0 is left alone)
      int64_t c = q.stride ? 0 : const_int(q.base).value_or(0), s = p.stride ? const_int(p.stride).value_or(0) : 0;
      if ((b->op == BinaryOp::floor_div || b->op == BinaryOp::floor_mod) && c > 0 && s != 0) {
        if (s % c == 0) {  // whole periods from lane to lane
          if (b->op == BinaryOp::floor_mod) return broadcast(simplify(floor_mod(p.base, c)), lanes);
          return simplify_vector(ramp(floor_div(p.base, c), int_imm(s / c, p.base->dtype), lanes));
        }
        // All lanes within one period of c.
        Linear low = linear(floor_mod(p.base, c));
        Interval range =
            bounds(low) + Interval{std::min<int64_t>(0, s * (lanes - 1)), std::max<int64_t>(0, s * (lanes - 1))};
        ModularSet m = modular(linear(p.base));
        bool fits = range.min >= 0 && range.max < c;
        if (!fits && s > 0 && m.coefficient % c == 0) fits = floor_mod(m.base, c) + s * (lanes - 1) < c;
        if (fits && b->op == BinaryOp::floor_div) return broadcast(simplify(floor_div(p.base, c)), lanes);
        if (fits) return simplify_vector(ramp(floor_mod(p.base, c), p.stride, lanes));
      }
      if (is_comparison(b->op) && s != 0 && !q.stride && b->op != BinaryOp::eq && b->op != BinaryOp::ne) {
        // A comparison that agrees on the first and the last lane agrees on all.
        Expr first = simplify(binary(b->op, p.base, q.base));
        Expr last = simplify(binary(b->op, p.base + s * (lanes - 1), q.base));
        if (const_int(first) && const_int(last) && const_int(first) == const_int(last)) return broadcast(first, lanes);
      }
    }
  }
  return x.same_as(b->a) && y.same_as(b->b) ? e : binary(b->op, x, y);
}

}  // namespace tilewright
