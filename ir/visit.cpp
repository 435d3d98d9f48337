#include "ir/visit.h"

#include "ir/operation.h"

namespace tilewright {

namespace {

using OnExpr = std::function<void(const Expr&)>;
using OnStmt = std::function<void(const Stmt&)>;

// One overload per field type; fields that hold no expression or statement fall into the template.
template <class T>
void field_children(const T&, const OnExpr&, const OnStmt&)
  requires(!Reflected<T>)
{}
void field_children(const Expr& e, const OnExpr& f, const OnStmt&) {
  if (e) f(e);
}
void field_children(const Stmt& s, const OnExpr&, const OnStmt& f) {
  if (s) f(s);
}
template <class T>
  requires Reflected<T>
void field_children(const T& x, const OnExpr& fe, const OnStmt& fs);
template <class T>
void field_children(const std::vector<T>& items, const OnExpr& fe, const OnStmt& fs) {
  for (const T& item : items) field_children(item, fe, fs);
}
template <class T>
  requires Reflected<T>
void field_children(const T& x, const OnExpr& fe, const OnStmt& fs) {
  for_each_field(x, [&](const auto& field) { field_children(field, fe, fs); });
}

}  // namespace

void for_each_child(const ExprNode& e, const OnExpr& f) {
  static const OnStmt none;
  switch (e.kind) {
#define TW_EXPR(Node)     \
  case ExprKind::k##Node: \
    return field_children(static_cast<const Node&>(e), f, none);
#define TW_STMT(Node)
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
  }
}

void for_each_child(const StmtNode& s, const OnExpr& on_expr, const OnStmt& on_stmt) {
  switch (s.kind) {
#define TW_EXPR(Node)
#define TW_STMT(Node)     \
  case StmtKind::k##Node: \
    return field_children(static_cast<const Node&>(s), on_expr, on_stmt);
#include "ir/nodes.def"
#undef TW_EXPR
#undef TW_STMT
  }
}

void walk(const Expr& e, const ExprVisit& visit) {
  if (!visit(e)) return;
  for_each_child(*e, [&](const Expr& child) { walk(child, visit); });
}

void walk(const Stmt& s, const ExprVisit& on_expr, const StmtVisit& on_stmt) {
  if (!on_stmt(s)) return;
  for_each_child(*s, [&](const Expr& e) { walk(e, on_expr); }, [&](const Stmt& c) { walk(c, on_expr, on_stmt); });
}

void walk_stmts(const Stmt& s, const StmtVisit& visit) {
  if (!s || !visit(s)) return;
  // Spelled out: this is the hot path of every look-up, and expressions need not be touched.
  if (const For* loop = as<For>(s)) return walk_stmts(loop->body, visit);
  if (const Block* block = as<Block>(s)) {
    walk_stmts(block->init, visit);
    return walk_stmts(block->body, visit);
  }
  if (const Seq* seq = as<Seq>(s)) {
    for (const Stmt& item : seq->stmts) walk_stmts(item, visit);
    return;
  }
  if (s->kind == StmtKind::kStore || s->kind == StmtKind::kEvaluate) return;
  for_each_child(*s, [](const Expr&) {}, [&](const Stmt& c) { walk_stmts(c, visit); });
}

bool uses_any(const Expr& e, const std::function<bool(const VarNode*)>& predicate) {
  if (!e) return false;
  if (const VarNode* v = as<VarNode>(e)) return predicate(v);
  bool found = false;
  for_each_child(*e, [&](const Expr& child) { found = found || uses_any(child, predicate); });
  return found;
}

bool uses_var(const Expr& e, const VarNode* var) {
  return uses_any(e, [var](const VarNode* v) { return v == var; });
}

std::vector<Var> vars_of(const Expr& e) {
  std::vector<Var> out;
  walk(e, [&](const Expr& x) {
    if (const VarNode* v = as<VarNode>(x)) {
      for (const Var& seen : out)
        if (seen.get() == v) return true;
      out.emplace_back(v);
    }
    return true;
  });
  return out;
}

bool reads_memory(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (as<Load>(x)) found = true;
    if (const Call* c = as<Call>(x)) found = found || c->op->effect != OpEffect::pure;
    return !found;
  });
  return found;
}

bool has_effect(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    if (const Call* c = as<Call>(x)) found = found || c->op->effect == OpEffect::opaque;
    return !found;
  });
  return found;
}

}  // namespace tilewright
