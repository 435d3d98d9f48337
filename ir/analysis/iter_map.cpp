#include "ir/analysis/iter_map.h"

#include <algorithm>
#include <functional>

#include "ir/visit.h"

namespace tilewright {

namespace {

/// Arithmetic on factors: constants fold, symbolic ones go through the analyzer.
struct Factors {
  Analyzer& a;
  bool equal(const Expr& x, const Expr& y) {
    std::optional<int64_t> cx = const_int(x), cy = const_int(y);
    if (cx && cy) return *cx == *cy;
    return a.can_prove_equal(x, y);
  }
  bool divides(const Expr& d, const Expr& x) {
    std::optional<int64_t> cd = const_int(d), cx = const_int(x);
    if (cd && cx) return *cd != 0 && *cx % *cd == 0;
    return is_const(d, 1) || a.can_prove_divisible(x, d);
  }
  bool at_most(const Expr& x, const Expr& y) {
    std::optional<int64_t> cx = const_int(x), cy = const_int(y);
    if (cx && cy) return *cx <= *cy;
    return a.can_prove_less_equal(x, y);
  }
  Expr times(const Expr& x, const Expr& y) { return fold(x * y); }
  Expr plus(const Expr& x, const Expr& y) { return fold(x + y); }
  Expr over(const Expr& x, const Expr& y) { return fold(floor_div(x, y)); }
  Expr ceil_over(const Expr& x, const Expr& y) { return fold(floor_div(x + y - 1, y)); }
  Expr fold(const Expr& e) { return const_int(e) ? e : a.simplify(e); }
};

bool same_split(const IterSplit& x, const IterSplit& y) {
  return x.mark == y.mark && x.lower_factor->hash == y.lower_factor->hash && x.extent->hash == y.extent->hash;
}

/// A sum of digits that the predicate restricts to [lo, hi): `whole` stands for it from then on.
struct Constraint {
  IterSum sum;  // finest scale 1, base 0
  IterSplit whole;
  Expr lo;
  bool used = false;
};

class Detector {
 public:
  Detector(const std::vector<VarRange>& domains, Analyzer& a) : a_(a), f_{a} {
    for (const VarRange& d : domains) {
      auto mark = std::make_shared<IterMark>();
      mark->var = d.var;
      mark->min = d.range.min;
      mark->extent = d.range.extent;
      marks_.push_back(std::move(mark));
    }
  }

  const std::string& failure() const { return failure_; }
  const std::vector<Constraint>& constraints() const { return constraints_; }

  bool parse(const Expr& e, IterSum& out) {
    out.base = int_imm(0, e->dtype);
    return add(e, int_imm(1, e->dtype), out) && apply_constraints(out);
  }

  // --- predicates ---
  bool constrain(const Expr& predicate) {
    std::vector<std::pair<IterSum, std::pair<Expr, Expr>>> found;  // sum in [lo, hi); null: open
    for (const Expr& raw : conjuncts(predicate)) {
      Expr conjunct = a_.simplify(raw);
      if (is_true(conjunct)) continue;
      if (!uses_domain(conjunct)) return fail("a predicate that does not depend on the iteration variables");
      for (const Expr& c : conjuncts(conjunct))
        if (!read_bound(c, found)) return false;
    }
    // Smaller sums first: a larger one may be built from them.
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& x, const auto& y) { return x.first.splits.size() < y.first.splits.size(); });
    for (size_t i = 0; i < found.size(); ++i) {
      auto& [sum, bound] = found[i];
      if (sum.splits.empty()) continue;  // merged into an earlier one
      for (size_t j = i + 1; j < found.size(); ++j)
        if (same_sum(sum, found[j].first)) {
          if (!intersect(bound, found[j].second)) return false;
          found[j].first.splits.clear();
        }
      if (!add_constraint(sum, bound.first, bound.second)) return false;
    }
    return true;
  }

