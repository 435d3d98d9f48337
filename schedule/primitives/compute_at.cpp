// compute_at: moves a producer under a loop of its consumers.
#include "schedule/primitive.h"
#include "schedule/primitives/compute_location.h"
#include "schedule/primitives/inline.h"

namespace tilewright {
namespace {

Status apply(Context& c) { return apply_compute_location(c, MoveDirection::to_consumers); }

const RegisterPrimitive entry{
    "compute_at",
    "moves a producer under a loop of its consumers",
    {.kind = "ComputeAt",
     .inputs = {{"block", ArgType::block, {}, "the block that moves"}, {"loop", ArgType::loop, {}, "where it goes"}},
     .attrs = {{"preserve_unit_loops", ArgType::boolean, false, "make loops of extent 1 too"},
               {"index", ArgType::integer, -1, "place in the loop's body: -1 last legal, -2 first, or a number"}},
     .refusals = {move_refusals, labels::temp, consumer_outside_loop, inline_refusals},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
