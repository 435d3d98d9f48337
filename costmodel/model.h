// CostModel: learns from measured candidates and scores unmeasured ones. Read this first, then boosted_trees.h (the
// model "gbdt"), tree_evaluator.h (its predictor), metrics.h (how good a model is). A model is a pure function of the
// samples it was given: same samples in the same batches, same scores, for any thread count.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "costmodel/feature_block.h"
#include "costmodel/metrics.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(unknown_cost_model, "unknown-cost-model", "no cost model of that name is registered");
TW_REFUSAL_CODE(unknown_training_parameters, "unknown-training-parameters",
                "no set of training parameters has that name");
TW_REFUSAL_CODE(model_file_damaged, "model-file-damaged", "a model file cannot be read");
TW_REFUSAL_CODE(model_schema_differs, "model-schema-differs", "a model was trained on another feature schema");
TW_REFUSAL_CODE(model_not_trained, "model-not-trained", "a model that has not been trained cannot be saved");

/// What a trial tells the model. Trials whose status says nothing about the candidate (device lost, cancelled, …) are
/// no samples.
enum class Label : uint8_t {
  measured,     ///< `seconds` is the measured time
  lower_bound,  ///< the trial was cut short; `seconds` is a lower bound of its time
  invalid,      ///< the candidate cannot be built or run, or is wrong; `seconds` is not used
};

struct Sample {
  Hash64 task = 0;  ///< program × target
  Hash64 key = 0;   ///< the candidate within the task; a later sample of the same (task, key) replaces the earlier one
  FeatureRows rows;
  Label label = Label::measured;
  double seconds = 0;  ///< > 0 unless invalid
};

/// One value per candidate of the block that was scored.
struct Scores {
  std::vector<float> mu;     ///< predicted y = best/time of the task; higher is faster, about [0, 1] once trained
  std::vector<float> sigma;  ///< spread of mu between bagged models; 0 if the model has none
  std::vector<float>
      valid;  ///< probability that the candidate builds, runs and is right; 1 if the model does not learn it
  void resize(size_t n) {
    mu.assign(n, 0.0f);
    sigma.assign(n, 0.0f);
    valid.assign(n, 1.0f);
  }
};

/// How well a model does, for the journal: metrics of metrics.h by name.
struct ModelReport {
  size_t samples = 0, trained_on = 0;
  int trainings = 0, trees = 0;
  std::string objective;
  std::vector<MetricValue>
      incoming;  ///< the latest batch, predicted before it was trained on; empty before the first training
  std::vector<MetricValue> held_out;  ///< of the latest training
};

struct CostModel {
  virtual ~CostModel() = default;
  /// Takes the settled trials of one round and retrains when the model's rule says so (a rule of counts, never of
  /// time).
  virtual Status update(std::span<const Sample>) = 0;
  /// Thread-safe between updates. Sizes `scores` to the block.
  virtual void predict(const FeatureBlock&, Scores& scores) const = 0;
  /// False while scores carry no knowledge (the strategy then ranks by draft, or at random).
  virtual bool trained() const = 0;
  /// Changes exactly when predictions may change; journaled per round.
  virtual Hash64 digest() const = 0;
  /// The bytes of a .twm file (twm.h). Samples are not inside.
  virtual Result<std::string> save() const = 0;
  /// Starts from a model of other runs (transfer); its weight fades as samples of this run arrive.
  virtual Status load(std::string_view twm) = 0;
  /// Becomes what the model was that took `seen` through update() and then wrote `twm`, without training again.
  virtual Status resume(std::span<const Sample> seen, std::string_view twm) = 0;
  virtual ModelReport report() const { return {}; }
};

struct ModelOptions {
  std::string parameters = "tilewright";  ///< training parameters: "tilewright" or "metaschedule" (boosted_trees.h)
  Hash64 schema = 0;                      ///< FeatureSchema::hash of the rows
  std::string target_kind, dtype_class;   ///< stored in model files; one model per pair
  uint64_t seed = 43;                     ///< of the model "random"
  int threads = 1;                        ///< boosters trained at the same time; results do not depend on it
  bool spread = true;                     ///< sigma is wanted; without, its boosters are not trained and it is 0
};

struct CostModelFactory {
  static constexpr const char* registry_name = "cost model";
  Result<std::unique_ptr<CostModel>> (*make)(const ModelOptions&);
};

/// Names: "gbdt" (boosted trees), "random" (uniform scores), "none" (all scores 0).
Result<std::unique_ptr<CostModel>> make_cost_model(std::string_view name, const ModelOptions& = {});

}  // namespace tilewright
