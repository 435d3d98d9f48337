// boost(): one training of one booster, with our objective and our stopping rule.
#pragma once

#include "costmodel/gbdt.h"
#include "costmodel/objective.h"

namespace tilewright {

struct BoostPlan {
  const Objective* objective = nullptr;
  TreeParameters tree;
  int rounds = 0;    ///< at most
  int patience = 0;  ///< stop after so many rounds without gain in the objective's metric; 0: never
};

struct BoostOutcome {
  std::string json;     ///< all trees that were grown
  int grown = 0;        ///< their number
  int best_rounds = 0;  ///< number of trees at the best value of the watched metric; = grown without patience
};

/// Watches `held_out` if it has candidates, else the training table itself. Refuses component-missing.
Result<BoostOutcome> boost(const TrainingTable& train, const TrainingTable& held_out, const BoostPlan&);

}  // namespace tilewright
