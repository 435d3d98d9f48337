#include "ir/parse_signature.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright::text {

namespace {

// base + [low, high]; `base` (null: 0) holds what does not depend on inner loops. Unknown: no interval.
struct Interval {
  Expr base;
  int64_t low = 0, high = 0;
};

class Collect {
 public:
  Signature out;

  void block(const Block& b) {
    for (const Buffer& x : b.allocs) local_.insert(x.get());
    for (const MatchBuffer& m : b.matches) matches_[m.buffer.get()] = &m;
    const Store* update = b.init ? as<Store>(b.body) : nullptr;
    if (b.init) stmt(b.init);
    own_write_ = update;
    has_init_ = static_cast<bool>(b.init);
    stmt(b.body);
  }

 private:
  void stmt(const Stmt& s) {
    switch (s->kind) {
      case StmtKind::kFor: {
        const For* loop = as<For>(s);
        expr(loop->min);
        expr(loop->extent);
        loops_[loop->var.get()] = {loop->min, loop->extent};
        stmt(loop->body);
        loops_.erase(loop->var.get());
        return;
      }
      case StmtKind::kBlock:
        return nested(*as<Block>(s));
      case StmtKind::kStore: {
        const Store* store = as<Store>(s);
        const Store* outer = std::exchange(current_, store);
        for (const Expr& i : store->indices) expr(i);
        expr(store->value);
        current_ = outer;
        return touch(out.writes, store->buffer, store->indices);
      }
      case StmtKind::kBind:
        bound_.insert(as<Bind>(s)->var.get());
        break;
      case StmtKind::kAllocate:
        local_.insert(as<Allocate>(s)->buffer.get());
        break;
      case StmtKind::kDeclBuffer:
        out.opaque = true;
        break;
      default:
        break;
    }
    for_each_child(*s, [&](const Expr& e) { expr(e); }, [&](const Stmt& c) { stmt(c); });
  }

  void nested(const Block& b) {
    std::unordered_map<const VarNode*, Expr> bindings;
    for (const Iter& i : b.iters) {
      expr(i.binding);
      iters_[i.var.get()] = i.binding;
    }
    if (b.predicate) expr(b.predicate);
    for (const Buffer& x : b.allocs) local_.insert(x.get());
    for (const MatchBuffer& m : b.matches) matches_[m.buffer.get()] = &m;
    for (const BufferRegion& r : b.reads) touch(out.reads, r);
    for (const BufferRegion& r : b.writes) touch(out.writes, r);
  }

  void expr(const Expr& e) {
    if (const Load* load = as<Load>(e)) {
      for (const Expr& i : load->indices) expr(i);
      // The update's read of the element that it writes does not count in a block with an init.
      if (has_init_ && current_ && load->buffer.same_as(current_->buffer) && equal(load->indices, current_->indices))
        return;
      return touch(out.reads, load->buffer, load->indices);
    }
    if (const Call* call = as<Call>(e)) {
      if (call->op->effect != OpEffect::pure || call->op->group == OpGroup::pointer) out.opaque = true;
      if (call->op->name == "address_of") return;
    }
    if (const Let* let = as<Let>(e)) bound_.insert(let->var.get());
    if (const VarNode* v = as<VarNode>(e); v && v->dtype.is_handle()) out.opaque = true;
    for_each_child(*e, [&](const Expr& c) { expr(c); });
  }

