// get_child_blocks: the blocks directly below a block or loop, in program order.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(Context::BlockOrLoop target, c.block_or_loop("block_or_loop"));
  Place p = target.block ? c.state.place(*target.block) : c.state.place(*target.loop);
  for (Place child : c.state.tree().child_blocks(p)) c.give(c.state.tree().block(child));
  return {};
}

const RegisterPrimitive entry{"get_child_blocks",
                              "the blocks directly below a block or loop, in program order",
                              {.kind = "GetChildBlocks",
                               .inputs = {{"block_or_loop", ArgType::block_or_loop, {}, "where to look"}},
                               .outputs = OutputShape::blocks,
                               .output_kind = SymbolKind::block,
                               .pure = true,
                               .positional = true,
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
