#include "costmodel/tree_evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/rng.h"

namespace tilewright {
namespace {

constexpr int width = 20;

/// Rows like real features: many zeros, a few columns with few values, columns on a log scale, ties with thresholds.
std::vector<float> random_rows(size_t n, Rng rng) {
  std::vector<float> values(n * width);
  for (size_t i = 0; i < n; ++i)
    for (int f = 0; f < width; ++f) {
      float& x = values[i * width + f];
      if (f % 4 == 0)
        x = rng.chance(0.8) ? 0.0f : 1.0f;
      else if (f % 4 == 1)
        x = std::log2(1.0f + static_cast<float>(rng.below(4096)));
      else if (f % 4 == 2)
        x = static_cast<float>(rng.between(-3, 3));
      else
        x = static_cast<float>(rng.uniform() * 1e-3 - 5e-4);
    }
  return values;
}

float target(const float* x) { return 0.1f * x[1] - 0.2f * x[2] * x[0] + 300 * x[3] + (x[5] > 6 ? 1.0f : 0.0f) * x[6]; }

std::unique_ptr<TreeTrainer> trained(const TreeParameters& parameters, std::vector<float>& rows, int rounds) {
  RowMatrix matrix{rows, width};
  auto trainer = make_tree_trainer(parameters, matrix).value();
  std::vector<float> g(matrix.rows()), h(matrix.rows(), 1.0f);
  for (int round = 0; round < rounds; ++round) {
    std::span<const float> margins = trainer->margins();
    for (size_t i = 0; i < g.size(); ++i) g[i] = margins[i] - target(rows.data() + i * width);
    trainer->boost(g, h);
  }
  return trainer;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

TEST(TreeEvaluator, EqualsXgboostToTheBit) {
  std::vector<float> rows = random_rows(3000, Rng(1)), fresh = random_rows(10007, Rng(2));
  struct Case {
    TreeParameters parameters;
    int rounds;
  };
  std::vector<Case> cases(6);
  cases[0] = {{.max_depth = 6, .base_score = 0.3f}, 60};
  cases[1] = {{.max_depth = 10, .min_child_weight = 0, .gamma = 0.001f, .eta = 0.2f, .base_score = 0.5f}, 40};
  cases[2] = {{.max_depth = 8, .eta = 0.2f, .subsample = 0.8f, .base_score = -0.1234567f}, 150};
  cases[3] = {{.max_depth = 1, .base_score = 1e-7f}, 30};
  cases[4] = {{.max_depth = 4, .gamma = 1e9f, .base_score = 0.25f}, 5};  // nothing splits: constant trees
  cases[5] = {{.max_depth = 6}, 0};                                      // no tree at all
  for (const Case& c : cases) {
    auto trainer = trained(c.parameters, rows, c.rounds);
    auto evaluator = TreeEvaluator::parse(trainer->save_json());
    ASSERT_TRUE(evaluator) << render_text(evaluator.error().diagnostic());
    EXPECT_EQ(evaluator->trees(), static_cast<size_t>(c.rounds));
    std::vector<float> ours = evaluator->predict({fresh, width});
    EXPECT_TRUE(same_bits(ours, trainer->predict({fresh, width}))) << "depth " << c.parameters.max_depth;
    EXPECT_TRUE(same_bits(evaluator->predict({rows, width}), trainer->margins()));
  }
}

TEST(TreeEvaluator, AnyNumberOfRowsAndWiderRowsGiveTheSameMargins) {
  std::vector<float> rows = random_rows(500, Rng(3));
  auto trainer = trained({.max_depth = 5}, rows, 20);
  TreeEvaluator evaluator = TreeEvaluator::parse(trainer->save_json()).value();
  std::vector<float> all = evaluator.predict({rows, width});
  for (size_t n : {0, 1, 15, 16, 17, 63, 64, 65, 130}) {
    std::vector<float> some = evaluator.predict({std::span(rows).first(n * width), width});
    EXPECT_TRUE(same_bits(some, std::span(all).first(n))) << n;
  }
  std::vector<float> wide;
  for (size_t i = 0; i < 500; ++i) {
    wide.insert(wide.end(), rows.begin() + static_cast<std::ptrdiff_t>(i * width),
                rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    wide.push_back(1e9f);
  }
  EXPECT_TRUE(same_bits(evaluator.predict({wide, width + 1}), all));
  EXPECT_THROW(evaluator.predict({std::span(rows).first(3), 3}), InternalError);
}

TEST(TreeEvaluator, DamagedBoostersAreRefused) {
  std::vector<float> rows = random_rows(200, Rng(4));
  std::string json = trained({.max_depth = 3}, rows, 2)->save_json();
  EXPECT_TRUE(TreeEvaluator::parse(json));
  auto replaced = [&](std::string_view from, std::string_view to) {
    std::string text = json;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  };
  for (std::string bad : {json.substr(0, json.size() / 2), std::string("{}"), replaced("\"gbtree\"", "\"dart\""),
                          replaced("\"left_children\":[1", "\"left_children\":[0"),
                          replaced("\"left_children\":[1", "\"left_children\":[99"),
                          replaced("\"split_indices\":[", "\"split_indices\":[-5,")}) {
    auto result = TreeEvaluator::parse(bad);
    ASSERT_FALSE(result) << bad.substr(0, 100);
    EXPECT_EQ(result.error().code(), "model-file-damaged");
  }
}

TEST(TreeTrainer, SameInputSameBoosterToTheByteAlsoBesideAnotherTraining) {
  std::vector<float> rows = random_rows(600, Rng(5));
  TreeParameters parameters{.max_depth = 6, .subsample = 0.7f};
  std::string alone = trained(parameters, rows, 10)->save_json();
  RowMatrix matrix{rows, width};
  auto a = make_tree_trainer(parameters, matrix).value(), b = make_tree_trainer(parameters, matrix).value();
  std::vector<float> g(matrix.rows()), h(matrix.rows(), 1.0f);
  for (int round = 0; round < 10; ++round)
    for (TreeTrainer* trainer : {a.get(), b.get()}) {
      std::span<const float> margins = trainer->margins();
      for (size_t i = 0; i < g.size(); ++i) g[i] = margins[i] - target(rows.data() + i * width);
      trainer->boost(g, h);
    }
  EXPECT_EQ(a->save_json(), alone);
  EXPECT_EQ(b->save_json(), alone);
}

TEST(TreeTrainer, HeldOutMarginsFollowTheTrees) {
  std::vector<float> rows = random_rows(600, Rng(6)), held_out = random_rows(100, Rng(7));
  RowMatrix matrix{rows, width};
  auto trainer =
      make_tree_trainer({.max_depth = 6, .subsample = 0.8f, .base_score = 0.5f}, matrix, {held_out, width}).value();
  std::vector<float> g(matrix.rows()), h(matrix.rows(), 1.0f);
  EXPECT_EQ(trainer->held_out_margins()[0], 0.5f);
  for (int round = 0; round < 5; ++round) {
    std::span<const float> margins = trainer->margins();
    for (size_t i = 0; i < g.size(); ++i) g[i] = margins[i] - target(rows.data() + i * width);
    trainer->boost(g, h);
    std::span<const float> followed = trainer->held_out_margins();
    EXPECT_TRUE(same_bits(std::vector<float>(followed.begin(), followed.end()), trainer->predict({held_out, width})));
  }
  std::vector<float> with_nan = rows;
  with_nan[5] = NAN;
  EXPECT_THROW((void)make_tree_trainer({}, {with_nan, width}), InternalError);
}

}  // namespace
}  // namespace tilewright
