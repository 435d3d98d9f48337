// reduce_sum: the sum of each row.

#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), y = b.output("Y", t.out, {m});
  auto update = [&](Expr current, const Point& p, const Point& r) {
    const Expr value = cast(t.acc, load(x, {p[0], r[0]}));
    return current + value;
  };
  const double init = 0;
  if (t.out == t.acc) {
    b.reduce("Y", y, "i", {{"k", n}}, init, update);
  } else {
    Buffer all = b.temporary("acc", t.acc, {m});
    b.reduce("acc", all, "i", {{"k", n}}, init, update);
    b.map("Y", y, "i", [&](const Point& p) { return cast(t.out, load(all, p)); });
  }
  return BuiltOperator{b.finish(), 1.0 * m * n};
}

const Register<Operator> reduce_sum{
    "reduce_sum",
    "sum of each row: Y[m] from X[m,n]",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "m·n", .build = build}};

}  // namespace
}  // namespace tilewright
