// Simplification of whole statements under the facts around them.
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

class SimplifyStmt {
 public:
  explicit SimplifyStmt(Analyzer& a) : a_(a) {}

  Stmt stmt(const Stmt& s) {
    if (const For* loop = as<For>(s)) return visit(s, *loop);
    if (const Block* block = as<Block>(s)) return visit(s, *block);
    if (const If* branch = as<If>(s)) return visit(s, *branch);
    if (const Bind* bind = as<Bind>(s)) {
      auto scope = a_.scope();
      Expr value = expr(bind->value);
      if (const_int(value)) a_.bind(bind->var, value);
      Stmt body = stmt(bind->body);
      if (value.same_as(bind->value) && body.same_as(bind->body)) return s;
      return make_stmt<Bind>(bind->var, value, body);
    }
    if (const Assert* check = as<Assert>(s)) {
      Expr condition = expr(check->condition);
      if (is_const(condition, 1)) return make_seq({});
      return condition.same_as(check->condition) ? s : make_stmt<Assert>(condition, check->message);
    }
    return map_children(s, [&](const Expr& e) { return expr(e); }, [&](const Stmt& c) { return stmt(c); });
  }

 private:
  Expr expr(const Expr& e) { return a_.simplify(e); }

  Stmt visit(const Stmt& s, const For& loop) {
    Expr min = expr(loop.min), extent = expr(loop.extent), step = loop.step ? expr(loop.step) : Expr();
    if (std::optional<int64_t> n = const_int(extent); n && *n <= 0) return make_seq({});
    auto scope = a_.scope();
    a_.bind(loop);
    Stmt body = stmt(loop.body);
    if (is_no_op(body)) return body;
    if (min.same_as(loop.min) && extent.same_as(loop.extent) && step.same_as(loop.step) && body.same_as(loop.body))
      return s;
    auto copy = edit(loop);
    copy->min = min;
    copy->extent = extent;
    copy->step = step;
    copy->body = body;
    return finish(std::move(copy));
  }

  // Inside, iters are known by their domains and, where the binding is a plain value, by it: a binding of an iter is
  // inside its domain (an instance outside is ill-formed), so only the domain counts.
  Stmt visit(const Stmt& s, const Block& block) {
    auto copy = edit(block);
    bool changed = false;
    auto set = [&](Expr& e) {
      if (!e) return;
      Expr simple = expr(e);
      changed |= !simple.same_as(e);
      e = simple;
    };
    for (Iter& iter : copy->iters) {
      set(iter.dom.min);
      set(iter.dom.extent);
      set(iter.binding);
    }
    set(copy->predicate);
    if (copy->predicate && is_const(copy->predicate, 1)) copy->predicate = nullptr;
    if (copy->predicate && is_const(copy->predicate, 0) && block.iters.size()) return make_seq({});
    auto scope = a_.scope();
    auto inside = a_.assume(block.predicate);
    for (const Iter& iter : copy->iters) a_.bind(iter.var, iter.dom);
    auto set_regions = [&](std::vector<BufferRegion>& regions) {
      for (BufferRegion& r : regions)
        for (Range& range : r.region) {
          set(range.min);
          set(range.extent);
        }
    };
    set_regions(copy->reads);
    set_regions(copy->writes);
    for (MatchBuffer& m : copy->matches)
      for (Range& range : m.source.region) {
        set(range.min);
        set(range.extent);
      }
    if (copy->init) {
      Stmt init = stmt(copy->init);
      changed |= !init.same_as(copy->init);
      copy->init = init;
    }
    Stmt body = stmt(copy->body);
    changed |= !body.same_as(copy->body);
    copy->body = body;
    return changed ? Stmt(finish(std::move(copy))) : s;
  }

  Stmt visit(const Stmt& s, const If& branch) {
    Expr condition = expr(branch.condition);
    if (std::optional<int64_t> known = const_int(condition)) {
      if (*known) return stmt(branch.then_body);
      return branch.else_body ? stmt(branch.else_body) : make_seq({});
    }
    Stmt then_body, else_body;
    {
      auto scope = a_.assume(condition);
      then_body = stmt(branch.then_body);
    }
    if (branch.else_body) {
      auto scope = a_.assume(not_of(condition));
      else_body = stmt(branch.else_body);
      if (is_no_op(else_body)) else_body = nullptr;
    }
    if (is_no_op(then_body) && !else_body && !has_effect(condition)) return make_seq({});
    if (condition.same_as(branch.condition) && then_body.same_as(branch.then_body) &&
        else_body.same_as(branch.else_body))
      return s;
    return make_stmt<If>(condition, then_body, else_body);
  }

  Analyzer& a_;
};

}  // namespace

Stmt simplify(const Stmt& s, Analyzer* outer) {
  if (!s) return s;
  if (outer) return SimplifyStmt(*outer).stmt(s);
  Analyzer fresh;
  return SimplifyStmt(fresh).stmt(s);
}

}  // namespace tilewright
