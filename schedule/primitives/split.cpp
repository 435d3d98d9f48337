// split: one loop becomes a nest of len(factors) loops over the same values.
//   for i in 64  →  for i_0, i_1 in T.grid(16, 4), with i = i_0 * 4 + i_1
// A product above the extent adds the predicate `i < extent` to the blocks below.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(no_factors, "no-factors", "split was given no factors");
TW_REFUSAL_CODE(factors_do_not_cover_extent, "factors-do-not-cover-extent",
                "the product of the factors is below the extent of the loop");

/// Extents of the new loops; a None is the extent divided by the others, rounded up.
Result<std::vector<Expr>> resolve_factors(const Context& c, const For* loop) {
  std::vector<std::optional<int64_t>> factors = c.factors("factors");
  if (factors.empty()) return c.refuse(no_factors, "expected at least one factor", loop);
  int64_t product = 1;
  int inferred = -1;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) {
      if (inferred >= 0)
        return c.refuse(codes::several_factors_inferred, "expected at most one None among the factors", loop);
      inferred = static_cast<int>(i);
    } else if (*factors[i] < 1) {
      return c.refuse(codes::factor_not_positive, fmt::format("expected positive factors, found {}", *factors[i]),
                      loop);
    } else if (__builtin_mul_overflow(product, *factors[i], &product)) {
      return c.refuse(codes::factor_not_positive, "the product of the factors passes 2^63", loop);
    }
  }
  DType dtype = loop->var->dtype;
  std::vector<Expr> out;
  for (const auto& f : factors) out.push_back(f ? int_imm(*f, dtype) : Expr());
  if (inferred >= 0) {
    Analyzer facts;
    bind_loops_above(facts, c.state, c.state.place(*loop));
    out[inferred] = facts.simplify(floor_div(loop->extent + (product - 1), product));
    return out;
  }
  std::optional<int64_t> extent = const_int(loop->extent);
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*loop));
  bool covers = facts.can_prove_less_equal(loop->extent, int_imm(product, dtype));
  if (!covers)
    return c.refuse(factors_do_not_cover_extent,
                    fmt::format("the factors cover {} iterations, the loop has {}", product,
                                extent ? fmt::format("{}", *extent) : "a symbolic extent"),
                    loop);
  return out;
}

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  TW_TRY_VOID(check_plain(c, loop));
  TW_TRY_VOID(check_zero(c, loop));
  TW_TRY(std::vector<Expr> extents, resolve_factors(c, loop));
  const bool preserve = c.boolean("preserve_unit_iters");

  std::vector<Var> vars;
  Expr value = int_imm(0, loop->var->dtype);
  Analyzer facts, binding_facts;  // the second keeps the variables of unit loops when they are to be preserved
  bind_loops_above(facts, c.state, c.state.place(*loop));
  bind_loops_above(binding_facts, c.state, c.state.place(*loop), preserve);
  for (size_t i = 0; i < extents.size(); ++i) {
    vars.push_back(make_var(fmt::format("{}_{}", loop->var->name, i), loop->var->dtype));
    value = value * extents[i] + vars[i];
    Range range{int_imm(0, loop->var->dtype), extents[i]};
    facts.bind(vars[i], range);
    if (!preserve || !is_const(extents[i], 1)) binding_facts.bind(vars[i], range);
  }
  Expr guard = less(value, loop->extent);
  if (facts.can_prove(guard) || c.boolean("disable_predication")) guard = nullptr;
  Stmt body = rebind_blocks(loop->body, {{loop->var.get(), value}}, binding_facts, guard, preserve);
  std::vector<LoopId> ids(extents.size());
  for (size_t i = extents.size(); i-- > 0;) {
    auto node = edit(*loop);
    node->loop_kind = ForKind::serial;
    node->var = vars[i];
    node->extent = extents[i];
    node->body = std::move(body);
    node->id = ids[i] = fresh_loop_id();
    body = finish(std::move(node));
  }
  c.state.replace(loop, body);
  for (LoopId id : ids) c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "split",
    "splits a loop into a nest; one factor may be None (inferred, rounded up); a product above the extent adds a "
    "predicate",
    {.kind = "Split",
     .inputs = {{"loop", ArgType::loop, {}, "the loop"},
                {"factors", ArgType::factors, {}, "extents of the new loops, outermost first"}},
     .attrs = {{"preserve_unit_iters", ArgType::boolean, true, "keep variables of unit loops in the bindings"},
               {"disable_predication", ArgType::boolean, false, "the caller promises that no predicate is needed"}},
     .outputs = OutputShape::loops,
     .output_kind = SymbolKind::loop,
     .refusals = {labels::plain, labels::zero, no_factors, codes::several_factors_inferred, codes::factor_not_positive,
                  factors_do_not_cover_extent},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
