// reorder_block_iter_var: permutes the iters of a block together with their bindings.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(order_not_a_permutation, "order-not-a-permutation", "new_order does not name every iter exactly once");

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  std::vector<int64_t> order = c.integers("new_order"), sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = sorted.size() == block->iters.size();
  for (size_t i = 0; permutation && i < sorted.size(); ++i) permutation = sorted[i] == static_cast<int64_t>(i);
  if (!permutation)
    return c.refuse(order_not_a_permutation,
                    fmt::format("expected each of 0 … {} once", static_cast<int>(block->iters.size()) - 1), block);
  auto copy = edit(*block);
  for (size_t i = 0; i < order.size(); ++i) copy->iters[i] = block->iters[order[i]];
  c.state.replace(block, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{
    "reorder_block_iter_var",
    "permutes the iters of a block with their bindings",
    {.kind = "ReorderBlockIterVar",
     .inputs = {{"block", ArgType::block, {}, "the block"},
                {"new_order", ArgType::int_list, {}, "new_order[i] is the old place of new iter i"}},
     .refusals = {order_not_a_permutation},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
