// sample_pipeline_depth: how many versions of its staged buffers a loop keeps. The decision is the distance from the
// deepest pipeline that fits, so that it survives a change of tile sizes.
//   d in 0…back;  depth = max(min_depth, deepest - d)
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/pipeline_blocks.h"
#include "schedule/primitives/sampling_codes.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(pipeline_does_not_fit, "pipeline-does-not-fit",
                "the least depth needs more shared memory than the limit");

constexpr int64_t kReserved = 1024;  ///< for what lowering adds: descriptors, semaphores, alignment of the base

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  const int64_t limit = c.integer("shared_limit"), least = c.integer("min_depth"), back = c.integer("back");
  if (!const_int(loop->extent))
    return c.refuse(codes::extent_not_constant, fmt::format("the extent of loop {} is not a constant", loop->var->name),
                    loop);
  if (back < 0 || least < 1)
    return c.refuse(decision_out_of_range,
                    fmt::format("expected min_depth >= 1 and back >= 0, found {} and {}", least, back), loop);
  bool copies = false;
  for (const PipelineStatement& s : pipeline_statements(c.state, loop)) copies = copies || s.copy;
  if (!copies)
    return c.refuse(loop_has_no_copy_block, fmt::format("no block of loop {} copies to shared memory", loop->var->name),
                    loop);
  std::optional<SharedBytes> bytes = shared_bytes(c.state, loop);
  if (!bytes)
    return c.refuse(codes::extent_not_constant, "the size of a buffer in shared memory is not a constant", loop);
  const int64_t deepest = (limit - bytes->others - kReserved) / bytes->stage;
  if (deepest < least)
    return c.refuse(pipeline_does_not_fit,
                    fmt::format("expected room for {} stages of {} bytes beside {}, found {} bytes", least,
                                bytes->stage, bytes->others + kReserved, limit),
                    loop);
  int64_t distance = 0;
  if (c.decision()) {
    auto* decided = c.decision()->get<int64_t>();
    if (!decided) return c.refuse(wrong_argument_type, "expected an integer as decision", loop);
    distance = std::clamp<int64_t>(*decided, 0, back);
    if (distance != *decided) TW_TRY_VOID(c.repair(fmt::format("{}", *decided), fmt::format("{}", distance), loop));
  } else {
    distance = c.schedule.rng().between(0, back);
  }
  c.give(std::max(least, deepest - distance));
  c.decide(distance);
  return {};
}

const RegisterPrimitive entry{
    "sample_pipeline_depth",
    "draws the depth of a software pipeline, as a distance from the deepest that fits into shared memory",
    {.kind = "SamplePipelineDepth",
     .inputs = {{"loop", ArgType::loop, {}, "the loop whose copies are staged"}},
     .attrs = {{"shared_limit", ArgType::integer, {}, "bytes of shared memory that a block may use"},
               {"min_depth", ArgType::integer, 2, "the least depth"},
               {"back", ArgType::integer, 2, "the largest distance from the deepest pipeline"}},
     .outputs = OutputShape::one_int,
     .output_kind = SymbolKind::integer,
     .pure = true,
     .samples = true,
     .refusals = {codes::extent_not_constant, decision_out_of_range, loop_has_no_copy_block, pipeline_does_not_fit,
                  decision_does_not_fit},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
