// acme.cyclic: a branch of the design space in which the outermost loop of a reduction is dealt out in turn.
#include "schedule/primitive.h"
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

using namespace tilewright;

namespace {

constexpr int kMostHands = 8;  // as many as a cache line of 64 bytes has doubles

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block || is_spatial(**block)) return {s};
  Schedule dealt = s;
  auto loops = dealt.get_loops(rv);
  if (!loops || loops->empty()) return {s};
  auto factors = dealt.sample_perfect_tile(loops->front(), 2, kMostHands);
  if (!factors) return {s};
  if (!dealt.call("acme_cyclic_split", {{"loop", loops->front()}, {"factor", factors->back()}})) return {s};
  return {s, dealt};
}

const Register<ScheduleRule> entry{"acme.cyclic",
                                   "deals the outermost loop of a reduction out in turn",
                                   {.apply = apply, .before = "parallelize_vectorize_unroll"}};

}  // namespace
