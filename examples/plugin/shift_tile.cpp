// acme.shift_tile: halves one factor of a tile and doubles another, a smaller step than a new factorisation.
#include "search/mutators/mutator.h"

using namespace tilewright;

namespace {

bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  std::vector<size_t> tiles = decisions_of(sketch, "sample_perfect_tile");
  if (tiles.empty()) return false;
  const size_t which = tiles[rng.below(tiles.size())];
  TraceList factors = *decisions[which].get<TraceList>();
  const size_t from = rng.below(factors.size()), to = rng.below(factors.size());
  const int64_t give = *factors[from].get<int64_t>(), take = *factors[to].get<int64_t>();
  if (from == to || give % 2 != 0) return false;
  factors[from] = give / 2;
  factors[to] = take * 2;  // above max_innermost_factor: the replay repairs it
  decisions[which] = factors;
  return true;
}

const Register<Mutator> entry{
    "acme.shift_tile", "moves a factor of two between the loops of a tile", {.apply = apply, .weight = 0.2}};

}  // namespace
