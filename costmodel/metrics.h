// Metrics of a cost model: registered, with unit and doc, and computed from scored candidates whose true time is known.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "support/hash.h"
#include "support/registry.h"

namespace tilewright {

struct ScoredCandidate {
  Hash64 task = 0, key = 0;
  double score = 0;    ///< predicted; higher is faster
  double y = 0;        ///< best time of the task ÷ time; 0 if invalid
  double seconds = 0;  ///< infinity if invalid
  int rows = 1;        ///< rows of features, the weight in p-rmse
};

struct ModelMetric {
  static constexpr const char* registry_name = "model metric";
  std::string unit;
  bool higher_is_better = true;
  /// NaN when the set says nothing about it (no candidate, no valid candidate, no pair).
  double (*value)(std::span<const ScoredCandidate>);
};

struct MetricValue {
  std::string name;
  double value;
};

/// One metric by name; an unknown name is an InternalError.
double model_metric(std::string_view name, std::span<const ScoredCandidate>);
/// All registered metrics that say something about the set, in name order.
std::vector<MetricValue> model_metrics(std::span<const ScoredCandidate>);

}  // namespace tilewright