  static bool equal(const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return x->hash == y->hash; });
  }

  void touch(std::vector<BufferRegion>& list, const Buffer& b, const std::vector<Expr>& indices) {
    BufferRegion r{b, {}};
    for (const Expr& i : indices) {
      if (const Ramp* ramp = as<Ramp>(i))
        r.region.push_back({ramp->base, ramp->stride * static_cast<int64_t>(ramp->lanes - 1) + 1});
      else
        r.region.push_back({as<Broadcast>(i) ? as<Broadcast>(i)->value : i, int_imm(1, i->dtype.element())});
    }
    touch(list, r);
  }

  void touch(std::vector<BufferRegion>& list, const BufferRegion& region) {
    const Buffer& b = region.buffer;
    if (local_.contains(b.get())) return;
    if (auto it = matches_.find(b.get()); it != matches_.end())
      return touch(list, it->second->source);  // the whole alias
    BufferRegion box{b, {}};
    for (size_t d = 0; d < region.region.size(); ++d) box.region.push_back(relax(region.region[d], b->shape[d]));
    for (BufferRegion& old : list)
      if (old.buffer.same_as(b)) return merge(old, box);
    list.push_back(std::move(box));
  }

  void merge(BufferRegion& old, const BufferRegion& box) {
    for (size_t d = 0; d < box.region.size(); ++d) {
      Range& x = old.region[d];
      const Range& y = box.region[d];
      if (x.min->hash == y.min->hash && x.extent->hash == y.extent->hash) continue;
      std::optional<Interval> a = interval(x.min), b = interval(y.min);
      std::optional<int64_t> na = const_int(x.extent), nb = const_int(y.extent);
      Hash64 ha = a && a->base ? a->base->hash : 0, hb = b && b->base ? b->base->hash : 0;
      if (a && b && na && nb && ha == hb) {
        int64_t low = std::min(a->low, b->low), high = std::max(a->low + *na, b->low + *nb);
        x = from(a->base, low, high, x.min->dtype);
      } else {
        x = {int_imm(0, old.buffer->shape[d]->dtype), old.buffer->shape[d]};
      }
    }
  }

  static Range from(const Expr& base, int64_t low, int64_t end, DType t) {
    Expr min = !base ? int_imm(low, t) : low < 0 ? base - (-low) : base + low;
    return {min, int_imm(end - low, min->dtype)};
  }

  Range relax(const Range& r, const Expr& extent) {
    Range whole{int_imm(0, extent->dtype), extent};
    auto inner = [&](const VarNode* v) { return loops_.contains(v) || iters_.contains(v) || bound_.contains(v); };
    bool varies = uses_any(r.min, inner) || uses_any(r.extent, inner) || reads_memory(r.min);
    if (!varies) return r;
    std::optional<Interval> i = interval(r.min);
    std::optional<int64_t> n = const_int(r.extent);
    if (n && i) return from(i->base, i->low, i->high + *n, r.min->dtype);
    // A loop over a symbolic extent, used bare.
    const VarNode* v = as<VarNode>(r.min);
    while (v && iters_.contains(v)) v = as<VarNode>(iters_.at(v));
    if (v && loops_.contains(v) && n == 1) {
      const Range& l = loops_.at(v);
      if (!uses_any(l.min, inner) && !uses_any(l.extent, inner)) return l;
    }
    return whole;
  }

  std::optional<Interval> interval(const Expr& e) {
    if (std::optional<int64_t> c = const_int(e)) return Interval{nullptr, *c, *c};
    if (const VarNode* v = as<VarNode>(e)) {
      if (auto it = iters_.find(v); it != iters_.end()) return interval(it->second);
      if (bound_.contains(v)) return std::nullopt;
      auto it = loops_.find(v);
      if (it == loops_.end()) return Interval{e, 0, 0};
      std::optional<Interval> min = interval(it->second.min);
      std::optional<int64_t> n = const_int(it->second.extent);
      if (!min || !n) return std::nullopt;
      return Interval{min->base, min->low, min->high + std::max<int64_t>(*n - 1, 0)};
    }
    const Binary* b = as<Binary>(e);
    if (!b) return std::nullopt;
    std::optional<Interval> x = interval(b->a), y = interval(b->b);
    if (!x || !y) return std::nullopt;
    bool constant = !y->base && y->low == y->high;
    switch (b->op) {
      case BinaryOp::add:
        return Interval{x->base && y->base ? x->base + y->base
                        : x->base          ? x->base
                                           : y->base,
                        x->low + y->low, x->high + y->high};
      case BinaryOp::sub:
        if (y->base)
          return x->base || x->low != x->high || y->low != y->high ? std::nullopt : std::optional(Interval{e, 0, 0});
        return Interval{x->base, x->low - y->high, x->high - y->low};
      case BinaryOp::mul: {
        if (!constant && !x->base && x->low == x->high) std::swap(x, y), constant = true;
        if (!constant) return std::nullopt;
        int64_t c = y->low;
        int64_t p = x->low * c, q = x->high * c;
        return Interval{x->base ? x->base * c : nullptr, std::min(p, q), std::max(p, q)};
      }
      case BinaryOp::floor_div:
        if (!constant || y->low <= 0) return std::nullopt;
        if (!x->base) return Interval{nullptr, floor_div(x->low, y->low), floor_div(x->high, y->low)};
        return x->low == 0 && x->high == 0 ? std::optional(Interval{floor_div(x->base, y->low), 0, 0}) : std::nullopt;
      case BinaryOp::floor_mod:
        if (!constant || y->low <= 0) return std::nullopt;
        if (!x->base && x->low >= 0 && x->high < y->low) return x;
        if (x->base && x->low == 0 && x->high == 0) return Interval{floor_mod(x->base, y->low), 0, 0};
        return Interval{nullptr, 0, y->low - 1};
      default:
        return std::nullopt;
    }
  }

  std::unordered_map<const VarNode*, Range> loops_;
  std::unordered_map<const VarNode*, Expr> iters_;  // of nested blocks: their bindings
  std::unordered_set<const VarNode*> bound_;
  std::unordered_set<const BufferNode*> local_;
  std::unordered_map<const BufferNode*, const MatchBuffer*> matches_;
  const Store* current_ = nullptr;
  const Store* own_write_ = nullptr;
  bool has_init_ = false;
};

}  // namespace

Signature body_signature(const Block& b) {
  Collect collect;
  collect.block(b);
  return std::move(collect.out);
}

}  // namespace tilewright::text
