#include "costmodel/tree_evaluator.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>

#include "costmodel/model.h"
#include "support/json.h"

namespace tilewright {

namespace {

// Numbers are parsed straight to float: through double, a decimal could be rounded twice.
using FloatJson = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t, std::uint64_t, float>;

constexpr size_t block_rows = 64;  // a block's features stay in the first-level cache: 64 × 216 × 4 B
constexpr size_t lanes = 16;       // independent walks that hide each other's load latency

}  // namespace

/// Renumbers the library's nodes breadth first, so that siblings are neighbours.
struct TreeReader {
  TreeEvaluator& out;
  std::map<int, uint16_t> slots;  // feature → slot

  void read(const FloatJson& tree) {
    auto left = tree.at("left_children").get<std::vector<int>>();
    auto right = tree.at("right_children").get<std::vector<int>>();
    auto feature = tree.at("split_indices").get<std::vector<int>>();
    auto value = tree.at("split_conditions").get<std::vector<float>>();
    size_t n = left.size();
    if (n == 0 || right.size() != n || feature.size() != n || value.size() != n)
      throw std::runtime_error("node arrays of a tree differ in length");
    if (n > std::numeric_limits<uint16_t>::max()) throw std::runtime_error(fmt::format("a tree has {} nodes", n));
    uint32_t first = static_cast<uint32_t>(out.nodes_.size()), depth = 0;
    std::vector<int> order{0};
    for (size_t begin = 0; begin < order.size(); ++depth) {
      size_t end = order.size();
      for (size_t i = begin; i < end; ++i) {
        size_t node = static_cast<size_t>(order[i]);
        if (left[node] < 0) {
          out.nodes_.push_back({std::numeric_limits<float>::infinity(), 0, static_cast<uint16_t>(i)});
          out.values_.push_back(value[node]);
          continue;
        }
        out.nodes_.push_back({value[node], slot_of(feature[node]), static_cast<uint16_t>(order.size())});
        out.values_.push_back(0);
        for (int child : {left[node], right[node]}) {
          if (child < 0 || static_cast<size_t>(child) >= n || order.size() >= n)
            throw std::runtime_error("children of a tree's nodes do not form a tree");
          order.push_back(child);
        }
      }
      begin = end;
    }
    out.trees_.push_back({first, depth - 1});
  }

  uint16_t slot_of(int feature) {
    if (feature < 0 || feature > 65535) throw std::runtime_error(fmt::format("a tree splits on feature {}", feature));
    auto [it, fresh] = slots.emplace(feature, static_cast<uint16_t>(slots.size()));
    if (fresh) {
      out.features_.push_back(static_cast<uint32_t>(feature));
      out.width_ = std::max(out.width_, feature + 1);
    }
    return it->second;
  }
};

Result<TreeEvaluator> TreeEvaluator::parse(std::string_view json) {
  try {
    FloatJson model = FloatJson::parse(json);
    const FloatJson& learner = model.at("learner");
    const FloatJson& booster = learner.at("gradient_booster");
    if (booster.at("name") != "gbtree") throw std::runtime_error("the booster is not gbtree");
    TreeEvaluator out;
    out.base_score_ =
        std::strtof(learner.at("learner_model_param").at("base_score").get<std::string>().c_str(), nullptr);
    TreeReader reader{out, {}};
    for (const FloatJson& tree : booster.at("model").at("trees")) reader.read(tree);
    return out;
  } catch (const std::exception& error) {
    return refuse(model_file_damaged, fmt::format("cannot read a booster: {}", error.what()));
  }
}

TreeEvaluator TreeEvaluator::first(size_t rounds) const {
  TreeEvaluator out = *this;
  out.trees_.resize(std::min(rounds, trees_.size()));
  return out;
}

void TreeEvaluator::predict(RowMatrix rows, std::span<float> out) const {
  TW_CHECK(rows.width >= width_, "rows have {} features, the booster needs {}", rows.width, width_);
  TW_CHECK(out.size() == rows.rows(), "expected {} outputs, found {}", rows.rows(), out.size());
  std::fill(out.begin(), out.end(), base_score_);
  if (features_.empty()) {  // constant trees
    for (const Tree& tree : trees_)
      for (float& margin : out) margin += values_[tree.first];
    return;
  }
  std::vector<float> columns(features_.size() * block_rows);
  for (size_t begin = 0; begin < out.size(); begin += block_rows) {
    size_t count = std::min(block_rows, out.size() - begin);
    for (size_t r = 0; r < block_rows; ++r) {  // a short block repeats its last row
      const float* row = rows.values.data() + (begin + std::min(r, count - 1)) * static_cast<size_t>(rows.width);
      for (size_t slot = 0; slot < features_.size(); ++slot) columns[slot * block_rows + r] = row[features_[slot]];
    }
    for (size_t group = 0; group < count; group += lanes) {
      std::array<float, lanes> sum;
      sum.fill(base_score_);
      const float* x = columns.data() + group;
      for (const Tree& tree : trees_) {
        const Node* nodes = nodes_.data() + tree.first;
        std::array<uint32_t, lanes> at{};
        for (uint32_t step = 0; step < tree.depth; ++step)
          for (size_t lane = 0; lane < lanes; ++lane) {
            const Node& node = nodes[at[lane]];
            at[lane] = node.left + static_cast<uint32_t>(!(x[node.slot * block_rows + lane] < node.threshold));
          }
        for (size_t lane = 0; lane < lanes; ++lane) sum[lane] += values_[tree.first + at[lane]];
      }
      std::copy_n(sum.begin(), std::min(lanes, count - group),
                  out.begin() + static_cast<std::ptrdiff_t>(begin + group));
    }
  }
}

std::vector<float> TreeEvaluator::predict(RowMatrix rows) const {
  std::vector<float> out(rows.rows());
  predict(rows, out);
  return out;
}

}  // namespace tilewright
