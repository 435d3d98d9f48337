#include "ir/analysis/regions.h"

#include <algorithm>

#include "ir/rewrite.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

// Interval evaluation over the structure of an expression in normal form.
class IntervalOver {
 public:
  IntervalOver(const std::vector<VarRange>& relaxed, Analyzer& a) : relaxed_(relaxed), a_(a) {}

  bool uses_relaxed(const Expr& e) const {
    return uses_any(e, [&](const VarNode* v) { return find(v) != nullptr; });
  }

  SymbolicInterval operator()(const Expr& e) {
    if (const VarNode* v = as<VarNode>(e)) {
      const VarRange* r = find(v);
      if (!r) return {e, e};
      return {(*this)(r->range.min).min, (*this)(a_.simplify(end_of(r->range) - 1)).max};
    }
    if (e->kind == ExprKind::kIntImm || !uses_relaxed(e)) return {e, e};
    if (const Binary* b = as<Binary>(e))
      if (SymbolicInterval r = binary_interval(*b); r.min || r.max) return r;
    if (const Select* s = as<Select>(e)) return hull((*this)(s->then_value), (*this)(s->else_value));
    if (const Call* c = as<Call>(e); c && c->op->name == "if_then_else")
      return hull((*this)(c->args[1]), (*this)(c->args[2]));
    return constant(e);
  }

 private:
  const VarRange* find(const VarNode* v) const {
    for (const VarRange& r : relaxed_)
      if (r.var.get() == v) return &r;
    return nullptr;
  }
  SymbolicInterval constant(const Expr& e) {
    Interval i = a_.const_bounds(e);
    SymbolicInterval out;
    if (i.min != Interval::kMin) out.min = int_imm(i.min, e->dtype);
    if (i.max != Interval::kMax) out.max = int_imm(i.max, e->dtype);
    return out;
  }
  SymbolicInterval hull(const SymbolicInterval& x, const SymbolicInterval& y) {
    SymbolicInterval out;
    if (x.min && y.min) out.min = a_.simplify(min_of(x.min, y.min));
    if (x.max && y.max) out.max = a_.simplify(max_of(x.max, y.max));
    return out;
  }

  SymbolicInterval binary_interval(const Binary& b) {
    auto apply = [&](const Expr& x, const Expr& y) { return x && y ? binary(b.op, x, y) : Expr(); };
    switch (b.op) {
      case BinaryOp::add:
      case BinaryOp::min:
      case BinaryOp::max: {
        SymbolicInterval x = (*this)(b.a), y = (*this)(b.b);
        return {apply(x.min, y.min), apply(x.max, y.max)};
      }
      case BinaryOp::sub: {
        SymbolicInterval x = (*this)(b.a), y = (*this)(b.b);
        return {apply(x.min, y.max), apply(x.max, y.min)};
      }
      case BinaryOp::mul: {
        const Expr& factor = !uses_relaxed(b.b) ? b.b : b.a;
        if (uses_relaxed(factor)) return {};
        SymbolicInterval x = (*this)(factor.same_as(b.b) ? b.a : b.b);
        bool positive = a_.can_prove_not_negative(factor), negative = !positive && a_.const_bounds(factor).max <= 0;
        if (!positive && !negative) return {};
        Expr lo = x.min ? x.min * factor : Expr(), hi = x.max ? x.max * factor : Expr();
        return positive ? SymbolicInterval{lo, hi} : SymbolicInterval{hi, lo};
      }
      case BinaryOp::floor_div:
      case BinaryOp::floor_mod: {
        if (uses_relaxed(b.b) || a_.const_bounds(b.b).min < 1) return {};
        SymbolicInterval x = (*this)(b.a);
        Expr lo = x.min ? a_.simplify(floor_div(x.min, b.b)) : Expr(),
             hi = x.max ? a_.simplify(floor_div(x.max, b.b)) : Expr();
        if (b.op == BinaryOp::floor_div) return {lo, hi};
        if (lo && hi && lo->hash == hi->hash) return {floor_mod(x.min, b.b), floor_mod(x.max, b.b)};
        return {zero_of(b.dtype), b.b - 1};
      }
      default:
        return {};
    }
  }

