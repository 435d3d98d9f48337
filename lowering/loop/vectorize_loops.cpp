// Vectorization (lowering.md §1.9): a `vectorized` loop becomes vector statements of W lanes, W = what the target holds
// of the widest type in the body; the rest of the extent is a loop of chunks, then narrower vectors. Indices are
// offsets here (form F), so an access is classified by its lanes' offsets: one vector, a broadcast, runs joined by a
// shuffle, or lane by lane. What has no vector form runs lane by lane.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

/// Widens one statement over lanes base + 0 … base + lanes - 1 of the loop variable.
class Widen {
 public:
  Widen(const Var& var, Expr base, int lanes, Analyzer& analyzer)
      : var_(var), base_(std::move(base)), lanes_(lanes), analyzer_(analyzer) {}

  /// Null if the statement has no vector form.
  Stmt stmt(const Stmt& s) {
    if (!s) return s;
    if (const Seq* seq = as<Seq>(s)) {
      std::vector<Stmt> out;
      for (const Stmt& item : seq->stmts) out.push_back(wide_or_lanes(item));
      return make_seq(std::move(out));
    }
    if (const Store* st = as<Store>(s)) return store(*st);
    if (const If* branch = as<If>(s)) return if_stmt(*branch);
    if (const For* loop = as<For>(s)) {
      bool plain = loop->loop_kind == ForKind::serial || loop->loop_kind == ForKind::unrolled;
      if (!plain || varies(loop->extent) || varies(loop->min)) return nullptr;
      auto scope = analyzer_.scope();
      analyzer_.bind(*loop);
      auto copy = edit(*loop);
      copy->body = wide_or_lanes(loop->body);
      return finish(std::move(copy));
    }
    if (const AttrStmt* a = as<AttrStmt>(s)) {
      auto copy = edit(*a);
      copy->body = wide_or_lanes(a->body);
      return finish(std::move(copy));
    }
    if (const Bind* b = as<Bind>(s); b && !mask_) {
      if (!varies(b->value)) {
        auto copy = edit(*b);
        copy->body = wide_or_lanes(b->body);
        return finish(std::move(copy));
      }
      Expr value = expr(b->value);
      if (!value) return nullptr;
      Var wide = make_var(b->var->name, b->var->dtype.with_lanes(lanes_));
      lets_[b->var.get()] = wide;
      return make_stmt<Bind>(wide, value, wide_or_lanes(b->body));
    }
    if (as<Evaluate>(s) && is_no_op(s)) return s;
    return nullptr;
  }

  /// The statement for all lanes, one after another where it has no vector form.
  Stmt wide_or_lanes(const Stmt& s) {
    if (Stmt wide = stmt(s)) return wide;
    TW_CHECK(lets_.empty(), "a scalar statement below a vector let");
    Var lane = make_var("lane", kInt64);
    Stmt body = refresh(substitute(s, {{var_.get(), base_ + Expr(lane)}}));
    return make_loop(lane, int_imm(lanes_, kInt64), body, ForKind::unrolled);
  }

 private:
  bool varies(const Expr& e) const {
    return uses_any(e, [&](const VarNode* v) { return v == var_.get() || lets_.contains(v); });
  }
  Expr at_lane(const Expr& e, int lane) const { return substitute(e, {{var_.get(), base_ + lane}}); }
  Expr to_vector(const Expr& e) const { return e->dtype.lanes == lanes_ ? e : broadcast(e, lanes_); }