  // --- checks ---
  bool check(const std::vector<IterSum>& indices, IterMapCheck level, std::vector<Expr>& extents) {
    for (const IterSum& sum : indices) {
      if (sum.splits.empty()) {
        extents.push_back(int_imm(1, sum.base->dtype));
        continue;
      }
      std::optional<std::vector<IterSplit>> chain = order(sum.splits);
      if (!chain) return fail("an index is not a compact sum of digits");
      if (!is_const(chain->front().scale, 1)) return fail("the finest scale of an index is not 1");
      extents.push_back(f_.times(chain->back().scale, chain->back().extent));
    }
    std::vector<std::pair<const IterMark*, std::vector<const IterSplit*>>> uses;
    for (const IterSum& sum : indices) collect_uses(sum, uses);
    std::vector<IterSum> bounded;
    bounded.reserve(constraints_.size());  // `uses` points into it
    for (Constraint& c : constraints_) {
      c.used = false;
      for (auto& [mark, splits] : uses) c.used |= mark == c.whole.mark.get();
      if (c.used) continue;
      for (const IterSplit& piece : c.sum.splits)
        for (auto& [mark, splits] : uses)
          if (mark == piece.mark.get()) return fail("the predicate bounds digits that are not used together");
      if (level == IterMapCheck::bijective) return fail("the predicate bounds digits that are not used");
      if (!f_.at_most(int_imm(1, c.whole.extent->dtype), c.whole.extent))
        return fail("the predicate may never be true");
      bounded.push_back({{c.whole}, c.lo});
      collect_uses(bounded.back(), uses);  // digits bounded twice are not independent either
    }
    for (auto& [mark, splits] : uses)
      if (!check_uses(*mark, splits, level)) return false;
    if (level == IterMapCheck::bijective)
      for (const IterMarkRef& mark : marks_) {
        bool used = is_const(mark->extent, 1);
        for (auto& [m, splits] : uses) used |= m == mark.get();
        if (mark->is_var() && !used) return fail("variable " + mark->var->name + " is not used");
      }
    return true;
  }

  /// Splits in ascending scale, each scale the product of what is below it; nothing if they do not chain.
  std::optional<std::vector<IterSplit>> order(const std::vector<IterSplit>& splits) {
    std::vector<IterSplit> rest = splits, out;
    if (rest.empty()) return out;
    size_t first = 0;
    for (size_t i = 1; i < rest.size(); ++i) {
      std::optional<int64_t> best = const_int(rest[first].scale), c = const_int(rest[i].scale);
      if (c && (!best || *c < *best)) first = i;
    }
    if (std::optional<int64_t> c = const_int(rest[first].scale); c && *c <= 0) return std::nullopt;
    // Unit digits may share a scale with the next one.
    while (!rest.empty()) {
      size_t pick = rest.size();
      if (out.empty()) {
        pick = first;
      } else {
        Expr expected = f_.times(out.back().scale, out.back().extent);
        for (size_t i = 0; i < rest.size(); ++i)
          if (f_.equal(rest[i].scale, expected)) pick = pick == rest.size() || is_const(rest[i].extent, 1) ? i : pick;
      }
      if (pick == rest.size()) return std::nullopt;
      out.push_back(rest[pick]);
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    return out;
  }

 private:
  bool fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    return false;
  }
  const IterMarkRef* mark_of(const VarNode* v) const {
    for (const IterMarkRef& m : marks_)
      if (m->var.get() == v) return &m;
    return nullptr;
  }
  bool uses_domain(const Expr& e) const {
    return uses_any(e, [&](const VarNode* v) { return mark_of(v) != nullptr; });
  }

