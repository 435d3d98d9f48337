#include "costmodel/boosted_trees.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <numeric>

#include "support/elementary.h"

namespace tilewright {

namespace {

bool held_out_key(Hash64 key) { return hash_combine(0, key) % 5 == 0; }

/// Poisson(1) draw that belongs to (bag, candidate): bootstrap weights that do not depend on what else is in the table.
int bag_weight(int bag, Hash64 task, Hash64 key) {
  double u = static_cast<double>(hash_combine(hash_combine(static_cast<Hash64>(bag) + 1, task), key) >> 11) * 0x1p-53;
  double term = 0.36787944117144233, sum = term;  // e^-1
  int count = 0;
  while (u >= sum && count < 8) term /= ++count, sum += term;
  return count;
}

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Adds weight × the sum over rows to each candidate's score.
void add_scores(const TreeEvaluator& trees, double weight, RowMatrix rows, std::span<const uint32_t> offsets,
                std::span<double> out) {
  std::vector<float> margins = trees.predict(rows);
  for (size_t i = 0; i < out.size(); ++i) {
    double sum = 0;
    for (uint32_t r = offsets[i]; r < offsets[i + 1]; ++r) sum += static_cast<double>(margins[r]);
    out[i] += weight * sum;
  }
}

std::vector<float> summed_rows(std::span<const float> values, int width, std::span<const uint32_t> offsets) {
  std::vector<float> out((offsets.size() - 1) * static_cast<size_t>(width));
  for (size_t i = 0; i + 1 < offsets.size(); ++i)
    for (uint32_t r = offsets[i]; r < offsets[i + 1]; ++r)
      for (int f = 0; f < width; ++f)
        out[i * static_cast<size_t>(width) + static_cast<size_t>(f)] +=
            values[r * static_cast<size_t>(width) + static_cast<size_t>(f)];
  return out;
}

}  // namespace

BoostedTrees::BoostedTrees(const TrainingParameters& parameters, const ModelOptions& options)
    : parameters_(parameters), options_(options) {
  set_digest();
}

// When
// ---------------------------------------------------------------------------------------------------------------------

Status BoostedTrees::update(std::span<const Sample> batch) {
  if (batch.empty()) return {};
  new_ += store_.add(batch);
  for (const Sample& sample : batch) recent_.push_back(sample.label);
  while (recent_.size() > parameters_.validity_window) recent_.pop_front();
  last_task_ = batch.back().task;
  report_incoming(batch);
  if (should_train()) TW_TRY_VOID(train());
  set_digest();
  return {};
}

bool BoostedTrees::should_train() const {
  if (store_.size() < parameters_.first_records || store_.valid() < parameters_.first_valid) return false;
  if (trainings_ == 0) return true;
  if (new_ == 0) return false;
  if (store_.size() <= parameters_.every_round_up_to) return true;
  return static_cast<double>(new_) >= parameters_.retrain_share * static_cast<double>(last_size_);
}

// On what
// ------------------------------------------------------------------------------------------------------------------

TrainingTable BoostedTrees::table() const {
  struct Other {
    double y;
    Hash64 draw;
    size_t index;
  };
  std::vector<const Sample*> all;
  std::vector<Other> others;
  for (const auto& [id, sample] : store_.samples()) {
    if (sample.task != last_task_)
      others.push_back({store_.label(sample), hash_combine(sample.task, sample.key), all.size()});
    all.push_back(&sample);
  }
  std::vector<bool> keep(all.size(), true);
  if (parameters_.random_others > 0 && all.size() > parameters_.whole_table_up_to) {
    std::sort(others.begin(), others.end(),
              [](const Other& a, const Other& b) { return a.y != b.y ? a.y > b.y : a.draw < b.draw; });
    auto rest =
        others.begin() + static_cast<std::ptrdiff_t>(parameters_.top_share * static_cast<double>(others.size()));
    std::sort(rest, others.end(), [](const Other& a, const Other& b) { return a.draw < b.draw; });
    for (auto it = rest; it != others.end(); ++it)
      keep[it->index] = static_cast<size_t>(it - rest) < parameters_.random_others;
  }
  TrainingTable out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!keep[i]) continue;
    double y = store_.label(*all[i]);
    out.append(*all[i], y, std::max(y, parameters_.weight_floor));
  }
  return out;
}

// How
// ----------------------------------------------------------------------------------------------------------------------