  // Offset of each lane from lane 0, if they are constants.
  std::optional<std::vector<int64_t>> lane_offsets(const Expr& index) {
    for (const auto& [v, wide] : lets_)
      if (uses_var(index, v)) return std::nullopt;
    Expr first = at_lane(index, 0);
    std::vector<int64_t> out{0};
    for (int l = 1; l < lanes_; ++l) {
      std::optional<int64_t> d = const_int(analyzer_.simplify(at_lane(index, l) - first));
      if (!d) return std::nullopt;
      out.push_back(*d);
    }
    return out;
  }
  static bool arithmetic(const std::vector<int64_t>& d) {
    for (size_t i = 2; i < d.size(); ++i)
      if (d[i] - d[i - 1] != d[1]) return false;
    return true;
  }
  struct Run {
    int first, count;
  };
  static std::vector<Run> runs_of(const std::vector<int64_t>& d) {
    std::vector<Run> runs{{0, 1}};
    for (int i = 1; i < static_cast<int>(d.size()); ++i) {
      if (d[static_cast<size_t>(i)] == d[static_cast<size_t>(i - 1)] + 1)
        ++runs.back().count;
      else
        runs.push_back({i, 1});
    }
    return runs;
  }

  Expr load_wide(const Load& e) {
    const Expr& index = e.indices[0];
    if (index->dtype.is_vector()) return nullptr;
    std::optional<std::vector<int64_t>> d = lane_offsets(index);
    if (d) {
      Expr first = analyzer_.simplify(at_lane(index, 0));
      bool uniform = std::all_of(d->begin(), d->end(), [](int64_t x) { return x == 0; });
      if (uniform) return broadcast(load(e.buffer, {first}), lanes_);
      if (arithmetic(*d)) return load(e.buffer, {ramp(first, int_imm((*d)[1], kInt64), lanes_)});
      std::vector<Run> runs = runs_of(*d);
      if (static_cast<int>(runs.size()) <= lanes_ / 2 && !mask_) {
        std::vector<Expr> pieces, order;
        for (const Run& r : runs)
          pieces.push_back(
              load(e.buffer, {ramp(first + (*d)[static_cast<size_t>(r.first)], int_imm(1, kInt64), r.count)}));
        for (int l = 0; l < lanes_; ++l) order.push_back(int_imm(l));
        return make<Shuffle>(e.dtype.with_lanes(lanes_), pieces, order);
      }
    }
    if (Expr lanes = expr(index)) return load(e.buffer, {to_vector(lanes)});
    return nullptr;
  }

  /// The expression for all lanes: a vector if it varies, else the scalar itself. Null: no vector form.
  Expr expr(const Expr& e) {
    if (!varies(e)) return e;
    if (e->dtype.is_vector()) return nullptr;
    DType wide = e->dtype.with_lanes(lanes_);
    switch (e->kind) {
      case ExprKind::kVarNode: {
        const VarNode* v = as<VarNode>(e);
        if (auto it = lets_.find(v); it != lets_.end()) return it->second;
        return ramp(base_, int_imm(1, e->dtype), lanes_);
      }
      case ExprKind::kLoad:
        return load_wide(*as<Load>(e));
      case ExprKind::kCast: {
        Expr v = expr(as<Cast>(e)->value);
        return v ? cast(wide, v) : v;
      }
      case ExprKind::kNot: {
        Expr v = expr(as<Not>(e)->a);
        return v ? make<Not>(wide, v) : v;
      }
      case ExprKind::kBinary: {
        const Binary* b = as<Binary>(e);
        Expr x = expr(b->a), y = expr(b->b);
        if (!x || !y) return nullptr;
        const Ramp *rx = as<Ramp>(x), *ry = as<Ramp>(y);
        bool sx = !x->dtype.is_vector(), sy = !y->dtype.is_vector();
        if (b->op == BinaryOp::add && rx && sy) return ramp(rx->base + y, rx->stride, lanes_);
        if (b->op == BinaryOp::add && ry && sx) return ramp(x + ry->base, ry->stride, lanes_);
        if (b->op == BinaryOp::sub && rx && sy) return ramp(rx->base - y, rx->stride, lanes_);
        if (b->op == BinaryOp::mul && rx && sy) return ramp(rx->base * y, rx->stride * y, lanes_);
        if (b->op == BinaryOp::mul && ry && sx) return ramp(x * ry->base, x * ry->stride, lanes_);
        return binary(b->op, to_vector(x), to_vector(y));
      }
      case ExprKind::kSelect: {
        const Select* s = as<Select>(e);
        Expr c = expr(s->condition), x = expr(s->then_value), y = expr(s->else_value);
        if (!c || !x || !y) return nullptr;
        return make<Select>(wide, c, to_vector(x), to_vector(y));
      }
      case ExprKind::kLet: {
        const Let* let = as<Let>(e);
        Expr value = expr(let->value);
        if (!value) return nullptr;
        if (!value->dtype.is_vector()) {
          Expr body = expr(let->body);
          return body ? make<Let>(body->dtype, let->var, value, body) : body;
        }
        Var w = make_var(let->var->name, value->dtype);
        lets_[let->var.get()] = w;
        Expr body = expr(let->body);
        lets_.erase(let->var.get());
        return body ? make<Let>(body->dtype, w, value, body) : body;
      }
      case ExprKind::kCall:
        return call_wide(*as<Call>(e));
      default:
        return nullptr;
    }
  }

