// norm2: the Euclidean norm of each of b matrices.
#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t batch = args["b"], m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, {batch, m, n}), y = b.output("D", t.out, {batch}),
         sum = b.temporary("C", t.acc, {batch});
  b.reduce("C", sum, "b", {{"i", m}, {"j", n}}, 0, [&](Expr current, const Point& p, const Point& r) {
    const Expr value = cast(t.acc, load(x, {p[0], r[0], r[1]}));
    return current + value * value;
  });
  b.map("D", y, "b", [&](const Point& p) { return cast(t.out, call("sqrt", {load(sum, p)})); });
  return BuiltOperator{b.finish(), 2.0 * batch * m * n};
}

const Register<Operator> norm2{
    "norm2",
    "Euclidean norm of each matrix: D[b] = sqrt(Σ A[b]²)",
    {.parameters = {size_parameter("b", "matrices"), size_parameter("m", "rows"), size_parameter("n", "columns"),
                    choice_parameter("layout", {"row"}, "row-major")},
     .dtypes = kFloatTypes,
     .flop_formula = "2·b·m·n",
     .build = build}};

}  // namespace
}  // namespace tilewright
