// softmax: exp(x - max) / sum over each row, in four blocks.
#include <limits>

#include "workloads/rows.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {m, n}), y = b.output("Y", t.out, {m, n});
  Buffer largest = b.temporary("row_max", t.acc, {m}), power = b.temporary("exp", t.acc, {m, n}),
         sum = b.temporary("row_sum", t.acc, {m});
  b.reduce("row_max", largest, "i", {{"k", n}}, -std::numeric_limits<double>::infinity(),
           [&](Expr current, const Point& p, const Point& r) {
             return max_of(current, cast(t.acc, load(x, {p[0], r[0]})));
           });
  b.map("exp", power, "ij",
        [&](const Point& p) { return call("exp", {cast(t.acc, load(x, p)) - load(largest, {p[0]})}); });
  b.reduce("row_sum", sum, "i", {{"k", n}}, 0,
           [&](Expr current, const Point& p, const Point& r) { return current + load(power, {p[0], r[0]}); });
  b.map("Y", y, "ij",
        [&](const Point& p) { return cast(t.out, binary(BinaryOp::div, load(power, p), load(sum, {p[0]}))); });
  return BuiltOperator{b.finish(), 4.0 * m * n};
}

const Register<Operator> softmax{
    "softmax",
    "softmax of each row",
    {.parameters = row_parameters(), .dtypes = kFloatTypes, .flop_formula = "4·m·n", .build = build}};

}  // namespace
}  // namespace tilewright
