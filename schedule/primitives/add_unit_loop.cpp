// add_unit_loop: a loop of extent 1 above a block or loop.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(Context::BlockOrLoop target, c.block_or_loop("block_or_loop"));
  if (target.block) TW_TRY_VOID(check_inner(c, target.block));
  LoopId id = fresh_loop_id();
  c.state.replace(target.stmt(), serial_loop(make_var("u"), int_imm(1), Stmt(target.stmt()), id));
  c.give(id);
  return {};
}

const RegisterPrimitive entry{"add_unit_loop",
                              "adds a loop of extent 1 above a block or loop",
                              {.kind = "AddUnitLoop",
                               .inputs = {{"block_or_loop", ArgType::block_or_loop, {}, "what the loop goes around"}},
                               .outputs = OutputShape::one_loop,
                               .output_kind = SymbolKind::loop,
                               .refusals = {labels::inner},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
