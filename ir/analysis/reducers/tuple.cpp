// Reducers of several accumulators.
#include "ir/analysis/reducers.h"
#include "ir/analysis/reducers/limits.h"

namespace tilewright {

namespace {

using Types = std::vector<DType>;
using Exprs = std::vector<Expr>;

Expr add(const Expr& x, const Expr& y) { return binary(BinaryOp::add, x, y); }
Expr sub(const Expr& x, const Expr& y) { return binary(BinaryOp::sub, x, y); }
Expr mul(const Expr& x, const Expr& y) { return binary(BinaryOp::mul, x, y); }

bool all_floats(const Types& types) {
  for (DType t : types)
    if (!t.is_float()) return false;
  return true;
}

Reducer sum_pair() {
  Reducer r;
  r.name = "sum_pair";
  r.arity = 2;
  r.accepts = [](const Types& t) { return !t[0].is_bool() && !t[1].is_bool() && !t[0].is_handle(); };
  r.identity = [](const Types& t) { return Exprs{const_of(0, t[0]), const_of(0, t[1])}; };
  r.combine = [](const Exprs& x, const Exprs& y) { return Exprs{add(x[0], y[0]), add(x[1], y[1])}; };
  return r;
}

// (index, value). On equal values: the first form keeps the accumulator's index, the second the smaller index.
Reducer arg_extreme(const char* name, bool max, bool smaller_index) {
  Reducer r;
  r.name = name;
  r.arity = 2;
  r.accepts = [](const Types& t) { return t[0].is_int() && !t[1].is_bool(); };
  r.identity = [max](const Types& t) { return Exprs{nullptr, max ? lowest_of(t[1]) : highest_of(t[1])}; };
  r.combine = [max, smaller_index](const Exprs& x, const Exprs& y) {
    if (!smaller_index) {
      Expr keep = binary(max ? BinaryOp::ge : BinaryOp::le, x[1], y[1]);
      return Exprs{select(keep, x[0], y[0]), select(keep, x[1], y[1])};
    }
    Expr better = binary(max ? BinaryOp::gt : BinaryOp::lt, x[1], y[1]);
    Expr tie = binary(BinaryOp::logical_and, equal(x[1], y[1]), less(x[0], y[0]));
    return Exprs{select(binary(BinaryOp::logical_or, better, tie), x[0], y[0]), select(better, x[1], y[1])};
  };
  r.exact = true;
  return r;
}

// (running maximum m, sum of exp(v - m)).
Reducer softmax_pair() {
  Reducer r;
  r.name = "softmax_pair";
  r.arity = 2;
  r.accepts = all_floats;
  r.identity = [](const Types& t) { return Exprs{lowest_of(t[0]), const_of(0, t[1])}; };
  r.combine = [](const Exprs& x, const Exprs& y) {
    Expr m = max_of(x[0], y[0]);
    return Exprs{m, add(mul(x[1], call("exp", {sub(x[0], m)})), mul(y[1], call("exp", {sub(y[0], m)})))};
  };
  r.step = [](const Exprs& x, const Expr& v) {
    Expr m = max_of(x[0], v);
    return Exprs{m, add(mul(x[1], call("exp", {sub(x[0], m)})), call("exp", {sub(v, m)}))};
  };
  r.lift = [](const Expr& v, const Types& t) { return Exprs{v, const_of(1, t[1])}; };
  return r;
}

// (mean, sum of squared deviations, count), Chan's pairwise update.
Reducer welford() {
  Reducer r;
  r.name = "welford";
  r.arity = 3;
  r.accepts = all_floats;
  r.identity = [](const Types& t) { return Exprs{const_of(0, t[0]), const_of(0, t[1]), const_of(0, t[2])}; };
  r.combine = [](const Exprs& x, const Exprs& y) {
    Expr n = add(x[2], y[2]), d = sub(y[0], x[0]);
    Expr share = binary(BinaryOp::div, y[2], n);
    return Exprs{add(x[0], mul(d, share)), add(add(x[1], y[1]), mul(mul(mul(d, d), x[2]), share)), n};
  };
  r.step = [](const Exprs& x, const Expr& v) {
    Expr n = add(x[2], const_of(1, x[2]->dtype)), d = sub(v, x[0]);
    Expr mean = add(x[0], binary(BinaryOp::div, d, n));
    return Exprs{mean, add(x[1], mul(d, sub(v, mean))), n};
  };
  r.lift = [](const Expr& v, const Types& t) { return Exprs{v, const_of(0, t[1]), const_of(1, t[2])}; };
  return r;
}

const Register<Reducer> sums{"sum_pair", "two independent sums", sum_pair()};
const Register<Reducer> argmax{"argmax", "(index, value) of the largest value; ties keep the accumulator",
                               arg_extreme("argmax", true, false)};
const Register<Reducer> argmax_first{"argmax_first", "the same; ties take the smaller index",
                                     arg_extreme("argmax_first", true, true)};
const Register<Reducer> argmin{"argmin", "(index, value) of the smallest value; ties keep the accumulator",
                               arg_extreme("argmin", false, false)};
const Register<Reducer> argmin_first{"argmin_first", "the same; ties take the smaller index",
                                     arg_extreme("argmin_first", false, true)};
const Register<Reducer> softmax{"softmax_pair", "(running maximum, rescaled sum of exponentials)", softmax_pair()};
const Register<Reducer> welford_triple{"welford", "(mean, sum of squared deviations, count)", welford()};

}  // namespace

}  // namespace tilewright
