// Buffers become one-dimensional: every access has one index, an element offset in 64 bits, in which the buffer's
// strides and offset are applied. Loop variables become 64-bit, so that no index arithmetic wraps or needs sign
// extension; where a value (not an index) needs the variable, it is cast back.
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(packed_type_not_lowered, "packed-type-not-lowered",
                "buffers of sub-byte elements are not lowered for this target");

class Flatten : public Rewriter {
 public:
  std::optional<Refusal> refusal;

  Expr operator()(const Expr& e) override {
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = wide_.find(v);
      return it == wide_.end() ? e : cast(v->dtype, it->second);
    }
    if (const Load* l = as<Load>(e)) {
      Buffer flat = flatten(l->buffer);
      return load(flat, {offset(l->buffer, l->indices)});
    }
    if (const Binary* b = as<Binary>(e); b && is_comparison(b->op) && is_index(b->a) && is_index(b->b))
      return binary(b->op, index(b->a), index(b->b));
    return Rewriter::operator()(e);
  }

  Stmt operator()(const Stmt& s) override {
    if (const For* loop = as<For>(s)) {
      auto copy = edit(*loop);
      copy->min = index(loop->min);
      copy->extent = index(loop->extent);
      if (loop->step) copy->step = index(loop->step);
      if (loop->var->dtype != kInt64) {
        copy->var = make_var(loop->var->name, kInt64);
        wide_[loop->var.get()] = copy->var;
      }
      copy->body = (*this)(loop->body);
      return finish(std::move(copy));
    }
    if (const Store* st = as<Store>(s)) {
      Buffer flat = flatten(st->buffer);
      Expr at = offset(st->buffer, st->indices);
      return make_stmt<Store>(flat, std::vector<Expr>{at}, (*this)(st->value));
    }
    if (const Allocate* a = as<Allocate>(s))
      return make_stmt<Allocate>(flatten(a->buffer), a->annotations, (*this)(a->body));
    if (const DeclBuffer* d = as<DeclBuffer>(s)) return make_stmt<DeclBuffer>(flatten(d->buffer), (*this)(d->body));
    return Rewriter::operator()(s);
  }

  Buffer flatten(const Buffer& b) {
    auto it = flat_.find(b.get());
    if (it != flat_.end()) return it->second;
    if (b->dtype.bits < 8 && !b->dtype.is_bool())
      refusal =
          Refusal(packed_type_not_lowered, fmt::format("buffer {} has elements of type {}", b->name, b->dtype.str()));
    std::vector<Expr> strides = strides_of(*b);
    Expr size = int_imm(1, kInt64);
    for (size_t d = 0; d < b->shape.size(); ++d) size = size + (index(b->shape[d]) - 1) * index(strides[d]);
    Buffer flat = derive_buffer(b, [&](BufferNode& n) {
      n.shape = {simplify(size)};
      n.strides.clear();
      n.elem_offset = nullptr;
    });
    kept_.push_back(b);
    return flat_[b.get()] = flat;
  }

 private:
  static bool is_index(const Expr& e) {
    return e->dtype.is_int() && e->dtype.bits >= 32 && e->dtype.lanes == 1 && !reads_memory(e);
  }

  // The expression in 64 bits. Index arithmetic is over the integers, so widening goes through + - * / % min max
  // select.
  Expr index(const Expr& e) {
    DType wide = kInt64.with_lanes(e->dtype.lanes);
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = wide_.find(v);
      return it == wide_.end() ? cast(wide, e) : it->second;
    }
    if (const IntImm* c = as<IntImm>(e)) return int_imm(c->value, wide);
    if (const Ramp* r = as<Ramp>(e)) return ramp(index(r->base), index(r->stride), r->lanes);
    if (const Broadcast* b = as<Broadcast>(e)) return broadcast(index(b->value), b->lanes);
    if (e->dtype.is_int() && e->dtype.bits >= 32) {
      if (const Binary* b = as<Binary>(e); b && !is_comparison(b->op)) return binary(b->op, index(b->a), index(b->b));
      if (const Select* s = as<Select>(e))
        return select((*this)(s->condition), index(s->then_value), index(s->else_value));
      if (const Cast* c = as<Cast>(e);
          c && c->value->dtype.is_int() && c->value->dtype.bits >= 32 && c->value->dtype.bits <= e->dtype.bits)
        return index(c->value);
    }
    return cast(wide, (*this)(e));
  }

  Expr offset(const Buffer& b, const std::vector<Expr>& indices) {
    std::vector<Expr> strides = strides_of(*b);
    Expr at = b->elem_offset ? index(b->elem_offset) : int_imm(0, kInt64);
    for (size_t d = 0; d < indices.size(); ++d) {
      Expr i = index(indices[d]);
      Expr stride = index(strides[d]);
      // Only the last index may be a vector; a Ramp stays one.
      if (const Ramp* r = as<Ramp>(i)) {
        at = ramp(at + r->base * stride, r->stride * stride, r->lanes);
      } else {
        at = i->dtype.is_vector() ? broadcast(at, i->dtype.lanes) + i * broadcast(stride, i->dtype.lanes)
                                  : at + i * stride;
      }
    }
    return at;
  }

  std::unordered_map<const VarNode*, Expr> wide_;
  BufferMap flat_;
  std::vector<Buffer> kept_;  // keys of flat_ stay alive
};

Result<FunctionRef> run(const FunctionRef& f, const PassContext&) {
  Flatten flatten;
  auto copy = std::make_unique<Function>(*f);
  for (Param& p : copy->params)
    if (p.buffer) p.buffer = flatten.flatten(p.buffer);
  copy->body = flatten(f->body);
  if (flatten.refusal) return refuse(*flatten.refusal);
  return FunctionRef(copy.release());
}

const Register<Pass> pass{"flatten_buffers", "one-dimensional buffers, 64-bit element offsets",
                          Pass{Form::loops, Form::flat, {}, run, Pass::For::any, true}};

}  // namespace

}  // namespace tilewright::lowering
