#include "ir/print_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/build.h"

namespace tilewright::text {

// --- names

Names::Names()
    : used_{"False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
            "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
            "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
            "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield",    "T",
            "I",     "range",    "min",   "max",    "tvm"} {}

const std::string& Names::define(uint64_t id, std::string_view hint) {
  std::string name;
  for (char c : hint)
    name += std::isalnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80 ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(name.begin(), '_');
  if (name == "_") name = "v_";  // `_` is never read back
  std::string unique = name;
  for (int i = 1; !used_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  live_.push_back(unique);
  return names_[id] = std::move(unique);
}

const std::string* Names::find(uint64_t id) const {
  auto it = names_.find(id);
  return it == names_.end() ? nullptr : &it->second;
}

void Names::release(size_t mark) {
  while (live_.size() > mark) {
    used_.erase(live_.back());
    live_.pop_back();
  }
}

const std::string& ExprPrinter::name_of(const VarNode* v) {
  if (const std::string* known = names_.find(v->id)) return *known;
  return names_.define(v->id, v->name);
}

const std::string& ExprPrinter::name_of(const Buffer& b) {
  if (const std::string* known = names_.find(b->id)) return *known;
  define(b);
  return *names_.find(b->id);
}

void ExprPrinter::define(const Buffer& b) {
  std::string name = names_.define(b->id, b->name);
  // Buffers that share the pointer print the first one's.
  if (b->data && !names_.find(b->data->id)) names_.set(b->data->id, name + ".data");
}

// --- constants

void ExprPrinter::quoted(std::string_view s) {
  out_ += '"';
  for (char c : s) {
    if (c == '"' || c == '\\')
      (out_ += '\\') += c;
    else if (c == '\n')
      out_ += "\\n";
    else if (c == '\t')
      out_ += "\\t";
    else if (c == '\r')
      out_ += "\\r";
    else if (static_cast<unsigned char>(c) < 0x20)
      fmt::format_to(std::back_inserter(out_), "\\x{:02x}", static_cast<unsigned char>(c));
    else
      out_ += c;
  }
  out_ += '"';
}

void ExprPrinter::constant(const IntImm& c, bool typed) {
  auto to = std::back_inserter(out_);
  if (c.dtype.is_bool())
    fmt::format_to(to, "T.bool({})", c.value ? "True" : "False");
  else if (c.dtype == kInt32 && !typed)
    fmt::format_to(to, "{}", c.value);
  else if (c.dtype.is_uint() && c.dtype.bits == 64)
    fmt::format_to(to, "T.uint64({})", static_cast<uint64_t>(c.value));
  else
    fmt::format_to(to, "T.{}({})", c.dtype.str(), c.value);
}

void ExprPrinter::constant(const FloatImm& c) {
  auto to = std::back_inserter(out_);
  if (std::isnan(c.value))
    fmt::format_to(to, "T.{}(\"nan\")", c.dtype.str());
  else if (std::isinf(c.value))
    fmt::format_to(to, "T.{}(\"{}inf\")", c.dtype.str(), c.value < 0 ? "-" : "");
  else if (c.value == 0 && std::signbit(c.value))
    fmt::format_to(to, "T.{}(-0.0)", c.dtype.str());
  else
    fmt::format_to(to, "T.{}({})", c.dtype.str(), c.value);
}

// --- expressions

namespace {

constexpr int kUnaryLevel = 11;

struct Spelling {
  const char* infix;  // null: only the call form
  const char* node;   // T.<node>(a, b): never folded by the reader
  int level;
};
Spelling spelling(BinaryOp op) {
  switch (op) {
    case BinaryOp::add:
      return {" + ", "Add", 9};
    case BinaryOp::sub:
      return {" - ", "Sub", 9};
    case BinaryOp::mul:
      return {" * ", "Mul", 10};
    case BinaryOp::div:
      return {" / ", "Div", 10};
    case BinaryOp::trunc_div:
      return {nullptr, "truncdiv", 0};
    case BinaryOp::trunc_mod:
      return {nullptr, "truncmod", 0};
    case BinaryOp::floor_div:
      return {" // ", "FloorDiv", 10};
    case BinaryOp::floor_mod:
      return {" % ", "FloorMod", 10};
    case BinaryOp::min:
      return {nullptr, "min", 0};
    case BinaryOp::max:
      return {nullptr, "max", 0};
    case BinaryOp::eq:
      return {" == ", "EQ", 4};
    case BinaryOp::ne:
      return {" != ", "NE", 4};
    case BinaryOp::lt:
      return {" < ", "LT", 4};
    case BinaryOp::le:
      return {" <= ", "LE", 4};
    case BinaryOp::gt:
      return {" > ", "GT", 4};
    case BinaryOp::ge:
      return {" >= ", "GE", 4};
    case BinaryOp::logical_and:
      return {" and ", "And", 2};
    case BinaryOp::logical_or:
      return {" or ", "Or", 1};
  }
  TW_UNREACHABLE();
}

bool is_bare_literal(const Expr& e) { return as<IntImm>(e) && e->dtype == kInt32; }

}  // namespace

void ExprPrinter::binary(const Binary& b, int parent) {
  Spelling s = spelling(b.op);
  // The reader folds operators on two literals as Python does; the node spelling stands for the operation itself.
  if (!s.infix || (is_bare_literal(b.a) && is_bare_literal(b.b))) {
    fmt::format_to(std::back_inserter(out_), "T.{}(", s.node);
    expr(b.a);
    out_ += ", ";
    expr(b.b);
    out_ += ')';
    return;
  }
  bool parenthesis = s.level < parent;
  if (parenthesis) out_ += '(';
  expr(b.a, s.level == 4 ? 5 : s.level);  // comparisons do not chain
  out_ += s.infix;
  expr(b.b, s.level + 1);
  if (parenthesis) out_ += ')';
}

void ExprPrinter::expr(const Expr& e, int parent) {
  auto to = std::back_inserter(out_);
  switch (e->kind) {
    case ExprKind::kVarNode:
      out_ += name_of(as<VarNode>(e));
      return;
    case ExprKind::kIntImm:
      return constant(*as<IntImm>(e), false);
    case ExprKind::kFloatImm:
      return constant(*as<FloatImm>(e));
    case ExprKind::kStringImm:
      return quoted(as<StringImm>(e)->value);
    case ExprKind::kBinary:
      return binary(*as<Binary>(e), parent);
    case ExprKind::kCall:
      return call(*as<Call>(e));
    case ExprKind::kLoad:
      return load(*as<Load>(e));
    case ExprKind::kCast:
      fmt::format_to(to, "T.Cast(\"{}\", ", e->dtype.str());
      expr(as<Cast>(e)->value);
      break;
    case ExprKind::kNot:
      if (parent > 3) out_ += '(';
      out_ += "not ";
      expr(as<Not>(e)->a, 3);
      if (parent > 3) out_ += ')';
      return;
    case ExprKind::kSelect:
      out_ += "T.Select(";
      list({as<Select>(e)->condition, as<Select>(e)->then_value, as<Select>(e)->else_value});
      break;
    case ExprKind::kRamp:
      out_ += "T.Ramp(";
      list({as<Ramp>(e)->base, as<Ramp>(e)->stride});
      fmt::format_to(to, ", {}", as<Ramp>(e)->lanes);
      break;
    case ExprKind::kBroadcast:
      out_ += "T.Broadcast(";
      expr(as<Broadcast>(e)->value);
      fmt::format_to(to, ", {}", as<Broadcast>(e)->lanes);
      break;
    case ExprKind::kShuffle:
      out_ += "T.Shuffle([";
      list(as<Shuffle>(e)->vectors);
      out_ += "], [";
      list(as<Shuffle>(e)->indices);
      out_ += ']';
      break;
    case ExprKind::kLet: {
      const Let* let = as<Let>(e);
      size_t names = names_.mark();
      const std::string name = names_.define(let->var->id, let->var->name);
      out_ += "T.Let(";
      expr(let->body);
      fmt::format_to(to, ", where={{{}: ", name);
      expr(let->value);
      out_ += '}';
      names_.release(names);
      break;
    }
  }
  out_ += ')';
}

void ExprPrinter::list(const std::vector<Expr>& items) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) out_ += ", ";
    expr(items[i]);
  }
}

