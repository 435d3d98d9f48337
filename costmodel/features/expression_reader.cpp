#include "costmodel/features/expression_reader.h"

#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

bool is_index_type(DType t) { return (t.is_int() || t.is_uint()) && !t.is_vector(); }

/// The reference's question "is it float": IEEE types alone, bfloat16 and float8 count as integers.
bool counts_as_float(DType t) { return t.code == TypeCode::ieee_float; }

OpClass by_type(DType t, OpClass float_class, OpClass int_class) {
  return counts_as_float(t) ? float_class : int_class;
}

bool is_if_then_else(const Call& call) {
  static const Operation* const op = operation("if_then_else");
  return call.op == op;
}

bool has_load(const Expr& e) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    found = found || x->kind == ExprKind::kLoad;
    return !found;
  });
  return found;
}

}  // namespace

// Index expressions
// --------------------------------------------------------------------------------------------------------

IndexForm ExpressionReader::form(const Expr& e, std::vector<AccessRecord>& loads) {
  switch (e->kind) {
    case ExprKind::kIntImm:
      return forms_.constant(static_cast<const IntImm&>(*e).value);
    case ExprKind::kVarNode: {
      uint64_t id = static_cast<const VarNode&>(*e).id;
      auto it = environment_.find(id);
      if (it == environment_.end()) it = environment_.emplace(id, forms_.opaque({}, {})).first;  // a symbolic extent
      return it->second;
    }
    case ExprKind::kCast: {
      const Expr& value = static_cast<const Cast&>(*e).value;
      return is_index_type(value->dtype) ? form(value, loads) : opaque_form(e, loads);
    }
    case ExprKind::kBinary:
      return binary_form(static_cast<const Binary&>(*e), loads);
    case ExprKind::kSelect: {
      const auto& select = static_cast<const Select&>(*e);
      if (auto known = decide(select.condition)) return form(*known ? select.then_value : select.else_value, loads);
      return opaque_form(e, loads);
    }
    case ExprKind::kCall: {
      const auto& call = static_cast<const Call&>(*e);
      if (is_if_then_else(call))
        if (auto known = decide(call.args[0])) return form(call.args[*known ? 1 : 2], loads);
      return opaque_form(e, loads);
    }
    case ExprKind::kRamp:
      return form(static_cast<const Ramp&>(*e).base, loads);
    case ExprKind::kBroadcast:
      return form(static_cast<const Broadcast&>(*e).value, loads);
    case ExprKind::kLet: {
      const auto& let = static_cast<const Let&>(*e);
      if (is_index_type(let.var->dtype)) bind(let.var, form(let.value, loads));
      return form(let.body, loads);
    }
    case ExprKind::kLoad: {
      const auto& load = static_cast<const Load&>(*e);
      AccessRecord record = access(load.buffer, load.indices, loads);
      std::vector<IndexForm> parts = record.index;
      loads.push_back(std::move(record));
      return forms_.opaque(std::move(parts), {});
    }
    case ExprKind::kFloatImm:
    case ExprKind::kStringImm:
    case ExprKind::kNot:
    case ExprKind::kShuffle:
      return opaque_form(e, loads);
  }
  TW_UNREACHABLE("expression kind {}", static_cast<int>(e->kind));
}

IndexForm ExpressionReader::binary_form(const Binary& e, std::vector<AccessRecord>& loads) {
  if (!is_index_type(e.dtype)) return opaque_form(Expr(&e), loads);
  IndexForm a = form(e.a, loads), b = form(e.b, loads);
  bool by_constant = b.is_constant() && b.constant > 0;
  auto not_negative = [&] {
    IndexRange r = forms_.full_range(a);
    return r.known && r.lo >= 0;
  };
  switch (e.op) {
    case BinaryOp::add:
      return forms_.add(a, b);
    case BinaryOp::sub:
      return forms_.add(a, b, -1);
    case BinaryOp::mul:
      if (b.is_constant()) return forms_.scale(a, b.constant);
      if (a.is_constant()) return forms_.scale(b, a.constant);
      break;
    case BinaryOp::floor_div:
      if (by_constant) return forms_.quotient(a, b.constant);
      break;
    case BinaryOp::floor_mod:
      if (by_constant) return forms_.remainder(a, b.constant);
      break;
    case BinaryOp::trunc_div:
      if (by_constant && not_negative()) return forms_.quotient(a, b.constant);
      break;
    case BinaryOp::trunc_mod:
      if (by_constant && not_negative()) return forms_.remainder(a, b.constant);
      break;
    case BinaryOp::min:
      return forms_.minimum(a, b);
    case BinaryOp::max:
      return forms_.maximum(a, b);
    default:
      break;
  }
  OpCounts ops;
  forms_.count(a, ops);
  forms_.count(b, ops);
  ++ops[e.op == BinaryOp::mul ? OpClass::int_mul : OpClass::int_div];
  return forms_.opaque({std::move(a), std::move(b)}, ops);
}

