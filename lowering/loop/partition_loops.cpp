// A guard that is decided by a loop's position leaves the loop: [0, n) becomes the part where it surely holds (or
// surely does not), without the guard, and the rest with it. Outermost loops first: what they leave is decided by
// constants further in. Parallel loops keep their range and branch between the two bodies instead.
#include "ir/analysis/regions.h"
#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

// A conjunct of a guard, with the loops between the candidate loop and it.
struct Guard {
  Expr condition;
  std::vector<VarRange> inner;
};

class FindGuards {
 public:
  std::vector<Guard> found;
  void stmt(const Stmt& s) {
    if (!s) return;
    if (const For* loop = as<For>(s)) {
      inner_.push_back({loop->var, range_of(*loop)});
      stmt(loop->body);
      inner_.pop_back();
      return;
    }
    if (const If* branch = as<If>(s)) {
      for (const Expr& c : conjuncts(branch->condition))
        if (c->dtype.lanes == 1 && !reads_memory(c)) found.push_back({c, inner_});
    }
    for_each_child(*s, [](const Expr&) {}, [&](const Stmt& c) { stmt(c); });
  }

 private:
  std::vector<VarRange> inner_;
};

// Replaces a condition by what is known of it.
class Decide : public Rewriter {
 public:
  Decide(Expr condition, bool value) : condition_(std::move(condition)), value_(value) {}
  using Rewriter::operator();
  Expr operator()(const Expr& e) override {
    return e->hash == condition_->hash && e->dtype == condition_->dtype ? bool_imm(value_) : Rewriter::operator()(e);
  }

 private:
  Expr condition_;
  bool value_;
};

// [begin, end) of the loop, in which the condition has a known value.
struct Part {
  int64_t begin = 0, end = 0;
  bool value = true;
};

