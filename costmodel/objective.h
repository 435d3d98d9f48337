// Objectives: gradients of a training, per candidate. A candidate's score is the sum over its rows, so the caller gives
// a candidate's gradient and hessian to each of its rows.
#pragma once

#include "costmodel/training_table.h"

namespace tilewright {

struct Objective {
  static constexpr const char* registry_name = "objective";
  /// g and h have one element per candidate and come in zeroed.
  void (*gradients)(const TrainingTable&, std::span<const double> scores, std::span<float> g, std::span<float> h);
  /// Model metric by which held-out samples choose the number of rounds.
  const char* stop_metric;
};

const Objective& find_objective(std::string_view name);  ///< an unknown name is an InternalError

}  // namespace tilewright
