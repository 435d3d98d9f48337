// Loops run from 0 by 1; loops of one iteration vanish, unless they are bound to a thread or carry an annotation.
#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

class Normalize : public Rewriter {
 public:
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const For* loop = as<For>(mapped);
    if (!loop) return mapped;
    bool bound = loop->loop_kind == ForKind::thread_binding;
    Expr step = loop->step ? loop->step : int_imm(1, loop->var->dtype);
    // With a step, extent is the length of the range (ir/stmt.h).
    Expr trips = is_const(step, 1) ? loop->extent : floor_div(loop->extent + (step - 1), step);
    if (is_const(trips, 1) && !bound && loop->annotations.empty())
      return substitute(loop->body, {{loop->var.get(), loop->min}});
    if (is_const(loop->min, 0) && is_const(step, 1)) return mapped;
    auto copy = edit(*loop);
    copy->min = int_imm(0, loop->var->dtype);
    copy->step = nullptr;
    copy->extent = trips;
    copy->body = substitute(loop->body, {{loop->var.get(), loop->min + Expr(loop->var) * step}});
    return finish(std::move(copy));
  }
};

const Register<Pass> pass{
    "normalize_loops", "loops start at 0 with step 1; loops of one iteration vanish",
    Pass{Form::scheduled, Form::scheduled, {}, [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
           return with_body(*f, Normalize()(f->body));
         }}};

}  // namespace

}  // namespace tilewright::lowering
