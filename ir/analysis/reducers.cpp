// Matching of init + update against the registered reducers. The update must *be* combine(accumulators, y) for some y:
// the reducer's own expression over the loaded accumulators and placeholders y is unified with what is stored.
#include "ir/analysis/reducers.h"

#include <algorithm>
#include <cmath>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

bool commutes(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
    case BinaryOp::mul:
    case BinaryOp::min:
    case BinaryOp::max:
    case BinaryOp::logical_and:
    case BinaryOp::logical_or:
    case BinaryOp::eq:
    case BinaryOp::ne:
      return true;
    default:
      return false;
  }
}
bool commutes(const Operation& op) {
  return op.name == "bitwise_and" || op.name == "bitwise_or" || op.name == "bitwise_xor";
}

// Placeholders bind to whole expressions, the same one wherever they occur.
class Unify {
 public:
  explicit Unify(const std::vector<Var>& holes) : holes_(holes), bound_(holes.size()) {}
  const std::vector<Expr>& bound() const { return bound_; }

  bool operator()(const Expr& pattern, const Expr& e) {
    if (const VarNode* v = as<VarNode>(pattern))
      for (size_t i = 0; i < holes_.size(); ++i)
        if (holes_[i].get() == v) {
          if (!bound_[i]) bound_[i] = e;
          return bound_[i]->hash == e->hash && e->dtype == pattern->dtype;
        }
    if (pattern->hash == e->hash) return true;
    if (pattern->kind != e->kind || pattern->dtype != e->dtype) return false;
    switch (pattern->kind) {
      case ExprKind::kBinary: {
        const Binary &p = *as<Binary>(pattern), &x = *as<Binary>(e);
        // a > b is b < a
        if (p.op != x.op) return mirrored(p.op) == x.op && both(p.a, x.b, p.b, x.a);
        return both(p.a, x.a, p.b, x.b) || (commutes(p.op) && both(p.a, x.b, p.b, x.a));
      }
      case ExprKind::kCast:
        return (*this)(as<Cast>(pattern)->value, as<Cast>(e)->value);
      case ExprKind::kNot:
        return (*this)(as<Not>(pattern)->a, as<Not>(e)->a);
      case ExprKind::kSelect: {
        const Select &p = *as<Select>(pattern), &x = *as<Select>(e);
        return (*this)(p.condition, x.condition) && both(p.then_value, x.then_value, p.else_value, x.else_value);
      }
      case ExprKind::kCall: {
        const Call &p = *as<Call>(pattern), &x = *as<Call>(e);
        if (p.op != x.op || p.args.size() != x.args.size()) return false;
        if (p.args.size() == 2 && (both(p.args[0], x.args[0], p.args[1], x.args[1]) ||
                                   (commutes(*p.op) && both(p.args[0], x.args[1], p.args[1], x.args[0]))))
          return true;
        for (size_t i = 0; i < p.args.size(); ++i)
          if (!(*this)(p.args[i], x.args[i])) return false;
        return true;
      }
      default:
        return false;
    }
  }

 private:
  static BinaryOp mirrored(BinaryOp op) {
    switch (op) {
      case BinaryOp::lt:
        return BinaryOp::gt;
      case BinaryOp::gt:
        return BinaryOp::lt;
      case BinaryOp::le:
        return BinaryOp::ge;
      case BinaryOp::ge:
        return BinaryOp::le;
      default:
        return BinaryOp::div;  // never the op of a comparison
    }
  }
  bool both(const Expr& p, const Expr& x, const Expr& q, const Expr& y) {
    std::vector<Expr> saved = bound_;
    if ((*this)(p, x) && (*this)(q, y)) return true;
    bound_ = std::move(saved);
    return false;
  }
  const std::vector<Var>& holes_;
  std::vector<Expr> bound_;
};

struct Stores {
  std::vector<const Store*> stores;
  VarMap lets;
};

// Binds, then stores; nothing else.
bool read_stores(const Stmt& s, Stores& out) {
  if (const Bind* bind = as<Bind>(s)) {
    out.lets[bind->var.get()] = substitute(bind->value, out.lets);
    return read_stores(bind->body, out);
  }
  if (const Store* store = as<Store>(s)) {
    out.stores.push_back(store);
    return true;
  }
  const Seq* seq = as<Seq>(s);
  if (!seq) return false;
  return std::all_of(seq->stmts.begin(), seq->stmts.end(), [&](const Stmt& item) { return read_stores(item, out); });
}

// Stores in sequence: a later value must not read an accumulator that an earlier store has changed.
bool reads_stored(const Stores& s) {
  for (size_t i = 1; i < s.stores.size(); ++i) {
    bool direct = false;
    walk(s.stores[i]->value, [&](const Expr& e) {
      if (const Load* l = as<Load>(e))
        for (size_t j = 0; j < i; ++j) direct = direct || l->buffer.same_as(s.stores[j]->buffer);
      return true;
    });
    if (direct) return true;
  }
  return false;
}