void ExprPrinter::tuple(const std::vector<Expr>& items) {
  out_ += '(';
  list(items);
  out_ += items.size() == 1 ? ",)" : ")";
}

void ExprPrinter::indices(const std::vector<Expr>& items) {
  out_ += '[';
  if (items.empty()) out_ += "()";
  list(items);
  out_ += ']';
}

void ExprPrinter::load(const Load& load) {
  size_t begin = out_.size();
  out_ += name_of(load.buffer);
  indices(load.indices);
  place(&load, begin);
}

DType default_result(const Operation& op, const std::vector<Expr>& args) {
  if (op.name == "assume") return kBool;
  if (args.empty()) return kVoid;
  DType first = args[0]->dtype;
  if (op.name == "isnan" || op.name == "isinf" || op.name == "isfinite") return kBool.with_lanes(first.lanes);
  if (op.name == "if_then_else") return args.size() > 1 ? args[1]->dtype : kVoid;
  if (op.group == OpGroup::math || op.group == OpGroup::integer || op.name == "ignore_loop_partition") return first;
  return kVoid;
}

void ExprPrinter::call(const Call& c) {
  const std::string& name = c.op->name;
  auto to = std::back_inserter(out_);
  if (name == "likely" && c.args.size() == 1) return expr(c.args[0], kUnaryLevel + 2);
  fmt::format_to(to, "T.{}(", name);
  if (name == "tvm_access_ptr" && c.args.size() == 5 && as<StringImm>(c.args[0])) {
    fmt::format_to(to, "T.type_annotation(\"{}\"), ", as<StringImm>(c.args[0])->value);
    list({c.args.begin() + 1, c.args.end()});
    out_ += ')';
    return;
  }
  if (c.op->group == OpGroup::extern_call || name == "reinterpret") {
    fmt::format_to(to, "\"{}\"", c.dtype.str());
    if (!c.args.empty()) out_ += ", ";
    list(c.args);
  } else {
    list(c.args);
    bool pointer = c.op->group == OpGroup::pointer && c.dtype.is_handle();
    if (!pointer && c.dtype != default_result(*c.op, c.args))
      fmt::format_to(to, "{}dtype=\"{}\"", c.args.empty() ? "" : ", ", c.dtype.str());
  }
  out_ += ')';
}

