// parallel: another limit on the parallel jobs, so that more or fewer of the outer loops are fused and run in parallel.
// Which limits make a difference is known only to replay; equal programs are met by their hash.
#include "search/mutators/mutator.h"

namespace tilewright {

namespace {

bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  if (!sketch.parallel_limit) return false;
  const int64_t now = *decisions.back().get<int64_t>();
  const int64_t most = *sketch.trace.instructions[*sketch.parallel_limit].inputs[1].get<int64_t>();  // the rule's
  std::vector<int64_t> others;
  for (int64_t limit = 1; limit <= most; limit *= 2)
    if (limit != now) others.push_back(limit);
  if (others.empty()) return false;
  decisions.back() = others[rng.below(others.size())];
  return true;
}

const Register<Mutator> entry{"parallel", "another limit on the number of parallel jobs", {apply}};

}  // namespace

}  // namespace tilewright
