// layernorm: (x - mean) / sqrt(variance + 1e-5) · gamma + beta over each row; the variance in a second pass over the
// row.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  const Expr count = float_imm(static_cast<double>(n), t.acc);
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), gamma = b.input("gamma", t.a, {n}), beta = b.input("beta", t.a, {n}),
         y = b.output("Y", t.out, {m, n});
  Buffer sum = b.temporary("row_sum", t.acc, {m}), squares = b.temporary("row_squares", t.acc, {m});
  auto centred = [&](const Expr& i, const Expr& j) {
    return cast(t.acc, load(x, {i, j})) - binary(BinaryOp::div, load(sum, {i}), count);
  };
  b.reduce("row_sum", sum, "i", {{"k", n}}, 0,
           [&](Expr current, const Point& p, const Point& r) { return current + cast(t.acc, load(x, {p[0], r[0]})); });
  b.reduce("row_squares", squares, "i", {{"k", n}}, 0, [&](Expr current, const Point& p, const Point& r) {
    const Expr d = centred(p[0], r[0]);
    return current + d * d;
  });
  b.map("Y", y, "ij", [&](const Point& p) {
    const Expr scale = call("rsqrt", {binary(BinaryOp::div, load(squares, {p[0]}), count) + float_imm(1e-5, t.acc)});
    return cast(t.out,
                centred(p[0], p[1]) * scale * cast(t.acc, load(gamma, {p[1]})) + cast(t.acc, load(beta, {p[1]})));
  });
  return BuiltOperator{b.finish(), 8.0 * m * n};
}

const Register<Operator> layernorm{
    "layernorm",
    "layer normalisation of each row with gamma and beta, epsilon 1e-5",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "8·m·n", .build = build}};

}  // namespace
}  // namespace tilewright
