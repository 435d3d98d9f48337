// parallelize_vectorize_unroll: annotates the root with how much to parallelise, vectorise and unroll; the
// postprocessor rewrite_parallel_vectorize_unroll acts on it.
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

constexpr int kJobsPerCore = 16, kVectorLimit = 64;

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block || s.state().tree().enclosing_block(s.state().place(**block)) != kNoPlace) return {s};
  const bool spatial = is_spatial_function(s);
  const Schedule original = s;
  const int64_t jobs = on_one_core(s) ? 0 : int64_t{context.target.cores} * kJobsPerCore;
  bool ok = s.annotate(rv, "meta_schedule.parallel", jobs).has_value() &&
            s.annotate(rv, "meta_schedule.vectorize", kVectorLimit).has_value();
  if (!ok) return {original};
  if (!spatial) {
    auto steps = s.sample_categorical({0, 16, 64, 512}, {0.25, 0.25, 0.25, 0.25});
    if (!steps || !s.annotate(rv, "meta_schedule.unroll_explicit", *steps)) return {original};
  }
  return {s};
}

const Register<ScheduleRule> entry{
    "parallelize_vectorize_unroll", "annotates the root with parallel, vector and unroll limits", {apply}};

}  // namespace

}  // namespace tilewright
