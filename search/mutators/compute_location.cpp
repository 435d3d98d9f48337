// compute_location: another place for a sampled compute location. Which places are legal is known only to replay, so a
// neighbouring or random depth is proposed and replay repairs it to a legal one.
#include "schedule/primitive.h"
#include "search/mutators/mutator.h"

namespace tilewright {

namespace {

bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  std::vector<size_t> places = decisions_of(sketch, "sample_compute_location");
  if (places.empty()) return false;
  size_t which = places[rng.below(places.size())];
  int64_t now = *decisions[which].get<int64_t>();
  int64_t other = rng.between(-2, 14);
  decisions[which] = other >= now ? other + 1 : other;
  return true;
}

const Register<Mutator> entry{"compute_location", "another place for a sampled compute location", {apply}};

}  // namespace

}  // namespace tilewright