  void add_split(IterSum& out, IterSplit s) {
    if (is_const(s.extent, 1)) return;  // always 0
    for (size_t i = 0; i < out.splits.size(); ++i)
      if (same_split(out.splits[i], s)) {
        out.splits[i].scale = f_.plus(out.splits[i].scale, s.scale);
        if (is_const(out.splits[i].scale, 0)) out.splits.erase(out.splits.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
    out.splits.push_back(std::move(s));
  }

  // out += e * scale
  bool add(const Expr& e, const Expr& scale, IterSum& out) {
    if (e->kind == ExprKind::kIntImm) {
      out.base = f_.plus(out.base, f_.times(e, scale));
      return true;
    }
    if (const VarNode* v = as<VarNode>(e)) {
      const IterMarkRef* mark = mark_of(v);
      if (!mark) {
        out.base = f_.plus(out.base, f_.times(e, scale));
        return true;
      }
      if (!is_const((*mark)->min, 0)) out.base = f_.plus(out.base, f_.times((*mark)->min, scale));
      add_split(out, {*mark, int_imm(1, e->dtype), (*mark)->extent, scale});
      return true;
    }
    if (!uses_domain(e)) {
      out.base = f_.plus(out.base, f_.times(e, scale));
      return true;
    }
    const Binary* b = as<Binary>(e);
    if (!b) return fail("an index is not affine");
    switch (b->op) {
      case BinaryOp::add:
        return add(b->a, scale, out) && add(b->b, scale, out);
      case BinaryOp::sub:
        return add(b->a, scale, out) && add(b->b, f_.fold(scale * -1), out);
      case BinaryOp::mul:
        if (!uses_domain(b->b)) return add(b->a, f_.times(scale, b->b), out);
        if (!uses_domain(b->a)) return add(b->b, f_.times(scale, b->a), out);
        return fail("a product of iteration variables");
      case BinaryOp::floor_div:
      case BinaryOp::floor_mod:
        if (uses_domain(b->b)) return fail("a divisor that depends on an iteration variable");
        return add_division(b->op == BinaryOp::floor_div, b->a, b->b, scale, out);
      default:
        return fail("an index is not affine");
    }
  }

  bool add_division(bool div, const Expr& numerator, const Expr& c, const Expr& scale, IterSum& out) {
    IterSum sum;
    if (!parse(numerator, sum)) return false;
    // Multiples of the divisor leave the sum, unless that would tear a constrained sum apart (then nothing divides).
    std::optional<IterSplit> fused = fuse(sum.splits);
    if (!fused) return fail("a divided index is not a compact sum of digits");
    if (!f_.divides(c, sum.base)) return fail("an offset is not a multiple of the divisor");
    if (div) out.base = f_.plus(out.base, f_.times(scale, f_.over(sum.base, c)));
    IterSplit x = *fused;
    Expr divisor = c;
    if (!is_const(x.scale, 1)) {
      if (f_.divides(divisor, x.scale)) {
        if (!div) return true;
        x.scale = f_.times(scale, f_.over(x.scale, divisor));
        add_split(out, x);
        return true;
      }
      if (!f_.divides(x.scale, divisor)) return fail("a scale and a divisor do not divide each other");
      divisor = f_.over(divisor, x.scale);
    }
    Expr out_scale = div ? scale : f_.times(scale, x.scale);
    x.scale = out_scale;
    if (f_.at_most(x.extent, divisor)) {
      if (!div) add_split(out, x);
      return true;
    }
    bool exact = f_.divides(divisor, x.extent);
    // A remainder takes all its values only if there are that many: sure for whole multiples, unless a predicate may
    // have left none at all.
    if (!div && !(exact && !is_bounded(*x.mark)) && !f_.at_most(divisor, x.extent))
      return fail("a digit may be shorter than the divisor");
    // A remainder that the top digit leaves is met again in check_uses.
    bool top = f_.at_most(x.mark->extent, f_.times(x.lower_factor, x.extent));
    if (!exact && !top) return fail("a digit's extent is not a multiple of the divisor");
    if (div)
      add_split(out, {x.mark, f_.times(x.lower_factor, divisor),
                      exact ? f_.over(x.extent, divisor) : f_.ceil_over(x.extent, divisor), out_scale});
    else
      add_split(out, {x.mark, x.lower_factor, divisor, out_scale});
    return true;
  }

  /// The whole sum as one digit of one mark (finest scale kept); nothing if it is not compact.
  std::optional<IterSplit> fuse(const std::vector<IterSplit>& splits) {
    if (splits.empty()) return IterSplit{nullptr_mark(), int_imm(1), int_imm(1), int_imm(1)};
    if (splits.size() == 1) return splits[0];
    std::optional<std::vector<IterSplit>> chain = order(splits);
    if (!chain) return std::nullopt;
    Expr unit = chain->front().scale;
    auto sum = std::make_shared<IterSum>();
    sum->base = zero_of(unit->dtype);
    for (size_t i = chain->size(); i-- > 0;) {
      IterSplit s = (*chain)[i];
      s.scale = f_.over(s.scale, unit);
      sum->splits.push_back(std::move(s));
    }
    Expr extent = f_.times(sum->splits.front().scale, sum->splits.front().extent);
    for (const IterMarkRef& m : marks_)
      if (!m->is_var() && m->sum->base->hash == sum->base->hash && same_sum(*m->sum, *sum))
        return IterSplit{m, int_imm(1, extent->dtype), m->extent, unit};
    auto mark = std::make_shared<IterMark>();
    mark->sum = std::move(sum);
    mark->extent = extent;
    marks_.push_back(mark);
    return IterSplit{marks_.back(), int_imm(1, extent->dtype), extent, unit};
  }
  bool is_bounded(const IterMark& mark) const {
    if (mark.is_var()) return false;
    for (const Constraint& c : constraints_)
      if (c.whole.mark.get() == &mark) return true;
    return std::any_of(mark.sum->splits.begin(), mark.sum->splits.end(),
                       [&](const IterSplit& s) { return is_bounded(*s.mark); });
  }
  IterMarkRef nullptr_mark() {
    auto mark = std::make_shared<IterMark>();
    auto sum = std::make_shared<IterSum>();
    sum->base = int_imm(0);
    mark->sum = sum;
    mark->extent = int_imm(1);
    return mark;
  }

  static bool same_sum(const IterSum& x, const IterSum& y) {
    if (x.splits.size() != y.splits.size()) return false;
    for (const IterSplit& s : x.splits) {
      bool found = false;
      for (const IterSplit& t : y.splits) found |= same_split(s, t) && s.scale->hash == t.scale->hash;
      if (!found) return false;
    }
    return true;
  }

  // A comparison in normal form as bounds of a sum of digits.
  bool read_bound(const Expr& e, std::vector<std::pair<IterSum, std::pair<Expr, Expr>>>& out) {
    const Binary* b = as<Binary>(e);
    if (!b || (b->op != BinaryOp::lt && b->op != BinaryOp::le && b->op != BinaryOp::eq))
      return fail("a predicate that is no bound of a sum of digits");
    IterSum sum;
    sum.base = zero_of(b->a->dtype);
    Expr one = int_imm(1, b->a->dtype), minus = int_imm(-1, b->a->dtype);
    if (!add(b->a, one, sum) || !add(b->b, minus, sum)) return false;  // a - b
    int negative = 0;
    for (const IterSplit& s : sum.splits) negative += const_int(s.scale).value_or(1) < 0;
    if (negative && negative != static_cast<int>(sum.splits.size()))
      return fail("a predicate compares iteration variables");
    // a - b = ±s + base  <  0 (<= 0, == 0)
    Expr lo, hi, base = sum.base;
    if (negative) {
      for (IterSplit& s : sum.splits) s.scale = f_.times(s.scale, minus);
      lo = b->op == BinaryOp::lt ? f_.plus(base, one) : base;
      if (b->op == BinaryOp::eq) hi = f_.plus(base, one);
    } else {
      Expr opposite = f_.times(base, minus);
      hi = b->op == BinaryOp::lt ? opposite : f_.plus(opposite, one);
      if (b->op == BinaryOp::eq) lo = opposite;
    }
    sum.base = zero_of(b->a->dtype);
    if (!sum.splits.empty()) out.push_back({std::move(sum), {lo, hi}});
    return true;
  }

  bool intersect(std::pair<Expr, Expr>& x, const std::pair<Expr, Expr>& y) {
    if (!x.first)
      x.first = y.first;
    else if (y.first)
      x.first = f_.fold(max_of(x.first, y.first));
    if (!x.second)
      x.second = y.second;
    else if (y.second)
      x.second = f_.fold(min_of(x.second, y.second));
    return true;
  }

  bool add_constraint(IterSum sum, Expr lo, Expr hi) {
    if (!apply_constraints(sum)) return false;
    if (!is_const(sum.base, 0)) {  // digits replaced by bounded ones bring their offsets
      if (lo) lo = f_.fold(lo - sum.base);
      if (hi) hi = f_.fold(hi - sum.base);
      sum.base = zero_of(sum.base->dtype);
    }
    std::optional<IterSplit> fused = fuse(sum.splits);
    if (!fused) return fail("the predicate bounds a sum that is not compact");
    Expr unit = fused->scale;
    if (!is_const(unit, 1)) {
      for (IterSplit& s : sum.splits) s.scale = f_.over(s.scale, unit);
      if (lo) lo = f_.ceil_over(lo, unit);
      if (hi) hi = f_.ceil_over(hi, unit);
      fused->scale = int_imm(1, unit->dtype);
    }
    Expr zero = zero_of(unit->dtype);
    if (!lo || f_.at_most(lo, zero))
      lo = zero;
    else if (!f_.at_most(zero, lo))
      return fail("the sign of a lower bound is not known");
    if (!hi || f_.at_most(fused->extent, hi))
      hi = fused->extent;
    else if (!f_.at_most(hi, fused->extent))
      return fail("a bound is not comparable with the extent that it restricts");
    auto source = std::make_shared<IterSum>();
    source->splits.push_back(*fused);
    source->base = f_.fold(zero - lo);
    auto mark = std::make_shared<IterMark>();
    mark->sum = std::move(source);
    mark->extent = f_.fold(hi - lo);
    if (std::optional<int64_t> c = const_int(mark->extent); c && *c <= 0) return fail("the predicate is never true");
    marks_.push_back(mark);
    constraints_.push_back(
        {std::move(sum), {marks_.back(), int_imm(1, unit->dtype), mark->extent, int_imm(1, unit->dtype)}, lo});
    return true;
  }

  // Digits that the predicate bounds together become one digit of the bounded mark.
  bool apply_constraints(IterSum& sum) {
    for (const Constraint& c : constraints_) {
      const IterSplit& first = c.sum.splits[0];
      for (size_t i = 0; i < sum.splits.size(); ++i) {
        if (!same_split(sum.splits[i], first) || !f_.divides(first.scale, sum.splits[i].scale)) continue;
        Expr ratio = f_.over(sum.splits[i].scale, first.scale);
        std::vector<IterSplit> rest = sum.splits;
        bool all = true;
        for (const IterSplit& piece : c.sum.splits) {
          auto it = std::find_if(rest.begin(), rest.end(), [&](const IterSplit& s) {
            return same_split(s, piece) && f_.equal(s.scale, f_.times(piece.scale, ratio));
          });
          if (it == rest.end()) {
            all = false;
            break;
          }
          rest.erase(it);
        }
        if (!all) continue;
        sum.splits = std::move(rest);
        IterSplit whole = c.whole;
        whole.scale = ratio;
        sum.base = f_.plus(sum.base, f_.times(c.lo, ratio));
        add_split(sum, whole);
        break;
      }
    }
    return true;
  }

  void collect_uses(const IterSum& sum, std::vector<std::pair<const IterMark*, std::vector<const IterSplit*>>>& uses) {
    for (const IterSplit& s : sum.splits) {
      size_t at = 0;
      while (at < uses.size() && uses[at].first != s.mark.get()) ++at;
      bool fresh = at == uses.size();
      if (fresh) uses.push_back({s.mark.get(), {}});
      uses[at].second.push_back(&s);
      if (fresh && !s.mark->is_var()) collect_uses(*s.mark->sum, uses);
    }
  }

  bool check_uses(const IterMark& mark, std::vector<const IterSplit*> splits, IterMapCheck level) {
    bool bijective = level == IterMapCheck::bijective;
    if (splits.size() == 1 && !bijective) return true;  // one digit alone takes all its values
    Expr expected = int_imm(1, mark.extent->dtype);
    auto constant = [](const IterSplit* s) { return const_int(s->lower_factor).value_or(Interval::kMax); };
    std::stable_sort(splits.begin(), splits.end(),
                     [&](const IterSplit* x, const IterSplit* y) { return constant(x) < constant(y); });
    while (!splits.empty()) {
      size_t pick = 0;
      while (pick < splits.size() && !f_.equal(splits[pick]->lower_factor, expected)) ++pick;
      if (pick == splits.size()) {
        pick = 0;
        if (bijective) return fail("digits of a loop are left out");
        if (!f_.divides(expected, splits[0]->lower_factor) || !f_.at_most(expected, splits[0]->lower_factor))
          return fail("indices share digits of a loop");
      }
      expected = f_.times(splits[pick]->lower_factor, splits[pick]->extent);
      splits.erase(splits.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    if (f_.equal(expected, mark.extent)) return true;
    if (bijective || !f_.divides(expected, mark.extent)) return fail("digits do not divide the extent");
    return true;
  }

  Analyzer& a_;
  Factors f_;
  std::vector<IterMarkRef> marks_;
  std::vector<Constraint> constraints_;
  std::string failure_;
};

}  // namespace

IterMap detect_iter_map(const std::vector<Expr>& indices, const std::vector<VarRange>& domains, const Expr& predicate,
                        IterMapCheck check, Analyzer& analyzer) {
  auto scope = analyzer.scope();
  analyzer.bind(domains);
  auto attempt = [&](bool simplified) {
    IterMap map;
    Detector detector(domains, analyzer);
    bool fine = check == IterMapCheck::none || detector.constrain(predicate);
    for (const Expr& e : indices) {
      if (!fine) break;
      map.indices.emplace_back();
      fine = detector.parse(simplified ? analyzer.simplify(e) : e, map.indices.back());
    }
    if (fine && check != IterMapCheck::none) fine = detector.check(map.indices, check, map.extents);
    if (fine)
      for (IterSum& sum : map.indices)
        if (auto chain = detector.order(sum.splits); chain && sum.splits.size() > 1)
          sum.splits.assign(chain->rbegin(), chain->rend());
    if (!fine) map.failure = detector.failure().empty() ? "not affine" : detector.failure();
    return map;
  };
  IterMap map = attempt(false);
  return map ? map : attempt(true);
}

namespace {
Expr mark_expr(const IterMark& mark) {
  if (!mark.is_var()) return to_expr(*mark.sum);
  return is_const(mark.min, 0) ? Expr(mark.var) : mark.var - mark.min;
}
}  // namespace

Expr to_expr(const IterSplit& s) {
  Expr e = mark_expr(*s.mark);
  bool top = s.lower_factor->kind == ExprKind::kIntImm && s.extent->kind == ExprKind::kIntImm &&
             const_int(s.mark->extent) &&
             *const_int(s.lower_factor) * *const_int(s.extent) >= *const_int(s.mark->extent);
  e = floor_div(e, s.lower_factor);
  if (!top && !(is_const(s.lower_factor, 1) && s.extent->hash == s.mark->extent->hash)) e = floor_mod(e, s.extent);
  return e * s.scale;
}

Expr to_expr(const IterSum& sum) {
  Expr out;
  for (const IterSplit& s : sum.splits) out = out ? out + to_expr(s) : to_expr(s);
  if (!out) return sum.base;
  return is_const(sum.base, 0) ? out : out + sum.base;
}

// --- inverse ---------------------------------------------------------------------------------------------------------

std::optional<std::vector<Expr>> inverse_map(const IterMap& map, const std::vector<VarRange>& domains,
                                             const std::vector<Expr>& outputs, Analyzer& analyzer) {
  TW_CHECK(outputs.size() == map.indices.size(), "{} outputs for {} indices", outputs.size(), map.indices.size());
  // Marks before their sources: a sum hands its value down once all its digits are known.
  std::vector<const IterMark*> marks;
  std::vector<Expr> values;
  auto find = [&](const IterMark* m) {
    size_t i = 0;
    while (i < marks.size() && marks[i] != m) ++i;
    return i;
  };
  std::function<void(const IterSum&)> collect = [&](const IterSum& sum) {
    for (const IterSplit& s : sum.splits) {
      if (find(s.mark.get()) < marks.size()) continue;
      if (!s.mark->is_var()) collect(*s.mark->sum);
      marks.push_back(s.mark.get());
    }
  };
  for (const IterSum& sum : map.indices) collect(sum);
  values.resize(marks.size());
  std::vector<std::vector<const IterSplit*>> digits(marks.size());
  /// False if the digits of the sum overlap, so that its value does not tell them.
  auto hand_down = [&](const IterSum& sum, const Expr& value) {
    Expr rest = is_const(sum.base, 0) ? value : value - sum.base;
    for (size_t i = 0; i < sum.splits.size(); ++i) {
      const IterSplit& s = sum.splits[i];
      Expr digit = floor_div(rest, s.scale);
      if (i != 0) {  // the first one is the top digit
        const Expr &above = sum.splits[i - 1].scale, end = s.scale * s.extent;
        if (analyzer.can_prove_equal(above, end)) {
          digit = floor_mod(digit, s.extent);
        } else {  // a gap: values in it give a digit beyond the extent
          if (!analyzer.can_prove_less_equal(end, above)) return false;
          rest = floor_mod(rest, above);
          digit = floor_div(rest, s.scale);
        }
      }
      const size_t mark = find(s.mark.get());
      if (std::ranges::any_of(digits[mark], [&](const IterSplit* d) {
            return analyzer.can_prove_equal(d->lower_factor, s.lower_factor) &&
                   analyzer.can_prove_equal(d->extent, s.extent);
          }))
        continue;  // told already
      digits[mark].push_back(&s);
      digit = digit * s.lower_factor;
      Expr& slot = values[mark];
      slot = slot ? slot + digit : digit;
    }
    return true;
  };
  /// The digits make up their mark: none is missing, none overlaps another.
  auto complete = [&](size_t mark) {
    Expr reached = int_imm(1, marks[mark]->extent->dtype);
    for (size_t n = 0; n < digits[mark].size(); ++n) {
      auto next = std::ranges::find_if(digits[mark], [&](const IterSplit* d) {
        return analyzer.can_prove_equal(d->lower_factor, reached) && !is_const(d->extent, 1);
      });
      if (next == digits[mark].end()) break;
      reached = analyzer.simplify(reached * (*next)->extent);
    }
    Expr product = int_imm(1, reached->dtype);
    for (const IterSplit* d : digits[mark]) product = product * d->extent;
    return analyzer.can_prove_equal(product, reached) && analyzer.can_prove_less_equal(marks[mark]->extent, reached);
  };
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!hand_down(map.indices[i], outputs[i])) return std::nullopt;
  for (size_t i = marks.size(); i-- > 0;) {
    if (values[i] && !complete(i)) return std::nullopt;
    if (marks[i]->is_var()) continue;
    if (!values[i] || !hand_down(*marks[i]->sum, values[i])) return std::nullopt;
  }
  std::vector<Expr> out;
  for (const VarRange& d : domains) {
    Expr value;
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i]->var.get() == d.var.get()) value = values[i];
    if (!value) {
      if (!is_const(d.range.extent, 1)) return std::nullopt;
      out.push_back(d.range.min);
      continue;
    }
    out.push_back(analyzer.simplify(is_const(d.range.min, 0) ? value : value + d.range.min));
  }
  return out;
}

