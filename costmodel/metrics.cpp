#include "costmodel/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright {
namespace {

using Set = std::span<const ScoredCandidate>;
constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

std::vector<std::vector<ScoredCandidate>> by_task(Set set) {
  std::vector<ScoredCandidate> all(set.begin(), set.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.task < b.task; });
  std::vector<std::vector<ScoredCandidate>> out;
  for (const ScoredCandidate& c : all) {
    if (out.empty() || out.back().front().task != c.task) out.emplace_back();
    out.back().push_back(c);
  }
  return out;
}

/// Mean over tasks of `value`, weighted by task size; tasks it says nothing about do not count.
template <class F>
double over_tasks(Set set, F value) {
  double sum = 0, weight = 0;
  for (std::vector<ScoredCandidate>& task : by_task(set)) {
    double size = static_cast<double>(task.size()), v = value(task);
    if (std::isnan(v)) continue;
    sum += size * v;
    weight += size;
  }
  return weight > 0 ? sum / weight : nothing;
}

// Ties go by key, which is a hash: a constant model gets what a random order gets.
void sort_by_prediction(std::vector<ScoredCandidate>& task) {
  std::sort(task.begin(), task.end(),
            [](const auto& a, const auto& b) { return a.score != b.score ? a.score > b.score : a.key < b.key; });
}

double best_y(const std::vector<ScoredCandidate>& task) {
  double best = 0;
  for (const ScoredCandidate& c : task) best = std::max(best, c.y);
  return best;
}

double p_rmse(Set set) {
  double sum = 0, rows = 0;
  for (const ScoredCandidate& c : set) {
    sum += c.rows * (c.score - c.y) * (c.score - c.y);
    rows += c.rows;
  }
  return rows > 0 ? std::sqrt(sum / rows) : nothing;
}

double pair_accuracy(Set set) {
  return over_tasks(set, [](const std::vector<ScoredCandidate>& task) {
    double right = 0, pairs = 0;
    for (size_t i = 0; i < task.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        if (task[i].y == task[j].y) continue;
        ++pairs;
        if (task[i].score != task[j].score && (task[i].y > task[j].y) == (task[i].score > task[j].score)) ++right;
      }
    return pairs > 0 ? right / pairs : nothing;
  });
}

/// `average`: mean over i <= k of the best of the first i predictions, else the best of the first k.
double peak(Set set, size_t k, bool average) {
  return over_tasks(set, [&](std::vector<ScoredCandidate>& task) {
    double best = best_y(task), reached = 0, sum = 0;
    if (best <= 0) return nothing;
    sort_by_prediction(task);
    size_t n = std::min(k, task.size());
    for (size_t i = 0; i < n; ++i) {
      reached = std::max(reached, task[i].y);
      sum += reached;
    }
    return (average ? sum / static_cast<double>(n) : reached) / best;
  });
}

double recall(Set set, size_t k) {
  return over_tasks(set, [&](std::vector<ScoredCandidate>& task) {
    if (best_y(task) <= 0) return nothing;
    size_t n = std::min(k, task.size());
    sort_by_prediction(task);
    std::vector<size_t> truth(task.size());
    for (size_t i = 0; i < truth.size(); ++i) truth[i] = i;
    std::sort(truth.begin(), truth.end(), [&](size_t a, size_t b) {
      return task[a].y != task[b].y ? task[a].y > task[b].y : task[a].key < task[b].key;
    });
    auto hits =
        std::count_if(truth.begin(), truth.begin() + static_cast<std::ptrdiff_t>(n), [&](size_t i) { return i < n; });
    return static_cast<double>(hits) / static_cast<double>(n);
  });
}

double top_score(Set set, size_t k) {
  double ideal = 0, found = 0;
  for (std::vector<ScoredCandidate>& task : by_task(set)) {
    if (best_y(task) <= 0) continue;
    sort_by_prediction(task);
    double best = std::numeric_limits<double>::infinity(), first = best;
    for (size_t i = 0; i < task.size(); ++i) {
      best = std::min(best, task[i].seconds);
      if (i < k) first = std::min(first, task[i].seconds);
    }
    ideal += best;
    found += first;
  }
  return ideal > 0 ? ideal / found : nothing;
}

template <size_t k>
double a_peak_at(Set set) {
  return peak(set, k, true);
}
template <size_t k>
double peak_at(Set set) {
  return peak(set, k, false);
}
template <size_t k>
double recall_at(Set set) {
  return recall(set, k);
}
template <size_t k>
double top_score_at(Set set) {
  return top_score(set, k);
}

const char* const a_peak_doc =
    "mean over i <= k of the best y among the first i predictions, over the best y of the task";
const char* const peak_doc = "best y among the first k predictions, over the best y of the task";
const char* const recall_doc = "share of the true top k that is among the predicted top k";
const char* const top_doc =
    "sum over tasks of the best time, over the sum of the best time among the first k predictions";

using R = Register<ModelMetric>;
R m0{"p-rmse", "root of the mean over rows of (score - y)^2", {"", false, p_rmse}};
R m1{"pair-accuracy",
     "share of same-task pairs with different y whose order is predicted; predicted ties are wrong",
     {"share", true, pair_accuracy}};
R m2{"a-peak@1", a_peak_doc, {"share", true, a_peak_at<1>}};
R m3{"a-peak@5", a_peak_doc, {"share", true, a_peak_at<5>}};
R m4{"a-peak@32", a_peak_doc, {"share", true, a_peak_at<32>}};
R m5{"peak@1", peak_doc, {"share", true, peak_at<1>}};
R m6{"peak@5", peak_doc, {"share", true, peak_at<5>}};
R m7{"peak@32", peak_doc, {"share", true, peak_at<32>}};
R m8{"recall@1", recall_doc, {"share", true, recall_at<1>}};
R m9{"recall@5", recall_doc, {"share", true, recall_at<5>}};
R m10{"recall@32", recall_doc, {"share", true, recall_at<32>}};
R m11{"top-1-score", top_doc, {"share", true, top_score_at<1>}};
R m12{"top-5-score", top_doc, {"share", true, top_score_at<5>}};

}  // namespace

double model_metric(std::string_view name, std::span<const ScoredCandidate> set) {
  const ModelMetric* metric = Registry<ModelMetric>::instance().find(name);
  TW_CHECK(metric, "no model metric is called \"{}\"", name);
  return metric->value(set);
}

std::vector<MetricValue> model_metrics(std::span<const ScoredCandidate> set) {
  std::vector<MetricValue> out;
  for (const auto& [name, entry] : Registry<ModelMetric>::instance().entries())
    if (double value = entry.value.value(set); !std::isnan(value)) out.push_back({name, value});
  return out;
}

}  // namespace tilewright
