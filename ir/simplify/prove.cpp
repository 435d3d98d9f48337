// Is a linear form never negative? Constant bounds first; then a bounded search that subtracts non-negative facts
// (x = q·f + rest, f >= 0) and opens quotients, minima and maxima. Sound, not complete: "no" means "not found".
#include <numeric>

#include "ir/simplify/state.h"

namespace tilewright {

namespace {
constexpr int kSearchDepth = 4;    // facts combined in one proof; predicates of split programs need two or three
constexpr int kSearchBudget = 96;  // forms looked at: keeps a failing proof within some tens of microseconds
}  // namespace

bool Simplifier::not_negative(const Linear& x) {
  Interval b = bounds(x);
  if (b.min >= 0) return true;
  if (b.max < 0) return false;
  // A proof inside a proof (the normal form of an opened quotient may need one) draws on the outer one's budget.
  if (searching_) return search(x, 1);
  searching_ = true;
  looked_at_ = 0;
  bool found = search(x, kSearchDepth);
  searching_ = false;
  return found;
}

std::optional<bool> Simplifier::decide_not_negative(const Linear& x) {
  if (not_negative(x)) return true;
  Linear opposite = x;  // x < 0  <=>  -x - 1 >= 0
  scale(opposite, -1);
  opposite.constant = checked_add(opposite.constant, -1);
  if (not_negative(opposite)) return false;
  return std::nullopt;
}

bool Simplifier::search(const Linear& x, int depth) {
  Interval b = bounds(x);
  if (b.min >= 0) return true;
  if (b.max < 0 || depth == 0 || ++looked_at_ > kSearchBudget) return false;
  return search_facts(x, depth) || search_atoms(x, depth);
}

namespace {

/// q·fact with the atom of coefficient kf, so that it cancels kx in x: x·s - fact·q, s > 0, q > 0.
struct Multiplier {
  int64_t s, q;
};
Multiplier multiplier(int64_t kx, int64_t kf) {
  int64_t g = std::gcd(kx, kf);
  return {std::abs(kf) / g, std::abs(kx) / g};
}

// s·x + (s - 1) - q·fact; x >= 0 follows from this being >= 0, because x is an integer.
Linear subtract_fact(const Linear& x, const Linear& fact, Multiplier m) {
  Linear r = x;
  scale(r, m.s);
  r.constant = checked_add(r.constant, m.s - 1);
  add_scaled(r, fact, -m.q);
  return r;
}

}  // namespace

bool Simplifier::search_facts(const Linear& x, int depth) {
  if (s_.facts.empty()) return false;
  // An atom without a bound on the side that matters must be cancelled; without one, any may be.
  const Term* needed = nullptr;
  for (const Term& t : x.terms) {
    Interval b = bounds(t.atom);
    if (t.coeff > 0 ? b.min == Interval::kMin : b.max == Interval::kMax) {
      needed = &t;
      break;
    }
  }
  for (const Term& t : x.terms) {
    if (needed && &t != needed) continue;
    for (size_t i = s_.facts.size(); i-- > 0;) {
      const Linear& fact = s_.facts[i];
      for (const Term& f : fact.terms) {
        if (f.atom->hash != t.atom->hash || (f.coeff > 0) != (t.coeff > 0)) continue;
        if (search(subtract_fact(x, fact, multiplier(t.coeff, f.coeff)), depth - 1)) return true;
        break;
      }
    }
    // A product a·rest with rest >= 0: facts about a, times rest.
    const Binary* product = as<Binary>(t.atom);
    if (!product || product->op != BinaryOp::mul) continue;
    std::vector<Expr> factors;
    collect_factors(t.atom, factors);
    for (size_t j = 0; j < factors.size(); ++j) {
      std::vector<Expr> others = factors;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(j));
      Expr rest = product_of(others);
      if (bounds(rest).min < 0) continue;
      for (size_t i = s_.facts.size(); i-- > 0;) {
        const Linear& fact = s_.facts[i];
        for (const Term& f : fact.terms) {
          if (f.atom->hash != factors[j]->hash || (f.coeff > 0) != (t.coeff > 0)) continue;
          Linear scaled{{}, 0, x.dtype};
          for (const Term& g : fact.terms) add_product(scaled, g.atom, rest, g.coeff);
          add_term(scaled, rest, fact.constant);
          if (search(subtract_fact(x, scaled, multiplier(t.coeff, f.coeff)), depth - 1)) return true;
          break;
        }
      }
    }
  }
  return false;
}

bool Simplifier::search_atoms(const Linear& x, int depth) {
  for (const Term& t : x.terms) {
    auto replaced = [&](const Expr& by) {
      Linear r = x;
      add_term(r, t.atom, -t.coeff);
      add(r, by, t.coeff);
      return r;
    };
    if (const Select* s = as<Select>(t.atom))
      if (search(replaced(s->then_value), depth - 1) && search(replaced(s->else_value), depth - 1)) return true;
    const Binary* b = as<Binary>(t.atom);
    if (!b) continue;
    if (b->op == BinaryOp::min || b->op == BinaryOp::max) {
      // A lower bound of max (or an upper one of min) may be either operand; of the other kind it must hold for both.
      bool either = (b->op == BinaryOp::max) == (t.coeff > 0);
      bool first = search(replaced(b->a), depth - 1);
      if (either ? first || search(replaced(b->b), depth - 1) : first && search(replaced(b->b), depth - 1)) return true;
    }
    std::optional<int64_t> c = const_int(b->b);
    if (b->op == BinaryOp::floor_div && c && *c > 0) {
      // n - (c-1) <= c·(n // c) <= n, and x >= 0 <=> c·x + (c-1) >= 0
      Linear r = x;
      add_term(r, t.atom, -t.coeff);
      scale(r, *c);
      r.constant = checked_add(r.constant, *c - 1);
      Linear n = linear(b->a);
      if (t.coeff > 0) n.constant = checked_add(n.constant, 1 - *c);
      add_scaled(r, n, t.coeff);
      if (search(r, depth - 1)) return true;
    }
    if (b->op == BinaryOp::floor_mod && t.coeff < 0) {
      if (!c && bounds(b->b).min >= 1) {  // n % d <= d - 1
        Linear r = replaced(b->b);
        r.constant = checked_add(r.constant, -t.coeff);
        if (search(r, depth - 1)) return true;
      }
      if (bounds(b->a).min >= 0 && bounds(b->b).min >= 1 && search(replaced(b->a), depth - 1))
        return true;  // n % d <= n
    }
  }
  return false;
}

}  // namespace tilewright
