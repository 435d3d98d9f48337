// gemm_bias_relu: C = max(A · B + bias, 0), bias along the columns in the result's type.
#include "workloads/contraction.h"
#include "workloads/matmul.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"], k = args["k"];
  const MatmulOperands operands(args.text("layout"));
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, operands.a_shape(m, k)), y = b.input("B", t.b, operands.b_shape(n, k));
  Buffer bias = b.input("bias", t.out, {n}), c = b.output("C", t.out, {m, n});
  Buffer sum = contract(b, "acc", {m, n}, "ij", {{"k", k}}, t, [&](const Point& p, const Point& r) {
    return std::pair(load(x, operands.a(p[0], r[0])), load(y, operands.b(p[1], r[0])));
  });
  Buffer biased = b.temporary("biased", t.acc, {m, n});
  b.map("biased", biased, "ij", [&](const Point& p) { return load(sum, p) + cast(t.acc, load(bias, {p[1]})); });
  b.map("C", c, "ij", [&](const Point& p) { return cast(t.out, max_of(load(biased, p), zero_of(t.acc))); });
  return BuiltOperator{b.finish(), 2.0 * m * n * k};
}

const Register<Operator> gemm_bias_relu{
    "gemm_bias_relu",
    "fully connected layer: C[m,n] = max(A · B + bias[n], 0)",
    {.parameters = {size_parameter("m", "rows of C"), size_parameter("n", "columns of C"),
                    size_parameter("k", "length of the sums"),
                    choice_parameter("layout", kMatmulLayouts, kMatmulLayoutDoc)},
     .dtypes = kMatmulTypes,
     .second_dtype = true,
     .flop_formula = "2·m·n·k",
     .build = build}};

}  // namespace
}  // namespace tilewright
