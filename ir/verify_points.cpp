#include "ir/verify_points.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

// Steps of the search for a point that satisfies the conditions near a corner: more only finds rarer mistakes.
constexpr int64_t kScanLimit = 512;

std::optional<int64_t> binary_at(const Binary& b, const VarValues& p) {
  std::optional<int64_t> x = value_at(b.a, p);
  // A side that decides alone is enough: the other may depend on memory.
  if (b.op == BinaryOp::logical_and && x == 0) return 0;
  if (b.op == BinaryOp::logical_or && x && *x) return 1;
  std::optional<int64_t> y = value_at(b.b, p);
  if (b.op == BinaryOp::logical_and && y == 0) return 0;
  if (b.op == BinaryOp::logical_or && y && *y) return 1;
  if (!x || !y) return std::nullopt;
  return fold_int(b.op, *x, *y);
}

/// Chooses the first or last value of each loop; nothing when a bound is not known or a loop does not run.
/// `lasts`: the number of the last iteration of each loop.
std::optional<VarValues> corner(const Surroundings& around, const std::vector<int64_t>& steps_from_start,
                                std::vector<int64_t>* lasts = nullptr) {
  VarValues p;
  for (size_t i = 0; i < around.variables.size(); ++i) {
    const Surroundings::Variable& v = around.variables[i];
    if (v.binding) {
      if (std::optional<int64_t> x = value_at(v.binding, p)) p[v.var] = *x;
      continue;
    }
    std::optional<int64_t> min = value_at(v.min, p), extent = value_at(v.extent, p),
                           step = v.step ? value_at(v.step, p) : std::optional<int64_t>(1);
    if (!min || !extent || !step || *step < 1) return std::nullopt;
    if (*extent < 1) return std::nullopt;
    int64_t last = (*extent - 1) / *step;
    if (lasts) (*lasts)[i] = last;
    int64_t at = steps_from_start[i] < 0 ? std::max<int64_t>(last + 1 + steps_from_start[i], 0)
                                         : std::min(steps_from_start[i], last);
    p[v.var] = *min + at * *step;
  }
  return p;
}

/// Whether all conditions hold at the point; nothing when that depends on memory or unknown variables.
std::optional<bool> conditions_hold(const Surroundings& around, const VarValues& p) {
  bool all = true;
  for (const Expr& c : around.conditions) {
    std::optional<int64_t> v = value_at(c, p);
    if (!v) return std::nullopt;
    all = all && *v != 0;
  }
  return all;
}

}  // namespace

std::optional<int64_t> value_at(const Expr& e, const VarValues& p) {
  if (const IntImm* c = as<IntImm>(e)) return c->value;
  if (const VarNode* v = as<VarNode>(e)) {
    auto it = p.find(v);
    return it == p.end() ? std::nullopt : std::optional(it->second);
  }
  if (const Binary* b = as<Binary>(e)) return b->a->dtype.is_integer_like() ? binary_at(*b, p) : std::nullopt;
  if (const Not* n = as<Not>(e)) {
    std::optional<int64_t> x = value_at(n->a, p);
    return x ? std::optional<int64_t>(*x == 0) : std::nullopt;
  }
  if (const Cast* c = as<Cast>(e))
    return c->dtype.is_int() && c->dtype.bits >= 32 && c->value->dtype.is_integer_like() ? value_at(c->value, p)
                                                                                         : std::nullopt;
  const Select* s = as<Select>(e);
  const Call* call = as<Call>(e);
  if (s || (call && call->op->name == "if_then_else")) {
    std::optional<int64_t> c = value_at(s ? s->condition : call->args[0], p);
    if (!c) return std::nullopt;
    return value_at(*c ? (s ? s->then_value : call->args[1]) : (s ? s->else_value : call->args[2]), p);
  }
  return std::nullopt;
}

std::optional<VarValues> first_point(const Surroundings& around) {
  std::optional<VarValues> p = corner(around, std::vector<int64_t>(around.variables.size(), 0));
  if (!p || !conditions_hold(around, *p).value_or(false)) return std::nullopt;
  return p;
}

std::optional<VarValues> extreme_point(const Surroundings& around, const Expr& index, bool largest) {
  std::vector<int64_t> steps(around.variables.size(), 0);
  std::optional<VarValues> best = corner(around, steps);
  std::optional<int64_t> value = best ? value_at(index, *best) : std::nullopt;
  if (!value) return std::nullopt;
  auto better = [&](int64_t a, int64_t b) { return largest ? a > b : a < b; };
  // One loop after the other goes to its last value when that improves the index.
  for (size_t i = 0; i < steps.size(); ++i) {
    if (around.variables[i].binding) continue;
    steps[i] = -1;
    std::optional<VarValues> p = corner(around, steps);
    std::optional<int64_t> v = p ? value_at(index, *p) : std::nullopt;
    if (v && better(*v, *value)) {
      best = p;
      value = v;
    } else {
      steps[i] = 0;
    }
  }
  std::optional<bool> holds = conditions_hold(around, *best);
  if (!holds) return std::nullopt;
  if (*holds) return best;
  // The corner is excluded: walk single loops away from it until the conditions hold, and keep the best such point.
  std::vector<int64_t> lasts(steps.size(), 0);
  corner(around, steps, &lasts);
  std::optional<VarValues> found;
  for (size_t i = 0; i < steps.size(); ++i) {
    std::vector<int64_t> moved = steps;
    for (int64_t k = 1; k <= std::min(lasts[i], kScanLimit); ++k) {
      moved[i] = steps[i] < 0 ? -1 - k : k;
      std::optional<VarValues> p = corner(around, moved);
      if (!p || !conditions_hold(around, *p).value_or(false)) continue;
      std::optional<int64_t> v = value_at(index, *p), old = found ? value_at(index, *found) : std::nullopt;
      if (v && (!old || better(*v, *old))) found = p;
      break;
    }
  }
  return found;
}

std::string describe(const Surroundings& around, const Expr& e, const VarValues& p) {
  // Iters stand for the loops in their bindings.
  std::unordered_map<const VarNode*, bool> used;
  for (const Var& v : vars_of(e)) used[v.get()] = true;
  for (size_t i = around.variables.size(); i-- > 0;) {
    const Surroundings::Variable& v = around.variables[i];
    if (v.binding && used.contains(v.var))
      for (const Var& inner : vars_of(v.binding)) used[inner.get()] = true;
  }
  std::string out;
  for (const Surroundings::Variable& v : around.variables)
    if (!v.binding && used.contains(v.var) && p.contains(v.var))
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", v.var->name, p.at(v.var));
  return out;
}

}  // namespace tilewright
