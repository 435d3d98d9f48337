// get_output_blocks: the child blocks that write a buffer which the scope does not allocate.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* scope, c.block("scope_block"));
  BlockScope analysed(c.state.tree(), c.state.place(*scope));
  for (Place p : analysed.output_blocks()) c.give(c.state.tree().block(p));
  return {};
}

const RegisterPrimitive entry{"get_output_blocks",
                              "the child blocks that write a buffer which the scope does not allocate",
                              {.kind = "GetOutputBlocks",
                               .inputs = {{"scope_block", ArgType::block, {}, "where to look"}},
                               .outputs = OutputShape::blocks,
                               .output_kind = SymbolKind::block,
                               .pure = true,
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