  const std::vector<VarRange>& relaxed_;
  Analyzer& a_;
};

Expr last_of(const Range& r) { return is_const(r.extent, 1) ? r.min : r.min + r.extent - 1; }

}  // namespace

SymbolicInterval bounds_over(const Expr& e, const std::vector<VarRange>& relaxed, const Expr& predicate,
                             Analyzer& analyzer) {
  SymbolicInterval out;
  IntervalOver evaluate(relaxed, analyzer);
  {
    auto scope = analyzer.scope();
    analyzer.bind(relaxed);
    auto inside = analyzer.assume(predicate);
    Expr simple = analyzer.simplify(e);
    out = evaluate(simple);
    if (is_true(predicate) || !evaluate.uses_relaxed(simple)) {
      if (out.min) out.min = analyzer.simplify(out.min);
      if (out.max) out.max = analyzer.simplify(out.max);
    } else {
      // Constant bounds know the predicate; so does each conjunct "l < r" that turns e into something without the
      // loops.
      Interval constant = analyzer.const_bounds(simple);
      auto tighten_max = [&](const Expr& hi) {
        if (!out.max || analyzer.can_prove_less_equal(hi, out.max))
          out.max = hi;
        else if (!analyzer.can_prove_less_equal(out.max, hi))
          out.max = min_of(out.max, hi);
      };
      auto tighten_min = [&](const Expr& lo) {
        if (!out.min || analyzer.can_prove_less_equal(out.min, lo))
          out.min = lo;
        else if (!analyzer.can_prove_less_equal(lo, out.min))
          out.min = max_of(out.min, lo);
      };
      std::vector<Expr> upper, lower;
      if (constant.max != Interval::kMax) upper.push_back(int_imm(constant.max, e->dtype));
      if (constant.min != Interval::kMin) lower.push_back(int_imm(constant.min, e->dtype));
      for (const Expr& c : conjuncts(predicate)) {
        const Binary* b = as<Binary>(c);
        if (!b || b->op < BinaryOp::lt || b->op > BinaryOp::ge || b->a->dtype != e->dtype) continue;
        bool swapped = b->op == BinaryOp::gt || b->op == BinaryOp::ge,
             strict = b->op == BinaryOp::lt || b->op == BinaryOp::gt;
        Expr slack = swapped ? b->a - b->b : b->b - b->a;  // >= 0
        if (strict) slack = slack - 1;
        Expr hi = analyzer.simplify(simple + slack), lo = analyzer.simplify(simple - slack);
        if (!evaluate.uses_relaxed(hi)) upper.push_back(hi);
        if (!evaluate.uses_relaxed(lo)) lower.push_back(lo);
      }
      for (const Expr& hi : upper) tighten_max(hi);
      for (const Expr& lo : lower) tighten_min(lo);
    }
  }
  if (out.min) out.min = analyzer.simplify(out.min);
  if (out.max) out.max = analyzer.simplify(out.max);
  return out;
}

std::optional<Range> relax(const Range& range, const std::vector<VarRange>& relaxed, const Expr& predicate,
                           Analyzer& analyzer) {
  SymbolicInterval first = bounds_over(range.min, relaxed, predicate, analyzer);
  SymbolicInterval last = is_const(range.extent, 1) ? first : bounds_over(last_of(range), relaxed, predicate, analyzer);
  if (!first.min || !last.max) return std::nullopt;
  return Range{first.min, analyzer.simplify(last.max - first.min + 1)};
}

