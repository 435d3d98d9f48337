// Constructors of expressions with local constant folding (x + 0, 2 * 3, min(a, a) …). Deeper simplification:
// ir/simplify. Operands must have one type; an IntImm operand takes the other side's type (as literals do in program
// text).
#pragma once

#include "ir/expr.h"
#include "ir/operation.h"

namespace tilewright {

Expr int_imm(int64_t value, DType dtype = kInt32);
Expr float_imm(double value, DType dtype = kFloat32);
Expr bool_imm(bool value);
/// A constant of any numeric type, vectors broadcast.
Expr const_of(double value, DType dtype);
Expr zero_of(DType dtype);

Expr binary(BinaryOp op, Expr a, Expr b);
inline Expr operator+(Expr a, Expr b) { return binary(BinaryOp::add, std::move(a), std::move(b)); }
inline Expr operator-(Expr a, Expr b) { return binary(BinaryOp::sub, std::move(a), std::move(b)); }
inline Expr operator*(Expr a, Expr b) { return binary(BinaryOp::mul, std::move(a), std::move(b)); }
inline Expr operator+(Expr a, int64_t b) { return binary(BinaryOp::add, a, int_imm(b, a->dtype)); }
inline Expr operator-(Expr a, int64_t b) { return binary(BinaryOp::sub, a, int_imm(b, a->dtype)); }
inline Expr operator*(Expr a, int64_t b) { return binary(BinaryOp::mul, a, int_imm(b, a->dtype)); }
inline Expr floor_div(Expr a, Expr b) { return binary(BinaryOp::floor_div, std::move(a), std::move(b)); }
inline Expr floor_mod(Expr a, Expr b) { return binary(BinaryOp::floor_mod, std::move(a), std::move(b)); }
inline Expr floor_div(Expr a, int64_t b) { return floor_div(a, int_imm(b, a->dtype)); }
inline Expr floor_mod(Expr a, int64_t b) { return floor_mod(a, int_imm(b, a->dtype)); }
inline Expr min_of(Expr a, Expr b) { return binary(BinaryOp::min, std::move(a), std::move(b)); }
inline Expr max_of(Expr a, Expr b) { return binary(BinaryOp::max, std::move(a), std::move(b)); }
inline Expr less(Expr a, Expr b) { return binary(BinaryOp::lt, std::move(a), std::move(b)); }
inline Expr less_equal(Expr a, Expr b) { return binary(BinaryOp::le, std::move(a), std::move(b)); }
inline Expr equal(Expr a, Expr b) { return binary(BinaryOp::eq, std::move(a), std::move(b)); }
/// Null operands count as true; both null gives null.
Expr and_of(Expr a, Expr b);
Expr not_of(Expr a);
Expr cast(DType dtype, Expr value);
Expr select(Expr condition, Expr then_value, Expr else_value);
Expr load(Buffer buffer, std::vector<Expr> indices);
Expr ramp(Expr base, Expr stride, int lanes);
Expr broadcast(Expr value, int lanes);
/// Call with an explicit result type.
Expr call(DType dtype, const Operation* op, std::vector<Expr> args);
/// Math call by name; the result has the first argument's type.
Expr call(std::string_view op, std::vector<Expr> args);
Expr if_then_else(Expr condition, Expr then_value, Expr else_value);

/// The value of an IntImm (or bool), else nothing.
std::optional<int64_t> const_int(const Expr&);
inline bool is_const(const Expr& e, int64_t value) { return const_int(e) == value; }
bool is_true(const Expr&);  ///< null counts as true
/// Conjuncts of a predicate (null: none).
std::vector<Expr> conjuncts(const Expr&);
/// Folds a binary operation on two integer constants; nothing on division by zero or int64 overflow.
std::optional<int64_t> fold_int(BinaryOp, int64_t a, int64_t b);
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);
bool is_comparison(BinaryOp);

}  // namespace tilewright
