// bind: the iterations of the loop become threads, blocks or clusters of a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/text_codes.h"
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(thread_axis_unknown, "thread-axis-unknown", "no such thread axis");

/// All loops of a kernel on one axis have one extent: the kernel is launched once. Virtual threads are no launch.
Status check_launch(const Context& c, const For* loop, const std::string& axis) {
  if (axis.starts_with("vthread")) return {};
  auto launches = [](const For* l) {
    return l->loop_kind == ForKind::thread_binding && !l->thread.starts_with("vthread");
  };
  const For* kernel = loop;
  for (Place p : c.state.tree().loops_above(c.state.place(*loop)))
    if (const For* l = c.state.tree().loop(p); launches(l)) {
      kernel = l;
      break;
    }
  std::map<std::string, const For*> seen;
  const For *a = nullptr, *b = nullptr;
  walk_stmts(Stmt(kernel), [&](const Stmt& s) {
    const For* l = as<For>(s);
    if (!l || (l != loop && !launches(l))) return !b;
    const For* first = seen.emplace(l == loop ? axis : l->thread, l).first->second;
    std::optional<int64_t> x = const_int(first->extent), y = const_int(l->extent);
    if (x && y && *x != *y) a = first, b = l;
    return !b;
  });
  if (!b) return {};
  return c.refuse(text_code::launch_extents_disagree,
                  fmt::format("loops {} and {} of one kernel would be {} with extents {} and {}", a->var->name,
                              b->var->name, b == loop ? axis : b->thread, *const_int(a->extent), *const_int(b->extent)),
                  b);
}

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
  TW_TRY_VOID(check_launch(c, loop, axis));
  return set_parallel_kind(c, loop, ForKind::thread_binding, axis);
}

const RegisterPrimitive entry{
    "bind",
    "binds the loop to a thread axis",
    {.kind = "Bind",
     .inputs = {{"loop", ArgType::loop, {}, "the loop"}},
     .attrs = {{"thread_axis", ArgType::text, {}, "\"blockIdx.x\", \"threadIdx.y\", \"vthread\", …"}},
     .refusals = {thread_axis_unknown, text_code::launch_extents_disagree, labels::compact, labels::parallel},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
