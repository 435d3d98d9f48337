// rmsnorm: x / sqrt(mean of squares + 1e-5) · weight over each row.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), weight = b.input("weight", t.a, {n}), y = b.output("Y", t.out, {m, n});
  Buffer squares = b.temporary("row_squares", t.acc, {m});
  b.reduce("row_squares", squares, "i", {{"k", n}}, 0, [&](Expr current, const Point& p, const Point& r) {
    const Expr value = cast(t.acc, load(x, {p[0], r[0]}));
    return current + value * value;
  });
  b.map("Y", y, "ij", [&](const Point& p) {
    const Expr mean = binary(BinaryOp::div, load(squares, {p[0]}), float_imm(static_cast<double>(n), t.acc));
    const Expr scale = call("rsqrt", {mean + float_imm(1e-5, t.acc)});
    return cast(t.out, cast(t.acc, load(x, p)) * scale * cast(t.acc, load(weight, {p[1]})));
  });
  return BuiltOperator{b.finish(), 4.0 * m * n};
}

const Register<Operator> rmsnorm{
    "rmsnorm",
    "root-mean-square normalisation of each row with a weight, epsilon 1e-5",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "4·m·n", .build = build}};

}  // namespace
}  // namespace tilewright
