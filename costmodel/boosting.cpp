#include "costmodel/boosting.h"

#include <cmath>

namespace tilewright {

namespace {

void spread_to_rows(const TrainingTable& table, std::span<const float> candidates, std::span<float> rows) {
  for (size_t i = 0; i < candidates.size(); ++i)
    for (uint32_t r = table.offsets[i]; r < table.offsets[i + 1]; ++r) rows[r] = candidates[i];
}

}  // namespace

Result<BoostOutcome> boost(const TrainingTable& train, const TrainingTable& held_out, const BoostPlan& plan) {
  TW_TRY(std::unique_ptr<TreeTrainer> trainer,
         make_tree_trainer(plan.tree, {train.values, train.width}, {held_out.values, held_out.width}));
  const ModelMetric& metric = *Registry<ModelMetric>::instance().find(plan.objective->stop_metric);
  std::vector<float> g(train.candidates()), h(train.candidates()), row_g(train.rows()), row_h(train.rows());
  BoostOutcome out;
  double best = NAN;
  for (;; ++out.grown) {
    std::vector<double> scores = train.scores(trainer->margins());
    if (plan.patience > 0) {
      double value = held_out.candidates() > 0
                         ? metric.value(held_out.scored(held_out.scores(trainer->held_out_margins())))
                         : metric.value(train.scored(scores));
      bool better = std::isnan(best) || (metric.higher_is_better ? value > best : value < best);
      if (better) best = value, out.best_rounds = out.grown;
      if (out.grown - out.best_rounds >= plan.patience) break;
    }
    if (out.grown == plan.rounds) break;
    std::fill(g.begin(), g.end(), 0.0f);
    std::fill(h.begin(), h.end(), 0.0f);
    plan.objective->gradients(train, scores, g, h);
    spread_to_rows(train, g, row_g);
    spread_to_rows(train, h, row_h);
    trainer->boost(row_g, row_h);
  }
  if (plan.patience == 0) out.best_rounds = out.grown;
  out.json = trainer->save_json();
  return out;
}

}  // namespace tilewright
