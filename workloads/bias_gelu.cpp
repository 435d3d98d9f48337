// bias_gelu: a chain of element-wise stages: z = x + bias, y = z · (1 + erf(z/√2)) / 2.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), bias = b.input("bias", t.a, {n}), y = b.output("Y", t.out, {m, n});
  Buffer sum = b.temporary("biased", t.acc, {m, n}), gate = b.temporary("erf", t.acc, {m, n});
  b.map("biased", sum, "ij", [&](const Point& p) { return cast(t.acc, load(x, p)) + cast(t.acc, load(bias, {p[1]})); });
  b.map("erf", gate, "ij",
        [&](const Point& p) { return call("erf", {load(sum, p) * float_imm(0.70710678118654752440, t.acc)}); });
  b.map("Y", y, "ij", [&](const Point& p) {
    return cast(t.out, load(sum, p) * (load(gate, p) + float_imm(1, t.acc)) * float_imm(0.5, t.acc));
  });
  return BuiltOperator{b.finish(), 6.0 * m * n};
}

const Register<Operator> bias_gelu{
    "bias_gelu",
    "bias and GELU, element by element: Y = gelu(X[m,n] + bias[n])",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "6·m·n", .build = build}};

}  // namespace
}  // namespace tilewright
