// Storage types compute in float32 and round once after each operation of the source: bfloat16 and float8 everywhere,
// float16 on CPUs. With keep_rounding=off, or under `excess_precision`, a rounding between two operations is left out.
#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

class Legalize : public Rewriter {
 public:
  Legalize(bool cpu, bool keep_rounding) : cpu_(cpu), keep_(keep_rounding) {}
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    if (const Cast* c = as<Cast>(mapped); c && !keep_) {  // f32(storage(f32 x)) = x
      const Cast* inner = as<Cast>(c->value);
      if (inner && storage(inner->dtype) && inner->value->dtype == c->dtype) return inner->value;
    }
    if (const Binary* b = as<Binary>(mapped); b && storage(b->a->dtype)) {
      DType wide = kFloat32.with_lanes(b->a->dtype.lanes);
      Expr r = binary(b->op, widen(b->a, wide), widen(b->b, wide));
      return is_comparison(b->op) ? r : cast(b->dtype, r);
    }
    if (const Call* c = as<Call>(mapped);
        c && c->op->group == OpGroup::math && !c->args.empty() && storage(c->args[0]->dtype)) {
      DType wide = kFloat32.with_lanes(c->args[0]->dtype.lanes);
      std::vector<Expr> args;
      for (const Expr& a : c->args) args.push_back(storage(a->dtype) ? widen(a, wide) : a);
      return storage(c->dtype) ? cast(c->dtype, call(wide, c->op, args)) : call(c->dtype, c->op, args);
    }
    return mapped;
  }
  Stmt operator()(const Stmt& s) override {
    const AttrStmt* a = as<AttrStmt>(s);
    if (!a || a->key != "excess_precision") return Rewriter::operator()(s);
    bool saved = std::exchange(keep_, false);
    Stmt body = (*this)(a->body);
    keep_ = saved;
    return body;
  }

 private:
  bool storage(DType t) const { return t.is_float() && (t.code != TypeCode::ieee_float || (cpu_ && t.bits == 16)); }
  Expr widen(const Expr& e, DType wide) const {
    if (!keep_)
      if (const Cast* c = as<Cast>(e); c && c->value->dtype == wide) return c->value;
    return cast(wide, e);
  }
  bool cpu_, keep_;
};

const Register<Pass> pass{
    "legalize_dtypes", "bfloat16, float8 and (CPU) float16 arithmetic in float32 with one rounding an operation",
    Pass{Form::flat,
         Form::flat,
         {"unroll_loops"},
         [](const FunctionRef& f, const PassContext& context) -> Result<FunctionRef> {
           return with_body(*f, Legalize(context.target.is_cpu(), context.options.keep_rounding)(f->body));
         }}};

}  // namespace

}  // namespace tilewright::lowering
