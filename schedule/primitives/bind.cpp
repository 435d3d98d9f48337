// bind: the iterations of the loop become threads, blocks or clusters of a GPU.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(thread_axis_unknown, "thread-axis-unknown", "no such thread axis");

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  static const std::vector<std::string> axes{
      "blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x",  "threadIdx.y",  "threadIdx.z", "vthread",
      "vthread.x",  "vthread.y",  "vthread.z",  "clusterIdx.x", "clusterIdx.y", "clusterIdx.z"};
  const std::string& axis = c.text("thread_axis");
  if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
    auto refusal = c.refuse(thread_axis_unknown,
                            fmt::format("expected a thread axis such as \"threadIdx.x\", found \"{}\"", axis), loop);
    std::string hint = did_you_mean(axis, axes);
    return hint.empty() ? refusal : refuse(refusal.value().with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  return set_parallel_kind(c, loop, ForKind::thread_binding, axis);
}

const RegisterPrimitive entry{
    "bind",
    "binds the loop to a thread axis",
    {.kind = "Bind",
     .inputs = {{"loop", ArgType::loop, {}, "the loop"}},
     .attrs = {{"thread_axis", ArgType::text, {}, "\"blockIdx.x\", \"threadIdx.y\", \"vthread\", …"}},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
