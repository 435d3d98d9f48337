// acme_cyclic_split: deals the iterations of a loop out in turn, as cards to players.
//   for i in 64  →  for i_0, i_1 in T.grid(4, 16), with i = i_1 * 4 + i_0
// split followed by reorder gives the same nest; as one instruction it is one line of a trace.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

using namespace tilewright;

namespace {

TW_REFUSAL_CODE(acme_factor_does_not_divide, "acme-factor-does-not-divide",
                "acme_cyclic_split was given a factor that does not divide the extent of the loop");

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  TW_TRY_VOID(check_plain(c, loop));
  TW_TRY_VOID(check_zero(c, loop));
  TW_TRY_VOID(check_parallel_legal(c, loop, ""));  // the iterations run in another order
  const int64_t factor = c.integer("factor");
  const std::optional<int64_t> extent = const_int(loop->extent);
  if (!extent || factor < 1 || *extent % factor != 0)
    return c.refuse(acme_factor_does_not_divide,
                    fmt::format("expected a divisor of the loop's extent {}, found {}",
                                extent ? fmt::format("{}", *extent) : "(symbolic)", factor),
                    loop);
  const DType dtype = loop->var->dtype;
  Var hand = make_var(loop->var->name + "_0", dtype), turn = make_var(loop->var->name + "_1", dtype);
  Expr hands = int_imm(factor, dtype), turns = int_imm(*extent / factor, dtype), zero = int_imm(0, dtype);
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*loop));
  facts.bind(hand, {zero, hands});
  facts.bind(turn, {zero, turns});
  Stmt body = rebind_blocks(loop->body, {{loop->var.get(), turn * hands + hand}}, facts, nullptr, false);
  const LoopId inner = fresh_loop_id(), outer = fresh_loop_id();
  c.state.replace(loop, serial_loop(hand, hands, serial_loop(turn, turns, body, inner), outer));
  c.give(outer);
  c.give(inner);
  return {};
}

const RegisterPrimitive entry{"acme_cyclic_split",
                              "splits a loop so that neighbouring iterations go to different outer iterations",
                              {.kind = "AcmeCyclicSplit",
                               .inputs = {{"loop", ArgType::loop, {}, "a loop whose iterations are independent"},
                                          {"factor", ArgType::integer, {}, "extent of the outer loop; divides"}},
                               .outputs = OutputShape::loops,
                               .output_kind = SymbolKind::loop,
                               .apply = apply}};

}  // namespace
