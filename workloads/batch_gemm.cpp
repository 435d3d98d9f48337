// batch_gemm: C[b,m,n] = A[b] · B[b] for each of b.
#include "workloads/contraction.h"
#include "workloads/matmul.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t batch = args["b"], m = args["m"], n = args["n"], k = args["k"];
  const MatmulOperands operands(args.text("layout"));
  const ElementTypes& t = args.types();
  auto batched = [&](std::vector<int64_t> shape) {
    shape.insert(shape.begin(), batch);
    return shape;
  };
  auto at = [](const Expr& first, Point p) {
    p.insert(p.begin(), first);
    return p;
  };
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, batched(operands.a_shape(m, k))), y = b.input("B", t.b, batched(operands.b_shape(n, k)));
  Buffer c = b.output("C", t.out, {batch, m, n});
  contract_into(b, c, {batch, m, n}, "bij", {{"k", k}}, t, [&](const Point& p, const Point& r) {
    return std::pair(load(x, at(p[0], operands.a(p[1], r[0]))), load(y, at(p[0], operands.b(p[2], r[0]))));
  });
  return BuiltOperator{b.finish(), 2.0 * batch * m * n * k};
}

const Register<Operator> batch_gemm{
    "batch_gemm",
    "matrix product for each of b: C[b,m,n] = A[b] · B[b]",
    {.parameters = {size_parameter("b", "number of products"), size_parameter("m", "rows of C"),
                    size_parameter("n", "columns of C"), size_parameter("k", "length of the sums"),
                    choice_parameter("layout", kMatmulLayouts, kMatmulLayoutDoc)},
     .dtypes = kMatmulTypes,
     .second_dtype = true,
     .flop_formula = "2·b·m·n·k",
     .build = build}};

}  // namespace
}  // namespace tilewright
