// transpose2d: Y[n,m] = X[m,n] transposed.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), y = b.output("Y", t.out, {n, m});
  b.map("Y", y, "ij", [&](const Point& p) { return cast(t.out, load(x, {p[1], p[0]})); });
  return BuiltOperator{b.finish(), 0};
}

const Register<Operator> transpose2d{
    "transpose2d",
    "transposition: Y[n,m] from X[m,n]",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "0", .build = build}};

}  // namespace
}  // namespace tilewright