BufferRegion relax(const BufferRegion& region, const std::vector<VarRange>& relaxed, const Expr& predicate,
                   Analyzer& analyzer) {
  BufferRegion out{region.buffer, {}};
  for (size_t i = 0; i < region.region.size(); ++i) {
    std::optional<Range> r = relax(region.region[i], relaxed, predicate, analyzer);
    if (!r) {
      const Expr& extent = region.buffer->shape[i];
      r = Range{zero_of(extent->dtype), extent};
    }
    out.region.push_back(*r);
  }
  return out;
}

std::optional<BufferRegion> lower_bound(const BufferRegion& region, const std::vector<VarRange>& relaxed,
                                        const Expr& predicate, Analyzer& analyzer) {
  IntervalOver evaluate(relaxed, analyzer);
  BufferRegion out = region;
  std::vector<Expr> starts;
  struct Dim {
    size_t axis;
    bool blocks;  // starts counts whole extents
  };
  std::vector<Dim> dims;
  {
    auto scope = analyzer.scope();
    analyzer.bind(relaxed);
    for (size_t i = 0; i < region.region.size(); ++i) {
      const Range& r = region.region[i];
      if (evaluate.uses_relaxed(r.extent)) return std::nullopt;
      if (!evaluate.uses_relaxed(r.min)) continue;
      bool blocks = !is_const(r.extent, 1) && analyzer.can_prove_divisible(r.min, r.extent);
      starts.push_back(blocks ? analyzer.simplify(floor_div(r.min, r.extent)) : r.min);
      dims.push_back({i, blocks});
    }
  }
  if (starts.empty() && is_true(predicate)) return out;
  IterMap map = detect_iter_map(starts, relaxed, predicate, IterMapCheck::surjective, analyzer);
  if (!map) return std::nullopt;
  for (size_t i = 0; i < dims.size(); ++i) {
    Range& r = out.region[dims[i].axis];
    const Expr &base = map.indices[i].base, &count = map.extents[i];
    // An empty set of windows is no window, not one that is shorter.
    if (!dims[i].blocks && !is_const(r.extent, 1) && !analyzer.can_prove_less(zero_of(count->dtype), count))
      return std::nullopt;
    r = dims[i].blocks ? Range{base * r.extent, count * r.extent} : Range{base, count + r.extent - 1};
    r = analyzer.simplify(r);
  }
  return out;
}

BufferRegion full_region(const Buffer& buffer) {
  BufferRegion out{buffer, {}};
  for (const Expr& extent : buffer->shape) out.region.push_back({zero_of(extent->dtype), extent});
  return out;
}

std::vector<int> whole_rows(const BufferNode& buffer, const std::vector<Expr>& indices) {
  if (indices.size() < 2 || indices.size() != buffer.shape.size()) return {};
  const Ramp* r = as<Ramp>(indices.back());
  if (!r || !is_const(r->stride, 1) || !is_const(r->base, 0)) return {};
  std::vector<int> lanes(indices.size(), 1);
  int64_t left = r->lanes;
  for (size_t d = indices.size(); d-- > 0;) {
    std::optional<int64_t> extent = const_int(buffer.shape[d]);
    if (!extent || (d + 1 < indices.size() && indices[d]->dtype.is_vector())) return {};
    if (left <= *extent) {
      lanes[d] = static_cast<int>(left);
      return d + 1 == indices.size() ? std::vector<int>{} : lanes;
    }
    if (*extent <= 0 || left % *extent != 0 || (d + 1 < indices.size() && !is_const(indices[d], 0))) return {};
    lanes[d] = static_cast<int>(*extent);
    left /= *extent;
  }
  return {};
}

