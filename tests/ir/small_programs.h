// Programs built node by node, for tests that must not depend on the parser.
#pragma once

#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/program.h"

namespace tilewright {

inline FunctionRef make_function(std::vector<Buffer> params, Stmt body, std::vector<Var> scalars = {}) {
  auto f = std::make_unique<Function>();
  f->name = "main";
  for (Buffer& b : params) f->params.push_back({make_var(b->name + "_handle", kHandle), b, false});
  for (Var& v : scalars) f->params.push_back({v, nullptr, false});
  f->body = std::move(body);
  return FunctionRef(f.release());
}

/// A block with the given iters; signature left empty.
inline Ref<Block> make_block(std::string name, std::vector<Iter> iters, Stmt body, Stmt init = nullptr,
                             Expr predicate = nullptr, std::vector<Buffer> allocs = {}) {
  return make_stmt<Block>(std::move(name), std::move(iters), std::move(predicate), std::vector<BufferRegion>(),
                          std::vector<BufferRegion>(), std::move(allocs), std::vector<MatchBuffer>(), AttrDict(),
                          std::move(init), std::move(body));
}
inline Iter make_iter(Var var, int64_t extent, Expr binding, IterType type = IterType::spatial) {
  return {std::move(var), {int_imm(0), int_imm(extent)}, type, std::move(binding)};
}
inline Stmt store(Buffer b, std::vector<Expr> indices, Expr value) {
  return make_stmt<Store>(std::move(b), std::move(indices), std::move(value));
}

inline std::vector<Expr> shape_of(std::initializer_list<int64_t> extents) {
  std::vector<Expr> out;
  for (int64_t n : extents) out.push_back(int_imm(n));
  return out;
}

/// C[m, n] = A[m, k] · B[k, n]; with `split_k` > 0 the reduction loop is split by it, with a predicate where it does
/// not divide.
inline FunctionRef matmul_program(int64_t m, int64_t n, int64_t k, int64_t split_k = 0, DType dtype = kFloat32) {
  Buffer a = make_buffer("A", dtype, shape_of({m, k})), b = make_buffer("B", dtype, shape_of({k, n})),
         c = make_buffer("C", dtype, shape_of({m, n}));
  Var i = make_var("i"), j = make_var("j"), k0 = make_var("k_0"), k1 = make_var("k_1"), vi = make_var("vi"),
      vj = make_var("vj"), vk = make_var("vk");
  const Expr kk = split_k ? Expr(k0) * split_k + Expr(k1) : Expr(k0);
  Stmt update = store(c, {vi, vj}, load(c, {vi, vj}) + load(a, {vi, vk}) * load(b, {vk, vj}));
  Expr predicate = split_k && k % split_k ? less(kk, int_imm(k)) : nullptr;
  Stmt s = make_block("C", {make_iter(vi, m, i), make_iter(vj, n, j), make_iter(vk, k, kk, IterType::reduction)},
                      update, store(c, {vi, vj}, zero_of(dtype)), predicate);
  if (split_k) s = make_loop(k1, int_imm(split_k), s);
  s = make_loop(k0, int_imm(split_k ? (k + split_k - 1) / split_k : k), s);
  s = make_loop(i, int_imm(m), make_loop(j, int_imm(n), s));
  return make_function({a, b, c}, make_block("root", {}, s));
}

}  // namespace tilewright
