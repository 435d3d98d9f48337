// Rewriting trees. Unchanged parts are shared: a rewrite that changes nothing returns the same node.
#pragma once

#include <functional>
#include <unordered_map>

#include "ir/program.h"

namespace tilewright {

/// Children replaced by f(child). Loop and block ids are kept.
Expr map_children(const Expr&, const std::function<Expr(const Expr&)>& f);
Stmt map_children(const Stmt&, const std::function<Expr(const Expr&)>& on_expr,
                  const std::function<Stmt(const Stmt&)>& on_stmt);

/// Base of multi-case rewriters: override what matters and call the base for the rest.
class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual Expr operator()(const Expr& e) {
    return map_children(e, [this](const Expr& c) { return (*this)(c); });
  }
  virtual Stmt operator()(const Stmt& s) {
    return map_children(s, [this](const Expr& c) { return (*this)(c); }, [this](const Stmt& c) { return (*this)(c); });
  }
};

/// Variables by identity. Bound occurrences (loop variables, iters, lets) are not renamed: the map must not contain
/// them.
using VarMap = std::unordered_map<const VarNode*, Expr>;
Expr substitute(const Expr&, const VarMap&);
Stmt substitute(const Stmt&, const VarMap&);
BufferRegion substitute(const BufferRegion&, const VarMap&);

/// Every access, region, match source and allocation of the key becomes one of the value (same rank).
using BufferMap = std::unordered_map<const BufferNode*, Buffer>;
Stmt replace_buffers(const Stmt&, const BufferMap&);
Expr replace_buffers(const Expr&, const BufferMap&);

/// A copy in which every bound variable, loop, block and locally allocated buffer is fresh.
Stmt refresh(const Stmt&);

/// Replaces the statement `from` (by address) by `to`, rebuilding only the path to it. Null `to` removes it.
Stmt replace_stmt(const Stmt& root, const StmtNode* from, const Stmt& to);

}  // namespace tilewright