BufferRegion point_region(const Buffer& buffer, const std::vector<Expr>& indices) {
  BufferRegion out{buffer, {}};
  if (std::vector<int> rows = whole_rows(*buffer, indices); !rows.empty()) {
    for (size_t d = 0; d < rows.size(); ++d) {
      const Ramp* r = as<Ramp>(indices[d]);
      const Expr& first = r ? r->base : indices[d];
      out.region.push_back({first, int_imm(rows[d], first->dtype)});
    }
    return out;
  }
  for (const Expr& index : indices) {
    if (const Ramp* r = as<Ramp>(index)) {
      std::optional<int64_t> stride = const_int(r->stride);
      if (stride && *stride >= 0)
        out.region.push_back({r->base, int_imm(*stride * (r->lanes - 1) + 1, r->base->dtype)});
      else if (stride)
        out.region.push_back(
            {r->base + *stride * (r->lanes - 1), int_imm(-*stride * (r->lanes - 1) + 1, r->base->dtype)});
      else
        out.region.push_back({zero_of(r->base->dtype), buffer->shape[out.region.size()]});
    } else if (const Broadcast* b = as<Broadcast>(index)) {
      out.region.push_back({b->value, int_imm(1, b->value->dtype)});
    } else if (index->dtype.is_vector()) {
      out.region.push_back({zero_of(index->dtype.element()), buffer->shape[out.region.size()]});
    } else {
      out.region.push_back({index, int_imm(1, index->dtype)});
    }
  }
  return out;
}

namespace {
template <class F>
BufferRegion by_dimension(const BufferRegion& a, const BufferRegion& b, F&& f) {
  TW_CHECK(a.region.size() == b.region.size(), "regions of rank {} and {}", a.region.size(), b.region.size());
  BufferRegion out{a.buffer, {}};
  for (size_t i = 0; i < a.region.size(); ++i) out.region.push_back(f(a.region[i], b.region[i]));
  return out;
}
bool same_range(const Range& x, const Range& y) {
  return x.min->hash == y.min->hash && x.extent->hash == y.extent->hash;
}
}  // namespace

BufferRegion region_union(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer) {
  return by_dimension(a, b, [&](const Range& x, const Range& y) {
    if (same_range(x, y)) return x;
    Expr min = analyzer.simplify(min_of(x.min, y.min));
    Expr end = analyzer.simplify(max_of(end_of(x), end_of(y)));
    return Range{min, analyzer.simplify(end - min)};
  });
}

BufferRegion region_intersection(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer) {
  return by_dimension(a, b, [&](const Range& x, const Range& y) {
    if (same_range(x, y)) return x;
    Expr min = analyzer.simplify(max_of(x.min, y.min));
    Expr end = analyzer.simplify(min_of(end_of(x), end_of(y)));
    return Range{min, analyzer.simplify(end - min)};
  });
}

bool region_covers(const BufferRegion& outer, const BufferRegion& inner, Analyzer& analyzer) {
  if (outer.region.size() != inner.region.size()) return false;
  for (size_t i = 0; i < outer.region.size(); ++i) {
    const Range &o = outer.region[i], &n = inner.region[i];
    if (same_range(o, n)) continue;
    if (!analyzer.can_prove_less_equal(o.min, n.min) || !analyzer.can_prove_less_equal(end_of(n), end_of(o)))
      return false;
  }
  return true;
}

namespace {
// Boxes that together are one box become it: pieces of a partitioned loop cover what the whole would.
bool merge_boxes(BufferRegion& into, const BufferRegion& other, Analyzer& a) {
  int differs = -1;
  for (size_t i = 0; i < into.region.size(); ++i) {
    const Range &x = into.region[i], &y = other.region[i];
    if (a.can_prove_equal(x.min, y.min) && a.can_prove_equal(x.extent, y.extent)) continue;
    if (differs >= 0) return false;
    differs = static_cast<int>(i);
  }
  if (differs < 0) return true;
  Range& x = into.region[differs];
  const Range& y = other.region[differs];
  bool touch = a.can_prove_less_equal(y.min, end_of(x)) && a.can_prove_less_equal(x.min, end_of(y));
  if (!touch) return false;
  Expr min = a.simplify(min_of(x.min, y.min)), end = a.simplify(max_of(end_of(x), end_of(y)));
  x = {min, a.simplify(end - min)};
  return true;
}
}  // namespace

