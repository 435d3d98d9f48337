#include "lowering/index.h"

#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright::lowering {

Expr shift_index(const Expr& index, const Expr& offset) {
  if (const Ramp* r = as<Ramp>(index)) return ramp(r->base + offset, r->stride, r->lanes);
  if (const Broadcast* b = as<Broadcast>(index)) return broadcast(b->value + offset, b->lanes);
  return index + offset;
}

std::vector<Expr> strides_of(const BufferNode& b) {
  if (!b.strides.empty()) return b.strides;
  std::vector<Expr> strides(b.shape.size());
  Expr stride = int_imm(1, kInt64);
  for (size_t d = b.shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride = stride * cast(kInt64, b.shape[d]);
  }
  return strides;
}

int64_t buffer_bytes(const BufferNode& b) {
  std::vector<Expr> strides = strides_of(b);
  int64_t last = 0;
  for (size_t d = 0; d < b.shape.size(); ++d) {
    std::optional<int64_t> extent = const_int(b.shape[d]), stride = const_int(strides[d]);
    if (!extent || !stride) return 0;
    last += (*extent - 1) * *stride;
  }
  return (last + 1) * b.dtype.element_bytes() * b.dtype.lanes;
}

Expr lane_of(const Expr& index, int lane) {
  if (const Ramp* r = as<Ramp>(index)) return r->base + r->stride * lane;
  if (const Broadcast* b = as<Broadcast>(index)) return b->value;
  return index;
}

namespace {

class Collect {
 public:
  Collect(const Buffer& buffer) : data_(buffer->data.get()) {}
  std::vector<Access> found;

  void expr(const Expr& e) {
    if (!e) return;
    if (const VarNode* v = as<VarNode>(e); v == data_) found.push_back({nullptr, true, loops_, predicate_});
    if (const Load* load = as<Load>(e)) {
      for (const Expr& i : load->indices) expr(i);
      if (load->buffer->data.get() == data_) found.push_back({&load->indices, false, loops_, predicate_});
      return;
    }
    if (const Call* c = as<Call>(e)) {
      if (c->op->name == "if_then_else") {
        expr(c->args[0]);
        Expr saved = predicate_;
        predicate_ = and_of(saved, scalar(c->args[0]) ? c->args[0] : Expr());
        expr(c->args[1]);
        predicate_ = and_of(saved, scalar(c->args[0]) ? not_of(c->args[0]) : Expr());
        expr(c->args[2]);
        predicate_ = saved;
        return;
      }
      // A pointer to an element lets the callee reach the whole buffer.
      if (c->op->name == "address_of") {
        const Load* place = as<Load>(c->args[0]);
        if (place && place->buffer->data.get() == data_) {
          found.push_back({nullptr, true, loops_, predicate_});
          return;
        }
      }
    }
    for_each_child(*e, [&](const Expr& c) { expr(c); });
  }

  void stmt(const Stmt& s) {
    if (!s) return;
    if (const For* loop = as<For>(s)) {
      expr(loop->min);
      expr(loop->extent);
      loops_.push_back({loop->var, range_of(*loop)});
      stmt(loop->body);
      loops_.pop_back();
      return;
    }
    if (const If* branch = as<If>(s)) {
      expr(branch->condition);
      Expr saved = predicate_;
      predicate_ = and_of(saved, scalar(branch->condition) ? branch->condition : Expr());
      stmt(branch->then_body);
      predicate_ = and_of(saved, scalar(branch->condition) ? not_of(branch->condition) : Expr());
      stmt(branch->else_body);
      predicate_ = saved;
      return;
    }
    if (const Store* store = as<Store>(s)) {
      expr(store->value);
      for (const Expr& i : store->indices) expr(i);
      if (store->buffer->data.get() == data_) found.push_back({&store->indices, true, loops_, predicate_});
      return;
    }
    if (const Block* block = as<Block>(s)) {  // form O: regions are a summary of the body
      stmt(block->init);
      return stmt(block->body);
    }
    if (const DeclBuffer* view = as<DeclBuffer>(s)) return stmt(view->body);
    for_each_child(*s, [&](const Expr& e) { expr(e); }, [&](const Stmt& c) { stmt(c); });
  }

 private:
  static bool scalar(const Expr& e) { return e->dtype.lanes == 1; }
  const VarNode* data_;
  std::vector<VarRange> loops_;
  Expr predicate_;
};

}  // namespace

std::vector<Access> accesses_of(const Stmt& s, const Buffer& buffer) {
  Collect collect(buffer);
  collect.stmt(s);
  return std::move(collect.found);
}

}  // namespace tilewright::lowering