  Expr call_wide(const Call& c) {
    bool elementwise = c.op->effect == OpEffect::pure &&
                       (c.op->group == OpGroup::math || c.op->group == OpGroup::integer || c.op->name == "likely");
    if (c.op->name == "if_then_else") {
      Expr condition = expr(c.args[0]);
      if (!condition) return nullptr;
      bool saved = mask_;
      mask_ = mask_ || condition->dtype.is_vector();
      Expr x = expr(c.args[1]), y = expr(c.args[2]);
      mask_ = saved;
      if (!x || !y) return nullptr;
      // Masked arms must be vectors: a uniform load would touch memory even when every lane is off.
      if (condition->dtype.is_vector() && (uniform_load(x) || uniform_load(y))) return nullptr;
      return call(c.dtype.with_lanes(lanes_), c.op, {condition, to_vector(x), to_vector(y)});
    }
    if (!elementwise || c.op->name == "q_multiply_shift_per_axis" || c.op->name == "dp4a") return nullptr;
    std::vector<Expr> args;
    for (const Expr& a : c.args) {
      Expr w = expr(a);
      if (!w) return nullptr;
      args.push_back(to_vector(w));
    }
    return call(c.dtype.with_lanes(lanes_), c.op, std::move(args));
  }

  static bool uniform_load(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      found = found || (l && l->dtype.lanes == 1);
      return !found;
    });
    return found;
  }

  Stmt store(const Store& s) {
    const Expr& index = s.indices[0];
    if (s.value->dtype.is_vector() || index->dtype.is_vector())
      return varies(s.value) || varies(index) || mask_ ? Stmt() : Stmt(&s);
    Expr value = expr(s.value);
    if (!value) return nullptr;
    if (mask_ && uniform_load(value)) return nullptr;
    std::optional<std::vector<int64_t>> d = lane_offsets(index);
    if (d) {
      Expr first = analyzer_.simplify(at_lane(index, 0));
      bool uniform = std::all_of(d->begin(), d->end(), [](int64_t x) { return x == 0; });
      // All lanes write one element: equal values, or a reduction along the loop, which runs in order.
      if (uniform)
        return value->dtype.is_vector() || mask_ || reads(s.value, s.buffer)
                   ? Stmt()
                   : Stmt(make_stmt<Store>(s.buffer, std::vector<Expr>{first}, value));
      if (arithmetic(*d))
        return make_stmt<Store>(s.buffer, std::vector<Expr>{ramp(first, int_imm((*d)[1], kInt64), lanes_)},
                                to_vector(value));
      std::vector<Run> runs = runs_of(*d);
      if (static_cast<int>(runs.size()) <= lanes_ / 2 && !mask_) {
        Var whole = make_var("lanes", s.value->dtype.with_lanes(lanes_));
        std::vector<Stmt> pieces;
        for (const Run& r : runs) {
          std::vector<Expr> order;
          for (int l = 0; l < r.count; ++l) order.push_back(int_imm(r.first + l));
          Expr part = make<Shuffle>(s.value->dtype.with_lanes(r.count), std::vector<Expr>{whole}, order);
          pieces.push_back(make_stmt<Store>(
              s.buffer,
              std::vector<Expr>{ramp(first + (*d)[static_cast<size_t>(r.first)], int_imm(1, kInt64), r.count)}, part));
        }
        return make_stmt<Bind>(whole, to_vector(value), make_seq(std::move(pieces)));
      }
    }
    Expr at = expr(index);
    return at ? Stmt(make_stmt<Store>(s.buffer, std::vector<Expr>{to_vector(at)}, to_vector(value))) : Stmt();
  }
  static bool reads(const Expr& e, const Buffer& b) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      found = found || (l && l->buffer->data.same_as(b->data));
      return !found;
    });
    return found;
  }

  // Uniform conditions branch. A bound that the last (or first) lane decides has a full fast path and a masked tail.
  Stmt if_stmt(const If& s) {
    Expr uniform, varying, all_lanes;
    bool decided = true;
    for (const Expr& c : conjuncts(s.condition)) {
      if (!varies(c)) {
        uniform = and_of(uniform, c);
        continue;
      }
      varying = and_of(varying, c);
      Expr worst = worst_lane(c);
      decided = decided && worst;
      if (worst) all_lanes = and_of(all_lanes, worst);
    }
    if (!varying) {
      auto copy = edit(s);
      copy->then_body = wide_or_lanes(s.then_body);
      if (s.else_body) copy->else_body = wide_or_lanes(s.else_body);
      return finish(std::move(copy));
    }
    if (s.else_body) return nullptr;
    Expr mask = expr(varying);
    if (!mask || !mask->dtype.is_vector() || mask_) return nullptr;
    mask_ = true;
    Stmt masked = stmt(s.then_body);
    mask_ = false;
    if (masked && !maskable(masked)) masked = nullptr;
    if (!masked) return nullptr;
    Stmt out = make_stmt<If>(mask, masked, Stmt());
    if (decided) {
      Stmt full = wide_or_lanes(refresh(s.then_body));
      out = make_stmt<If>(simplify_under(all_lanes), full, out);
    }
    return uniform ? Stmt(make_stmt<If>(uniform, out, Stmt())) : out;
  }
  Expr simplify_under(const Expr& e) { return analyzer_.simplify(e); }
  // Masks act on stores; other effects under them have no masked form.
  static bool maskable(const Stmt& s) {
    bool ok = true;
    walk_stmts(s, [&](const Stmt& c) {
      ok = ok && (as<Store>(c) || as<Seq>(c) || as<For>(c) || as<AttrStmt>(c) || (as<If>(c) && false));
      if (const Store* st = as<Store>(c)) ok = ok && st->value->dtype.is_vector();
      return ok;
    });
    return ok;
  }
  // The condition at the lane where it fails first, if the lanes are ordered.
  Expr worst_lane(const Expr& c) {
    const Binary* b = as<Binary>(c);
    if (!b || !b->a->dtype.is_int()) return nullptr;
    bool less = b->op == BinaryOp::lt || b->op == BinaryOp::le,
         greater = b->op == BinaryOp::gt || b->op == BinaryOp::ge;
    if (!less && !greater) return nullptr;
    std::optional<std::vector<int64_t>> d = lane_offsets(b->a - b->b);
    if (!d) return nullptr;
    auto worst = less ? std::max_element(d->begin(), d->end()) : std::min_element(d->begin(), d->end());
    return at_lane(c, static_cast<int>(worst - d->begin()));
  }

  const Var& var_;
  Expr base_;
  int lanes_;
  Analyzer& analyzer_;
  std::unordered_map<const VarNode*, Expr> lets_;
  bool mask_ = false;
};

