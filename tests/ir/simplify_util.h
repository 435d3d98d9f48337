// Evaluation and random generation of integer expressions for the tests of simplifier and analyses.
#pragma once

#include <unordered_map>

#include "ir/build.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "support/rng.h"

namespace tilewright::test {

using Env = std::unordered_map<const VarNode*, int64_t>;

/// Value over the mathematical integers; bool as 0 and 1.
inline int64_t eval(const Expr& e, const Env& env) {
  if (const IntImm* c = as<IntImm>(e)) return c->value;
  if (const VarNode* v = as<VarNode>(e)) return env.at(v);
  if (const Not* n = as<Not>(e)) return !eval(n->a, env);
  if (const Cast* c = as<Cast>(e)) return eval(c->value, env);
  if (const Select* s = as<Select>(e))
    return eval(s->condition, env) ? eval(s->then_value, env) : eval(s->else_value, env);
  if (const Call* c = as<Call>(e)) {
    TW_CHECK(c->op->name == "if_then_else", "no value for {}", c->op->name);
    return eval(c->args[0], env) ? eval(c->args[1], env) : eval(c->args[2], env);
  }
  const Binary* b = as<Binary>(e);
  TW_CHECK(b, "no value for this kind of expression");
  std::optional<int64_t> v = fold_int(b->op, eval(b->a, env), eval(b->b, env));
  TW_CHECK(v, "undefined value");
  return *v;
}

/// Plain text, for messages.
inline std::string text(const Expr& e) {
  if (!e) return "null";
  if (const IntImm* c = as<IntImm>(e))
    return e->dtype.is_bool() ? (c->value ? "true" : "false") : std::to_string(c->value);
  if (const VarNode* v = as<VarNode>(e)) return v->name;
  if (const Not* n = as<Not>(e)) return "not " + text(n->a);
  if (const Cast* c = as<Cast>(e)) return e->dtype.str() + "(" + text(c->value) + ")";
  if (const Select* s = as<Select>(e))
    return "select(" + text(s->condition) + ", " + text(s->then_value) + ", " + text(s->else_value) + ")";
  if (const Ramp* r = as<Ramp>(e))
    return "ramp(" + text(r->base) + ", " + text(r->stride) + ", " + std::to_string(r->lanes) + ")";
  if (const Broadcast* r = as<Broadcast>(e))
    return "broadcast(" + text(r->value) + ", " + std::to_string(r->lanes) + ")";
  if (const Call* c = as<Call>(e)) {
    std::string out = c->op->name + "(";
    for (const Expr& a : c->args) out += text(a) + ", ";
    return out + ")";
  }
  if (const Load* l = as<Load>(e)) {
    std::string out = l->buffer->name + "[";
    for (const Expr& a : l->indices) out += text(a) + ", ";
    return out + "]";
  }
  const Binary* b = as<Binary>(e);
  if (!b) return "?";
  static const char* kNames[] = {"+",   "-",  "*",  "/", "tdiv", "tmod", "//", "%",   "min",
                                 "max", "==", "!=", "<", "<=",   ">",    ">=", "and", "or"};
  std::string op = kNames[static_cast<int>(b->op)];
  if (op == "min" || op == "max") return op + "(" + text(b->a) + ", " + text(b->b) + ")";
  return "(" + text(b->a) + " " + op + " " + text(b->b) + ")";
}

/// Random integer and boolean expressions over given variables, biased to what schedules make.
class RandomExpr {
 public:
  RandomExpr(Rng& rng, std::vector<VarRange> vars) : rng_(rng), vars_(std::move(vars)) {}

  Expr integer(int depth) {
    if (depth == 0 || rng_.chance(0.15)) return leaf();
    static constexpr int64_t kConstants[] = {1, 2, 3, 4, 6, 8, 12, 16, 5, 7};
    int64_t c = kConstants[rng_.below(10)];
    switch (rng_.below(12)) {
      case 0:
      case 1:
      case 2:
        return integer(depth - 1) + integer(depth - 1);
      case 3:
        return integer(depth - 1) - integer(depth - 1);
      case 4:
      case 5:
        return integer(depth - 1) * (rng_.chance(0.15) ? -c : c);
      case 6:
      case 7:
        return floor_div(integer(depth - 1), rng_.chance(0.05) ? -c : c);
      case 8:
      case 9:
        return floor_mod(integer(depth - 1), rng_.chance(0.05) ? -c : c);
      case 10:
        return binary(rng_.chance(0.5) ? BinaryOp::min : BinaryOp::max, integer(depth - 1), integer(depth - 1));
      default:
        if (rng_.chance(0.3))
          return binary(rng_.chance(0.5) ? BinaryOp::trunc_div : BinaryOp::trunc_mod, integer(depth - 1), int_imm(c));
        if (rng_.chance(0.3)) return leaf() * leaf();
        return select(boolean(depth - 1), integer(depth - 1), integer(depth - 1));
    }
  }
  Expr boolean(int depth) {
    if (depth > 0 && rng_.chance(0.25)) {
      if (rng_.chance(0.2)) return not_of(boolean(depth - 1));
      return binary(rng_.chance(0.5) ? BinaryOp::logical_and : BinaryOp::logical_or, boolean(depth - 1),
                    boolean(depth - 1));
    }
    auto op = static_cast<BinaryOp>(static_cast<int>(BinaryOp::eq) + static_cast<int>(rng_.below(6)));
    return binary(op, integer(depth), rng_.chance(0.6) ? int_imm(rng_.between(-4, 40)) : integer(depth));
  }
  Env assignment() {
    Env env;
    for (const VarRange& v : vars_) {
      int64_t min = *const_int(v.range.min), extent = *const_int(v.range.extent);
      env[v.var.get()] = rng_.between(min, min + extent - 1);
    }
    return env;
  }

 private:
  Expr leaf() {
    if (rng_.chance(0.2)) return int_imm(rng_.between(-3, 20));
    return vars_[rng_.below(vars_.size())].var;
  }
  Rng& rng_;
  std::vector<VarRange> vars_;
};

inline VarRange loop(const char* name, int64_t extent, int64_t min = 0) {
  return {make_var(name), {int_imm(min), int_imm(extent)}};
}

}  // namespace tilewright::test