TreeParameters BoostedTrees::tree_parameters(const TrainingTable& table) const {
  const TrainingParameters::Stage& stage = parameters_.stage(table.candidates());
  TreeParameters tree;
  tree.max_depth = stage.depth;
  tree.subsample = stage.subsample;
  tree.min_child_weight = parameters_.min_child_weight;
  tree.gamma = parameters_.gamma;
  tree.eta = parameters_.eta;
  tree.lambda = parameters_.lambda;
  tree.seed = parameters_.seed;
  // Added once per row, so it is the mean label ÷ mean rows that makes the mean candidate start at its label.
  double rest = mean_of(table.y) - mean_of(table.base);
  double rows = static_cast<double>(table.rows()) / static_cast<double>(table.candidates());
  tree.base_score = parameters_.mean_base_score ? static_cast<float>(rest / rows) : parameters_.base_score;
  return tree;
}

Result<BoostedTrees::Booster> BoostedTrees::fit(const TrainingTable& table, std::string_view objective,
                                                int rounds) const {
  BoostPlan plan{&find_objective(objective), tree_parameters(table), rounds, 0};
  TW_TRY(BoostOutcome outcome, boost(table, {}, plan));
  TW_TRY(TreeEvaluator trees, TreeEvaluator::parse(outcome.json));
  return Booster{1.0, std::move(outcome.json), std::move(trees)};
}

Result<BoostedTrees::Booster> BoostedTrees::train_mu(const TrainingTable& table) {
  const TrainingParameters::Stage& stage = parameters_.stage(table.candidates());
  bool automatic = parameters_.objective == "auto";
  report_.objective = automatic ? (rank_ ? "lambdarank" : "p-rmse") : parameters_.objective;
  report_.held_out.clear();
  bool hold_out = parameters_.hold_out && table.candidates() >= parameters_.hold_out_from;
  if (parameters_.hold_out && !hold_out) return fit(table, report_.objective, parameters_.few_rounds);
  TrainingTable held_out, rest;
  if (hold_out) {
    held_out = table.filtered([&](size_t i) { return held_out_key(table.key[i]); });
    rest = table.filtered([&](size_t i) { return !held_out_key(table.key[i]); });
    if (held_out.candidates() == 0) return fit(table, report_.objective, parameters_.few_rounds);
  }
  const TrainingTable& seen = hold_out ? rest : table;
  struct Try {
    BoostOutcome outcome;
    std::vector<MetricValue> metrics;
    double a_peak = 0;
  };
  auto attempt = [&](std::string_view objective) -> Result<Try> {
    BoostPlan plan{&find_objective(objective), tree_parameters(seen), stage.rounds, parameters_.patience};
    TW_TRY(BoostOutcome outcome, boost(seen, held_out, plan));
    Try out{std::move(outcome), {}, 0};
    if (!hold_out) return out;
    TW_TRY(TreeEvaluator trees, TreeEvaluator::parse(out.outcome.json));
    std::vector<double> scores = held_out.scores(
        trees.first(static_cast<size_t>(out.outcome.best_rounds)).predict({held_out.values, held_out.width}));
    out.metrics = model_metrics(held_out.scored(scores));
    out.a_peak = model_metric("a-peak@32", held_out.scored(scores));
    return out;
  };
  TW_TRY(Try chosen, attempt(report_.objective));
  if (!hold_out) {  // the reference's way: stopping watches the training set, and all trees stay
    TW_TRY(TreeEvaluator trees, TreeEvaluator::parse(chosen.outcome.json));
    return Booster{1.0, std::move(chosen.outcome.json), std::move(trees)};
  }
  if (automatic && (trainings_ + 1) % 4 == 0) {
    TW_TRY(Try other, attempt(rank_ ? "p-rmse" : "lambdarank"));
    double gain = (rank_ ? chosen.a_peak - other.a_peak : other.a_peak - chosen.a_peak);
    bool rank = gain >= 0.01;
    if (rank != rank_) chosen = std::move(other);
    rank_ = rank;
    report_.objective = rank_ ? "lambdarank" : "p-rmse";
  }
  report_.held_out = std::move(chosen.metrics);
  return fit(table, report_.objective, std::max(1, chosen.outcome.best_rounds));
}

Result<std::vector<BoostedTrees::Booster>> BoostedTrees::train_bagged(const TrainingTable& table) const {
  auto bag = [&](int index) -> Result<Booster> {
    TrainingTable bagged = table;
    for (size_t i = 0; i < bagged.candidates(); ++i)
      bagged.weight[i] *= bag_weight(index, bagged.task[i], bagged.key[i]);
    return fit(bagged, "p-rmse", parameters_.bagged_rounds);
  };
  std::vector<Booster> out;
  for (int begin = 0; begin < parameters_.bagged; begin += std::max(1, options_.threads)) {
    std::vector<std::future<Result<Booster>>> running;
    for (int i = begin; i < std::min(parameters_.bagged, begin + std::max(1, options_.threads)); ++i)
      running.push_back(std::async(options_.threads > 1 ? std::launch::async : std::launch::deferred, bag, i));
    for (auto& future : running) {
      TW_TRY(Booster booster, future.get());
      out.push_back(std::move(booster));
    }
  }
  return out;
}