int widest_bits(const Stmt& body) {
  int bits = 8;
  auto see = [&](DType t) {
    if (t.is_bool() || t.is_handle() || t.is_void()) return;
    int b = t.is_float() && t.bits < 32 ? 32 : t.bits;  // storage types compute in float32
    bits = std::max(bits, b);
  };
  walk(
      body,
      [&](const Expr& e) {
        if (const Load* l = as<Load>(e)) {
          see(l->dtype.element());
          return false;  // indices do not count
        }
        if (const Cast* c = as<Cast>(e)) see(c->dtype.element());
        return true;
      },
      [&](const Stmt& s) {
        if (const Store* st = as<Store>(s)) see(st->value->dtype.element());
        return true;
      });
  return bits;
}

class Vectorize : public Rewriter {
 public:
  explicit Vectorize(const PassContext& context) : context_(context) {}
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    const For* loop = as<For>(s);
    if (!loop) return Rewriter::operator()(s);
    if (loop->loop_kind == ForKind::vectorized) return vectorize(*loop);
    auto scope = analyzer_.scope();
    analyzer_.bind(*loop);
    return Rewriter::operator()(s);
  }

 private:
  // Loops of vectors up to this many are unrolled: their code is what one wide vector would become.
  static constexpr int64_t kUnrolledChunks = 16;

  Stmt vectorize(const For& loop) {
    Stmt body = loop.body;
    {  // vectorized loops inside become serial: one level of lanes
      auto scope = analyzer_.scope();
      analyzer_.bind(loop);
      body = Serialize()(body);
    }
    int native = std::max(1, context_.target.lanes(widest_bits(body)));
    Expr begin = loop.min;
    std::optional<int64_t> extent = const_int(loop.extent);
    std::vector<Stmt> parts;
    if (!extent) {
      Expr lanes = int_imm(native, kInt64);
      Expr chunks = floor_div(loop.extent, lanes);
      parts.push_back(chunk_loop(loop, body, begin, chunks, native, ForKind::serial));
      Var v = make_var(loop.var->name, kInt64);
      Expr start = begin + chunks * lanes;
      parts.push_back(
          make_loop(v, loop.extent - chunks * lanes, refresh(substitute(body, {{loop.var.get(), start + Expr(v)}}))));
      return make_seq(std::move(parts));
    }
    int64_t done = 0;
    for (int lanes = native; done < *extent; lanes = std::max(1, lanes / 2)) {
      int64_t chunks = (*extent - done) / lanes;
      if (chunks == 0) continue;
      ForKind kind = chunks <= kUnrolledChunks ? ForKind::unrolled : ForKind::serial;
      parts.push_back(chunk_loop(loop, body, begin + done, int_imm(chunks, kInt64), lanes, kind));
      done += chunks * lanes;
    }
    return make_seq(std::move(parts));
  }

  Stmt chunk_loop(const For& loop, const Stmt& body, const Expr& begin, const Expr& chunks, int lanes, ForKind kind) {
    if (is_const(chunks, 0)) return make_seq({});
    Var chunk = make_var(loop.var->name, kInt64);
    bool single = is_const(chunks, 1);
    auto scope = analyzer_.scope();
    if (!single) analyzer_.bind(chunk, Range{int_imm(0, kInt64), chunks});
    Expr base = single ? begin : begin + Expr(chunk) * lanes;
    Stmt wide = lanes == 1 ? substitute(body, {{loop.var.get(), base}})
                           : Widen(loop.var, base, lanes, analyzer_).wide_or_lanes(body);
    wide = refresh(wide);
    return single ? wide : make_loop(chunk, chunks, wide, kind);
  }

  struct Serialize : Rewriter {
    using Rewriter::operator();
    Stmt operator()(const Stmt& s) override {
      Stmt mapped = Rewriter::operator()(s);
      const For* loop = as<For>(mapped);
      if (!loop || loop->loop_kind != ForKind::vectorized) return mapped;
      auto copy = edit(*loop);
      copy->loop_kind = ForKind::serial;
      return finish(std::move(copy));
    }
  };

  const PassContext& context_;
  Analyzer analyzer_;
};

const Register<Pass> pass{"vectorize_loops", "vectorized loops become vector statements",
                          Pass{Form::flat,
                               Form::flat,
                               {},
                               [](const FunctionRef& f, const PassContext& context) -> Result<FunctionRef> {
                                 return with_body(*f, Vectorize(context)(f->body));
                               },
                               Pass::For::any,
                               true}};

}  // namespace

}  // namespace tilewright::lowering
