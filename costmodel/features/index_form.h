// Index expressions as sums of scaled atoms: Σ coefficient · atom + constant. An atom is a loop variable, the quotient
// or remainder of a form by a constant, or something opaque. Forms are built simplified (divisions are split along
// known ranges), and answer what features ask: range, coefficients, operations that are left. Made for one program and
// thrown away: this is the fast path that spares a simplifier run for each candidate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "costmodel/features/sites.h"

namespace tilewright {

struct IndexTerm {
  int atom;
  int64_t coefficient;
  bool operator==(const IndexTerm&) const = default;
};

struct IndexForm {
  int64_t constant = 0;
  std::vector<IndexTerm> terms;  ///< by atom, coefficients not zero
  bool is_constant() const { return terms.empty(); }
  bool operator==(const IndexForm&) const = default;
};

/// Both ends included. `known` false: nothing is known.
struct IndexRange {
  int64_t lo = 0, hi = 0;
  bool known = true;
};

/// Every loop at its minimum.
struct NoLoop {
  bool operator()(int) const { return false; }
};

class FormArena {
 public:
  /// Kinds of atoms. opaque: value unknown, or the smaller/greater of two forms.
  enum class AtomKind : uint8_t { loop, quotient, remainder, minimum, maximum, opaque };

  int add_loop(int64_t min, int64_t extent);
  IndexForm constant(int64_t value) const { return {value, {}}; }
  IndexForm atom(int id) const { return {0, {{id, 1}}}; }
  IndexForm add(const IndexForm&, const IndexForm&, int64_t scale_of_second = 1) const;
  IndexForm scale(const IndexForm&, int64_t factor) const;
  IndexForm quotient(const IndexForm&, int64_t divisor);   ///< floor; divisor > 0
  IndexForm remainder(const IndexForm&, int64_t divisor);  ///< floor; divisor > 0
  IndexForm minimum(const IndexForm&, const IndexForm&);
  IndexForm maximum(const IndexForm&, const IndexForm&);
  /// Unknown value that depends on the loops of `parts` and costs `ops` (which include what `parts` cost).
  IndexForm opaque(std::vector<IndexForm> parts, const OpCounts& ops);

  /// Values while every loop atom for which running(atom) holds takes all its values and the others stand at their
  /// minimum.
  template <class Running>
  IndexRange range(const IndexForm&, const Running& running, bool frozen_remainders = false) const;
  IndexRange full_range(const IndexForm& f) const {
    return range(f, [](int) { return true; });
  }
  /// Calls visit(atom) for each loop atom inside, more than once if it occurs more than once.
  void for_each_loop(const IndexForm&, const std::function<void(int)>& visit) const;
  bool depends_on(const IndexForm&, int loop_atom) const;
  /// |coefficient| of a loop: of the term itself, or inside the first quotient, remainder or other atom that holds it;
  /// 0: none.
  int64_t coefficient(const IndexForm&, int loop_atom) const;
  void count(const IndexForm&, OpCounts&) const;

 private:
  struct Atom {
    AtomKind kind;
    int64_t min = 0, extent = 1;  // loop
    std::vector<IndexForm> parts;
    int64_t divisor = 1;
    OpCounts ops;
  };
  /// f = step · high + low, where high takes every term whose coefficient is a multiple of step.
  struct Cut {
    IndexForm high, low;
  };
  Cut cut(const IndexForm&, int64_t step) const;
  bool fits(const IndexForm& low, int64_t below) const;
  int intern(Atom);

  std::vector<Atom> atoms_;
};

int64_t floor_quotient(int64_t a, int64_t b);  ///< b > 0

template <class Running>
IndexRange FormArena::range(const IndexForm& f, const Running& running, bool frozen_remainders) const {
  IndexRange out{f.constant, f.constant, true};
  for (const IndexTerm& term : f.terms) {
    const Atom& a = atoms_[static_cast<size_t>(term.atom)];
    IndexRange r;
    switch (a.kind) {
      case AtomKind::loop:
        r = {a.min, running(term.atom) ? a.min + a.extent - 1 : a.min, true};
        break;
      case AtomKind::quotient:
        r = range(a.parts[0], running, frozen_remainders);
        r.lo = floor_quotient(r.lo, a.divisor), r.hi = floor_quotient(r.hi, a.divisor);
        break;
      case AtomKind::remainder: {
        if (frozen_remainders)
          r = range(a.parts[0], NoLoop());
        else
          r = range(a.parts[0], running);
        int64_t q = floor_quotient(r.lo, a.divisor);
        if (r.known && q == floor_quotient(r.hi, a.divisor))
          r.lo -= q * a.divisor, r.hi -= q * a.divisor;
        else
          r = {0, a.divisor - 1, true};
        break;
      }
      case AtomKind::minimum:
      case AtomKind::maximum: {
        IndexRange x = range(a.parts[0], running, frozen_remainders), y = range(a.parts[1], running, frozen_remainders);
        bool least = a.kind == AtomKind::minimum;
        r.known = x.known && y.known;
        r.lo = least ? std::min(x.lo, y.lo) : std::max(x.lo, y.lo);
        r.hi = least ? std::min(x.hi, y.hi) : std::max(x.hi, y.hi);
        break;
      }
      case AtomKind::opaque:
        r.known = false;
        break;
    }
    if (!r.known) return {0, 0, false};
    int64_t c = term.coefficient;
    out.lo += c > 0 ? c * r.lo : c * r.hi;
    out.hi += c > 0 ? c * r.hi : c * r.lo;
  }
  return out;
}

}  // namespace tilewright
