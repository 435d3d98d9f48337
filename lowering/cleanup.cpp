#include "lowering/cleanup.h"

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"

namespace tilewright::lowering {

namespace {

class Cleanup : public Rewriter {
 public:
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const Evaluate* node = as<Evaluate>(mapped)) return has_effect(node->value) ? mapped : make_seq({});
    if (const If* node = as<If>(mapped)) return fold_if(mapped, *node);
    if (const For* node = as<For>(mapped)) {
      if (is_no_op(node->body) || is_const(node->extent, 0)) return make_seq({});
    }
    if (const Seq* node = as<Seq>(mapped)) {
      std::vector<Stmt> kept;
      for (const Stmt& c : node->stmts)
        if (!is_no_op(c)) kept.push_back(c);
      return kept.size() == node->stmts.size() ? mapped : make_seq(std::move(kept));
    }
    return mapped;
  }

 private:
  static Stmt fold_if(const Stmt& s, const If& node) {
    if (std::optional<int64_t> c = const_int(node.condition)) {
      if (*c) return node.then_body;
      return node.else_body ? node.else_body : make_seq({});
    }
    bool then_empty = is_no_op(node.then_body), else_empty = !node.else_body || is_no_op(node.else_body);
    if (then_empty && else_empty) return make_seq({});
    if (then_empty) return make_stmt<If>(not_of(node.condition), node.else_body, Stmt());
    return s;
  }
};

}  // namespace

Stmt drop_dead(const Stmt& s) { return Cleanup()(s); }
FunctionRef cleanup(const FunctionRef& f) { return with_body(*f, drop_dead(simplify(f->body))); }

}  // namespace tilewright::lowering
