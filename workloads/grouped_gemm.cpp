// grouped_gemm: rows of A fall into `groups` equal runs, each multiplied by its own B (a mixture-of-experts layer).
#include "workloads/contraction.h"
#include "workloads/matmul.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t groups = args["groups"], rows = args["m_per_group"], n = args["n"], k = args["k"];
  if (groups * rows >= int64_t{1} << 31) return args.invalid("groups · m_per_group must be below 2^31");
  const MatmulOperands operands("n" + args.text("layout").substr(1));
  const ElementTypes& t = args.types();
  std::vector<int64_t> b_shape = operands.b_shape(n, k);
  b_shape.insert(b_shape.begin(), groups);
  ProgramBuilder b;
  Buffer x = b.input("A", t.a, {groups * rows, k}), y = b.input("B", t.b, b_shape),
         c = b.output("C", t.out, {groups * rows, n});
  contract_into(b, c, {groups * rows, n}, "ij", {{"k", k}}, t, [&](const Point& p, const Point& r) {
    Point of_group = operands.b(p[1], r[0]);
    of_group.insert(of_group.begin(), groups == 1 ? int_imm(0) : floor_div(p[0], rows));
    return std::pair(load(x, {p[0], r[0]}), load(y, of_group));
  });
  return BuiltOperator{b.finish(), 2.0 * groups * rows * n * k};
}

const Register<Operator> grouped_gemm{
    "grouped_gemm",
    "rows of one group are contiguous: C[i] = A[i] · B[i // m_per_group]",
    {.parameters = {size_parameter("groups", "number of groups"), size_parameter("m_per_group", "rows of each group"),
                    size_parameter("n", "columns of C"), size_parameter("k", "length of the sums"),
                    choice_parameter("layout", {"nt", "nn"},
                                     "nt = B[group,n,k], nn = B[group,k,n]; A is [groups·m_per_group,k]")},
     .dtypes = kMatmulTypes,
     .second_dtype = true,
     .flop_formula = "2·groups·m_per_group·n·k",
     .build = build}};

}  // namespace
}  // namespace tilewright
