// Calls in expressions: T.<name>(…) and methods of buffers and values (schedule-language.md §1.5, §1.6).
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ir/parse_reader.h"

namespace tilewright::text {

namespace {

struct NodeSpelling {
  std::string_view name;
  BinaryOp op;
};
// Node spellings never fold: they are how constants under an operator are printed.
constexpr std::array kNodeSpellings{
    NodeSpelling{"Add", BinaryOp::add},
    NodeSpelling{"Sub", BinaryOp::sub},
    NodeSpelling{"Mul", BinaryOp::mul},
    NodeSpelling{"Div", BinaryOp::trunc_div},
    NodeSpelling{"Mod", BinaryOp::trunc_mod},
    NodeSpelling{"FloorDiv", BinaryOp::floor_div},
    NodeSpelling{"FloorMod", BinaryOp::floor_mod},
    NodeSpelling{"Min", BinaryOp::min},
    NodeSpelling{"Max", BinaryOp::max},
    NodeSpelling{"EQ", BinaryOp::eq},
    NodeSpelling{"NE", BinaryOp::ne},
    NodeSpelling{"LT", BinaryOp::lt},
    NodeSpelling{"LE", BinaryOp::le},
    NodeSpelling{"GT", BinaryOp::gt},
    NodeSpelling{"GE", BinaryOp::ge},
    NodeSpelling{"And", BinaryOp::logical_and},
    NodeSpelling{"Or", BinaryOp::logical_or},
    NodeSpelling{"min", BinaryOp::min},
    NodeSpelling{"max", BinaryOp::max},
    NodeSpelling{"floordiv", BinaryOp::floor_div},
    NodeSpelling{"floormod", BinaryOp::floor_mod},
    NodeSpelling{"truncdiv", BinaryOp::trunc_div},
    NodeSpelling{"truncmod", BinaryOp::trunc_mod},
    NodeSpelling{"div", BinaryOp::trunc_div},
};

constexpr std::array<std::string_view, 5> kStructureNames{"Cast", "Select", "Let", "Not", "Shuffle"};
// Everything else that `T.` offers in expressions, for did-you-mean.
constexpr std::array<std::string_view, 30> kOtherNames{"Ramp",
                                                       "Broadcast",
                                                       "ramp",
                                                       "broadcast",
                                                       "cast",
                                                       "likely",
                                                       "ceildiv",
                                                       "min_value",
                                                       "max_value",
                                                       "infinity",
                                                       "type_annotation",
                                                       "access_ptr",
                                                       "grid",
                                                       "serial",
                                                       "parallel",
                                                       "vectorized",
                                                       "unroll",
                                                       "thread_binding",
                                                       "axis.spatial",
                                                       "axis.reduce",
                                                       "axis.scan",
                                                       "axis.opaque",
                                                       "axis.remap",
                                                       "sblock",
                                                       "block",
                                                       "sblock_alloc_buffer",
                                                       "alloc_buffer",
                                                       "match_buffer",
                                                       "decl_buffer",
                                                       "evaluate"};

bool is_predicate_of_float(std::string_view name) { return name == "isnan" || name == "isinf" || name == "isfinite"; }

// Read by TVM, not here: a word on what to do instead.
std::string_view not_read(std::string_view name) {
  using Row = std::pair<std::string_view, std::string_view>;
  static constexpr std::array kRows{
      Row{"device_entry", "write the kernel as blocks with `T.thread_binding` loops"},
      Row{"cta_id", "write `T.thread_binding(…, thread=\"blockIdx.x\")`"},
      Row{"thread_id", "write `T.thread_binding(…, thread=\"threadIdx.x\")`"},
      Row{"warp_id", "derive it from threadIdx.x"},
      Row{"lane_id", "derive it from threadIdx.x"},
      Row{"warpgroup_id", "derive it from threadIdx.x"},
      Row{"cluster_id", "write `T.thread_binding(…, thread=\"clusterIdx.x\")`"},
      Row{"alloc_shared", "write `T.alloc_buffer(…, scope=\"shared\")`"},
      Row{"alloc_local", "write `T.alloc_buffer(…, scope=\"local\")`"},
      Row{"shared_scalar", "write `T.alloc_buffer((1,), …, scope=\"shared\")`"},
      Row{"local_scalar", "write `T.alloc_buffer((1,), …, scope=\"local\")`"},
      Row{"alloc_scalar", "write `T.alloc_buffer((1,), …)`"},
      Row{"jit", "write the function as text"},
      Row{"inline", "write the function's body in its place"},
      Row{"meta_class", "write the function as text"},
      Row{"comm_reducer", "write the reduction as a block with `T.init`"},
      Row{"tvm_thread_allreduce", "write the reduction as a block with `T.init`"},
      Row{"Buffer", "declare the buffer with `T.match_buffer` or `T.decl_buffer`"},
      Row{"iter_var", "write `T.env_thread` and `T.launch_thread`"},
      Row{"vscale", "write a fixed number of lanes"},
      Row{"TensorMap", "annotate a copy block with `tilewright.async_copy`"},
      Row{"llvm_lookup_intrinsic_id", "name the intrinsic: `T.call_llvm_intrin(d, \"llvm.…\", …)`"}};
  for (const Row& r : kRows)
    if (r.first == name) return r.second;
  if (name.starts_with("tmem") || name.starts_with("tcgen05") || name.starts_with("Tx."))
    return "write it with blocks and tensor intrinsics";
  return {};
}

}  // namespace

Operand Reader::call(const py::Call& e) {
  std::string_view name = t_name(e.function);
  if (!name.empty()) return language_call(e, name);
  if (const py::Attribute* a = py::as<py::Attribute>(e.function)) return method_call(e, *a);
  if (const py::Name* n = py::as<py::Name>(e.function)) {
    if ((n->id == "min" || n->id == "max") && !find(n->id))
      return node_spelling(e, n->id, n->id == "min" ? BinaryOp::min : BinaryOp::max);
    if (find(n->id))
      return fail(text_code::wrong_argument_type, n->range,
                  fmt::format("expected a function, found `{}`, which is not one", n->id));
    Diagnostic& d = error(text_code::undefined_name, n->range, fmt::format("`{}` is not defined here", n->id));
    if (operation_call_known(n->id)) d.help = fmt::format("write `T.{}`", n->id);
    return {};
  }
  return fail(text_code::wrong_argument_type, e.function->range,
              fmt::format("expected a function, found {}", py::describe(e.function)));
}

bool Reader::operation_call_known(std::string_view name) {
  return find_operation(name) || DType::parse(name) ||
         std::ranges::any_of(kNodeSpellings, [&](const NodeSpelling& s) { return s.name == name; });
}

Operand Reader::language_call(const py::Call& e, std::string_view view) {
  std::string name(view);  // arguments may be read with t_name
  for (const NodeSpelling& s : kNodeSpellings)
    if (s.name == name) return node_spelling(e, name, s.op);
  if (name == "boolean") return typed_constant(e, name, kBool);
  if (name.starts_with("call_") || name.starts_with("tvm_call_")) return extern_call(e, name);
  if (name == "address_of" || name == "tvm_access_ptr" || name == "reinterpret") return pointer_call(e, name);
  if (std::optional<DType> d = DType::parse(name); d && !d->is_handle() && !d->is_void())
    return typed_constant(e, name, *d);
  if (const Operation* op = find_operation(name); op && name != "likely") return operation_call(e, name, op);
  return structure_call(e, name);
}

Operand Reader::node_spelling(const py::Call& e, std::string_view name, BinaryOp op) {
  std::optional<Args> args = arguments(e, fmt::format("T.{}", name), "a b");
  if (!args) return {};
  Operand a = operand((*args)[0]), b = operand((*args)[1]);
  if (!a || !b || !unify(a, b, e.range)) return {};
  DType t = a.e->dtype;
  if (t.is_float() && op == BinaryOp::trunc_div) op = BinaryOp::div;
  bool logical = op == BinaryOp::logical_and || op == BinaryOp::logical_or;
  bool integers_only =
      op == BinaryOp::trunc_div || op == BinaryOp::trunc_mod || op == BinaryOp::floor_div || op == BinaryOp::floor_mod;
  if (logical != t.is_bool() && !is_comparison(op))
    return fail(
        text_code::dtype_mismatch, e.range,
        fmt::format("expected {} as arguments of `T.{}`, found {}", logical ? "conditions" : "numbers", name, t.str()));
  if (integers_only && !t.is_integer_like())
    return fail(text_code::dtype_mismatch, e.range,
                fmt::format("expected integers as arguments of `T.{}`, found {}", name, t.str()));
  if (is_comparison(op) || logical) return {tilewright::make<Binary>(kBool.with_lanes(t.lanes), op, a.e, b.e)};
  return quotient(op, a.e, b.e, e.range);
}

Operand Reader::operation_call(const py::Call& e, std::string_view name, const Operation* op) {
  std::optional<DType> result;
  for (const py::Keyword& k : e.keywords) {
    if (k.name == "dtype") {
      if (!(result = dtype_value(k.value))) return {};
    } else if (k.name != "span") {
      return fail(text_code::wrong_argument_count, k.name_range,
                  fmt::format("`T.{}` has no argument `{}`", name, k.name));
    }
  }
  int count = static_cast<int>(e.args.size());
  if (count < op->min_args || (op->max_args >= 0 && count > op->max_args)) {
    std::string expected = op->min_args == op->max_args ? fmt::format("{}", op->min_args)
                           : op->max_args < 0           ? fmt::format("at least {}", op->min_args)
                                                        : fmt::format("{} to {}", op->min_args, op->max_args);
    return fail(
        text_code::wrong_argument_count, e.range,
        fmt::format("expected {} argument{} of `T.{}`, found {}", expected, expected == "1" ? "" : "s", name, count));
  }
  std::vector<Operand> args;
  for (const py::Expr* x : e.args) {
    const py::Expr* text = constant(x);
    Operand v = text->kind == py::ExprKind::kString
                    ? Operand{tilewright::make<StringImm>(kHandle, std::string(py::as<py::String>(text)->value))}
                    : operand(x);
    if (!v) return {};
    args.push_back(v);
  }
  // Arguments of math have one type; the others keep theirs.
  bool one_type = (op->group == OpGroup::math && name != "ldexp") || name == "shift_left" || name == "shift_right" ||
                  name.starts_with("bitwise_");
  if (name == "if_then_else") {
    Expr condition = boolean(e.args[0]);
    if (!condition || !unify(args[1], args[2], e.range)) return {};
    DType t = result.value_or(args[1].e->dtype);
    return {tilewright::call(t, op, {condition, args[1].e, args[2].e})};
  }
  for (int round = 0; one_type && round < 2; ++round)
    for (size_t i = 1; i < args.size(); ++i)
      if (!unify(args[0], args[i], e.range)) return {};
  std::vector<Expr> values;
  for (size_t i = 0; i < args.size(); ++i) {
    bool math_literal = args[i].literal && op->group == OpGroup::math && as<IntImm>(args[i].e) && name != "popcount" &&
                        name != "clz" && name != "abs";
    values.push_back(math_literal && args.size() == 1 ? typed(args[i], kFloat32, e.args[i]->range)
                                                      : concrete(args[i], e.args[i]));
    if (!values.back()) return {};
  }
  DType t = values.empty() ? kVoid : values[0]->dtype;
  if (op->group == OpGroup::math && (t.is_handle() || t.is_void() || t.is_bool()))
    return fail(text_code::dtype_mismatch, e.args[0]->range,
                fmt::format("expected a number as argument of `T.{}`, found {}", name, t.str()));
  if (is_predicate_of_float(name)) t = kBool.with_lanes(t.lanes);
  if (op->group != OpGroup::math && op->group != OpGroup::integer && name != "ignore_loop_partition") t = kVoid;
  if (name == "assume") t = kBool;
  return {tilewright::call(result.value_or(t), op, std::move(values))};
}

Operand Reader::typed_constant(const py::Call& e, std::string_view name, DType d) {
  std::optional<Args> args = arguments(e, fmt::format("T.{}", name), "expr");
  if (!args) return {};
  const py::Expr* x = constant((*args)[0]);
  if (const py::String* s = py::as<py::String>(x)) {
    double inf = std::numeric_limits<double>::infinity();
    if (d.is_float() && s->value == "inf") return {float_imm(inf, d)};
    if (d.is_float() && s->value == "-inf") return {float_imm(-inf, d)};
    if (d.is_float() && s->value == "nan") return {float_imm(std::numeric_limits<double>::quiet_NaN(), d)};
    return fail(text_code::wrong_argument_type, x->range,
                fmt::format("expected \"inf\", \"-inf\" or \"nan\", found \"{}\"", s->value));
  }
  Operand v = operand(x);
  if (!v) return {};
  if (!v.literal) return {cast(d, v.e)};
  if (as<FloatImm>(v.e) && d.is_integer_like()) {
    double value = as<FloatImm>(v.e)->value;
    if (!(std::abs(value) < 9.2e18))
      return fail(text_code::literal_out_of_range, x->range,
                  fmt::format("expected a value of type {}, found {}", d.str(), value));
    v.e = int_imm(static_cast<int64_t>(value), kInt64);
  }
  if (d.is_bool()) return {bool_imm(as<IntImm>(v.e) && as<IntImm>(v.e)->value != 0)};
  return {typed(v, d, x->range)};
}

Operand Reader::extern_call(const py::Call& e, std::string_view full_name) {
  std::string name(full_name.starts_with("tvm_") ? full_name.substr(4) : full_name);
  if (e.args.empty())
    return fail(text_code::wrong_argument_count, e.range,
                fmt::format("expected at least 1 argument of `T.{}`, found 0", full_name));
  for (const py::Keyword& k : e.keywords)
    if (k.name != "dtype")
      return fail(text_code::wrong_argument_count, k.name_range,
                  fmt::format("`T.{}` has no argument `{}`", full_name, k.name));
  DType result = kVoid;
  size_t first = 0;
  if (!e.keywords.empty()) {
    std::optional<DType> d = dtype_value(e.keywords[0].value);
    if (!d) return {};
    result = *d;
  } else if (name == "call_packed" || name == "call_cpacked" || name.ends_with("_lowered")) {
    result = kInt32;
  } else {
    std::optional<DType> d = dtype_value(e.args[0]);
    if (!d) return {};
    result = *d;
    first = 1;
  }
  if (e.args.size() <= first)
    return fail(text_code::wrong_argument_count, e.range,
                fmt::format("expected a function name as argument of `T.{}`, found none", full_name));
  const py::Expr* callee = constant(e.args[first]);
  bool llvm = name.starts_with("call_llvm");
  if (llvm && (callee->kind == py::ExprKind::kInteger || t_name(callee) == "uint32" ||
               this->callee(callee) == "uint32" || this->callee(callee) == "llvm_lookup_intrinsic_id")) {
    error(text_code::llvm_intrinsic_by_number, callee->range, "expected the name of an LLVM intrinsic, found a number")
        .help = "write the name, as in `T.call_llvm_intrin(\"float32\", \"llvm.exp.f32\", x)`";
    return {};
  }
  std::optional<std::string> function = text_value(callee, "the function's name");
  if (!function) return {};
  const Operation* op = nullptr;
  std::vector<Expr> args;
  if (name == "call_intrin") {
    std::string_view intrinsic = *function;
    for (std::string_view prefix : {"tirx.", "tir."})
      if (intrinsic.starts_with(prefix)) intrinsic.remove_prefix(prefix.size());
    if (!(op = find_operation(intrinsic))) return unknown_name(callee->range, intrinsic);
  } else {
    if (!(op = find_operation(name))) {
      error(text_code::construct_not_supported, e.function->range, fmt::format("`T.{}` is not read", full_name));
      return {};
    }
    args.push_back(tilewright::make<StringImm>(kHandle, *function));
  }
  for (size_t i = first + 1; i < e.args.size(); ++i) {
    const py::Expr* x = constant(e.args[i]);
    Expr v = x->kind == py::ExprKind::kString
                 ? tilewright::make<StringImm>(kHandle, std::string(py::as<py::String>(x)->value))
                 : value(e.args[i]);
    if (!v) return {};
    args.push_back(std::move(v));
  }
  return {tilewright::call(result, op, std::move(args))};
}

Operand Reader::pointer_call(const py::Call& e, std::string_view name) {
  if (name == "address_of") {
    std::optional<Args> args = arguments(e, "T.address_of", "element");
    if (!args) return {};
    const py::Subscript* s = py::as<py::Subscript>((*args)[0]);
    if (!s)
      return fail(text_code::wrong_argument_type, (*args)[0]->range,
                  fmt::format("expected an element of a buffer, found {}", py::describe((*args)[0])));
    return {pointer_to(s->value, s->index, s->range)};
  }
  if (name == "reinterpret") {
    std::optional<Args> args = arguments(e, "T.reinterpret", "dtype value");
    std::optional<DType> d = args ? dtype_value((*args)[0]) : std::nullopt;
    Expr v = d ? value((*args)[1]) : nullptr;
    if (!v) return {};
    int from = v->dtype.bits * v->dtype.lanes, to = d->bits * d->lanes;
    if (from != to)
      return fail(text_code::dtype_mismatch, e.range,
                  fmt::format("expected a type of {} bits like {}, found {}", from, v->dtype.str(), d->str()));
    return {tilewright::call(*d, operation("reinterpret"), {v})};
  }
  std::optional<Args> args = arguments(e, "T.tvm_access_ptr", "ptype data offset extent rw_mask");
  if (!args) return {};
  DType element = kVoid;
  const py::Expr* annotation = constant((*args)[0]);
  if (callee(annotation) == "type_annotation") {
    std::optional<Args> inner = arguments(*py::as<py::Call>(annotation), "T.type_annotation", "dtype");
    std::optional<DType> d = inner ? dtype_value((*inner)[0]) : std::nullopt;
    if (!d) return {};
    element = *d;
  } else if (std::optional<DType> d = dtype_value(annotation)) {
    element = *d;
  } else {
    return {};
  }
  std::vector<Expr> values{tilewright::make<StringImm>(kHandle, element.str())};
  for (size_t i = 1; i < 5; ++i) {
    Expr v = i == 1 ? value((*args)[i]) : integer((*args)[i]);
    if (!v) return {};
    values.push_back(std::move(v));
  }
  return {tilewright::call(kHandle, operation("tvm_access_ptr"), std::move(values))};
}

Operand Reader::structure_call(const py::Call& e, std::string_view name) {
  std::string full = fmt::format("T.{}", name);
  auto args_of = [&](std::string_view signature) { return arguments(e, full, signature); };
  if (name == "Cast" || name == "cast") {
    std::optional<Args> a = args_of(name == "Cast" ? "dtype value" : "value dtype");
    std::optional<DType> d = a ? dtype_value((*a)[name == "Cast" ? 0 : 1]) : std::nullopt;
    Expr v = d ? value((*a)[name == "Cast" ? 1 : 0]) : nullptr;
    if (!v) return {};
    if (d->lanes == 1 && v->dtype.lanes > 1) d = d->with_lanes(v->dtype.lanes);
    return {name == "cast" ? cast(*d, v) : Expr(tilewright::make<Cast>(*d, v))};
  }
  if (name == "Not") {
    std::optional<Args> a = args_of("a");
    Expr v = a ? boolean((*a)[0]) : nullptr;
    return v ? Operand{tilewright::make<Not>(v->dtype, v)} : Operand{};
  }
  if (name == "Select") {
    std::optional<Args> a = args_of("condition true_value false_value");
    Expr c = a ? boolean((*a)[0]) : nullptr;
    if (!c) return {};
    Operand x = operand((*a)[1]), y = operand((*a)[2]);
    if (!x || !y || !unify(x, y, e.range)) return {};
    return {tilewright::make<Select>(x.e->dtype, c, x.e, y.e)};
  }
  if (name == "Let") {
    std::optional<Args> a = args_of("body where");
    const py::Dict* where = a ? py::as<py::Dict>((*a)[1]) : nullptr;
    const py::Name* n = where && where->keys.size() == 1 ? py::as<py::Name>(where->keys[0]) : nullptr;
    if (!n)
      return a ? fail(text_code::wrong_argument_type, e.range, "expected `T.Let(body, where={variable: value})`")
               : Operand{};
    Expr v = value(where->values[0]);
    if (!v) return {};
    Scope scope(*this);
    Var var = make_var(std::string(n->id), v->dtype);
    define(n->id, Expr(var), n->range);
    Expr body = value((*a)[0]);
    return body ? Operand{tilewright::make<Let>(body->dtype, var, v, body)} : Operand{};
  }
  if (name == "Ramp" || name == "ramp" || name == "Broadcast" || name == "broadcast") {
    bool is_ramp = name == "Ramp" || name == "ramp";
    std::optional<Args> a = args_of(is_ramp ? "base stride lanes" : "value lanes");
    Expr base = a ? (is_ramp ? integer((*a)[0]) : value((*a)[0])) : nullptr;
    Expr stride = base && is_ramp ? typed(operand((*a)[1]), base->dtype, (*a)[1]->range) : base;
    std::optional<int64_t> lanes = stride ? int_value((*a)[is_ramp ? 2 : 1], "lanes") : std::nullopt;
    if (!lanes) return {};
    if (*lanes < 2 || *lanes > 64)
      return fail(text_code::literal_out_of_range, e.range, fmt::format("expected 2 to 64 lanes, found {}", *lanes));
    if (base->dtype.is_vector() || stride->dtype != base->dtype)
      return fail(text_code::dtype_mismatch, e.range,
                  fmt::format("expected scalars of one type, found {} and {}", base->dtype.str(), stride->dtype.str()));
    return {is_ramp ? ramp(base, stride, static_cast<int>(*lanes)) : broadcast(base, static_cast<int>(*lanes))};
  }
  if (name == "Shuffle") {
    std::optional<Args> a = args_of("vectors indices");
    if (!a) return {};
    std::vector<const py::Expr*> items;
    std::vector<Expr> lists[2];
    for (size_t k = 0; k < 2; ++k) {
      items_of((*a)[k], items);
      for (const py::Expr* x : items) {
        Expr v = value(x);
        if (!v) return {};
        lists[k].push_back(v);
      }
    }
    if (lists[0].empty() || lists[1].empty())
      return fail(text_code::wrong_argument_count, e.range,
                  "expected vectors and lane numbers of `T.Shuffle`, found none");
    DType t = lists[0][0]->dtype.with_lanes(static_cast<int>(lists[1].size()));
    return {tilewright::make<Shuffle>(t, lists[0], lists[1])};
  }
  if (name == "likely") {
    std::optional<Args> a = args_of("condition");
    return a ? operand((*a)[0]) : Operand{};
  }
  if (name == "ceildiv") {
    std::optional<Args> a = args_of("a b");
    if (!a) return {};
    Operand x = operand((*a)[0]), y = operand((*a)[1]);
    Operand one{int_imm(1, kInt64), true};
    return arithmetic(py::Op::floor_div, arithmetic(py::Op::sub, arithmetic(py::Op::add, x, y, e.range), one, e.range),
                      y, e.range);
  }
  if (name == "min_value" || name == "max_value" || name == "infinity") {
    std::optional<Args> a = args_of("dtype");
    std::optional<DType> d = a ? dtype_value((*a)[0]) : std::nullopt;
    if (!d) return {};
    if (std::optional<Expr> v = limit_value(name, *d)) return {*v};
    return fail(text_code::wrong_argument_type, e.range, fmt::format("`{}` has no value for {}", full, d->str()));
  }
  if (name == "access_ptr")
    return fail(text_code::unknown_construct, e.function->range,
                "`T.access_ptr` is a method of buffers: `A.access_ptr(\"r\")`");
  return unknown_name(e.function->range, name);
}

std::optional<Expr> Reader::limit_value(std::string_view name, DType d) {
  if (name == "infinity")
    return d == kFloat16 || d == kFloat32 || d == kFloat64 || d == kBFloat16
               ? std::optional<Expr>(float_imm(std::numeric_limits<double>::infinity(), d))
               : std::nullopt;
  bool max = name == "max_value";
  if (d.is_bool()) return bool_imm(max);
  if (d.is_uint()) return int_imm(max ? -1 : 0, d);
  if (d.is_int()) {
    int64_t top = d.bits == 64 ? std::numeric_limits<int64_t>::max() : (int64_t{1} << (d.bits - 1)) - 1;
    return int_imm(max ? top : -top - 1, d);
  }
  double largest = 0;
  switch (d.code) {
    case TypeCode::ieee_float:
      largest = d.bits == 16   ? 65504.0
                : d.bits == 32 ? static_cast<double>(std::numeric_limits<float>::max())
                               : std::numeric_limits<double>::max();
      break;
    case TypeCode::bfloat:
      largest = 3.3895313892515355e38;
      break;
    case TypeCode::float8_e4m3fn:
      largest = 448;
      break;
    case TypeCode::float8_e5m2:
      largest = 57344;
      break;
    case TypeCode::float4_e2m1fn:
      largest = 6;
      break;
    default:
      return std::nullopt;
  }
  return float_imm(max ? largest : -largest, d);
}

Operand Reader::unknown_name(TextRange where, std::string_view name) {
  if (std::string_view help = not_read(name); !help.empty()) {
    error(text_code::construct_not_supported, where, fmt::format("`T.{}` is not read here", name)).help =
        std::string(help);
    return {};
  }
  Diagnostic& d = error(text_code::unknown_construct, where, fmt::format("the language has no `T.{}`", name));
  std::vector<std::string> known = Registry<Operation>::instance().names();
  for (const NodeSpelling& s : kNodeSpellings) known.emplace_back(s.name);
  known.insert(known.end(), kStructureNames.begin(), kStructureNames.end());
  known.insert(known.end(), kOtherNames.begin(), kOtherNames.end());
  if (std::string best = did_you_mean(name, known); !best.empty()) d.help = fmt::format("did you mean `T.{}`?", best);
  return {};
}

// --- methods and attributes

Operand Reader::method_call(const py::Call& e, const py::Attribute& f) {
  if (f.name == "astype") {
    std::optional<Args> a = arguments(e, "astype", "dtype");
    std::optional<DType> d = a ? dtype_value((*a)[0]) : std::nullopt;
    Expr v = d ? value(f.value) : nullptr;
    if (!v) return {};
    return {cast(d->lanes == 1 ? d->with_lanes(v->dtype.lanes) : *d, v)};
  }
  if (Buffer b = buffer(f.value, false)) {
    if (f.name == "ptr_to") {
      std::optional<Args> a = arguments(e, "ptr_to", "indices");
      return a ? Operand{pointer_to(f.value, (*a)[0], e.range)} : Operand{};
    }
    if (f.name == "access_ptr") {
      std::optional<Args> a = arguments(e, "access_ptr", "access_mask offset? extent? ptr_type? content_lanes?");
      if (!a) return {};
      // TVM orders these differently by position: only the mask may be positional.
      if (e.args.size() > 1)
        return fail(text_code::wrong_argument_count, e.args[1]->range,
                    "expected keywords after the mask of `access_ptr`");
      return {access_pointer(b, *a, 0)};
    }
    if (f.name == "vload") {
      std::optional<Args> a = arguments(e, "vload", "begin dtype?");
      std::vector<Expr> index;
      if (!a || !indices(b, (*a)[0], e.range, index)) return {};
      std::optional<DType> d = (*a)[1] ? dtype_value((*a)[1]) : b->dtype;
      if (!d) return {};
      if (d->element() != b->dtype)
        return fail(text_code::dtype_mismatch, e.range,
                    fmt::format("expected elements of type {}, found {}", b->dtype.str(), d->str()));
      if (d->lanes > 1 && index.empty())
        return fail(text_code::rank_mismatch, e.range, "a buffer of rank 0 has no vector access");
      if (d->lanes > 1) index.back() = ramp(index.back(), int_imm(1, index.back()->dtype), d->lanes);
      Expr out = tilewright::load(b, std::move(index));
      spans_.add(out.get(), e.range);
      return {out};
    }
  }
  const py::Name* n = py::as<py::Name>(f.value);
  if (n && !find(n->id)) {
    resolve(*n);
    return {};
  }
  if (n && std::holds_alternative<Poison>(find(n->id)->meaning)) return {};
  return fail(text_code::unknown_construct, f.name_range,
              fmt::format("`{}` is not a method of a buffer or value", f.name));
}

Operand Reader::attribute(const py::Attribute& e) {
  if (std::string_view name = t_name(&e); !name.empty()) {
    std::string copy(name);
    if (operation_call_known(copy))
      return fail(text_code::wrong_argument_type, e.range,
                  fmt::format("expected a value, found `T.{}` without arguments", copy));
    return unknown_name(e.range, copy);
  }
  const py::Name* n = py::as<py::Name>(e.value);
  if (n && !find(n->id)) {
    resolve(*n);
    return {};
  }
  if (n && std::holds_alternative<Poison>(find(n->id)->meaning)) return {};
  Buffer b = buffer(e.value, false);
  if (b && e.name == "data") return {Expr(b->data)};
  if (b && e.name == "elem_offset") return {b->elem_offset ? b->elem_offset : int_imm(0)};
  Diagnostic& d = error(text_code::unknown_construct, e.name_range,
                        fmt::format("`{}` is not an attribute of a {}", e.name, b ? "buffer" : "value"));
  if (std::string best = did_you_mean(e.name, {"data", "elem_offset", "shape", "strides"}); b && !best.empty())
    d.help = fmt::format("did you mean `{}`?", best);
  return {};
}

}  // namespace tilewright::text
