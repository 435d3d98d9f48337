// Mutator: edits one decision of a candidate. Integers only: the sketch's trace gives the instruction, the vector its
// value; the candidate is replayed afterwards, which repairs and re-checks it.
#pragma once

#include <functional>

#include "schedule/primitive.h"
#include "search/space.h"
#include "support/registry.h"

namespace tilewright {

struct Mutator {
  static constexpr const char* registry_name = "mutator";
  /// False: no decision of the kind that this mutator edits can change.
  std::function<bool(const Sketch&, DecisionVector&, Rng&)> apply;
  /// Of a plug-in's mutator, whose name has a dot: how often it is picked, where the preset's weights sum to 1.
  double weight = 0.1;
};

/// Positions in the decision vector whose instruction is `primitive` and which no schedule file fixes.
inline std::vector<size_t> decisions_of(const Sketch& sketch, const std::string& primitive) {
  std::vector<size_t> out;
  for (size_t i = 0; i < sketch.samplings.size(); ++i)
    if (!sketch.fixed[i] && sketch.trace.instructions[sketch.samplings[i]].kind->name == primitive) out.push_back(i);
  return out;
}

}  // namespace tilewright