IndexForm ExpressionReader::opaque_form(const Expr& e, std::vector<AccessRecord>& loads) {
  OpCounts ops;
  std::vector<AccessRecord> inside;
  count(e, ops, inside);
  std::vector<IndexForm> parts;
  for (const AccessRecord& record : inside)
    for (const IndexForm& index : record.index) parts.push_back(index);
  for (const Var& var : vars_of(e))
    if (auto it = environment_.find(var->id); it != environment_.end()) parts.push_back(it->second);
  loads.insert(loads.end(), std::make_move_iterator(inside.begin()), std::make_move_iterator(inside.end()));
  return forms_.opaque(std::move(parts), ops);
}

AccessRecord ExpressionReader::access(const Buffer& buffer, const std::vector<Expr>& indices,
                                      std::vector<AccessRecord>& loads) {
  std::vector<IndexForm> index;
  index.reserve(indices.size());
  for (const Expr& e : indices) index.push_back(form(e, loads));
  return buffers_.access(*buffer, std::move(index));
}

// Values
// -------------------------------------------------------------------------------------------------------------------

void ExpressionReader::count(const Expr& e, OpCounts& ops, std::vector<AccessRecord>& loads) {
  // A select without loads is replaced by 1.0 before anything else.
  if (e->kind == ExprKind::kSelect && !has_load(e)) return;
  // Integer arithmetic counts as it is after simplification; what cannot be a form comes back here through opaque_form.
  if (is_index_type(e->dtype) && (e->kind == ExprKind::kBinary || e->kind == ExprKind::kVarNode)) {
    forms_.count(form(e, loads), ops);
    return;
  }
  switch (e->kind) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kStringImm:
      return;
    case ExprKind::kVarNode: {
      const auto& var = static_cast<const VarNode&>(*e);
      if (auto it = environment_.find(var.id); it != environment_.end()) forms_.count(it->second, ops);
      return;
    }
    case ExprKind::kCast:
      return count(static_cast<const Cast&>(*e).value, ops, loads);
    case ExprKind::kBinary:
      return count_binary(static_cast<const Binary&>(*e), ops, loads);
    case ExprKind::kNot:
      ++ops[OpClass::logical];
      return count(static_cast<const Not&>(*e).a, ops, loads);
    case ExprKind::kSelect: {
      const auto& select = static_cast<const Select&>(*e);
      if (auto known = decide(select.condition))
        return count(*known ? select.then_value : select.else_value, ops, loads);
      ++ops[OpClass::select];
      for (const Expr& child : {select.condition, select.then_value, select.else_value}) count(child, ops, loads);
      return;
    }
    case ExprKind::kLoad: {
      const auto& load = static_cast<const Load&>(*e);
      AccessRecord record = access(load.buffer, load.indices, loads);
      loads.push_back(std::move(record));
      return;
    }
    case ExprKind::kCall:
      return count_call(static_cast<const Call&>(*e), ops, loads);
    case ExprKind::kRamp:
    case ExprKind::kBroadcast:
    case ExprKind::kShuffle:
      for_each_child(*e, [&](const Expr& child) { count(child, ops, loads); });
      return;
    case ExprKind::kLet: {
      const auto& let = static_cast<const Let&>(*e);
      if (is_index_type(let.var->dtype))
        bind(let.var, form(let.value, loads));
      else
        count(let.value, ops, loads);
      return count(let.body, ops, loads);
    }
  }
}

