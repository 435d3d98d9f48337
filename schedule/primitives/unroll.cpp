// unroll: the loop's body is repeated in the code; the meaning does not change.
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  auto copy = edit(*loop);
  copy->loop_kind = ForKind::unrolled;
  copy->thread.clear();
  c.state.replace(loop, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{"unroll",
                              "unrolls the loop in the code",
                              {.kind = "Unroll", .inputs = {{"loop", ArgType::loop, {}, "the loop"}}, .apply = apply}};

}  // namespace
}  // namespace tilewright
