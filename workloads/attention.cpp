// attention: softmax(Q·Kᵀ/√d)·V for each head, as the blocks that a user writes; fusing them is the schedule's work.
#include <cmath>
#include <limits>

#include "workloads/contraction.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t batch = args["b"], heads = args["heads"], seq = args["seq"], keys = args["kv"], d = args["d"];
  const bool causal = args.text("mask") == "causal";
  if (causal && keys < seq) return args.invalid("kv must be at least seq with mask causal");
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer q = b.input("Q", t.a, {batch, heads, seq, d}), k = b.input("K", t.a, {batch, heads, keys, d}),
         v = b.input("V", t.a, {batch, heads, keys, d});
  Buffer o = b.output("O", t.out, {batch, heads, seq, d});
  const std::vector<int64_t> square = {batch, heads, seq, keys}, rows = {batch, heads, seq};
  Buffer scores = contract(b, "scores", square, "bhij", {{"k", d}}, t, [&](const Point& p, const Point& r) {
    return std::pair(load(q, {p[0], p[1], p[2], r[0]}), load(k, {p[0], p[1], p[3], r[0]}));
  });
  Buffer scaled = b.temporary("scaled", t.acc, square), largest = b.temporary("row_max", t.acc, rows);
  Buffer power = b.temporary("exp", t.acc, square), sum = b.temporary("row_sum", t.acc, rows);
  b.map("scaled", scaled, "bhij", [&](const Point& p) {
    const Expr value = load(scores, p) * float_imm(1 / std::sqrt(static_cast<double>(d)), t.acc);
    if (!causal) return value;
    // The last query sees every key.
    const Expr visible = less_equal(p[3], p[2] + (keys - seq));
    return select(visible, value, float_imm(-std::numeric_limits<double>::infinity(), t.acc));
  });
  auto at = [](const Point& p, const Expr& last) { return Point{p[0], p[1], p[2], last}; };
  b.reduce("row_max", largest, "bhi", {{"j", keys}}, -std::numeric_limits<double>::infinity(),
           [&](Expr current, const Point& p, const Point& r) { return max_of(current, load(scaled, at(p, r[0]))); });
  b.map("exp", power, "bhij",
        [&](const Point& p) { return call("exp", {load(scaled, p) - load(largest, {p[0], p[1], p[2]})}); });
  b.reduce("row_sum", sum, "bhi", {{"j", keys}}, 0,
           [&](Expr current, const Point& p, const Point& r) { return current + load(power, at(p, r[0])); });
  // The second product takes its left operand in the inputs' type, as tensor cores do.
  Buffer weighted =
      contract(b, "weighted", {batch, heads, seq, d}, "bhik", {{"j", keys}}, t, [&](const Point& p, const Point& r) {
        return std::pair(cast(t.a, load(power, at(p, r[0]))), load(v, {p[0], p[1], r[0], p[3]}));
      });
  b.map("O", o, "bhik", [&](const Point& p) {
    return cast(t.out, binary(BinaryOp::div, load(weighted, p), load(sum, {p[0], p[1], p[2]})));
  });
  return BuiltOperator{b.finish(), 4.0 * batch * heads * seq * keys * d};
}

const Register<Operator> attention{
    "attention",
    "softmax(Q·Kᵀ/√d)·V for each head",
    {.parameters = {size_parameter("b", "batch"), size_parameter("heads", "heads"), size_parameter("seq", "rows of Q"),
                    size_parameter("kv", "rows of K and V"), size_parameter("d", "elements of a head"),
                    choice_parameter("mask", {"full", "causal"}, "causal: query i sees keys up to i + kv - seq"),
                    choice_parameter("layout", {"bhsd"}, "of all tensors")},
     .dtypes = kFloatTypes,
     .flop_formula = "4·b·heads·seq·kv·d",
     .build = build}};

}  // namespace
}  // namespace tilewright