void ExpressionReader::count_binary(const Binary& e, OpCounts& ops, std::vector<AccessRecord>& loads) {
  switch (e.op) {
    case BinaryOp::add:
    case BinaryOp::sub:
      ++ops[by_type(e.dtype, OpClass::float_add, OpClass::int_add)];
      break;
    case BinaryOp::mul:
      ++ops[by_type(e.dtype, OpClass::float_mul, OpClass::int_mul)];
      break;
    case BinaryOp::div:
    case BinaryOp::trunc_div:
    case BinaryOp::trunc_mod:
    case BinaryOp::floor_div:
    case BinaryOp::floor_mod:
      ++ops[by_type(e.dtype, OpClass::float_div, OpClass::int_div)];
      break;
    case BinaryOp::min:
    case BinaryOp::max:
      ++ops[by_type(e.dtype, OpClass::float_compare, OpClass::int_compare)];
      break;
    case BinaryOp::eq:
    case BinaryOp::ne:
    case BinaryOp::lt:
    case BinaryOp::le:
    case BinaryOp::gt:
    case BinaryOp::ge:
      if (decide(Expr(&e))) return;
      ++ops[OpClass::int_compare];
      break;
    case BinaryOp::logical_and:
    case BinaryOp::logical_or: {
      // The neutral side vanishes; if the whole is decided, so was the caller.
      bool neutral = e.op == BinaryOp::logical_and;
      if (decide(e.a) == neutral) return count(e.b, ops, loads);
      if (decide(e.b) == neutral) return count(e.a, ops, loads);
      ++ops[OpClass::logical];
      break;
    }
  }
  count(e.a, ops, loads);
  count(e.b, ops, loads);
}

void ExpressionReader::count_call(const Call& call, OpCounts& ops, std::vector<AccessRecord>& loads) {
  if (is_if_then_else(call))
    if (auto known = decide(call.args[0])) return count(call.args[*known ? 1 : 2], ops, loads);
  bool pure = call.op->effect == OpEffect::pure;
  ++ops[pure ? by_type(call.dtype, OpClass::float_pure_call, OpClass::int_pure_call)
             : by_type(call.dtype, OpClass::float_other_call, OpClass::int_other_call)];
  for (const Expr& arg : call.args) count(arg, ops, loads);
}

std::optional<bool> ExpressionReader::decide(const Expr& condition) {
  if (!condition) return true;
  if (const auto* constant = as<IntImm>(condition)) return constant->value != 0;
  if (const auto* negation = as<Not>(condition)) {
    auto inner = decide(negation->a);
    return inner ? std::optional(!*inner) : std::nullopt;
  }
  const auto* e = as<Binary>(condition);
  if (!e) return std::nullopt;
  if (e->op == BinaryOp::logical_and || e->op == BinaryOp::logical_or) {
    auto a = decide(e->a), b = decide(e->b);
    bool absorbing = e->op == BinaryOp::logical_or;
    if (a == absorbing || b == absorbing) return absorbing;
    return a && b ? std::optional(!absorbing) : std::nullopt;
  }
  if (!is_comparison(e->op) || !is_index_type(e->a->dtype) || has_load(condition)) return std::nullopt;
  std::vector<AccessRecord> none;
  IndexRange d = forms_.full_range(forms_.add(form(e->a, none), form(e->b, none), -1));
  if (!d.known) return std::nullopt;
  auto when = [](bool yes, bool no) { return yes ? std::optional(true) : no ? std::optional(false) : std::nullopt; };
  switch (e->op) {
    case BinaryOp::lt:
      return when(d.hi < 0, d.lo >= 0);
    case BinaryOp::le:
      return when(d.hi <= 0, d.lo > 0);
    case BinaryOp::gt:
      return when(d.lo > 0, d.hi <= 0);
    case BinaryOp::ge:
      return when(d.lo >= 0, d.hi < 0);
    case BinaryOp::eq:
      return when(d.lo == 0 && d.hi == 0, d.lo > 0 || d.hi < 0);
    case BinaryOp::ne:
      return when(d.lo > 0 || d.hi < 0, d.lo == 0 && d.hi == 0);
    default:
      return std::nullopt;
  }
}

bool ExpressionReader::is_constant(const Expr& e) {
  switch (e->kind) {
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
      return true;
    case ExprKind::kCast:
      return is_constant(static_cast<const Cast&>(*e).value);
    case ExprKind::kBroadcast:
      return is_constant(static_cast<const Broadcast&>(*e).value);
    case ExprKind::kSelect:
      return !has_load(e);
    default:
      break;
  }
  if (!is_index_type(e->dtype) || has_load(e)) return false;
  std::vector<AccessRecord> none;
  return form(e, none).is_constant();
}

}  // namespace tilewright
