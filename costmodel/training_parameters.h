// TrainingParameters: one named set of everything that decides how boosted trees are trained. A set is one Register
// line in training_parameters.cpp; search.md §10 gives the reasons for the numbers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/registry.h"

namespace tilewright {

struct TrainingParameters {
  static constexpr const char* registry_name = "training parameters";

  /// By number of samples: the first stage whose `below` is greater.
  struct Stage {
    size_t below;
    int depth;
    int rounds;
    float subsample;
  };
  std::vector<Stage> stages;
  float min_child_weight = 0, gamma = 0, eta = 0.2f, lambda = 1;
  uint32_t seed = 43;

  bool mean_base_score = false;  ///< base score = mean(y) ÷ mean rows of a candidate, else `base_score`
  float base_score = 0.5f;
  double weight_floor = 0;  ///< weight of a candidate = max(y, floor)

  bool hold_out = false;      ///< candidates whose key hash is 0 mod 5 choose the rounds, then all are refitted
  size_t hold_out_from = 64;  ///< below so many samples: no hold-out, `few_rounds` rounds
  int few_rounds = 40;
  int patience = 0;  ///< rounds without gain on held-out (without hold-out: on the training samples)

  size_t first_records = 0;         ///< first training needs so many samples …
  size_t first_valid = 0;           ///< … and so many that ran and were right, cut short or not
  size_t every_round_up_to = 0;     ///< train at each update up to so many samples
  size_t whole_table_up_to = 4000;  ///< beyond: this task's samples, the best of others and some of the rest
  double retrain_share = 0.2;       ///< beyond: once so large a share of the last training size is new
  size_t random_others = 0;  ///< beyond: this task + the top `top_share` of others + so many random ones; 0: always all
  double top_share = 0.2;

  std::string objective = "p-rmse";  ///< or "lambdarank", or "auto": rank where it holds more, see boosted_trees.h
  int bagged = 0;                    ///< boosters whose spread is sigma
  int bagged_rounds = 80;
  bool learn_validity = false;
  size_t validity_window =
      256;  ///< validity is learnt while more than `validity_share` of the last so many samples failed
  double validity_share = 0.05;

  const Stage& stage(size_t samples) const;
};

}  // namespace tilewright
