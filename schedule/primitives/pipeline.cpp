// pipeline: the copies of a loop run ahead of the rest, in `depth` versions of their buffers.
//   for k: A_shared = A; B_shared = B; C += …   →   stages [0, 0, depth - 1], order [0, 1, 2], asynchronous stages [0]
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/pipeline_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(pipeline_body_too_small, "pipeline-body-too-small",
                "the loop's body has nothing to run beside its copies");
TW_REFUSAL_CODE(pipeline_dependence_carried, "pipeline-dependence-carried",
                "a copy needs what the rest of the body does in an earlier iteration");
TW_REFUSAL_CODE(pipeline_depth_too_small, "pipeline-depth-too-small", "a pipeline has at least two versions");

bool touches(const std::vector<BufferRegion>& regions, const Buffer& b) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const BufferRegion& r) { return r.buffer->data.same_as(b->data); });
}

/// Copies run ahead: what they read must not be written by the rest, nor what they write.
Status check_carried(const Context& c, const std::vector<PipelineStatement>& statements) {
  for (const PipelineStatement& copy : statements)
    for (const PipelineStatement& other : statements) {
      if (!copy.copy || other.copy) continue;
      for (const Block* x : copy.blocks)
        for (const Block* y : other.blocks)
          if (touches(y->writes, x->reads[0].buffer) || touches(y->writes, x->writes[0].buffer))
            return c.refuse(pipeline_dependence_carried,
                            fmt::format("block \"{}\" writes what copy \"{}\" reads or writes", y->name, x->name), y);
    }
  return {};
}

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  const int64_t depth = c.integer("depth");
  if (loop->loop_kind != ForKind::serial)
    return c.refuse(codes::loop_not_serial, fmt::format("loop {} is not serial", loop->var->name), loop);
  const std::vector<PipelineStatement> statements = pipeline_statements(c.state, loop);
  const auto copies = std::count_if(statements.begin(), statements.end(), [](const auto& s) { return s.copy; });
  if (statements.size() < 2)
    return c.refuse(pipeline_body_too_small,
                    fmt::format("the body of loop {} has {} statement", loop->var->name, statements.size()), loop);
  if (copies == 0)
    return c.refuse(loop_has_no_copy_block, fmt::format("no block of loop {} copies to shared memory", loop->var->name),
                    loop);
  if (copies == static_cast<std::ptrdiff_t>(statements.size()))
    return c.refuse(pipeline_body_too_small, fmt::format("loop {} does nothing but copy", loop->var->name), loop);
  TW_TRY_VOID(check_carried(c, statements));
  if (depth < 2)
    return c.refuse(pipeline_depth_too_small, fmt::format("expected a depth of at least 2, found {}", depth), loop);
  AttrDict added;
  AttrList stages, order;
  int64_t next_copy = 0, next = copies;
  for (const PipelineStatement& s : statements) {
    stages.push_back(Attr(s.copy ? int64_t{0} : depth - 1));
    order.push_back(Attr(s.copy ? next_copy++ : next++));
  }
  added["software_pipeline_stage"] = stages;
  added["software_pipeline_order"] = order;
  if (c.boolean("asynchronous")) added["software_pipeline_async_stages"] = AttrList{Attr(int64_t{0})};
  for (const char* key : {"software_pipeline_stage", "software_pipeline_order", "software_pipeline_async_stages"})
    if (loop->annotations.count(key))
      return c.refuse(codes::annotation_exists, fmt::format("loop {} already has \"{}\"", loop->var->name, key), loop);
  auto copy = edit(*loop);
  copy->annotations.insert(added.begin(), added.end());
  c.state.replace(loop, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{
    "pipeline",
    "copies to shared memory run ahead of the rest of the loop, in several versions of their buffers",
    {.kind = "Pipeline",
     .inputs = {{"loop", ArgType::loop, {}, "a serial loop whose body has copies and other statements"},
                {"depth", ArgType::integer, {}, "versions of each staged buffer"}},
     .attrs = {{"asynchronous", ArgType::boolean, true, "the copies are asynchronous"}},
     .refusals = {codes::loop_not_serial, pipeline_body_too_small, loop_has_no_copy_block, pipeline_dependence_carried,
                  pipeline_depth_too_small, codes::annotation_exists},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
