// reverse_compute_at: moves a consumer under a loop of its producers.
#include "schedule/primitive.h"
#include "schedule/primitives/compute_location.h"
#include "schedule/primitives/inline.h"

namespace tilewright {
namespace {

Status apply(Context& c) { return apply_compute_location(c, MoveDirection::to_producers); }

const RegisterPrimitive entry{
    "reverse_compute_at",
    "moves a consumer under a loop of its producers",
    {.kind = "ReverseComputeAt",
     .inputs = {{"block", ArgType::block, {}, "the block that moves"}, {"loop", ArgType::loop, {}, "where it goes"}},
     .attrs = {{"preserve_unit_loops", ArgType::boolean, false, "make loops of extent 1 too"},
               {"index", ArgType::integer, -1, "place in the loop's body: -1 last legal, -2 first, or a number"}},
     .refusals = {move_refusals, producer_outside_loop, producer_not_complete_under_loop, region_not_solvable,
                  labels::parallel, reverse_inline_refusals},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
