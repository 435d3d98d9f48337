// `init` runs in front of the body in the instance whose reduction iters are all at their minimum.
#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

class LowerInit : public Rewriter {
 public:
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const Block* block = as<Block>(mapped);
    if (!block || !block->init) return mapped;
    Expr first;
    for (const Iter& iter : block->iters)
      if (iter.type == IterType::reduction) first = and_of(first, equal(iter.var, iter.dom.min));
    auto copy = edit(*block);
    Stmt init = first ? Stmt(make_stmt<If>(first, block->init, Stmt())) : block->init;
    copy->body = make_seq({init, block->body});
    copy->init = nullptr;
    return finish(std::move(copy));
  }
};

const Register<Pass> pass{"lower_block_init", "init becomes a guarded statement in front of the block's body",
                          Pass{Form::scheduled,
                               Form::scheduled,
                               {"normalize_loops"},
                               [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
                                 return with_body(*f, LowerInit()(f->body));
                               }}};

}  // namespace

}  // namespace tilewright::lowering
