// TreeTrainer: the narrow door to the boosted-tree library. Everything that is ours (labels, objectives, stopping,
// prediction) works through it and without that library; its one implementation is gbdt.cpp, in the component "gbdt".
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

/// Row-major float32 rows, all finite. Values are copied by whoever keeps them.
struct RowMatrix {
  std::span<const float> values;
  int width = 0;
  size_t rows() const { return width == 0 ? 0 : values.size() / static_cast<size_t>(width); }
};

/// Parameters of the library (XGBoost's names); what is not here is the same for every training, see gbdt.cpp.
struct TreeParameters {
  int max_depth = 6;
  float min_child_weight = 1;
  float gamma = 0;
  float eta = 0.3f;
  float lambda = 1;
  float subsample = 1;
  float base_score = 0;  ///< added once per row
  int max_bin = 256;
  uint32_t seed = 43;
};

/// One booster under training, one thread. Same parameters, rows and gradients give the same booster, to the byte.
struct TreeTrainer {
  virtual ~TreeTrainer() = default;
  /// Sum of base score and trees for each training row; valid until the next call.
  virtual std::span<const float> margins() = 0;
  /// The same for the held-out rows given at construction.
  virtual std::span<const float> held_out_margins() = 0;
  /// Grows one tree from gradient and hessian of every training row.
  virtual void boost(std::span<float> gradient, std::span<float> hessian) = 0;
  /// The library's own prediction of fresh rows: the oracle for tree_evaluator, and slow.
  virtual std::vector<float> predict(RowMatrix rows) = 0;
  /// The booster in the library's JSON form (tree_evaluator.h reads it).
  virtual std::string save_json() = 0;
};

struct TreeTrainerFactory {
  static constexpr const char* registry_name = "tree trainer";
  std::unique_ptr<TreeTrainer> (*make)(const TreeParameters&, RowMatrix train, RowMatrix held_out);
};

/// Opens the component on first use; the only refusal is component-missing.
Result<std::unique_ptr<TreeTrainer>> make_tree_trainer(const TreeParameters&, RowMatrix train, RowMatrix held_out = {});

}  // namespace tilewright
