// tile_size: a divisor of one factor of a perfect tile moves to another place; the innermost limit is kept.
#include "schedule/primitive.h"
#include "schedule/sampling.h"
#include "search/mutators/mutator.h"

namespace tilewright {

namespace {

bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  std::vector<size_t> tiles;
  for (size_t i : decisions_of(sketch, "sample_perfect_tile")) {
    const TraceList& factors = *decisions[i].get<TraceList>();
    bool movable = factors.size() >= 2;
    int64_t product = 1;
    for (const TraceValue& f : factors) product *= *f.get<int64_t>();
    if (movable && product > 1) tiles.push_back(i);
  }
  if (tiles.empty()) return false;
  size_t which = tiles[rng.below(tiles.size())];
  const Instruction& instruction = sketch.trace.instructions[sketch.samplings[which]];
  const int64_t limit = *instruction.attrs[1].get<int64_t>();
  Tile tile;
  for (const TraceValue& f : *decisions[which].get<TraceList>()) tile.push_back(*f.get<int64_t>());
  // A few draws: a move may be impossible only because of the innermost limit.
  for (int attempt = 0; attempt < 16; ++attempt) {
    size_t from = rng.below(tile.size()), to = rng.below(tile.size());
    if (from == to || tile[from] == 1) continue;
    std::vector<int64_t> choices = divisors(tile[from]);
    int64_t moved = choices[1 + rng.below(choices.size() - 1)];
    if (to + 1 == tile.size() && limit >= 0 && tile[to] * moved > limit) continue;
    tile[from] /= moved;
    tile[to] *= moved;
    decisions[which] = tile;
    return true;
  }
  return false;
}

const Register<Mutator> entry{"tile_size", "moves a divisor between two places of a tile", {apply}};

}  // namespace

}  // namespace tilewright
