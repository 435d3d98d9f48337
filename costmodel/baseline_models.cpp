// The two models without knowledge: "random" (baseline of every comparison) and "none" (the draft alone decides).
#include "costmodel/model.h"
#include "support/rng.h"

namespace tilewright {
namespace {

struct UntrainedModel : CostModel {
  Status update(std::span<const Sample> batch) override {
    if (!batch.empty()) ++updates_;
    return {};
  }
  bool trained() const override { return false; }
  Result<std::string> save() const override {
    return refuse(model_not_trained, "this cost model learns nothing, there is nothing to save");
  }
  Status load(std::string_view) override {
    return refuse(model_not_trained, "this cost model learns nothing, it cannot load a model file");
  }
  Status resume(std::span<const Sample> seen, std::string_view) override { return update(seen); }

 protected:
  uint64_t updates_ = 0;
};

class NoModel final : public UntrainedModel {
 public:
  void predict(const FeatureBlock& block, Scores& scores) const override { scores.resize(block.candidates()); }
  Hash64 digest() const override { return 0; }
};

/// A score is a function of (seed, round, candidate key), so it does not depend on the order of calls or on threads.
class RandomModel final : public UntrainedModel {
 public:
  explicit RandomModel(uint64_t seed) : seed_(seed) {}
  void predict(const FeatureBlock& block, Scores& scores) const override {
    scores.resize(block.candidates());
    for (size_t i = 0; i < block.candidates(); ++i)
      scores.mu[i] = static_cast<float>(Rng::keyed(seed_, updates_, block.keys[i]).uniform());
  }
  Hash64 digest() const override { return hash_combine(seed_, updates_); }

 private:
  uint64_t seed_;
};

Register<CostModelFactory> none{
    "none",
    "scores every candidate 0: the draft model alone decides",
    {[](const ModelOptions&) -> Result<std::unique_ptr<CostModel>> { return std::make_unique<NoModel>(); }}};
Register<CostModelFactory> random{"random",
                                  "scores every candidate uniformly at random: the baseline of comparisons",
                                  {[](const ModelOptions& options) -> Result<std::unique_ptr<CostModel>> {
                                    return std::make_unique<RandomModel>(options.seed);
                                  }}};

}  // namespace
}  // namespace tilewright
