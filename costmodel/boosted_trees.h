// The cost model "gbdt": boosted trees on feature rows, a candidate's score being the sum over its rows (pack-sum).
// Reading order: training_parameters.h (the numbers), training_table.h (labels), objective.h, boosting.h (one
// training), tree_evaluator.h (prediction). This file decides when to train, on what, and how boosters combine:
//   mu     weighted sum of boosters: the one trained here and, if a model file was loaded, that model's with weight
//   2^(-n/64),
//          whose rest the trees learn (n = samples of this run; dropped below 0.05)
//   sigma  standard deviation between boosters trained on bagged candidates (Poisson weights drawn from the key)
//   valid  a logistic booster on one summed row per candidate, once enough trials fail
// Objective "auto" is p-rmse; at every 4th training a rank model is tried and then used while its held-out a-peak@32 is
// at least 0.01 better. Scores of a rank model order candidates but are not on the scale of y.
#pragma once

#include <deque>
#include <optional>

#include "costmodel/boosting.h"
#include "costmodel/model.h"
#include "costmodel/training_parameters.h"
#include "costmodel/tree_evaluator.h"
#include "costmodel/twm.h"

namespace tilewright {

class BoostedTrees final : public CostModel {
 public:
  BoostedTrees(const TrainingParameters&, const ModelOptions&);

  Status update(std::span<const Sample>) override;
  void predict(const FeatureBlock&, Scores&) const override;
  bool trained() const override { return !current().mu.empty(); }
  Hash64 digest() const override { return digest_; }
  ModelReport report() const override { return report_; }
  Result<std::string> save() const override;
  Status load(std::string_view twm) override;
  Status resume(std::span<const Sample> seen, std::string_view twm) override;

 private:
  /// An evaluator beside the text it was read from, which model files keep.
  struct Booster {
    double weight;
    std::string json;
    TreeEvaluator trees;
  };
  struct Boosters {
    std::vector<Booster> mu, bagged;
    std::optional<Booster> valid;
  };

  const Boosters& current() const { return own_.mu.empty() ? base_ : own_; }
  bool should_train() const;
  Status train();
  TrainingTable table() const;
  Result<Booster> fit(const TrainingTable&, std::string_view objective, int rounds) const;
  Result<Booster> train_mu(const TrainingTable&);
  Result<std::vector<Booster>> train_bagged(const TrainingTable&) const;
  Result<Booster> train_valid() const;
  TreeParameters tree_parameters(const TrainingTable&) const;
  void report_incoming(std::span<const Sample>);
  void set_digest();
  TwmFile file() const;
  static Result<Boosters> read(const TwmFile&);

  const TrainingParameters& parameters_;
  ModelOptions options_;
  SampleStore store_;
  std::deque<Label> recent_;  // labels of the last validity_window samples
  Hash64 last_task_ = 0;      // task of the latest sample
  size_t new_ = 0, last_size_ = 0;
  int trainings_ = 0;
  bool rank_ = false;  // objective auto: the rank model is in use
  Boosters own_, base_;
  Hash64 digest_ = 0;
  ModelReport report_;
};

}  // namespace tilewright
