// Binding, assuming, constant bounds, congruences; the public face of Analyzer.
#include <numeric>

#include "ir/simplify/state.h"
#include "ir/visit.h"

namespace tilewright {

Expr end_of(const Range& r) { return is_const(r.min, 0) ? r.extent : r.min + r.extent; }

Range range_of(const For& loop) {
  if (!loop.step || is_const(loop.step, 1)) return {loop.min, loop.extent};
  // var < min + extent, whatever the step
  return {loop.min, loop.extent};
}

std::vector<VarRange> domains_of(const Block& block) {
  std::vector<VarRange> out;
  for (const Iter& iter : block.iters) out.push_back({iter.var, iter.dom});
  return out;
}

// --- state -----------------------------------------------------------------------------------------------------------

Analyzer::State::Entry& Analyzer::State::change(const Expr& atom) {
  for (size_t i = entries.size(); i-- > 0;)
    if (entries[i].atom->hash == atom->hash) {
      log.push_back({Undo::entry_changed, i, entries[i]});
      return entries[i];
    }
  entries.push_back({atom, {}, {}, {}});
  log.push_back({Undo::entry_added, entries.size() - 1, {}});
  return entries.back();
}

void Analyzer::State::add_fact(Linear f) {
  facts.push_back(std::move(f));
  log.push_back({Undo::fact_added, 0, {}});
}

void Analyzer::State::add_truth(const Expr& e) {
  truths.push_back(e);
  log.push_back({Undo::truth_added, 0, {}});
}

void Analyzer::State::undo_to(size_t mark) {
  while (log.size() > mark) {
    Undo& u = log.back();
    switch (u.kind) {
      case Undo::entry_changed:
        entries[u.index] = std::move(u.old);
        break;
      case Undo::entry_added:
        entries.pop_back();
        break;
      case Undo::fact_added:
        facts.pop_back();
        break;
      case Undo::truth_added:
        truths.pop_back();
        break;
    }
    log.pop_back();
  }
}

// --- bounds ----------------------------------------------------------------------------------------------------------

Interval Simplifier::bounds(const Linear& x) {
  Interval sum{x.constant, x.constant};
  for (const Term& t : x.terms) sum = sum + bounds(t.atom) * t.coeff;
  return sum;
}

namespace {
// x // d and x % d for a divisor that is not constant, d >= 1.
Interval symbolic_division_bounds(BinaryOp op, const Interval& x, const Interval& d) {
  if (d.min < 1) return {};
  if (op == BinaryOp::floor_mod) {
    Interval r{0, d.max == Interval::kMax ? Interval::kMax : d.max - 1};
    if (x.min >= 0) r.max = std::min(r.max, x.max);
    return r;
  }
  Interval q;
  q.min = x.min >= 0 ? 0 : x.min;  // a quotient is never further from 0 than its dividend
  q.max = x.max < 0 ? -1 : x.max == Interval::kMax ? x.max : x.max / d.min;
  return q;
}
}  // namespace

Interval Simplifier::bounds(const Expr& e) {
  Interval known;
  if (const Analyzer::State::Entry* entry = s_.find(e)) {
    known = entry->bounds;
    if (e->kind == ExprKind::kVarNode) return known;
  }
  switch (e->kind) {
    case ExprKind::kIntImm: {
      int64_t v = static_cast<const IntImm&>(*e).value;
      return {v, v};
    }
    case ExprKind::kCast: {
      const Expr& value = static_cast<const Cast&>(*e).value;
      if (!value->dtype.is_integer_like()) return intersect(known, type_bounds(e->dtype));
      Interval inner = bounds(value), range = type_bounds(e->dtype);
      bool fits = inner.min >= range.min && inner.max <= range.max;
      return intersect(known, fits ? inner : range);
    }
    case ExprKind::kSelect: {
      const Select& s = static_cast<const Select&>(*e);
      return intersect(known, hull(bounds(s.then_value), bounds(s.else_value)));
    }
    case ExprKind::kCall: {
      const Call& c = static_cast<const Call&>(*e);
      if (c.op->name == "if_then_else") return intersect(known, hull(bounds(c.args[1]), bounds(c.args[2])));
      return intersect(known, type_bounds(e->dtype));
    }
    case ExprKind::kBinary:
      break;
    default:
      return intersect(known, type_bounds(e->dtype));
  }
  const Binary& b = static_cast<const Binary&>(*e);
  if (!is_index_type(e->dtype)) return intersect(known, type_bounds(e->dtype));  // narrow arithmetic may wrap
  switch (b.op) {
    case BinaryOp::add:
      return intersect(known, bounds(b.a) + bounds(b.b));
    case BinaryOp::sub:
      return intersect(known, bounds(b.a) + bounds(b.b) * -1);
    case BinaryOp::mul:
      return intersect(known, bounds(b.a) * bounds(b.b));
    case BinaryOp::min: {
      Interval x = bounds(b.a), y = bounds(b.b);
      return intersect(known, {std::min(x.min, y.min), std::min(x.max, y.max)});
    }
    case BinaryOp::max: {
      Interval x = bounds(b.a), y = bounds(b.b);
      return intersect(known, {std::max(x.min, y.min), std::max(x.max, y.max)});
    }
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod: {
      std::optional<int64_t> c = const_int(b.b);
      Interval x = bounds(b.a);
      if (!c) return intersect(known, symbolic_division_bounds(b.op, x, bounds(b.b)));
      if (*c <= 0) return known;
      if (b.op == BinaryOp::floor_div) return intersect(known, floor_div(x, *c));
      if (x.bounded() && floor_div(x.min, *c) == floor_div(x.max, *c))
        return intersect(known, {floor_mod(x.min, *c), floor_mod(x.max, *c)});
      return intersect(known, {0, *c - 1});
    }
    default:
      return known;
  }
}

// --- congruences -----------------------------------------------------------------------------------------------------

namespace {
ModularSet make_modular(int64_t coefficient, int64_t base) {
  coefficient = coefficient < 0 ? -coefficient : coefficient;
  return {coefficient, coefficient == 0 ? base : floor_mod(base, coefficient)};
}
ModularSet add_modular(const ModularSet& a, const ModularSet& b) {
  return make_modular(std::gcd(a.coefficient, b.coefficient), checked_add(a.base, b.base));
}
ModularSet scale_modular(const ModularSet& a, int64_t k) {
  return make_modular(checked_mul(a.coefficient, k), checked_mul(a.base, k));
}
ModularSet join_modular(const ModularSet& a, const ModularSet& b) {
  int64_t c = std::gcd(std::gcd(a.coefficient, b.coefficient), a.base - b.base);
  return make_modular(c, a.base);
}
}  // namespace

ModularSet Simplifier::modular(const Linear& x) {
  ModularSet sum{0, x.constant};
  for (const Term& t : x.terms) sum = add_modular(sum, scale_modular(modular(t.atom), t.coeff));
  return sum;
}

ModularSet Simplifier::modular(const Expr& e) {
  if (std::optional<int64_t> c = const_int(e)) return {0, *c};
  if (const Analyzer::State::Entry* entry = s_.find(e))
    if (entry->modular.coefficient != 1) return entry->modular;
  if (const Select* s = as<Select>(e)) return join_modular(modular(s->then_value), modular(s->else_value));
  const Binary* b = as<Binary>(e);
  if (!b || !is_index_type(e->dtype)) return {};
  switch (b->op) {
    case BinaryOp::add:
      return add_modular(modular(b->a), modular(b->b));
    case BinaryOp::sub:
      return add_modular(modular(b->a), scale_modular(modular(b->b), -1));
    case BinaryOp::mul: {
      ModularSet x = modular(b->a), y = modular(b->b);
      if (x.coefficient == 0) return scale_modular(y, x.base);
      if (y.coefficient == 0) return scale_modular(x, y.base);
      int64_t c = std::gcd(checked_mul(x.coefficient, y.coefficient),
                           std::gcd(checked_mul(x.coefficient, y.base), checked_mul(y.coefficient, x.base)));
      return make_modular(c, checked_mul(x.base, y.base));
    }
    case BinaryOp::min:
    case BinaryOp::max:
      return join_modular(modular(b->a), modular(b->b));
    case BinaryOp::floor_div: {
      std::optional<int64_t> c = const_int(b->b);
      ModularSet x = modular(b->a);
      // x = c·k·t + base: the quotient moves in steps of k
      if (c && *c > 0 && x.coefficient % *c == 0) return make_modular(x.coefficient / *c, floor_div(x.base, *c));
      return {};
    }
    case BinaryOp::floor_mod: {
      std::optional<int64_t> c = const_int(b->b);
      if (!c || *c <= 0) return {};
      ModularSet x = modular(b->a);
      return make_modular(std::gcd(x.coefficient, *c), x.base);
    }
    default:
      return {};
  }
}

// --- assuming --------------------------------------------------------------------------------------------------------

void Simplifier::assume_not_negative(const Linear& x) {
  if (x.is_const()) return;
  // Tighten the constant bounds of each atom by the others'.
  for (const Term& t : x.terms) {
    Interval rest{x.constant, x.constant};
    for (const Term& o : x.terms)
      if (&o != &t) rest = rest + bounds(o.atom) * o.coeff;
    if (rest.max == Interval::kMax) continue;
    Interval old = bounds(t.atom), fresh = old;  // t.coeff * atom >= -rest.max
    if (t.coeff > 0) fresh.min = std::max(old.min, -floor_div(rest.max, t.coeff));
    if (t.coeff < 0) fresh.max = std::min(old.max, floor_div(rest.max, -t.coeff));
    if (fresh != old) s_.change(t.atom).bounds = fresh;
  }
  if (x.terms.size() > 1) s_.add_fact(x);
}

void Simplifier::assume(const Expr& conjunct) {
  Expr e = simplify(conjunct);
  if (const_int(e)) return;
  s_.add_truth(e);
  for (const Expr& c : conjuncts(e)) {
    if (!c.same_as(e)) s_.add_truth(c);
    const Binary* b = as<Binary>(c);
    if (!b || !is_comparison(b->op) || !is_index_type(b->a->dtype)) continue;
    Linear d = linear(b->b);
    add_scaled(d, linear(b->a), -1);  // b - a
    switch (b->op) {
      case BinaryOp::lt:
        d.constant = checked_add(d.constant, -1);
        assume_not_negative(d);
        break;
      case BinaryOp::le:
        assume_not_negative(d);
        break;
      case BinaryOp::eq: {
        // x % c == r: a congruence of x
        Digit digit = d.terms.size() == 1 ? decode_digit(d.terms[0].atom) : Digit{};
        if (digit.modulus && digit.lower == 1 && (d.terms[0].coeff == 1 || d.terms[0].coeff == -1))
          s_.change(digit.source).modular = make_modular(digit.modulus, -d.constant * d.terms[0].coeff);
        Linear negative = d;
        scale(negative, -1);
        assume_not_negative(d);
        assume_not_negative(negative);
        break;
      }
      default:
        break;
    }
  }
}

// --- Analyzer --------------------------------------------------------------------------------------------------------

// Any overflow of a coefficient means "nothing known"; what was assumed on the way is taken back.
template <class T, class F>
T Analyzer::guarded(T fallback, F&& f) {
  size_t mark = state_->log.size();
  try {
    return f();
  } catch (const CoefficientOverflow&) {
    state_->undo_to(mark);
    return fallback;
  }
}

Analyzer::Analyzer() : state_(std::make_unique<State>()) {}
Analyzer::~Analyzer() = default;

Analyzer::Scope::Scope(Analyzer& a) : analyzer_(&a), mark_(a.state_->log.size()) {}
Analyzer::Scope::~Scope() {
  if (analyzer_) analyzer_->state_->undo_to(mark_);
}

void Analyzer::bind(const Var& var, const Range& range) {
  if (!is_index_type(var->dtype)) return;
  State& s = *state_;
  std::optional<int64_t> cmin = const_int(range.min), cextent = const_int(range.extent);
  if (cmin && cextent) {  // the usual case
    State::Entry& entry = s.change(var);
    entry.value = nullptr;
    entry.modular = {};
    entry.bounds = {*cmin, *cmin + std::max<int64_t>(*cextent, 1) - 1};
    return;
  }
  try {
    Simplifier simplifier(s);
    Linear lo = simplifier.linear(range.min), hi = lo;
    add_scaled(hi, simplifier.linear(range.extent), 1);
    hi.constant = checked_add(hi.constant, -1);
    Interval lower = simplifier.bounds(lo), upper = simplifier.bounds(hi);
    State::Entry& entry = s.change(var);
    entry.value = nullptr;
    entry.modular = {};
    entry.bounds = {lower.min, upper.max};
    scale(lo, -1);
    add_term(lo, var, 1);
    add_term(hi, var, -1);
    if (lo.terms.size() > 1) simplifier.assume_not_negative(lo);
    if (hi.terms.size() > 1) simplifier.assume_not_negative(hi);
  } catch (const CoefficientOverflow&) {
    s.change(var) = {var, {}, {}, {}};
  }
}

void Analyzer::bind(const std::vector<VarRange>& vars) {
  for (const VarRange& v : vars) bind(v.var, v.range);
}

void Analyzer::bind(const For& loop) {
  bind(loop.var, range_of(loop));
  std::optional<int64_t> step = loop.step ? const_int(loop.step) : 1, min = const_int(loop.min);
  if (step && *step > 1 && min) state_->change(loop.var).modular = make_modular(*step, *min);
}

void Analyzer::bind(const Var& var, const Expr& value) {
  Expr simple = simplify(value);
  State::Entry& entry = state_->change(var);
  entry.value = simple;
  entry.bounds = {};
}

Analyzer::Scope Analyzer::assume(const Expr& predicate) {
  Scope scope(*this);
  for (const Expr& c : conjuncts(predicate)) {
    try {
      Simplifier(*state_).assume(c);
    } catch (const CoefficientOverflow&) {
    }
  }
  return scope;
}

Expr Analyzer::simplify(const Expr& e) {
  if (!e || e->kind == ExprKind::kIntImm) return e;
  return guarded(e, [&] { return Simplifier(*state_).simplify(e); });
}

Range Analyzer::simplify(const Range& r) { return {simplify(r.min), simplify(r.extent)}; }

bool Analyzer::can_prove(const Expr& condition) { return is_true(condition) || is_const(simplify(condition), 1); }

bool Analyzer::can_prove_equal(const Expr& a, const Expr& b) {
  if (a.same_as(b) || a->hash == b->hash) return true;
  if (a->dtype != b->dtype) return false;
  if (!is_index_type(a->dtype)) return simplify(a)->hash == simplify(b)->hash;
  return guarded(false, [&] {
    Simplifier simplifier(*state_);
    Linear d = simplifier.linear(a - b);
    if (d.is_const()) return d.constant == 0;
    Linear negative = d;
    scale(negative, -1);
    return simplifier.not_negative(d) && simplifier.not_negative(negative);
  });
}

bool Analyzer::can_prove_not_negative(const Expr& e) {
  return guarded(false, [&] {
    Simplifier simplifier(*state_);
    return simplifier.not_negative(simplifier.linear(e));
  });
}

bool Analyzer::can_prove_less(const Expr& a, const Expr& b) { return can_prove_not_negative(b - a - 1); }
bool Analyzer::can_prove_less_equal(const Expr& a, const Expr& b) { return can_prove_not_negative(b - a); }

bool Analyzer::can_prove_divisible(const Expr& e, const Expr& divisor) {
  std::optional<int64_t> c = const_int(divisor);
  if (c && *c != 0 && modular(e).divisible_by(*c)) return true;
  return is_const(simplify(floor_mod(e, divisor)), 0);
}

Interval Analyzer::const_bounds(const Expr& e) {
  if (const IntImm* c = as<IntImm>(e)) return {c->value, c->value};
  return guarded(Interval{}, [&] {
    Simplifier simplifier(*state_);
    if (!is_index_type(e->dtype)) return simplifier.bounds(e);
    return simplifier.bounds(simplifier.linear(e));
  });
}

ModularSet Analyzer::modular(const Expr& e) {
  return guarded(ModularSet{}, [&] {
    Simplifier simplifier(*state_);
    if (!is_index_type(e->dtype)) return simplifier.modular(e);
    return simplifier.modular(simplifier.linear(e));
  });
}

Expr simplify(const Expr& e) { return Analyzer().simplify(e); }

}  // namespace tilewright