bool boxes_cover(std::vector<BufferRegion> boxes, const BufferRegion& wanted, Analyzer& a) {
  for (bool merged = true; merged;) {
    for (const BufferRegion& b : boxes)
      if (region_covers(b, wanted, a)) return true;
    merged = false;
    for (size_t i = 0; i < boxes.size() && !merged; ++i)
      for (size_t j = boxes.size(); j-- > i + 1 && !merged;)
        if (merge_boxes(boxes[i], boxes[j], a)) {
          boxes.erase(boxes.begin() + static_cast<std::ptrdiff_t>(j));
          merged = true;
        }
  }
  return false;
}

bool regions_disjoint(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer) {
  for (size_t i = 0; i < std::min(a.region.size(), b.region.size()); ++i) {
    const Range &x = a.region[i], &y = b.region[i];
    if (analyzer.can_prove_less_equal(end_of(x), y.min) || analyzer.can_prove_less_equal(end_of(y), x.min)) return true;
  }
  return false;
}

BufferRegion clip_to_shape(const BufferRegion& region, Analyzer& analyzer) {
  return region_intersection(region, full_region(region.buffer), analyzer);
}

BufferRegion through_match(const BufferRegion& region, const MatchBuffer& match) {
  const std::vector<Range>& source = match.source.region;
  BufferRegion out{match.source.buffer, source};
  // Unit dimensions of the source may be missing in the alias; pair the dimensions from the innermost one.
  size_t left = region.region.size();
  for (size_t i = source.size(); i-- > 0 && left > 0;) {
    bool drop = left < i + 1 && is_const(source[i].extent, 1) && !is_const(match.buffer->shape[left - 1], 1);
    if (drop) continue;
    const Range& inner = region.region[--left];
    out.region[i] = {is_const(source[i].min, 0) ? inner.min : source[i].min + inner.min, inner.extent};
  }
  return out;
}

bool in_storage_span(std::string_view scope, std::string_view thread) {
  auto starts = [](std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; };
  if (starts(scope, "global"))
    return starts(thread, "blockIdx") || starts(thread, "clusterIdx") || starts(thread, "threadIdx") ||
           starts(thread, "vthread");
  if (starts(scope, "shared")) return starts(thread, "threadIdx") || starts(thread, "vthread");
  if (starts(scope, "warp")) return thread == "threadIdx.x";
  return false;
}

// --- signatures ------------------------------------------------------------------------------------------------------

namespace {

class Derive {
 public:
  Derive(Analyzer& a, bool skip_own_reads) : a_(a), skip_own_reads_(skip_own_reads) {}

  Signature run(const std::vector<Stmt>& bodies) {
    if (skip_own_reads_)
      for (const Stmt& s : bodies) collect_stores(s);
    for (const Stmt& s : bodies)
      if (s) stmt(s);
    auto local = [&](const BufferRegion& r) {
      return std::find(local_.begin(), local_.end(), r.buffer.get()) != local_.end();
    };
    std::erase_if(out_.reads, local);
    std::erase_if(out_.writes, local);
    return std::move(out_);
  }

  void add_match(const MatchBuffer& m) { matches_.push_back(m); }

 private:
  void collect_stores(const Stmt& s) {
    if (!s) return;
    walk_stmts(s, [&](const Stmt& x) {
      if (const Store* store = as<Store>(x)) stores_.push_back({store->buffer.get(), hash_field(store->indices)});
      return true;
    });
  }

  void access(std::vector<BufferRegion>& list, BufferRegion region) {
    for (size_t i = matches_.size(); i-- > 0;)
      if (matches_[i].buffer.same_as(region.buffer)) region = through_match(region, matches_[i]);
    region = relax(region, relaxed_, predicate(), a_);
    for (BufferRegion& r : list)
      if (r.buffer.same_as(region.buffer)) {
        r = region_union(r, region, a_);
        return;
      }
    list.push_back(std::move(region));
  }
  Expr predicate() const {
    Expr all;
    for (const Expr& c : conditions_) all = and_of(all, c);
    return all;
  }

