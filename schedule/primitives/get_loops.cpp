// get_loops: the loops above a block up to its enclosing block, outermost first.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  for (const For* loop : c.state.tree().loop_nodes_above(c.state.place(*block))) c.give(loop->id);
  return {};
}

const RegisterPrimitive entry{"get_loops",
                              "the loops above a block up to its enclosing block, outermost first",
                              {.kind = "GetLoops",
                               .inputs = {{"block", ArgType::block, {}, "where to look"}},
                               .outputs = OutputShape::loops,
                               .output_kind = SymbolKind::loop,
                               .pure = true,
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
