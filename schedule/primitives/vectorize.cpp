// vectorize: the iterations of the loop may run in any order, as lanes of vectors.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  return set_parallel_kind(c, loop, ForKind::vectorized, "");
}

const RegisterPrimitive entry{"vectorize",
                              "runs the iterations of the loop as vector lanes",
                              {.kind = "Vectorize",
                               .inputs = {{"loop", ArgType::loop, {}, "the loop"}},
                               .refusals = {labels::compact, labels::parallel},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