// --- subspace division -----------------------------------------------------------------------------------------------

namespace {

class Divider {
 public:
  using Order = std::function<std::optional<std::vector<IterSplit>>(const std::vector<IterSplit>&)>;
  Divider(const std::vector<Var>& inner, Analyzer& a) : inner_(inner), f_{a} {}

  bool is_inner(const VarNode* v) const {
    return std::any_of(inner_.begin(), inner_.end(), [&](const Var& x) { return x.get() == v; });
  }

  /// value = outer · inner_extent + inner, with value in [0, …) without the sum's base.
  std::optional<SubspacePart> divide(const IterSum& sum, const Order& order) {
    Expr zero = zero_of(sum.base->dtype), one = int_imm(1, sum.base->dtype);
    SubspacePart out{zero, one, zero, one};
    if (sum.splits.empty()) return out;
    auto chain = order(sum.splits);
    if (!chain || !is_const(chain->front().scale, 1)) return std::nullopt;
    bool outside = false;  // an outer digit has been met: no inner one may follow
    for (const IterSplit& s : *chain) {
      std::optional<SubspacePart> part = divide_split(s, order);
      if (!part) return std::nullopt;
      if (!is_const(part->inner_extent, 1)) {
        if (outside) return std::nullopt;
        out.inner = f_.plus(out.inner, f_.times(part->inner, out.inner_extent));
        out.inner_extent = f_.times(out.inner_extent, part->inner_extent);
      }
      if (!is_const(part->outer_extent, 1)) {
        outside = true;
        out.outer = f_.plus(out.outer, f_.times(part->outer, out.outer_extent));
        out.outer_extent = f_.times(out.outer_extent, part->outer_extent);
      }
    }
    return out;
  }

