#include "costmodel/features/index_form.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace tilewright {

int64_t floor_quotient(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

int FormArena::add_loop(int64_t min, int64_t extent) {
  atoms_.push_back({AtomKind::loop, min, extent, {}, 1, {}});
  return static_cast<int>(atoms_.size()) - 1;
}

IndexForm FormArena::add(const IndexForm& a, const IndexForm& b, int64_t k) const {
  IndexForm out;
  out.constant = a.constant + k * b.constant;
  out.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->atom < y->atom))
      out.terms.push_back(*x++);
    else if (x == a.terms.end() || y->atom < x->atom)
      out.terms.push_back({y->atom, k * y->coefficient}), ++y;
    else {
      if (int64_t c = x->coefficient + k * y->coefficient) out.terms.push_back({x->atom, c});
      ++x, ++y;
    }
  }
  if (k == 0) out.terms = a.terms;
  return out;
}

IndexForm FormArena::scale(const IndexForm& f, int64_t factor) const {
  if (factor == 0) return {};
  IndexForm out = f;
  out.constant *= factor;
  for (IndexTerm& term : out.terms) term.coefficient *= factor;
  return out;
}

FormArena::Cut FormArena::cut(const IndexForm& f, int64_t step) const {
  Cut out;
  out.high.constant = floor_quotient(f.constant, step);
  out.low.constant = f.constant - step * out.high.constant;
  for (const IndexTerm& term : f.terms) {
    if (term.coefficient % step == 0)
      out.high.terms.push_back({term.atom, term.coefficient / step});
    else
      out.low.terms.push_back(term);
  }
  return out;
}

bool FormArena::fits(const IndexForm& low, int64_t below) const {
  IndexRange r = full_range(low);
  return r.known && r.lo >= 0 && r.hi < below;
}

int FormArena::intern(Atom atom) {
  for (size_t i = 0; i < atoms_.size(); ++i) {
    const Atom& a = atoms_[i];
    if (a.kind == atom.kind && a.kind != AtomKind::opaque && a.divisor == atom.divisor && a.parts == atom.parts &&
        a.kind != AtomKind::loop)
      return static_cast<int>(i);
  }
  atoms_.push_back(std::move(atom));
  return static_cast<int>(atoms_.size()) - 1;
}

IndexForm FormArena::quotient(const IndexForm& f, int64_t divisor) {
  if (divisor == 1) return f;
  auto [whole, rest] = cut(f, divisor);  // multiples of the divisor leave at once
  IndexRange r = full_range(rest);
  if (r.known && floor_quotient(r.lo, divisor) == floor_quotient(r.hi, divisor)) {
    whole.constant += floor_quotient(r.lo, divisor);
    return whole;
  }
  // (g·h + l) / d = h / (d/g) where 0 <= l < g: a fused loop's digits part again. The largest such g leaves least.
  int64_t best = 1;
  for (const IndexTerm& term : rest.terms) {
    int64_t g = std::gcd(std::abs(term.coefficient), divisor);
    if (g > best && fits(cut(rest, g).low, g)) best = g;
  }
  if (best > 1) return add(whole, quotient(cut(rest, best).high, divisor / best));
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 && rest.constant == 0)
    if (const Atom& a = atoms_[static_cast<size_t>(rest.terms[0].atom)]; a.kind == AtomKind::quotient)
      return add(whole, quotient(IndexForm(a.parts[0]), a.divisor * divisor));
  return add(whole, atom(intern({AtomKind::quotient, 0, 1, {rest}, divisor, {}})));
}