Result<BoostedTrees::Booster> BoostedTrees::train_valid() const {
  TrainingTable summed;
  for (const auto& [id, sample] : store_.samples()) {
    Sample one = sample;
    uint32_t rows = static_cast<uint32_t>(sample.rows.rows());
    one.rows.values = summed_rows(sample.rows.values, sample.rows.width, std::vector<uint32_t>{0, rows});
    summed.append(one, sample.label == Label::invalid ? 0 : 1, 1);
  }
  double p = std::clamp(mean_of(summed.y), 0.01, 0.99);
  BoostPlan plan{&find_objective("logistic"), tree_parameters(summed), 60, 0};
  plan.tree.base_score = static_cast<float>((portable_log2(p) - portable_log2(1 - p)) / 1.4426950408889634);
  plan.tree.min_child_weight = 1;
  TW_TRY(BoostOutcome outcome, boost(summed, {}, plan));
  TW_TRY(TreeEvaluator trees, TreeEvaluator::parse(outcome.json));
  return Booster{1.0, std::move(outcome.json), std::move(trees)};
}

Status BoostedTrees::train() {
  TrainingTable training = table();
  Boosters next;
  double discount = portable_exp2(-static_cast<double>(store_.size()) / 64);
  if (discount >= 0.05)
    for (const Booster& booster : base_.mu) {
      next.mu.push_back(booster);
      next.mu.back().weight *= discount;
      add_scores(booster.trees, next.mu.back().weight, {training.values, training.width}, training.offsets,
                 training.base);
    }
  TW_TRY(Booster mu, train_mu(training));
  report_.trees = static_cast<int>(mu.trees.trees());
  next.mu.push_back(std::move(mu));
  if (parameters_.bagged > 0 && options_.spread) {
    TW_TRY(next.bagged, train_bagged(training));
  }
  auto failed = static_cast<double>(std::count(recent_.begin(), recent_.end(), Label::invalid));
  if (parameters_.learn_validity && failed > parameters_.validity_share * static_cast<double>(recent_.size())) {
    TW_TRY(next.valid, train_valid());
  }
  own_ = std::move(next);
  ++trainings_;
  last_size_ = training.candidates();
  new_ = 0;
  report_.trained_on = last_size_;
  report_.trainings = trainings_;
  return {};
}

// Prediction
// ---------------------------------------------------------------------------------------------------------------

void BoostedTrees::predict(const FeatureBlock& block, Scores& scores) const {
  scores.resize(block.candidates());
  if (block.candidates() == 0) return;
  const Boosters& boosters = current();
  RowMatrix rows{block.values, block.width};
  std::vector<double> mu(block.candidates());
  for (const Booster& booster : boosters.mu) add_scores(booster.trees, booster.weight, rows, block.offsets, mu);
  std::copy(mu.begin(), mu.end(), scores.mu.begin());
  std::vector<double> sum(mu.size()), squares(mu.size());
  for (const Booster& booster : boosters.bagged) {
    std::vector<double> one(mu.size());
    add_scores(booster.trees, booster.weight, rows, block.offsets, one);
    for (size_t i = 0; i < one.size(); ++i) sum[i] += one[i], squares[i] += one[i] * one[i];
  }
  if (double n = static_cast<double>(boosters.bagged.size()); n > 1)
    for (size_t i = 0; i < sum.size(); ++i)
      scores.sigma[i] = static_cast<float>(std::sqrt(std::max(0.0, (squares[i] - sum[i] * sum[i] / n) / (n - 1))));
  if (!boosters.valid) return;
  std::vector<float> log_odds =
      boosters.valid->trees.predict({summed_rows(block.values, block.width, block.offsets), block.width});
  for (size_t i = 0; i < log_odds.size(); ++i)
    scores.valid[i] = static_cast<float>(1 / (1 + portable_exp(-static_cast<double>(log_odds[i]))));
}

void BoostedTrees::report_incoming(std::span<const Sample> batch) {
  report_.samples = store_.size();
  report_.incoming.clear();
  if (!trained()) return;
  TrainingTable incoming;
  FeatureBlock block;
  for (const Sample& sample : batch) {
    incoming.append(sample, store_.label(sample), 1);
    block.append(sample.key, sample.rows);
  }
  Scores scores;
  predict(block, scores);
  report_.incoming = model_metrics(incoming.scored(std::vector<double>(scores.mu.begin(), scores.mu.end())));
}