 private:
  // The digit without its scale.
  std::optional<SubspacePart> divide_split(IterSplit s, const Order& order) {
    Expr one = int_imm(1, s.extent->dtype), zero = zero_of(s.extent->dtype);
    s.scale = one;
    int side = side_of(*s.mark);
    if (side == kInner) return SubspacePart{zero, one, to_expr(s), s.extent};
    if (side == kOuter) return SubspacePart{to_expr(s), s.extent, zero, one};
    std::optional<SubspacePart> whole = divide(*s.mark->sum, order);
    if (!whole || !is_const(s.mark->sum->base, 0)) return std::nullopt;
    Expr all = f_.times(whole->outer_extent, whole->inner_extent), end = f_.times(s.lower_factor, s.extent);
    if (!f_.equal(all, s.mark->extent)) return std::nullopt;  // a predicate binds both sides together
    const Expr& low = s.lower_factor;
    if (f_.divides(whole->inner_extent, low)) {  // above the inner part
      Expr lower = f_.over(low, whole->inner_extent);
      return SubspacePart{digit(whole->outer, lower, s.extent, whole->outer_extent), s.extent, zero, one};
    }
    if (f_.divides(end, whole->inner_extent))  // inside it
      return SubspacePart{zero, one, digit(whole->inner, low, s.extent, whole->inner_extent), s.extent};
    if (f_.divides(low, whole->inner_extent) && f_.divides(whole->inner_extent, end)) {  // across
      Expr outer_extent = f_.over(end, whole->inner_extent), inner_extent = f_.over(whole->inner_extent, low);
      return SubspacePart{digit(whole->outer, one, outer_extent, whole->outer_extent), outer_extent,
                          digit(whole->inner, low, inner_extent, whole->inner_extent), inner_extent};
    }
    return std::nullopt;
  }
  Expr digit(const Expr& value, const Expr& lower, const Expr& extent, const Expr& value_extent) {
    Expr e = floor_div(value, lower);
    return f_.equal(f_.times(lower, extent), value_extent) ? e : floor_mod(e, extent);
  }

