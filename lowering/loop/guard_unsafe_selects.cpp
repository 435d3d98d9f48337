// A `select` may evaluate both arms. An arm that may read out of bounds or trap becomes an `if_then_else`, which
// evaluates one.
#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

class GuardSelects : public Rewriter {
 public:
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Select* s = as<Select>(mapped);
    if (!s || (safe(s->then_value) && safe(s->else_value))) return mapped;
    return call(s->dtype, operation("if_then_else"), {s->condition, s->then_value, s->else_value});
  }
  Stmt operator()(const Stmt& s) override {
    const For* loop = as<For>(s);
    if (!loop) return Rewriter::operator()(s);
    auto scope = analyzer_.scope();
    analyzer_.bind(*loop);
    return Rewriter::operator()(s);
  }

 private:
  bool safe(const Expr& e) {
    bool all = true;
    walk(e, [&](const Expr& x) {
      if (const Load* l = as<Load>(x)) all = all && in_range(*l);
      if (const Binary* b = as<Binary>(x)) {
        bool divides = b->op == BinaryOp::floor_div || b->op == BinaryOp::floor_mod || b->op == BinaryOp::trunc_div ||
                       b->op == BinaryOp::trunc_mod;
        if (divides) all = all && const_int(b->b).value_or(0) > 0;
      }
      if (const Call* c = as<Call>(x)) all = all && c->op->effect == OpEffect::pure;
      return all;
    });
    return all;
  }
  bool in_range(const Load& l) {
    for (size_t d = 0; d < l.indices.size(); ++d) {
      Interval i = analyzer_.const_bounds(lane_of(l.indices[d], 0));
      Interval last = analyzer_.const_bounds(lane_of(l.indices[d], l.indices[d]->dtype.lanes - 1));
      std::optional<int64_t> extent = const_int(l.buffer->shape[d]);
      if (!extent || i.min < 0 || i.max >= *extent || last.min < 0 || last.max >= *extent) return false;
    }
    return true;
  }
  Analyzer analyzer_;
};

const Register<Pass> pass{"guard_unsafe_selects", "select arms that may trap or read out of bounds are evaluated alone",
                          Pass{Form::loops,
                               Form::loops,
                               {"partition_loops"},
                               [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
                                 return with_body(*f, GuardSelects()(f->body));
                               }}};

}  // namespace

}  // namespace tilewright::lowering
