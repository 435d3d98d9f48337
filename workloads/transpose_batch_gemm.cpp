// transpose_batch_gemm: attention scores from tensors whose heads lie inside a row: C[b,heads,seq,seq] = Q · K^T for
// each head.
#include "workloads/contraction.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t batch = args["b"], seq = args["seq"], heads = args["heads"], d = args["d"];
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer q = b.input("Q", t.a, {batch, seq, heads, d}), k = b.input("K", t.a, {batch, seq, heads, d});
  Buffer c = b.output("C", t.out, {batch, heads, seq, seq});
  Buffer qt = b.temporary("Q_T", t.a, {batch, heads, seq, d}), kt = b.temporary("K_T", t.a, {batch, heads, d, seq});
  b.map("Q_T", qt, "bhik", [&](const Point& p) { return load(q, {p[0], p[2], p[1], p[3]}); });
  b.map("K_T", kt, "bhkj", [&](const Point& p) { return load(k, {p[0], p[3], p[1], p[2]}); });
  contract_into(b, c, {batch, heads, seq, seq}, "bhij", {{"k", d}}, t, [&](const Point& p, const Point& r) {
    return std::pair(load(qt, {p[0], p[1], p[2], r[0]}), load(kt, {p[0], p[1], r[0], p[3]}));
  });
  return BuiltOperator{b.finish(), 2.0 * batch * heads * seq * seq * d};
}

const Register<Operator> transpose_batch_gemm{
    "transpose_batch_gemm",
    "scores of each head: C[b,heads,seq,seq] = Q[b,seq,heads,d] · K^T",
    {.parameters = {size_parameter("b", "batch"), size_parameter("seq", "rows of Q and K"),
                    size_parameter("heads", "heads"), size_parameter("d", "elements of a head"),
                    choice_parameter("layout", {"bshd"}, "of Q and K")},
     .dtypes = kMatmulTypes,
     .flop_formula = "2·b·heads·seq²·d",
     .build = build}};

}  // namespace
}  // namespace tilewright
