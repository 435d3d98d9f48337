// gemm: C[m,n] = A · B. Sums in `acc`; a block "C" casts to `out` where they differ.
#include "workloads/contraction.h"
#include "workloads/matmul.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t m = args["m"], n = args["n"], k = args["k"];
  const MatmulOperands operands(args.text("layout"));
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, operands.a_shape(m, k)), y = b.input("B", t.b, operands.b_shape(n, k)),
         c = b.output("C", t.out, {m, n});
  contract_into(b, c, {m, n}, "ij", {{"k", k}}, t, [&](const Point& p, const Point& r) {
    return std::pair(load(x, operands.a(p[0], r[0])), load(y, operands.b(p[1], r[0])));
  });
  return BuiltOperator{b.finish(), 2.0 * m * n * k};
}

const Register<Operator> gemm{"gemm",
                              "matrix product C[m,n] = A · B",
                              {.parameters = {size_parameter("m", "rows of C"), size_parameter("n", "columns of C"),
                                              size_parameter("k", "length of the sums"),
                                              choice_parameter("layout", kMatmulLayouts, kMatmulLayoutDoc)},
                               .dtypes = kMatmulTypes,
                               .second_dtype = true,
                               .flop_formula = "2·m·n·k",
                               .build = build}};

}  // namespace
}  // namespace tilewright