  void expr(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kStringImm:
        return;
      case ExprKind::kVarNode:
        if (e->dtype.is_handle()) out_.opaque = true;
        return;
      case ExprKind::kLoad: {
        const Load& l = static_cast<const Load&>(*e);
        for (const Expr& i : l.indices) expr(i);
        for (const auto& [buffer, indices] : stores_)
          if (buffer == l.buffer.get() && indices == hash_field(l.indices)) return;
        return access(out_.reads, point_region(l.buffer, l.indices));
      }
      case ExprKind::kSelect: {
        const Select& s = static_cast<const Select&>(*e);
        return choice(s.condition, s.then_value, s.else_value);
      }
      case ExprKind::kCall: {
        const Call& c = static_cast<const Call&>(*e);
        if (c.op->name == "if_then_else") return choice(c.args[0], c.args[1], c.args[2]);
        if (c.op->effect != OpEffect::pure) out_.opaque = true;
        break;
      }
      default:
        break;
    }
    for_each_child(*e, [&](const Expr& child) { expr(child); });
  }
  // A select may evaluate both arms, but only the chosen one's value counts: reads are those of the chosen arm.
  void choice(const Expr& condition, const Expr& a, const Expr& b) {
    expr(condition);
    conditions_.push_back(condition);
    expr(a);
    conditions_.back() = a_.simplify(not_of(condition));
    expr(b);
    conditions_.pop_back();
  }

  void stmt(const Stmt& s) {
    if (const For* loop = as<For>(s)) {
      expr(loop->min);
      expr(loop->extent);
      relaxed_.push_back({loop->var, range_of(*loop)});
      stmt(loop->body);
      relaxed_.pop_back();
    } else if (const Store* store = as<Store>(s)) {
      for (const Expr& i : store->indices) expr(i);
      expr(store->value);
      access(out_.writes, point_region(store->buffer, store->indices));
    } else if (const Block* block = as<Block>(s)) {
      nested(*block);
    } else if (const If* branch = as<If>(s)) {
      expr(branch->condition);
      conditions_.push_back(branch->condition);
      stmt(branch->then_body);
      conditions_.back() = a_.simplify(not_of(branch->condition));
      if (branch->else_body) stmt(branch->else_body);
      conditions_.pop_back();
    } else if (const Allocate* alloc = as<Allocate>(s)) {
      local_.push_back(alloc->buffer.get());
      stmt(alloc->body);
    } else if (const Bind* bind = as<Bind>(s)) {
      expr(bind->value);
      auto scope = a_.scope();
      if (!reads_memory(bind->value) && bind->value->dtype.is_int()) a_.bind(bind->var, bind->value);
      stmt(bind->body);
    } else {
      for_each_child(*s, [&](const Expr& e) { expr(e); }, [&](const Stmt& c) { stmt(c); });
    }
  }

  // A nested block counts by its signature, at its bindings.
  void nested(const Block& block) {
    VarMap bindings;
    for (const Iter& iter : block.iters) {
      expr(iter.binding);
      bindings[iter.var.get()] = iter.binding;
    }
    for (const Buffer& b : block.allocs) local_.push_back(b.get());
    if (block.predicate) {
      expr(block.predicate);
      conditions_.push_back(substitute(block.predicate, bindings));
    }
    auto written = [&](const BufferRegion& r) {
      return std::any_of(block.writes.begin(), block.writes.end(), [&](const BufferRegion& w) {
        return w.buffer.same_as(r.buffer) && hash_field(w.region) == hash_field(r.region);
      });
    };
    for (const BufferRegion& r : block.reads)
      if (!skip_own_reads_ || !written(r)) access(out_.reads, substitute(r, bindings));
    for (const BufferRegion& r : block.writes) access(out_.writes, substitute(r, bindings));
    if (block.predicate) conditions_.pop_back();
  }

