// silu_mul: the gate of a feed-forward layer; the row holds n gate values and n others: y = x · sigmoid(x) · other.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, 2 * n}), y = b.output("Y", t.out, {m, n});
  b.map("Y", y, "ij", [&](const Point& p) {
    const Expr gate = cast(t.acc, load(x, p)), other = cast(t.acc, load(x, {p[0], p[1] + n}));
    return cast(t.out, gate * call("sigmoid", {gate}) * other);
  });
  return BuiltOperator{b.finish(), 5.0 * m * n};
}

const Register<Operator> silu_mul{
    "silu_mul",
    "gated unit: Y[m,n] = silu(X[:, :n]) · X[:, n:]",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "5·m·n", .build = build}};

}  // namespace
}  // namespace tilewright
