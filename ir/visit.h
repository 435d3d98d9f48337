// Reading trees. Children derive from the nodes' field lists; a new node kind needs nothing here.
//   walk(stmt, [&](const Expr& e) { …; return true; }, [&](const Stmt& s) { …; return true; });   // false: do not
//   descend
#pragma once

#include <functional>

#include "ir/program.h"

namespace tilewright {

/// Calls f(child) for each direct child expression.
void for_each_child(const ExprNode&, const std::function<void(const Expr&)>& f);
/// Calls on_expr / on_stmt for each direct child, in evaluation order of the fields (extents, indices, regions,
/// bindings, predicates, init, body). Buffers' shapes are not children of their uses.
void for_each_child(const StmtNode&, const std::function<void(const Expr&)>& on_expr,
                    const std::function<void(const Stmt&)>& on_stmt);

/// Pre-order. The callbacks return whether to descend.
using ExprVisit = std::function<bool(const Expr&)>;
using StmtVisit = std::function<bool(const Stmt&)>;
void walk(const Expr&, const ExprVisit&);
void walk(const Stmt&, const ExprVisit&, const StmtVisit&);
/// Statements only: expressions are not visited (fast).
void walk_stmts(const Stmt&, const StmtVisit&);

bool uses_var(const Expr&, const VarNode*);
bool uses_any(const Expr&, const std::function<bool(const VarNode*)>&);
/// Free and bound variables in order of first occurrence.
std::vector<Var> vars_of(const Expr&);
/// Whether the expression reads memory or has an effect.
bool reads_memory(const Expr&);
bool has_effect(const Expr&);

}  // namespace tilewright
