// Expressions of program text: literals, operators and their types (schedule-language.md §1.5).
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/parse_reader.h"

namespace tilewright::text {

namespace {

// Class of a type in promotions: the higher class wins, within a class the wider, at equal width the unsigned.
int promotion_class(DType t) {
  switch (t.code) {
    case TypeCode::boolean:
      return 0;
    case TypeCode::integer:
    case TypeCode::unsigned_integer:
      return 1;
    case TypeCode::float4_e2m1fn:
      return 2;
    case TypeCode::float8_e4m3fn:
    case TypeCode::float8_e5m2:
    case TypeCode::float8_e8m0fnu:
      return 3;
    case TypeCode::bfloat:
      return 4;
    case TypeCode::ieee_float:
      return 5;
    case TypeCode::handle:
    case TypeCode::void_type:
      return -1;
  }
  return -1;
}

DType promote(DType a, DType b) {
  int ca = promotion_class(a), cb = promotion_class(b);
  if (ca != cb) return ca > cb ? a : b;
  if (a.bits != b.bits) return a.bits > b.bits ? a : b;
  return a.is_uint() ? a : b;
}

bool fits(int64_t value, bool is_unsigned_pattern, DType t) {
  if (t.is_float()) return true;
  if (t.is_bool()) return !is_unsigned_pattern && (value == 0 || value == 1);
  if (is_unsigned_pattern) return t.is_uint() && t.bits == 64;
  if (t.is_uint()) return value >= 0 && (t.bits >= 63 || value < (int64_t{1} << t.bits));
  if (t.bits >= 64) return true;
  int64_t limit = int64_t{1} << (t.bits - 1);
  return value >= -limit && value < limit;
}

bool is_pattern(const IntImm* i) { return i->dtype.is_uint() && i->dtype.bits == 64 && i->value < 0; }

}  // namespace

std::optional<BinaryOp> binary_op(py::Op op) {
  switch (op) {
    case py::Op::add:
      return BinaryOp::add;
    case py::Op::sub:
      return BinaryOp::sub;
    case py::Op::mul:
      return BinaryOp::mul;
    case py::Op::div:
      return BinaryOp::div;
    case py::Op::floor_div:
      return BinaryOp::floor_div;
    case py::Op::mod:
      return BinaryOp::floor_mod;
    case py::Op::lt:
      return BinaryOp::lt;
    case py::Op::le:
      return BinaryOp::le;
    case py::Op::gt:
      return BinaryOp::gt;
    case py::Op::ge:
      return BinaryOp::ge;
    case py::Op::eq:
      return BinaryOp::eq;
    case py::Op::ne:
      return BinaryOp::ne;
    default:
      return std::nullopt;
  }
}

// --- literals

Expr Reader::typed(const Operand& v, DType want, TextRange where) {
  if (!v || !v.literal) return v.e;
  if (const IntImm* i = as<IntImm>(v.e)) {
    if (!want.is_integer_like() && !want.is_float()) {
      error(text_code::dtype_mismatch, where, fmt::format("expected a value of type {}, found an integer", want.str()));
      return nullptr;
    }
    if (!fits(i->value, is_pattern(i), want.element())) {
      std::string digits =
          is_pattern(i) ? fmt::format("{}", static_cast<uint64_t>(i->value)) : fmt::format("{}", i->value);
      error(text_code::literal_out_of_range, where,
            fmt::format("expected a value of type {}, found {}", want.element().str(), digits));
      return nullptr;
    }
    if (want.is_float()) {
      double d = is_pattern(i) ? static_cast<double>(static_cast<uint64_t>(i->value)) : static_cast<double>(i->value);
      return float_imm(d, want);
    }
    return int_imm(i->value, want);
  }
  const FloatImm* f = as<FloatImm>(v.e);
  if (want.is_float()) return float_imm(f->value, want);
  error(text_code::dtype_mismatch, where,
        fmt::format("expected a value of type {}, found the float {}", want.str(), f->value));
  return nullptr;
}

Expr Reader::concrete(const Operand& v, const py::Expr* e) {
  if (!v || !v.literal) return v.e;
  if (as<FloatImm>(v.e)) return typed(v, kFloat32, e->range);
  const IntImm* i = as<IntImm>(v.e);
  DType t = is_pattern(i) ? v.e->dtype : fits(i->value, false, kInt32) ? kInt32 : kInt64;
  return typed(v, t, e->range);
}

Expr Reader::boolean(const py::Expr* e) {
  Operand v = operand(e);
  if (!v) return nullptr;
  if (v.e->dtype.is_bool()) return v.e;
  error(text_code::dtype_mismatch, e->range,
        fmt::format("expected a condition of type bool, found {}", concrete(v, e)->dtype.str()));
  return nullptr;
}

Expr Reader::integer(const py::Expr* e) {
  Expr v = value(e);
  if (!v || v->dtype.is_int() || v->dtype.is_uint()) return v;
  error(text_code::dtype_mismatch, e->range,
        fmt::format("expected an integer, found a value of type {}", v->dtype.str()));
  return nullptr;
}

Operand Reader::literal_arithmetic(py::Op op, const Expr& a, const Expr& b, TextRange where) {
  const IntImm *ia = as<IntImm>(a), *ib = as<IntImm>(b);
  bool compares = op >= py::Op::lt && op <= py::Op::ne;
  if (ia && ib && op != py::Op::div && !is_pattern(ia) && !is_pattern(ib)) {
    std::optional<BinaryOp> binary = binary_op(op);
    std::optional<int64_t> r;
    int64_t x = ia->value, y = ib->value;
    if (binary)
      r = fold_int(*binary, x, y);
    else if (op == py::Op::bit_and)
      r = x & y;
    else if (op == py::Op::bit_or)
      r = x | y;
    else if (op == py::Op::bit_xor)
      r = x ^ y;
    else if (op == py::Op::shift_right && y >= 0)
      r = x >> std::min<int64_t>(y, 63);
    else if (op == py::Op::shift_left && y >= 0 && y < 63)
      r = fold_int(BinaryOp::mul, x, int64_t{1} << y);
    else if (op == py::Op::pow && y >= 0) {
      r = 1;
      for (int64_t i = 0; r && i < y && i < 64; ++i) r = fold_int(BinaryOp::mul, *r, x);
      if (y > 64 && (x > 1 || x < -1)) r = std::nullopt;
    }
    if (r && compares) return {bool_imm(*r != 0), false};
    if (r) return {int_imm(*r, kInt64), true};
    return fail(text_code::literal_out_of_range, where,
                "the value of this constant expression is not defined or exceeds 64 bits");
  }
  double x = ia ? static_cast<double>(ia->value) : as<FloatImm>(a)->value;
  double y = ib ? static_cast<double>(ib->value) : as<FloatImm>(b)->value;
  switch (op) {
    case py::Op::add:
      return {float_imm(x + y, kFloat64), true};
    case py::Op::sub:
      return {float_imm(x - y, kFloat64), true};
    case py::Op::mul:
      return {float_imm(x * y, kFloat64), true};
    case py::Op::div:
      if (y == 0) return fail(text_code::literal_out_of_range, where, "division of a constant by zero");
      return {float_imm(x / y, kFloat64), true};
    case py::Op::floor_div:
      return {float_imm(std::floor(x / y), kFloat64), true};
    case py::Op::pow:
      return {float_imm(std::pow(x, y), kFloat64), true};
    case py::Op::lt:
      return {bool_imm(x < y)};
    case py::Op::le:
      return {bool_imm(x <= y)};
    case py::Op::gt:
      return {bool_imm(x > y)};
    case py::Op::ge:
      return {bool_imm(x >= y)};
    case py::Op::eq:
      return {bool_imm(x == y)};
    case py::Op::ne:
      return {bool_imm(x != y)};
    default:
      return fail(text_code::dtype_mismatch, where,
                  fmt::format("expected integers as operands of `{}`, found a float", py::spelling(op)));
  }
}

// --- operators

bool Reader::unify(Operand& a, Operand& b, TextRange where) {
  if (a.literal && b.literal) {
    bool floats = as<FloatImm>(a.e) || as<FloatImm>(b.e);
    DType t = floats ? kFloat32 : kInt32;
    if (!floats)
      for (const Operand* x : {&a, &b})
        if (!fits(as<IntImm>(x->e)->value, false, kInt32)) t = kInt64;
    a = {typed(a, t, where)};
    b = {typed(b, t, where)};
    return a && b;
  }
  auto literal_as = [&](Operand& literal, DType other) {
    DType t = other;
    if (as<FloatImm>(literal.e) && !other.is_float()) t = kFloat32.with_lanes(other.lanes);
    if (as<IntImm>(literal.e) && other.is_bool()) t = kInt32.with_lanes(other.lanes);
    literal = {typed(literal, t, where)};
    return static_cast<bool>(literal);
  };
  if (a.literal && !literal_as(a, b.e->dtype)) return false;
  if (b.literal && !literal_as(b, a.e->dtype)) return false;
  if (a.e->dtype == b.e->dtype) return true;
  int lanes = std::max(a.e->dtype.lanes, b.e->dtype.lanes);
  for (Operand* x : {&a, &b}) {
    if (x->e->dtype.lanes == lanes) continue;
    if (x->e->dtype.lanes != 1) {
      error(text_code::dtype_mismatch, where,
            fmt::format("expected operands of equal lanes, found {} and {}", a.e->dtype.str(), b.e->dtype.str()));
      return false;
    }
    x->e = broadcast(x->e, lanes);
  }
  if (a.e->dtype == b.e->dtype) return true;
  if (promotion_class(a.e->dtype) < 0 || promotion_class(b.e->dtype) < 0) {
    error(text_code::dtype_mismatch, where,
          fmt::format("expected numbers, found {} and {}", a.e->dtype.str(), b.e->dtype.str()));
    return false;
  }
  DType t = promote(a.e->dtype, b.e->dtype).with_lanes(lanes);
  for (Operand* x : {&a, &b})
    if (x->e->dtype != t) x->e = cast(t, x->e);
  return true;
}

Operand Reader::arithmetic(py::Op op, const Operand& lhs, const Operand& rhs, TextRange where) {
  if (!lhs || !rhs) return {};
  if (lhs.literal && rhs.literal) return literal_arithmetic(op, lhs.e, rhs.e, where);
  Operand a = lhs, b = rhs;
  if (!unify(a, b, where)) return {};
  DType t = a.e->dtype;
  if (promotion_class(t) < 0)
    return fail(text_code::dtype_mismatch, where, fmt::format("expected numbers, found values of type {}", t.str()));
  bool integers = t.is_integer_like();
  if (std::optional<BinaryOp> binary = binary_op(op)) {
    if (is_comparison(*binary)) return {tilewright::make<Binary>(kBool.with_lanes(t.lanes), *binary, a.e, b.e)};
    if (op == py::Op::div && integers) {
      error(text_code::integer_division_ambiguous, where,
            fmt::format("expected floats as operands of `/`, found {}", t.str()))
          .help = "write `//` for the floor, or `T.truncdiv(a, b)`";
      return {};
    }
    if ((op == py::Op::floor_div || op == py::Op::mod) && !integers)
      return fail(text_code::dtype_mismatch, where,
                  fmt::format("expected integers as operands of `{}`, found {}", py::spelling(op), t.str()));
    if (t.is_bool())
      return fail(text_code::dtype_mismatch, where,
                  fmt::format("expected numbers as operands of `{}`, found bool", py::spelling(op)));
    return quotient(*binary, a.e, b.e, where);
  }
  const char* name = op == py::Op::bit_and       ? "bitwise_and"
                     : op == py::Op::bit_or      ? "bitwise_or"
                     : op == py::Op::bit_xor     ? "bitwise_xor"
                     : op == py::Op::shift_left  ? "shift_left"
                     : op == py::Op::shift_right ? "shift_right"
                     : op == py::Op::pow         ? "pow"
                                                 : nullptr;
  if (!name)
    return fail(text_code::construct_not_supported, where,
                fmt::format("the operator `{}` is not read here", py::spelling(op)));
  if (op != py::Op::pow && !integers)
    return fail(text_code::dtype_mismatch, where,
                fmt::format("expected integers as operands of `{}`, found {}", py::spelling(op), t.str()));
  return {tilewright::call(t, operation(name), {a.e, b.e})};
}

Operand Reader::quotient(BinaryOp op, const Expr& a, const Expr& b, TextRange where) {
  const Broadcast* lanes = as<Broadcast>(b);
  bool divides = op >= BinaryOp::trunc_div && op <= BinaryOp::floor_mod;
  if (divides && is_const(lanes ? lanes->value : b, 0)) {
    error(text_code::constant_division_by_zero, where, "expected a divisor other than zero, found 0").help =
        "write a divisor of at least 1";
    return {};
  }
  return {tilewright::make<Binary>(a->dtype, op, a, b)};
}

Operand Reader::unary(const py::Unary& e) {
  if (e.op == py::Op::logical_not) {
    Expr v = boolean(e.operand);
    return v ? Operand{tilewright::make<Not>(v->dtype, v)} : Operand{};
  }
  Operand v = operand(e.operand);
  if (!v || e.op == py::Op::positive) return v;
  DType t = v.e->dtype;
  if (e.op == py::Op::invert) {
    if (v.literal && as<IntImm>(v.e)) return {int_imm(~as<IntImm>(v.e)->value, kInt64), true};
    if (!t.is_int() && !t.is_uint())
      return fail(text_code::dtype_mismatch, e.range, "expected an integer as operand of `~`");
    return {tilewright::call(t, operation("bitwise_not"), {v.e})};
  }
  if (const IntImm* i = as<IntImm>(v.e)) {
    if (v.literal && is_pattern(i)) {
      if (i->value == std::numeric_limits<int64_t>::min()) return {int_imm(i->value, kInt64), true};
      return fail(text_code::literal_out_of_range, e.range,
                  fmt::format("expected an integer of 64 bits, found -{}", static_cast<uint64_t>(i->value)));
    }
    return {int_imm(-i->value, t), v.literal};
  }
  if (const FloatImm* f = as<FloatImm>(v.e)) return {float_imm(-f->value, t), v.literal};
  if (promotion_class(t) < 1)
    return fail(text_code::dtype_mismatch, e.range,
                fmt::format("expected a number as operand of `-`, found {}", t.str()));
  return {tilewright::make<Binary>(t, BinaryOp::mul, v.e, int_imm(-1, t))};
}

Operand Reader::compare(const py::Compare& e) {
  Operand out;
  Operand left = operand(e.items[0]);
  for (size_t i = 0; i < e.ops.size(); ++i) {
    Operand right = operand(e.items[i + 1]);
    if (!binary_op(e.ops[i]) || !left || !right) {
      if (!binary_op(e.ops[i]))
        error(text_code::construct_not_supported, e.range,
              fmt::format("the operator `{}` is not read here", py::spelling(e.ops[i])));
      return {};
    }
    Operand one = arithmetic(e.ops[i], left, right, e.range);
    if (!one) return {};
    out = out ? Operand{tilewright::make<Binary>(one.e->dtype, BinaryOp::logical_and, out.e, one.e)} : one;
    left = right;
  }
  return out;
}

Operand Reader::logical(const py::Binary& e) {
  Expr a = boolean(e.a), b = boolean(e.b);
  if (!a || !b) return {};
  if (a->dtype != b->dtype)
    return fail(text_code::dtype_mismatch, e.range,
                fmt::format("expected conditions of equal lanes, found {} and {}", a->dtype.str(), b->dtype.str()));
  DType t = a->dtype;
  return {tilewright::make<Binary>(t, e.op == py::Op::logical_and ? BinaryOp::logical_and : BinaryOp::logical_or,
                                   std::move(a), std::move(b))};
}

// --- names and dispatch

Operand Reader::name(const py::Name& e) {
  const Binding* b = resolve(e);
  if (!b) return {};
  if (const Expr* v = std::get_if<Expr>(&b->meaning)) return {*v};
  if (const py::Expr* const* syntax = std::get_if<const py::Expr*>(&b->meaning)) {
    const py::Expr* literal = *syntax;
    return operand(literal);
  }
  if (std::holds_alternative<Poison>(b->meaning)) return {};
  if (const Cell* cell = std::get_if<Cell>(&b->meaning)) {
    Expr element = tilewright::load(cell->buffer, {int_imm(0)});
    spans_.add(element.get(), e.range);
    return {element};
  }
  if (const Buffer* buffer = std::get_if<Buffer>(&b->meaning)) {
    Diagnostic& d =
        error(text_code::wrong_argument_type, e.range, fmt::format("expected a value, found the buffer `{}`", e.id));
    d.help = (*buffer)->rank() == 0 ? fmt::format("write `{}[()]`", e.id)
                                    : fmt::format("write an element, `{}[…]`, or the pointer `{}.data`", e.id, e.id);
    return {};
  }
  return fail(text_code::wrong_argument_type, e.range,
              fmt::format("expected a value, found `{}`, which is not one", e.id));
}

Operand Reader::operand(const py::Expr* e) {
  switch (e->kind) {
    case py::ExprKind::kName:
      return name(*py::as<py::Name>(e));
    case py::ExprKind::kInteger: {
      uint64_t v = py::as<py::Integer>(e)->value;
      bool big = v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
      return {int_imm(static_cast<int64_t>(v), big ? DType{TypeCode::unsigned_integer, 64, 1} : kInt64), true};
    }
    case py::ExprKind::kFloating:
      return {float_imm(py::as<py::Floating>(e)->value, kFloat64), true};
    case py::ExprKind::kConstant:
      if (py::as<py::Constant>(e)->value == py::ConstantKind::true_) return {bool_imm(true)};
      if (py::as<py::Constant>(e)->value == py::ConstantKind::false_) return {bool_imm(false)};
      break;
    case py::ExprKind::kAttribute:
      return attribute(*py::as<py::Attribute>(e));
    case py::ExprKind::kSubscript:
      return load(*py::as<py::Subscript>(e));
    case py::ExprKind::kCall:
      return call(*py::as<py::Call>(e));
    case py::ExprKind::kUnary:
      return unary(*py::as<py::Unary>(e));
    case py::ExprKind::kBinary: {
      const py::Binary* b = py::as<py::Binary>(e);
      if (b->op == py::Op::logical_and || b->op == py::Op::logical_or) return logical(*b);
      Operand x = operand(b->a), y = operand(b->b);
      return arithmetic(b->op, x, y, e->range);
    }
    case py::ExprKind::kCompare:
      return compare(*py::as<py::Compare>(e));
    case py::ExprKind::kConditional: {
      const py::Conditional* c = py::as<py::Conditional>(e);
      error(text_code::construct_not_supported, e->range, "a conditional expression is not read").help =
          fmt::format("write `T.if_then_else({}, {}, {})`", source_of(c->condition), source_of(c->then_value),
                      source_of(c->else_value));
      return {};
    }
    default:
      break;
  }
  return fail(text_code::wrong_argument_type, e->range, fmt::format("expected a value, found {}", py::describe(e)));
}

Range Reader::range_between(Expr begin, Expr end) {
  if (begin->dtype != end->dtype) {
    DType t = begin->dtype.bits > end->dtype.bits ? begin->dtype : end->dtype;
    begin = cast(t, begin);
    end = cast(t, end);
  }
  // `x:x + n` has extent n, as it was printed from.
  if (const Binary* sum = as<Binary>(end); sum && sum->op == BinaryOp::add && same(sum->a, begin))
    return {begin, sum->b};
  if (is_const(begin, 0)) return {begin, end};
  return {begin, end - begin};
}

std::optional<ParsedLambda> Reader::lambda(const py::Lambda& e, int arity) {
  Scope scope(*this);
  ParsedLambda out;
  int fixed = 0;
  for (const py::Parameter& p : e.params) fixed += !p.starred;
  bool starred = fixed != static_cast<int>(e.params.size());
  if (arity < fixed || (!starred && arity != fixed)) {
    error(text_code::wrong_argument_count, e.range,
          fmt::format("expected a map of {} indices, found one of {}", arity, fixed));
    return std::nullopt;
  }
  for (const py::Parameter& p : e.params) {
    std::vector<Expr> many;
    for (int i = 0; p.starred && i < arity - fixed; ++i)
      many.push_back(out.params.emplace_back(make_var(fmt::format("{}{}", p.name, i))));
    define_new(p.name,
               p.starred ? Meaning(many) : Meaning(Expr(out.params.emplace_back(make_var(std::string(p.name))))),
               p.range);
  }
  std::vector<const py::Expr*> items;
  items_of(e.body, items);
  for (const py::Expr* item : items) {
    if (const py::Starred* s = py::as<py::Starred>(item)) {
      const py::Name* n = py::as<py::Name>(s->value);
      const Binding* b = n ? resolve(*n) : nullptr;
      const std::vector<Expr>* many = b ? std::get_if<std::vector<Expr>>(&b->meaning) : nullptr;
      if (!many) {
        if (b || !n) error(text_code::wrong_argument_type, item->range, "expected the starred parameter after `*`");
        return std::nullopt;
      }
      for (const Expr& x : *many) out.results.push_back({x});
      continue;
    }
    std::vector<const py::Expr*> parts;
    items_of(item, parts);
    std::vector<Expr> result;
    for (const py::Expr* part : parts) {
      Expr v = integer(part);
      if (!v) return std::nullopt;
      result.push_back(std::move(v));
    }
    if (result.empty() || result.size() > 2) {
      error(text_code::wrong_argument_count, item->range, "expected an index or a range (begin, end)");
      return std::nullopt;
    }
    out.results.push_back(std::move(result));
  }
  return out;
}

}  // namespace tilewright::text

