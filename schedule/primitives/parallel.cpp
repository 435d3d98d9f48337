// parallel: the iterations of the loop may run in any order, by several threads.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  return set_parallel_kind(c, loop, ForKind::parallel, "");
}

const RegisterPrimitive entry{"parallel",
                              "runs the iterations of the loop in parallel",
                              {.kind = "Parallel",
                               .inputs = {{"loop", ArgType::loop, {}, "the loop"}},
                               .refusals = {labels::compact, labels::parallel},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
