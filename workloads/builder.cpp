#include "workloads/builder.h"

#include "ir/analysis/regions.h"

namespace tilewright {

namespace {

std::vector<Expr> extents(const std::vector<int64_t>& shape) {
  std::vector<Expr> out;
  for (int64_t n : shape) out.push_back(int_imm(n));
  return out;
}

}  // namespace

Buffer ProgramBuilder::input(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  Buffer b = make_buffer(name, dtype, extents(shape));
  params_.push_back({make_var(name, kHandle), b, false});
  return b;
}

Buffer ProgramBuilder::output(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  return input(name, dtype, shape);
}

Buffer ProgramBuilder::temporary(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  Buffer b = make_buffer(name, dtype, extents(shape));
  temporaries_.push_back(b);
  return b;
}

void ProgramBuilder::map(const std::string& block, const Buffer& out, const std::string& axes,
                         const std::function<Expr(const Point&)>& value) {
  stage(block, out, axes, {}, nullptr, [&](const Point& p, const Point&) { return value(p); });
}

void ProgramBuilder::reduce(const std::string& block, const Buffer& out, const std::string& axes,
                            const std::vector<Axis>& reduced, double init,
                            const std::function<Expr(Expr, const Point&, const Point&)>& update) {
  stage(block, out, axes, reduced, &init, [&](const Point& p, const Point& r) { return update(load(out, p), p, r); });
}

void ProgramBuilder::stage(const std::string& block, const Buffer& out, const std::string& axes,
                           const std::vector<Axis>& reduced, const double* init,
                           const std::function<Expr(const Point&, const Point&)>& value) {
  TW_CHECK(static_cast<int>(axes.size()) == out->rank(), "{} axes for {} of rank {}", axes.size(), out->name,
           out->rank());
  std::vector<Var> loops;
  std::vector<Iter> iters;
  auto add = [&](const std::string& name, int64_t extent, IterType type) {
    loops.push_back(make_var(name));
    iters.push_back({make_var("v" + name), {int_imm(0), int_imm(extent)}, type, loops.back()});
    return Expr(iters.back().var);
  };
  Point point, rest;
  for (size_t d = 0; d < axes.size(); ++d)
    point.push_back(add(std::string(1, axes[d]), *const_int(out->shape[d]), IterType::spatial));
  for (const Axis& axis : reduced) rest.push_back(add(axis.name, axis.extent, IterType::reduction));
  // A scalar result still has a block with an iter: analyses ask for at least one.
  if (iters.empty()) add("u", 1, IterType::spatial);

  Stmt store = make_stmt<Store>(out, point, value(point, rest));
  Stmt start = init ? Stmt(make_stmt<Store>(out, point, const_of(*init, out->dtype))) : Stmt();
  auto node = edit(*make_stmt<Block>(block, iters, Expr(), std::vector<BufferRegion>(), std::vector<BufferRegion>(),
                                     std::vector<Buffer>(), std::vector<MatchBuffer>(), AttrDict(), start, store));
  Signature signature = derive_signature(*node);
  node->reads = std::move(signature.reads);
  node->writes = std::move(signature.writes);
  Stmt nest = tilewright::finish(std::move(node));
  for (size_t i = loops.size(); i-- > 0;) nest = make_loop(loops[i], iters[i].dom.extent, nest);
  stages_.push_back(std::move(nest));
}

FunctionRef ProgramBuilder::finish() {
  auto f = std::make_unique<Function>();
  f->name = "main";
  f->params = std::move(params_);
  f->attrs = {{"global_symbol", Attr("main")}, {"tirx.noalias", Attr(true)}};
  f->body = make_stmt<Block>(std::string("root"), std::vector<Iter>(), Expr(), std::vector<BufferRegion>(),
                             std::vector<BufferRegion>(), std::move(temporaries_), std::vector<MatchBuffer>(),
                             AttrDict(), Stmt(), make_seq(std::move(stages_)));
  return FunctionRef(f.release());
}

Expr in_range(const Expr& value, int64_t low, int64_t high) {
  return and_of(less_equal(int_imm(low), value), less(value, int_imm(high)));
}

}  // namespace tilewright