// Files
// --------------------------------------------------------------------------------------------------------------------

void BoostedTrees::set_digest() {
  digest_ = 0;
  auto add = [&](const Booster& booster) {
    digest_ = hash_combine(hash_combine(digest_, hash_text(booster.json)), std::bit_cast<Hash64>(booster.weight));
  };
  for (const Booster& booster : current().mu) add(booster);
  for (const Booster& booster : current().bagged) add(booster);
  if (current().valid) add(*current().valid);
}

TwmFile BoostedTrees::file() const {
  TwmFile out;
  out.schema = options_.schema;
  out.target_kind = options_.target_kind;
  out.dtype_class = options_.dtype_class;
  out.parameters = options_.parameters;
  out.samples = store_.digest();
  out.sample_count = store_.size();
  out.held_out = report_.held_out;
  out.state = {new_, last_size_, trainings_, rank_};
  auto add = [&](const char* role, const Booster& booster) {
    out.boosters.push_back({role, booster.weight, booster.json});
  };
  for (const Booster& booster : current().mu) add("mu", booster);
  for (const Booster& booster : current().bagged) add("bagged", booster);
  if (current().valid) add("valid", *current().valid);
  return out;
}

Result<std::string> BoostedTrees::save() const {
  if (!trained())
    return refuse(model_not_trained, fmt::format("expected a trained model, found one with {} samples", store_.size()));
  return write_twm(file());
}

Result<BoostedTrees::Boosters> BoostedTrees::read(const TwmFile& file) {
  Boosters out;
  for (const TwmFile::Booster& booster : file.boosters) {
    TW_TRY(TreeEvaluator trees, TreeEvaluator::parse(booster.json));
    Booster read{booster.weight, booster.json, std::move(trees)};
    if (booster.role == "mu")
      out.mu.push_back(std::move(read));
    else if (booster.role == "bagged")
      out.bagged.push_back(std::move(read));
    else if (booster.role == "valid")
      out.valid = std::move(read);
    else
      return refuse(model_file_damaged,
                    fmt::format("expected the booster roles mu, bagged and valid, found \"{}\"", booster.role));
  }
  return out;
}

Status BoostedTrees::load(std::string_view twm) {
  TW_TRY(TwmFile file, read_twm(twm));
  if (file.schema != options_.schema)
    return refuse(Refusal(model_schema_differs, fmt::format("expected a model of feature schema {}, found {}",
                                                            hex64(options_.schema), hex64(file.schema)))
                      .with_help("train again from the database: features are recomputed from the stored traces"));
  TW_TRY(base_, read(file));
  set_digest();
  return {};
}

Status BoostedTrees::resume(std::span<const Sample> seen, std::string_view twm) {
  TW_TRY(TwmFile file, read_twm(twm));
  if (file.schema != options_.schema)
    return refuse(model_schema_differs, fmt::format("expected a model of feature schema {}, found {}",
                                                    hex64(options_.schema), hex64(file.schema)));
  TW_TRY(Boosters boosters, read(file));
  store_ = {};
  store_.add(seen);
  recent_.clear();
  for (const Sample& sample : seen) recent_.push_back(sample.label);
  while (recent_.size() > parameters_.validity_window) recent_.pop_front();
  if (!seen.empty()) last_task_ = seen.back().task;
  if (file.state.trainings > 0) own_ = std::move(boosters);
  new_ = file.state.fresh;
  last_size_ = file.state.last_size;
  trainings_ = file.state.trainings;
  rank_ = file.state.rank;
  report_ = {};
  report_.samples = store_.size();
  report_.trained_on = last_size_;
  report_.trainings = trainings_;
  report_.held_out = file.held_out;
  set_digest();
  return {};
}

namespace {

Register<CostModelFactory> gbdt{
    "gbdt",
    "boosted trees on feature rows, trained by XGBoost",
    {[](const ModelOptions& options) -> Result<std::unique_ptr<CostModel>> {
      const auto& sets = Registry<TrainingParameters>::instance();
      if (const TrainingParameters* parameters = sets.find(options.parameters))
        return std::make_unique<BoostedTrees>(*parameters, options);
      Refusal refusal(unknown_training_parameters,
                      fmt::format("expected one of the training parameters {}, found \"{}\"",
                                  fmt::join(sets.names(), ", "), options.parameters));
      std::string near = sets.suggestion(options.parameters);
      return refuse(near.empty() ? refusal : refusal.with_help(fmt::format("did you mean \"{}\"?", near)));
    }}};

}  // namespace
}  // namespace tilewright
