// Reducers of one accumulator.
#include "ir/analysis/reducers.h"
#include "ir/analysis/reducers/limits.h"

namespace tilewright {

namespace {

using Types = std::vector<DType>;
using Exprs = std::vector<Expr>;

bool numeric(const Types& t) { return t[0].is_float() || t[0].is_int() || t[0].is_uint(); }
bool integers(const Types& t) { return t[0].is_int() || t[0].is_uint(); }
bool booleans(const Types& t) { return t[0].is_bool(); }

Reducer scalar(const char* name, bool (*accepts)(const Types&), Expr (*identity)(DType),
               Expr (*combine)(const Expr&, const Expr&), bool exact) {
  Reducer r;
  r.name = name;
  r.accepts = accepts;
  r.identity = [identity](const Types& t) { return Exprs{identity(t[0])}; };
  r.combine = [combine](const Exprs& x, const Exprs& y) { return Exprs{combine(x[0], y[0])}; };
  r.exact = exact;
  return r;
}

template <BinaryOp op>
Expr apply(const Expr& x, const Expr& y) {
  return binary(op, x, y);
}
Expr zero(DType t) { return const_of(0, t); }
Expr one(DType t) { return const_of(1, t); }
Expr all_ones(DType t) { return int_imm(-1, t); }
Expr bit_and(const Expr& x, const Expr& y) { return call("bitwise_and", {x, y}); }
Expr bit_or(const Expr& x, const Expr& y) { return call("bitwise_or", {x, y}); }
Expr bit_xor(const Expr& x, const Expr& y) { return call("bitwise_xor", {x, y}); }

const Register<Reducer> sum{"sum", "x + y", scalar("sum", numeric, zero, apply<BinaryOp::add>, false)};
const Register<Reducer> product{"product", "x * y", scalar("product", numeric, one, apply<BinaryOp::mul>, false)};
const Register<Reducer> minimum{"min", "min(x, y)", scalar("min", numeric, highest_of, apply<BinaryOp::min>, true)};
const Register<Reducer> maximum{"max", "max(x, y)", scalar("max", numeric, lowest_of, apply<BinaryOp::max>, true)};
const Register<Reducer> every{"and", "x and y", scalar("and", booleans, one, apply<BinaryOp::logical_and>, true)};
const Register<Reducer> any{"or", "x or y", scalar("or", booleans, zero, apply<BinaryOp::logical_or>, true)};
const Register<Reducer> bits_and{"bit_and", "x & y", scalar("bit_and", integers, all_ones, bit_and, true)};
const Register<Reducer> bits_or{"bit_or", "x | y", scalar("bit_or", integers, zero, bit_or, true)};
const Register<Reducer> bits_xor{"xor", "x ^ y", scalar("xor", integers, zero, bit_xor, true)};

}  // namespace

}  // namespace tilewright
