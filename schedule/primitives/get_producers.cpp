// get_producers: the blocks that write what the block reads or writes, in program order.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY_VOID(check_inner(c, block));
  Place p = c.state.place(*block);
  for (Place other : c.state.scope_of(p).producers(p)) c.give(c.state.tree().block(other));
  return {};
}

const RegisterPrimitive entry{"get_producers",
                              "the blocks that write what the block reads or writes, in program order",
                              {.kind = "GetProducers",
                               .inputs = {{"block", ArgType::block, {}, "where to look"}},
                               .outputs = OutputShape::blocks,
                               .output_kind = SymbolKind::block,
                               .pure = true,
                               .refusals = {labels::inner},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
