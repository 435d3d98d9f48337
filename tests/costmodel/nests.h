// Small scheduled programs for feature tests, written as loop nests around one block each.
#pragma once

#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/program.h"

namespace tilewright::testing {

struct Axis {
  Var var;
  int64_t extent;
  ForKind kind = ForKind::serial;
  std::string thread;
  AttrDict annotations;
};

inline Axis axis(const std::string& name, int64_t extent, ForKind kind = ForKind::serial) {
  return {make_var(name), extent, kind, "", {}};
}
inline Axis thread_axis_of(const std::string& name, int64_t extent, const std::string& thread) {
  return {make_var(name), extent, ForKind::thread_binding, thread, {}};
}

/// The loops, outermost first, around the body.
inline Stmt nest(const std::vector<Axis>& axes, Stmt body) {
  for (size_t i = axes.size(); i-- > 0;)
    body = make_stmt<For>(axes[i].var, int_imm(0), int_imm(axes[i].extent), Expr(), axes[i].kind, axes[i].thread,
                          axes[i].annotations, body);
  return body;
}

struct Binding {
  std::string name;
  int64_t extent;
  IterType type;
  Expr value;
};

/// A block with iters bound to values; `body` and `init` (may be empty) get the iter variables. Signatures are left
/// empty: features look at accesses.
template <class Body, class Init>
Stmt block(const std::string& name, const std::vector<Binding>& bindings, Body body, Init init) {
  std::vector<Iter> iters;
  std::vector<Expr> vars;
  for (const Binding& b : bindings) {
    Var var = make_var(b.name);
    vars.push_back(var);
    iters.push_back({var, {int_imm(0), int_imm(b.extent)}, b.type, b.value});
  }
  return make_stmt<Block>(name, iters, Expr(), std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                          std::vector<Buffer>{}, std::vector<MatchBuffer>{}, AttrDict{}, init(vars), body(vars));
}
template <class Body>
Stmt block(const std::string& name, const std::vector<Binding>& bindings, Body body) {
  return block(name, bindings, body, [](const std::vector<Expr>&) { return Stmt(); });
}

inline Stmt store(const Buffer& buffer, std::vector<Expr> indices, Expr value) {
  return make_stmt<Store>(buffer, std::move(indices), std::move(value));
}

inline Buffer buffer(const std::string& name, std::vector<int64_t> shape, const std::string& scope = "global",
                     DType dtype = kFloat32) {
  std::vector<Expr> extents;
  for (int64_t e : shape) extents.push_back(int_imm(e));
  return make_buffer(name, dtype, extents, scope);
}

inline FunctionRef function(std::vector<Buffer> params, std::vector<Buffer> allocs, Stmt body) {
  auto f = std::make_unique<Function>();
  f->name = "main";
  for (const Buffer& b : params) f->params.push_back({b->data, b, false});
  f->body =
      make_stmt<Block>("root", std::vector<Iter>{}, Expr(), std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                       std::move(allocs), std::vector<MatchBuffer>{}, AttrDict{}, Stmt(), std::move(body));
  return FunctionRef(f.release());
}

inline constexpr IterType S = IterType::spatial, R = IterType::reduction;

}  // namespace tilewright::testing
