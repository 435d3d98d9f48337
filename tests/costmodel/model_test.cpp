#include "costmodel/model.h"

#include <gtest/gtest.h>

#include <set>

namespace tilewright {
namespace {

FeatureRows rows_of(int width, std::vector<float> values) { return {width, std::move(values)}; }

FeatureBlock some_block() {
  FeatureBlock block;
  for (Hash64 key = 0; key < 100; ++key) block.append(key, rows_of(2, {1, 2, 3, 4}));
  return block;
}

TEST(FeatureBlock, KeepsTheRowsOfEachCandidateTogether) {
  FeatureBlock block;
  block.append(7, rows_of(2, {1, 2, 3, 4}));
  block.append(8, rows_of(2, {5, 6}));
  EXPECT_EQ(block.candidates(), 2u);
  EXPECT_EQ(block.rows(), 3u);
  EXPECT_EQ(block.offsets, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_THROW(block.append(9, rows_of(3, {1, 2, 3})), InternalError);
}

TEST(Models, AnUnknownNameIsAnsweredWithTheNearestOne) {
  auto model = make_cost_model("randm");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().code(), "unknown-cost-model");
  EXPECT_EQ(model.error().diagnostic().help, "did you mean \"random\"?");
}

TEST(Models, NoneScoresZero) {
  auto model = make_cost_model("none").value();
  Scores scores;
  model->predict(some_block(), scores);
  EXPECT_EQ(scores.mu, std::vector<float>(100, 0.0f));
  EXPECT_EQ(scores.valid, std::vector<float>(100, 1.0f));
  EXPECT_FALSE(model->trained());
  EXPECT_EQ(model->save().error().code(), "model-not-trained");
}

TEST(Models, RandomDependsOnSeedRoundAndKeyAlone) {
  ModelOptions options;
  options.seed = 5;
  auto a = make_cost_model("random", options).value(), b = make_cost_model("random", options).value();
  Scores first, second, other;
  a->predict(some_block(), first);
  b->predict(some_block(), second);
  b->predict(some_block(), second);
  EXPECT_EQ(first.mu, second.mu);
  EXPECT_EQ(std::set<float>(first.mu.begin(), first.mu.end()).size(), 100u);
  for (float mu : first.mu) EXPECT_TRUE(mu >= 0 && mu < 1);
  ASSERT_TRUE(b->update(std::vector<Sample>(1)));
  b->predict(some_block(), other);
  EXPECT_NE(first.mu, other.mu);
  EXPECT_NE(a->digest(), b->digest());
}

}  // namespace
}  // namespace tilewright