namespace tilewright {

namespace {

template <class T, class F>
tl::expected<T, Diagnostics> read(const py::Tree& tree, const std::vector<Var>& variables, F&& f) {
  ErrorList errors(tree.source);
  text::Reader reader(tree, errors);
  for (const Var& v : variables) reader.define(v->name, Expr(v));
  std::optional<T> out = f(reader);
  if (!out || !errors.empty()) return tl::unexpected(errors.sorted());
  return std::move(*out);
}

}  // namespace

tl::expected<Expr, Diagnostics> read_expr(const py::Tree& tree, const py::Expr* e, const std::vector<Var>& variables) {
  return read<Expr>(tree, variables, [&](text::Reader& reader) { return std::optional(reader.value(e)); });
}

tl::expected<ParsedLambda, Diagnostics> read_lambda(const py::Tree& tree, const py::Lambda& lambda, int arity,
                                                    const std::vector<Var>& variables) {
  return read<ParsedLambda>(tree, variables, [&](text::Reader& reader) { return reader.lambda(lambda, arity); });
}

tl::expected<Expr, Diagnostics> parse_expr(std::string_view text, const std::vector<Var>& variables,
                                           std::string file_name) {
  py::Tree tree = py::parse_expression(std::string(text), std::move(file_name));
  if (!tree.expression) return tl::unexpected(tree.errors);
  return read_expr(tree, tree.expression, variables);
}

tl::expected<ParsedLambda, Diagnostics> parse_lambda(std::string_view text, int arity,
                                                     const std::vector<Var>& variables, std::string file_name) {
  py::Tree tree = py::parse_expression(std::string(text), std::move(file_name));
  if (!tree.expression) return tl::unexpected(tree.errors);
  if (const py::Lambda* lambda = py::as<py::Lambda>(tree.expression))
    return read_lambda(tree, *lambda, arity, variables);
  ErrorList errors(tree.source);
  errors.add(text_code::wrong_argument_type, tree.expression->range,
             fmt::format("expected a lambda, found {}", py::describe(tree.expression)));
  return tl::unexpected(errors.sorted());
}

}  // namespace tilewright
