#include "costmodel/objective.h"

#include <algorithm>
#include <numeric>

#include "support/elementary.h"

namespace tilewright {
namespace {

/// Weighted squared error of the summed score.
void p_rmse(const TrainingTable& table, std::span<const double> scores, std::span<float> g, std::span<float> h) {
  for (size_t i = 0; i < scores.size(); ++i) {
    g[i] = static_cast<float>(table.weight[i] * (scores[i] - table.y[i]));
    h[i] = static_cast<float>(table.weight[i]);
  }
}

/// Probability of y = 1 from the summed score as log-odds.
void logistic(const TrainingTable& table, std::span<const double> scores, std::span<float> g, std::span<float> h) {
  for (size_t i = 0; i < scores.size(); ++i) {
    double p = 1 / (1 + portable_exp(-scores[i]));
    g[i] = static_cast<float>(table.weight[i] * (p - table.y[i]));
    h[i] = static_cast<float>(table.weight[i] * std::max(p * (1 - p), 1e-6));
  }
}

// Pairs need one partner among the first so many of the current order: full pairing is quadratic in a task's samples,
// and exchanges far down the list hardly move NDCG.
constexpr size_t truncation = 128;

/// One task [begin, end): pairs with y_i > y_j push i up and j down by their effect on NDCG with gain 2^(4 y).
void rank_task(const TrainingTable& table, size_t begin, size_t end, std::span<const double> scores, std::span<float> g,
               std::span<float> h) {
  std::vector<size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<double> gain(order.size()), discount(order.size()), ideal;
  for (size_t r = 0; r < order.size(); ++r) {
    gain[r] = portable_exp2(4 * table.y[order[r]]);
    discount[r] = 1 / portable_log2(2.0 + static_cast<double>(r));
  }
  ideal = gain;
  std::sort(ideal.begin(), ideal.end(), std::greater<>());
  double ideal_dcg = 0;
  for (size_t r = 0; r < ideal.size(); ++r) ideal_dcg += ideal[r] * discount[r];
  std::vector<double> gradient(order.size()), hessian(order.size());
  for (size_t a = 0; a < std::min(truncation, order.size()); ++a)
    for (size_t b = a + 1; b < order.size(); ++b) {
      if (table.y[order[a]] == table.y[order[b]]) continue;
      bool a_wins = table.y[order[a]] > table.y[order[b]];
      size_t i = a_wins ? a : b, j = a_wins ? b : a;
      double delta = (gain[i] - gain[j]) * (discount[a] - discount[b]) / ideal_dcg;
      double rho = 1 / (1 + portable_exp(scores[order[i]] - scores[order[j]]));
      gradient[i] -= rho * delta;
      gradient[j] += rho * delta;
      hessian[i] += rho * (1 - rho) * delta;
      hessian[j] += rho * (1 - rho) * delta;
    }
  // Mean hessian 1 in every task: NDCG changes shrink with the list, and λ and min_child_weight would smother the
  // trees.
  double sum = std::accumulate(hessian.begin(), hessian.end(), 0.0);
  double scale = sum > 0 ? static_cast<double>(order.size()) / sum : 0;
  for (size_t r = 0; r < order.size(); ++r) {
    g[order[r]] = static_cast<float>(gradient[r] * scale);
    h[order[r]] = static_cast<float>(hessian[r] * scale);
  }
}

void lambdarank(const TrainingTable& table, std::span<const double> scores, std::span<float> g, std::span<float> h) {
  for (size_t begin = 0, end = 0; begin < scores.size(); begin = end) {
    while (end < scores.size() && table.task[end] == table.task[begin]) ++end;
    rank_task(table, begin, end, scores, g, h);
  }
}

Register<Objective> r0{"p-rmse", "weighted squared error of the candidate score", {p_rmse, "p-rmse"}};
Register<Objective> r1{"logistic", "log loss of the candidate score as log-odds of y = 1", {logistic, "p-rmse"}};
// a-peak would be the goal itself, but on a held-out set it is 1 for almost any model; pair accuracy still tells rounds
// apart.
Register<Objective> r2{"lambdarank", "NDCG-weighted pairs within a task, gain 2^(4y)", {lambdarank, "pair-accuracy"}};

}  // namespace

const Objective& find_objective(std::string_view name) {
  const Objective* objective = Registry<Objective>::instance().find(name);
  TW_CHECK(objective, "no objective is called \"{}\"", name);
  return *objective;
}

}  // namespace tilewright