  Analyzer& a_;
  bool skip_own_reads_;
  Signature out_;
  std::vector<VarRange> relaxed_;
  std::vector<Expr> conditions_;
  std::vector<const BufferNode*> local_;
  std::vector<MatchBuffer> matches_;
  std::vector<std::pair<const BufferNode*, Hash64>> stores_;
};

class Written {
 public:
  Written(const Buffer& buffer, Analyzer& a) : buffer_(buffer), a_(a) {}

  std::vector<BufferRegion> run(const Block& block) {
    auto scope = a_.scope();
    a_.bind(domains_of(block));
    stmt(block.body);
    std::vector<BufferRegion> out = std::move(boxes_);
    for (const MatchBuffer& m : block.matches)
      if (m.source.buffer.same_as(buffer_)) {
        Written alias(m.buffer, a_);
        alias.stmt(block.body);
        for (const BufferRegion& box : alias.boxes_) out.push_back(through_match(box, m));
      }
    return out;
  }

 private:
  void add(const BufferRegion& r, const Expr& predicate) {
    if (auto box = lower_bound(r, loops_, predicate, a_)) boxes_.push_back(std::move(*box));
  }

  void stmt(const Stmt& s) {
    if (const Seq* seq = as<Seq>(s)) {
      for (const Stmt& x : seq->stmts) stmt(x);
    } else if (const For* loop = as<For>(s)) {
      if (loop->step && !is_const(loop->step, 1)) return;
      loops_.push_back({loop->var, range_of(*loop)});
      stmt(loop->body);
      loops_.pop_back();
    } else if (const Store* store = as<Store>(s)) {
      const bool gaps = std::any_of(store->indices.begin(), store->indices.end(), [](const Expr& i) {
        const Ramp* r = as<Ramp>(i);
        return r ? !is_const(r->stride, 1) : i->dtype.is_vector();
      });
      if (store->buffer.same_as(buffer_) && !gaps) add(point_region(buffer_, store->indices), nullptr);
    } else if (const Block* block = as<Block>(s)) {
      VarMap bindings;
      for (const Iter& iter : block->iters) bindings[iter.var.get()] = iter.binding;
      for (const BufferRegion& r : Written(buffer_, a_).run(*block))
        add(substitute(r, bindings), block->predicate ? substitute(block->predicate, bindings) : Expr());
    } else if (const Bind* bind = as<Bind>(s)) {
      if (!reads_memory(bind->value)) stmt(substitute(bind->body, {{bind->var.get(), bind->value}}));
    } else if (const AttrStmt* attr = as<AttrStmt>(s)) {
      stmt(attr->body);
    } else if (const Allocate* alloc = as<Allocate>(s)) {
      stmt(alloc->body);
    }
  }

  const Buffer& buffer_;
  Analyzer& a_;
  std::vector<VarRange> loops_;
  std::vector<BufferRegion> boxes_;
};

}  // namespace

std::vector<BufferRegion> surely_written(const Block& block, const Buffer& buffer, Analyzer& analyzer) {
  return Written(buffer, analyzer).run(block);
}

Signature derive_signature(const Block& block, Analyzer* outer) {
  Analyzer fresh;
  Analyzer& a = outer ? *outer : fresh;
  auto scope = a.scope();
  a.bind(domains_of(block));
  Derive derive(a, static_cast<bool>(block.init));
  for (const MatchBuffer& m : block.matches) derive.add_match(m);
  Signature out = derive.run({block.init, block.body});
  auto local = [&](const BufferRegion& r) {
    return std::any_of(block.allocs.begin(), block.allocs.end(), [&](const Buffer& b) { return b.same_as(r.buffer); });
  };
  std::erase_if(out.reads, local);
  std::erase_if(out.writes, local);
  return out;
}

Signature derive_signature(const Stmt& body, Analyzer* outer) {
  Analyzer fresh;
  return Derive(outer ? *outer : fresh, false).run({body});
}

}  // namespace tilewright