  enum Side { kInner, kOuter, kMixed };
  int side_of(const IterMark& mark) const {
    if (mark.is_var()) return is_inner(mark.var.get()) ? kInner : kOuter;
    int side = -1;
    for (const IterSplit& s : mark.sum->splits) {
      int one = side_of(*s.mark);
      if (side >= 0 && one != side) return kMixed;
      side = one;
    }
    return side < 0 ? kOuter : side;
  }

  const std::vector<Var>& inner_;
  Factors f_;
};

}  // namespace

std::optional<SubspaceDivision> divide_subspace(const std::vector<Expr>& indices, const std::vector<VarRange>& domains,
                                                const std::vector<Var>& inner, const Expr& predicate,
                                                Analyzer& analyzer) {
  IterMap map = detect_iter_map(indices, domains, predicate, IterMapCheck::surjective, analyzer);
  if (!map) return std::nullopt;
  auto scope = analyzer.scope();
  analyzer.bind(domains);
  Divider divider(inner, analyzer);
  Detector detector(domains, analyzer);
  SubspaceDivision out;
  for (const IterSum& sum : map.indices) {
    auto part = divider.divide(sum, [&](const std::vector<IterSplit>& s) { return detector.order(s); });
    if (!part) return std::nullopt;
    if (!is_const(sum.base, 0)) {
      if (!analyzer.can_prove_divisible(sum.base, part->inner_extent)) return std::nullopt;
      part->outer = part->outer + floor_div(sum.base, part->inner_extent);
    }
    part->outer = analyzer.simplify(part->outer);
    part->inner = analyzer.simplify(part->inner);
    out.parts.push_back(std::move(*part));
  }
  for (const Expr& c : conjuncts(predicate)) {
    if (analyzer.can_prove(c)) continue;
    bool uses_inner = false, uses_outer = false;
    for (const Var& v : vars_of(c)) {
      bool in_domain =
          std::any_of(domains.begin(), domains.end(), [&](const VarRange& d) { return d.var.get() == v.get(); });
      if (in_domain) (divider.is_inner(v.get()) ? uses_inner : uses_outer) = true;
    }
    if (uses_inner && uses_outer) return std::nullopt;
    Expr& half = uses_inner ? out.inner_predicate : out.outer_predicate;
    half = and_of(half, c);
  }
  return out;
}