void ExprPrinter::end_of(const Range& r) {
  if (is_const(r.min, 0)) return expr(r.extent);
  std::optional<int64_t> a = const_int(r.min), n = const_int(r.extent), end;
  if (a && n) end = fold_int(BinaryOp::add, *a, *n);
  if (end) return expr(int_imm(*end, r.min->dtype));
  // The reader takes `x + n` after `x` apart again.
  expr(make<Binary>(r.min->dtype, BinaryOp::add, r.min, r.extent));
}

void ExprPrinter::region(const BufferRegion& r) {
  out_ += name_of(r.buffer);
  out_ += '[';
  if (r.region.empty()) out_ += "()";
  for (size_t i = 0; i < r.region.size(); ++i) {
    if (i) out_ += ", ";
    expr(r.region[i].min);
    if (is_const(r.region[i].extent, 1)) continue;
    out_ += ':';
    end_of(r.region[i]);
  }
  out_ += ']';
}

// --- attribute values

void ExprPrinter::dict(const AttrDict& d) {
  out_ += '{';
  bool first = true;
  for (const auto& [key, value] : d) {
    if (!std::exchange(first, false)) out_ += ", ";
    quoted(key);
    out_ += ": ";
    attr(value);
  }
  out_ += '}';
}

void ExprPrinter::attr(const Attr& a) {
  auto to = std::back_inserter(out_);
  if (a.is_none()) out_ += "None";
  if (const bool* v = a.get<bool>()) out_ += *v ? "True" : "False";
  if (const int64_t* v = a.get<int64_t>()) fmt::format_to(to, "{}", *v);
  if (const double* v = a.get<double>()) {
    std::string digits = fmt::format("{}", *v);
    if (!std::isfinite(*v))
      fmt::format_to(to, "T.float64(\"{}\")", digits);
    else
      out_ += digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
  }
  if (const std::string* v = a.get<std::string>()) quoted(*v);
  if (const AttrList* v = a.get<AttrList>()) {
    out_ += '[';
    for (size_t i = 0; i < v->size(); ++i) {
      if (i) out_ += ", ";
      attr((*v)[i]);
    }
    out_ += ']';
  }
  if (const AttrDict* v = a.get<AttrDict>()) {
    bool target = v->size() == 1 && v->begin()->first == "T.target";
    if (!target) return dict(*v);
    out_ += "T.target(";
    attr(v->begin()->second);
    out_ += ')';
  }
  if (const Expr* v = a.get<Expr>()) {
    if (const IntImm* c = as<IntImm>(*v))
      constant(*c, true);
    else
      expr(*v);
  }
}

}  // namespace tilewright::text