// An identity is also met as the infinity beyond it; where the reducer gives none (an index), any constant will do.
bool is_identity(const Expr& wanted, const Expr& given) {
  if (!wanted) return const_int(given).has_value();
  if (wanted->hash == given->hash) return true;
  const FloatImm *w = as<FloatImm>(wanted), *g = as<FloatImm>(given);
  if (!w || !g || wanted->dtype != given->dtype) return false;
  if (w->value == g->value) return true;
  return w->value != 0 && std::signbit(w->value) == std::signbit(g->value) && std::isinf(g->value) &&
         std::abs(w->value) > 1e4;
}

// What the placeholders stand for; nothing if the patterns do not fit or a value reads an accumulator.
std::optional<std::vector<Expr>> unify_all(const std::vector<Var>& holes, const std::vector<Expr>& patterns,
                                           const std::vector<Expr>& exprs, const std::vector<Buffer>& accumulators) {
  Unify unify(holes);
  for (size_t i = 0; i < patterns.size(); ++i)
    if (!unify(patterns[i], exprs[i])) return std::nullopt;
  bool fine = true;
  for (const Expr& y : unify.bound()) {
    if (!y) return std::nullopt;
    walk(y, [&](const Expr& e) {
      if (const Load* l = as<Load>(e))
        for (const Buffer& b : accumulators) fine = fine && !l->buffer.same_as(b);
      return fine;
    });
  }
  return fine ? std::optional(unify.bound()) : std::nullopt;
}

}  // namespace

std::optional<MatchedReducer> match_reducer(const Stmt& init, const Stmt& update) {
  if (!init || !update) return std::nullopt;
  Stores from, to;
  if (!read_stores(init, from) || !read_stores(update, to)) return std::nullopt;
  size_t k = to.stores.size();
  if (k == 0 || from.stores.size() != k || reads_stored(to)) return std::nullopt;

  std::vector<size_t> order(k);  // accumulator i of the reducer is store order[i]
  for (size_t i = 0; i < k; ++i) order[i] = i;
  do {
    MatchedReducer m;
    std::vector<Expr> accumulators, combined;
    std::vector<DType> types;
    bool paired = true;
    for (size_t i : order) {
      const Store& store = *to.stores[i];
      auto it = std::find_if(from.stores.begin(), from.stores.end(), [&](const Store* s) {
        return s->buffer.same_as(store.buffer) && hash_field(s->indices) == hash_field(store.indices);
      });
      if (it == from.stores.end()) {
        paired = false;
        break;
      }
      m.buffers.push_back(store.buffer);
      m.indices.push_back(store.indices);
      m.identity.push_back(substitute((*it)->value, from.lets));
      accumulators.push_back(load(store.buffer, store.indices));
      combined.push_back(substitute(store.value, to.lets));
      types.push_back(store.buffer->dtype);
    }
    if (!paired) return std::nullopt;
    for (const auto& [name, entry] : Registry<Reducer>::instance().entries()) {
      const Reducer& r = entry.value;
      if (r.arity != static_cast<int>(k) || !r.accepts(types)) continue;
      std::vector<Expr> identity = r.identity(types);
      bool same_identity = true;
      for (size_t i = 0; i < k; ++i) same_identity &= is_identity(identity[i], m.identity[i]);
      if (!same_identity) continue;
      std::vector<Var> holes;
      for (DType t : types) holes.push_back(make_var("y", t));
      std::vector<Expr> pattern = r.combine(accumulators, std::vector<Expr>(holes.begin(), holes.end()));
      std::optional<std::vector<Expr>> values = unify_all(holes, pattern, combined, m.buffers);
      if (!values && r.step) {
        holes.resize(1);
        values = unify_all(holes, r.step(accumulators, holes[0]), combined, m.buffers);
        if (values) values = r.lift((*values)[0], types);
      }
      if (!values) continue;
      m.values = std::move(*values);
      m.reducer = &r;
      return m;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return std::nullopt;
}

std::optional<MatchedReducer> match_reducer(const Block& block) { return match_reducer(block.init, block.body); }

const Reducer* match_combine(const Expr& accumulator, const Expr& combined, Expr* y) {
  for (const auto& [name, entry] : Registry<Reducer>::instance().entries()) {
    const Reducer& r = entry.value;
    if (r.arity != 1 || !r.accepts({accumulator->dtype})) continue;
    std::vector<Var> holes{make_var("y", accumulator->dtype)};
    Unify unify(holes);
    if (!unify(r.combine({accumulator}, {holes[0]})[0], combined) || !unify.bound()[0]) continue;
    if (y) *y = unify.bound()[0];
    return &r;
  }
  return nullptr;
}

}  // namespace tilewright