// --- blocks ----------------------------------------------------------------------------------------------------------

std::vector<VarRange> ranges_of(const std::vector<const For*>& loops) {
  std::vector<VarRange> out;
  for (const For* loop : loops) out.push_back({loop->var, range_of(*loop)});
  return out;
}

bool is_trivial_binding(const Block& block, const std::vector<const For*>& loops) {
  std::vector<const VarNode*> seen;
  for (const Iter& iter : block.iters) {
    const VarNode* v = as<VarNode>(iter.binding);
    if (!v || std::find(seen.begin(), seen.end(), v) != seen.end()) return false;
    if (std::none_of(loops.begin(), loops.end(), [&](const For* loop) { return loop->var.get() == v; })) return false;
    seen.push_back(v);
  }
  return true;
}

bool is_affine_binding(const Block& block, const std::vector<const For*>& loops, Analyzer& analyzer) {
  std::vector<Expr> bindings;
  for (const Iter& iter : block.iters) bindings.push_back(iter.binding);
  if (bindings.empty()) return true;
  for (const For* loop : loops)
    if (loop->step && !is_const(loop->step, 1)) return false;
  IterMap map = detect_iter_map(bindings, ranges_of(loops), block.predicate, IterMapCheck::surjective, analyzer);
  if (!map) return false;
  for (size_t i = 0; i < bindings.size(); ++i)
    if (!analyzer.can_prove_equal(map.indices[i].base, block.iters[i].dom.min) ||
        !analyzer.can_prove_equal(map.extents[i], block.iters[i].dom.extent))
      return false;
  return true;
}

}  // namespace tilewright
