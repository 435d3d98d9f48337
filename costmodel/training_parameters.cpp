#include "costmodel/training_parameters.h"

#include <limits>

namespace tilewright {

const TrainingParameters::Stage& TrainingParameters::stage(size_t samples) const {
  for (const Stage& stage : stages)
    if (samples < stage.below) return stage;
  TW_UNREACHABLE("training parameters without a last stage");
}

namespace {

constexpr size_t any = std::numeric_limits<size_t>::max();

Register<TrainingParameters> tilewright_set{
    "tilewright", "few samples, held-out stopping, bagged spread, learnt validity", [] {
      TrainingParameters p;
      p.stages = {{300, 6, 60, 0.8f}, {4000, 8, 120, 0.9f}, {any, 8, 150, 0.9f}};
      p.min_child_weight = 2;
      p.mean_base_score = true;
      p.weight_floor = 0.1;
      p.hold_out = true;
      p.patience = 15;
      p.first_valid = 32;
      p.every_round_up_to = 512;  // a round of 32 changes little by then, and training costs a second
      p.retrain_share = 0.1;
      p.random_others = 2000;
      p.objective = "auto";
      p.bagged = 4;
      p.learn_validity = true;
      return p;
    }()};

// As TVM MetaSchedule trains, but for threads: one here, since a second gains nothing at these sizes (measured) and
// equal results for any number of threads are not promised by the library.
Register<TrainingParameters> metaschedule_set{"metaschedule",
                                              "the reference's training: deep trees, training-set stopping", [] {
                                                TrainingParameters p;
                                                p.stages = {{any, 10, 10000, 1.0f}};
                                                p.gamma = 0.001f;
                                                p.patience = 50;
                                                p.first_records = 100;
                                                return p;
                                              }()};

}  // namespace
}  // namespace tilewright
