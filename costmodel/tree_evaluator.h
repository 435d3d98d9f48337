// TreeEvaluator: predicts with a trained booster, without the library that trained it. Bit-identical to XGBoost's
// margins (base score first, then the trees in order, all in float32) and several times faster on small batches.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "costmodel/gbdt.h"

namespace tilewright {

class TreeEvaluator {
 public:
  /// From a booster in XGBoost's JSON form (1.x; gbtree with one output). Refuses model-file-damaged.
  static Result<TreeEvaluator> parse(std::string_view json);

  /// One margin per row. Features are finite and rows at least as wide as the booster's highest feature.
  void predict(RowMatrix rows, std::span<float> out) const;
  std::vector<float> predict(RowMatrix rows) const;

  /// The same booster cut to its first `rounds` trees.
  TreeEvaluator first(size_t rounds) const;

  size_t trees() const { return trees_.size(); }
  float base_score() const { return base_score_; }
  int width() const { return width_; }  ///< smallest width of rows that can be predicted

 private:
  // A step goes to `left` if x[slot] < threshold, else to left + 1. A leaf has threshold +inf and itself as left, so a
  // walk of fixed length needs no test for leaves.
  struct Node {
    float threshold;
    uint16_t slot;
    uint16_t left;
  };
  struct Tree {
    uint32_t first;  // into nodes_ and values_
    uint32_t depth;
  };
  friend struct TreeReader;

  std::vector<Node> nodes_;
  std::vector<float> values_;  // of leaves; 0 at inner nodes
  std::vector<Tree> trees_;
  std::vector<uint32_t> features_;  // slot → feature
  float base_score_ = 0;
  int width_ = 0;
};

}  // namespace tilewright