IndexForm FormArena::remainder(const IndexForm& f, int64_t divisor) {
  if (divisor == 1) return {};
  IndexForm rest = cut(f, divisor).low;
  IndexRange r = full_range(rest);
  if (r.known && floor_quotient(r.lo, divisor) == floor_quotient(r.hi, divisor)) {
    rest.constant -= divisor * floor_quotient(r.lo, divisor);
    return rest;
  }
  int64_t best = 1;
  for (const IndexTerm& term : rest.terms) {
    int64_t g = std::gcd(std::abs(term.coefficient), divisor);
    if (g > best && fits(cut(rest, g).low, g)) best = g;
  }
  if (best > 1) {
    Cut parts = cut(rest, best);
    return add(parts.low, remainder(parts.high, divisor / best), best);
  }
  if (rest.terms.size() == 1 && rest.terms[0].coefficient == 1 && rest.constant == 0)
    if (const Atom& a = atoms_[static_cast<size_t>(rest.terms[0].atom)];
        a.kind == AtomKind::remainder && a.divisor % divisor == 0)
      return remainder(IndexForm(a.parts[0]), divisor);
  return atom(intern({AtomKind::remainder, 0, 1, {rest}, divisor, {}}));
}

IndexForm FormArena::minimum(const IndexForm& a, const IndexForm& b) {
  IndexRange d = full_range(add(a, b, -1));
  if (d.known && d.hi <= 0) return a;
  if (d.known && d.lo >= 0) return b;
  return atom(intern({AtomKind::minimum, 0, 1, {a, b}, 1, {}}));
}

IndexForm FormArena::maximum(const IndexForm& a, const IndexForm& b) {
  IndexRange d = full_range(add(a, b, -1));
  if (d.known && d.lo >= 0) return a;
  if (d.known && d.hi <= 0) return b;
  return atom(intern({AtomKind::maximum, 0, 1, {a, b}, 1, {}}));
}

IndexForm FormArena::opaque(std::vector<IndexForm> parts, const OpCounts& ops) {
  return atom(intern({AtomKind::opaque, 0, 1, std::move(parts), 1, ops}));
}

void FormArena::for_each_loop(const IndexForm& f, const std::function<void(int)>& visit) const {
  for (const IndexTerm& term : f.terms) {
    const Atom& a = atoms_[static_cast<size_t>(term.atom)];
    if (a.kind == AtomKind::loop) visit(term.atom);
    for (const IndexForm& part : a.parts) for_each_loop(part, visit);
  }
}

bool FormArena::depends_on(const IndexForm& f, int loop_atom) const {
  for (const IndexTerm& term : f.terms) {
    if (term.atom == loop_atom) return true;
    for (const IndexForm& part : atoms_[static_cast<size_t>(term.atom)].parts)
      if (depends_on(part, loop_atom)) return true;
  }
  return false;
}

int64_t FormArena::coefficient(const IndexForm& f, int loop_atom) const {
  for (const IndexTerm& term : f.terms)
    if (term.atom == loop_atom) return std::abs(term.coefficient);
  for (const IndexTerm& term : f.terms) {
    const Atom& a = atoms_[static_cast<size_t>(term.atom)];
    for (const IndexForm& part : a.parts) {
      // Scale and inner factor: 16 · (f % 4) moves by 16 when f does. A quotient moves by the factor inside it, as if
      // exact.
      if (int64_t inner = coefficient(part, loop_atom)) return inner * std::abs(term.coefficient);
      if (depends_on(part, loop_atom)) return std::abs(term.coefficient);
    }
  }
  return 0;
}

void FormArena::count(const IndexForm& f, OpCounts& ops) const {
  int summands = static_cast<int>(f.terms.size()) + (f.constant != 0 ? 1 : 0);
  if (summands > 1) ops[OpClass::int_add] += summands - 1;
  for (const IndexTerm& term : f.terms) {
    if (std::abs(term.coefficient) != 1) ++ops[OpClass::int_mul];
    const Atom& a = atoms_[static_cast<size_t>(term.atom)];
    if (a.kind == AtomKind::quotient || a.kind == AtomKind::remainder) ++ops[OpClass::int_div];
    if (a.kind == AtomKind::minimum || a.kind == AtomKind::maximum) ++ops[OpClass::int_compare];
    ops += a.ops;
    if (a.kind == AtomKind::opaque) continue;
    for (const IndexForm& part : a.parts) count(part, ops);
  }
}

}  // namespace tilewright