class Partition : public Rewriter {
 public:
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    const For* loop = as<For>(s);
    if (!loop) return Rewriter::operator()(s);
    bool splits = loop->loop_kind == ForKind::serial || loop->loop_kind == ForKind::parallel ||
                  loop->loop_kind == ForKind::unrolled;
    std::optional<int64_t> extent = const_int(loop->extent);
    if (splits && extent && is_const(loop->min, 0) && depth_ < kMaxGuards) {
      FindGuards guards;
      guards.stmt(loop->body);
      for (const Guard& g : guards.found) {
        if (!uses_var(g.condition, loop->var.get())) continue;
        std::optional<Part> part = known_part(*loop, *extent, g);
        if (part) return split(*loop, *extent, g.condition, *part);
      }
    }
    auto scope = analyzer_.scope();
    analyzer_.bind(*loop);
    int saved = std::exchange(depth_, loop->loop_kind == ForKind::parallel ? 0 : depth_);
    Stmt mapped = Rewriter::operator()(s);
    depth_ = saved;
    return mapped;
  }

 private:
  static constexpr int kMaxGuards = 3;  // nested splits: at most 2^3 bodies

  // Lower bound over the inner loops of a difference, as value at v = 0 and step in v.
  std::optional<std::pair<int64_t, int64_t>> linear_min(const Expr& e, const For& loop,
                                                        const std::vector<VarRange>& inner) {
    SymbolicInterval bounds = bounds_over(e, inner, nullptr, analyzer_);
    if (!bounds.min) return std::nullopt;
    auto at = [&](int64_t v) {
      return const_int(analyzer_.simplify(substitute(bounds.min, {{loop.var.get(), int_imm(v, loop.var->dtype)}})));
    };
    std::optional<int64_t> zero = at(0), one = at(1), two = at(2);
    if (!zero || !one || !two || *two - *one != *one - *zero) return std::nullopt;
    // Three points do not prove a line: the difference must be the same everywhere.
    Expr next = substitute(bounds.min, {{loop.var.get(), Expr(loop.var) + 1}});
    auto scope = analyzer_.scope();
    analyzer_.bind(loop);
    if (const_int(analyzer_.simplify(next - bounds.min)) != *one - *zero) return std::nullopt;
    return std::pair{*zero, *one - *zero};
  }

  // Where g >= threshold: [0, x) or [x, n).
  static std::optional<Part> where(int64_t zero, int64_t step, int64_t threshold, int64_t extent, bool value) {
    Part p{0, extent, value};
    if (step < 0)
      p.end = floor_div(zero - threshold, -step) + 1;
    else if (step > 0)
      p.begin = -floor_div(zero - threshold, step);
    else
      return std::nullopt;
    p.begin = std::max<int64_t>(p.begin, 0);
    p.end = std::min(p.end, extent);
    if (p.begin >= p.end || (p.begin == 0 && p.end == extent)) return std::nullopt;
    return p;
  }

  std::optional<Part> known_part(const For& loop, int64_t extent, const Guard& g) {
    const Binary* b = as<Binary>(g.condition);
    if (!b || !b->a->dtype.is_int()) return std::nullopt;
    Expr difference;
    int64_t threshold = 0;
    bool value = true;
    switch (b->op) {
      case BinaryOp::lt:
        difference = b->b - b->a, threshold = 1;
        break;
      case BinaryOp::le:
        difference = b->b - b->a;
        break;
      case BinaryOp::gt:
        difference = b->a - b->b, threshold = 1;
        break;
      case BinaryOp::ge:
        difference = b->a - b->b;
        break;
      case BinaryOp::eq:
        difference = b->a - b->b, threshold = 1, value = false;
        break;  // surely unequal where a > b
      default:
        return std::nullopt;
    }
    std::optional<std::pair<int64_t, int64_t>> line = linear_min(difference, loop, g.inner);
    return line ? where(line->first, line->second, threshold, extent, value) : std::nullopt;
  }

  Stmt piece(const For& loop, int64_t begin, int64_t end, const Stmt& body) {
    if (begin == end) return make_seq({});
    DType t = loop.var->dtype;
    if (end == begin + 1 && loop.annotations.empty()) return substitute(body, {{loop.var.get(), int_imm(begin, t)}});
    auto copy = edit(loop);
    copy->extent = int_imm(end - begin, t);
    copy->body = begin == 0 ? body : substitute(body, {{loop.var.get(), Expr(loop.var) + begin}});
    return finish(std::move(copy));
  }

  Stmt split(const For& loop, int64_t extent, const Expr& condition, const Part& part) {
    Stmt decided = Decide(condition, part.value)(loop.body);
    ++depth_;
    Stmt out;
    if (loop.loop_kind == ForKind::parallel) {
      Expr v = loop.var;
      Expr inside =
          part.begin == 0 ? less(v, int_imm(part.end, v->dtype)) : less_equal(int_imm(part.begin, v->dtype), v);
      auto scope = analyzer_.scope();
      analyzer_.bind(loop);
      auto copy = edit(loop);
      Stmt fast = (*this)(simplified(decided)), slow = (*this)(refresh(loop.body));
      copy->body = make_stmt<If>(inside, fast, slow);
      out = finish(std::move(copy));
    } else {
      std::vector<Stmt> parts;
      auto add = [&](int64_t begin, int64_t end, const Stmt& body) {
        if (begin < end) parts.push_back((*this)(simplified(refresh(piece(loop, begin, end, body)))));
      };
      add(0, part.begin, loop.body);
      add(part.begin, part.end, decided);
      add(part.end, extent, loop.body);
      out = make_seq(std::move(parts));
    }
    --depth_;
    return out;
  }
  Stmt simplified(const Stmt& s) { return simplify(s, &analyzer_); }

  Analyzer analyzer_;
  int depth_ = 0;
};

const Register<Pass> pass{"partition_loops", "guards decided by a loop's position leave the loop",
                          Pass{Form::loops,
                               Form::loops,
                               {},
                               [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
                                 return with_body(*f, Partition()(f->body));
                               },
                               Pass::For::cpu,
                               true}};

}  // namespace

}  // namespace tilewright::lowering
