// add: C = A + B, one dimension.
#include "workloads/builder.h"
#include "workloads/operator.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, {n}), y = b.input("B", t.a, {n}), c = b.output("C", t.out, {n});
  b.map("C", c, "i", [&](const Point& p) { return cast(t.out, cast(t.acc, load(x, p)) + cast(t.acc, load(y, p))); });
  return BuiltOperator{b.finish(), 1.0 * n};
}

const Register<Operator> add{
    "add",
    "sum of two vectors",
    {.parameters = {size_parameter("n", "elements"), choice_parameter("layout", {"row"}, "row-major")},
     .dtypes = kMatmulTypes,
     .flop_formula = "n",
     .build = build}};

}  // namespace
}  // namespace tilewright
