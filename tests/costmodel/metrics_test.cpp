#include "costmodel/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tilewright {
namespace {

ScoredCandidate candidate(Hash64 task, Hash64 key, double score, double y, int rows = 1) {
  return {task, key, score, y, y > 0 ? 1.0 / y : INFINITY, rows};
}

// Predicted order of task 1: keys 1, 2, 3, 4 with y 0.5, 1.0, 0, 0.25.
const std::vector<ScoredCandidate> one_task = {candidate(1, 4, 0.1, 0.25, 2), candidate(1, 1, 0.9, 0.5),
                                               candidate(1, 3, 0.3, 0.0), candidate(1, 2, 0.8, 1.0)};

TEST(Metrics, OfOneTaskByHand) {
  // (0.15² · 2 + 0.4² + 0.3² + 0.2²) / 5 rows
  EXPECT_NEAR(model_metric("p-rmse", one_task), std::sqrt((2 * 0.0225 + 0.16 + 0.09 + 0.04) / 5), 1e-15);
  // Right: (1,3) (1,4) (2,3) (2,4); wrong: (1,2) (3,4).
  EXPECT_DOUBLE_EQ(model_metric("pair-accuracy", one_task), 4.0 / 6);
  EXPECT_DOUBLE_EQ(model_metric("a-peak@1", one_task), 0.5);
  EXPECT_DOUBLE_EQ(model_metric("peak@1", one_task), 0.5);
  EXPECT_DOUBLE_EQ(model_metric("a-peak@5", one_task), (0.5 + 1 + 1 + 1) / 4);
  EXPECT_DOUBLE_EQ(model_metric("peak@5", one_task), 1);
  EXPECT_DOUBLE_EQ(model_metric("recall@1", one_task), 0);
  EXPECT_DOUBLE_EQ(model_metric("recall@5", one_task), 1);
  EXPECT_DOUBLE_EQ(model_metric("top-1-score", one_task), 0.5);
  EXPECT_DOUBLE_EQ(model_metric("top-5-score", one_task), 1);
}

TEST(Metrics, TasksAreWeightedBySizeAndPairsNeverCrossTasks) {
  std::vector<ScoredCandidate> set = one_task;
  set.push_back(candidate(2, 1, 5, 1.0));  // a task of two, rightly ordered, on another scale
  set.push_back(candidate(2, 2, 4, 0.5));
  EXPECT_DOUBLE_EQ(model_metric("pair-accuracy", set), (4 * (4.0 / 6) + 2 * 1.0) / 6);
  EXPECT_DOUBLE_EQ(model_metric("peak@1", set), (4 * 0.5 + 2 * 1.0) / 6);
  EXPECT_DOUBLE_EQ(model_metric("top-1-score", set), (1.0 + 1.0) / (2.0 + 1.0));
}

TEST(Metrics, PredictedTiesAreWrongAndTrueTiesDoNotCount) {
  std::vector<ScoredCandidate> tied = {candidate(1, 1, 0.5, 1.0), candidate(1, 2, 0.5, 0.5)};
  EXPECT_EQ(model_metric("pair-accuracy", tied), 0);
  std::vector<ScoredCandidate> equal = {candidate(1, 1, 0.1, 0.5), candidate(1, 2, 0.9, 0.5)};
  EXPECT_TRUE(std::isnan(model_metric("pair-accuracy", equal)));
}

TEST(Metrics, SetsThatSayNothingAreLeftOut) {
  EXPECT_TRUE(model_metrics({}).empty());
  std::vector<ScoredCandidate> failures = {candidate(1, 1, 0.1, 0), candidate(1, 2, 0.2, 0)};
  for (const MetricValue& m : model_metrics(failures)) EXPECT_EQ(m.name, "p-rmse");
  EXPECT_THROW(model_metric("p-rsme", one_task), InternalError);
}

TEST(Metrics, ABetterOrderNeverScoresWorse) {
  std::vector<ScoredCandidate> perfect = one_task;
  for (ScoredCandidate& c : perfect) c.score = c.y;
  for (const auto& [name, entry] : Registry<ModelMetric>::instance().entries()) {
    double worse = entry.value.value(one_task), better = entry.value.value(perfect);
    if (entry.value.higher_is_better)
      EXPECT_GE(better, worse) << name;
    else
      EXPECT_LT(better, worse) << name;
  }
}

}  // namespace
}  // namespace tilewright
