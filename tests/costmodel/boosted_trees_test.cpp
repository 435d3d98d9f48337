#include "costmodel/boosted_trees.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/rng.h"

namespace tilewright {
namespace {

constexpr int width = 12;
constexpr Hash64 schema = 0x1234;

/// A candidate of a task whose time depends on features of both of its rows; `failing`: the share with feature 5 set,
/// all of which are invalid.
Sample synthetic(Hash64 task, Hash64 key, double failing = 0) {
  Rng rng = Rng::keyed(99, task, key);
  Sample sample;
  sample.task = task;
  sample.key = hash_combine(7, key);
  sample.rows.width = width;
  double cost = 1;
  for (int r = 0; r < 2; ++r) {
    std::span<float> row = sample.rows.append();
    for (int f = 0; f < 5; ++f) row[static_cast<size_t>(f)] = static_cast<float>(rng.below(8));
    cost += row[0] + 0.5 * std::abs(row[1] - 4) + (row[2] > 5 ? 2 : 0) * (r + 1);
    row[6] = static_cast<float>(r);
  }
  if (rng.chance(failing)) {
    for (int r = 0; r < 2; ++r) sample.rows.values[static_cast<size_t>(r * width + 5)] = 1;
    sample.label = Label::invalid;
  }
  sample.seconds = 1e-4 * cost * static_cast<double>(task);
  return sample;
}

std::vector<Sample> samples(Hash64 task, Hash64 begin, Hash64 end, double failing = 0) {
  std::vector<Sample> out;
  for (Hash64 key = begin; key < end; ++key) out.push_back(synthetic(task, key, failing));
  return out;
}

FeatureBlock block_of(std::span<const Sample> batch) {
  FeatureBlock block;
  for (const Sample& sample : batch) block.append(sample.key, sample.rows);
  return block;
}

std::unique_ptr<CostModel> model(std::string parameters, int threads = 1, Hash64 with_schema = schema) {
  ModelOptions options;
  options.parameters = std::move(parameters);
  options.schema = with_schema;
  options.threads = threads;
  return make_cost_model("gbdt", options).value();
}

double pair_accuracy(const CostModel& m, Hash64 task) {
  std::vector<Sample> fresh = samples(task, 5000, 5200);
  Scores scores;
  m.predict(block_of(fresh), scores);
  double best = INFINITY;
  for (const Sample& s : fresh) best = std::min(best, s.seconds);
  std::vector<ScoredCandidate> set;
  for (size_t i = 0; i < fresh.size(); ++i)
    set.push_back({task, fresh[i].key, scores.mu[i], best / fresh[i].seconds, fresh[i].seconds, 2});
  return model_metric("pair-accuracy", set);
}

Scores predict(const CostModel& m, std::span<const Sample> batch) {
  Scores scores;
  m.predict(block_of(batch), scores);
  return scores;
}

TEST(TrainingTable, LabelsFollowTheBestOfTheirTask) {
  SampleStore store;
  std::vector<Sample> batch(4);
  for (size_t i = 0; i < batch.size(); ++i) batch[i] = synthetic(1, i);
  batch[0].seconds = 2e-3;
  batch[1].seconds = 4e-3;
  batch[2].label = Label::invalid;
  batch[3].label = Label::lower_bound;
  batch[3].seconds = 1e-3;  // shorter than the best measured: the bound says nothing more than y <= 1
  EXPECT_EQ(store.add(batch), 4u);
  EXPECT_EQ(store.valid(), 3u);  // cut short is valid, too
  EXPECT_EQ(store.label(batch[0]), 1);
  EXPECT_EQ(store.label(batch[1]), 0.5);
  EXPECT_EQ(store.label(batch[2]), 0);
  EXPECT_EQ(store.label(batch[3]), 1);
  Sample faster = synthetic(1, 9);
  faster.seconds = 1e-3;
  EXPECT_EQ(store.add(std::vector<Sample>{faster, batch[0]}), 1u);  // the second is known
  EXPECT_EQ(store.label(batch[0]), 0.5);
  EXPECT_EQ(store.best(2), 0);
  batch[0].seconds = 0;
  EXPECT_THROW(store.add(batch), InternalError);
}

TEST(TrainingTable, WhileAllTrialsAreCutShortTheSmallestBoundIsTheBest) {
  SampleStore store;
  std::vector<Sample> batch(2);
  for (size_t i = 0; i < batch.size(); ++i) {
    batch[i] = synthetic(1, i);
    batch[i].label = Label::lower_bound;
    batch[i].seconds = 1e-3 * static_cast<double>(i + 1);
  }
  store.add(batch);
  EXPECT_EQ(store.valid(), 2u);
  EXPECT_EQ(store.label(batch[0]), 1);
  EXPECT_EQ(store.label(batch[1]), 0.5);
  Sample whole = synthetic(1, 9);
  whole.seconds = 4e-3;
  store.add(std::vector<Sample>{whole});
  EXPECT_EQ(store.label(whole), 1);
}

TEST(BoostedTrees, ParametersAreNamed) {
  ModelOptions options;
  options.parameters = "tilewrigth";
  auto refused = make_cost_model("gbdt", options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), "unknown-training-parameters");
  EXPECT_EQ(refused.error().diagnostic().help, "did you mean \"tilewright\"?");
}

TEST(BoostedTrees, FirstTrainingWaitsForEnoughRecords) {
  auto t = model("tilewright"), m = model("metaschedule");
  std::vector<Sample> failures = samples(1, 0, 60, 1.0);
  ASSERT_TRUE(t->update(failures));
  ASSERT_TRUE(m->update(failures));
  EXPECT_FALSE(t->trained());  // 60 records, none valid
  EXPECT_FALSE(m->trained());
  ASSERT_TRUE(t->update(samples(1, 100, 131)));
  EXPECT_FALSE(t->trained());
  ASSERT_TRUE(t->update(samples(1, 131, 132)));
  EXPECT_TRUE(t->trained());
  ASSERT_TRUE(m->update(samples(1, 100, 139)));
  EXPECT_FALSE(m->trained());
  ASSERT_TRUE(m->update(samples(1, 139, 140)));
  EXPECT_TRUE(m->trained());
  EXPECT_EQ(m->report().trainings, 1);
}

TEST(BoostedTrees, TheReferenceRetrainsAfterAFifth) {
  auto m = model("metaschedule");
  ASSERT_TRUE(m->update(samples(1, 0, 100)));
  ASSERT_TRUE(m->update(samples(1, 100, 119)));
  EXPECT_EQ(m->report().trainings, 1);
  Hash64 before = m->digest();
  ASSERT_TRUE(m->update(samples(1, 119, 120)));
  EXPECT_EQ(m->report().trainings, 2);
  EXPECT_EQ(m->report().trained_on, 120u);
  EXPECT_NE(m->digest(), before);
}

TEST(BoostedTrees, BothSetsLearnToRank) {
  for (const char* parameters : {"tilewright", "metaschedule"}) {
    auto m = model(parameters);
    for (Hash64 begin = 0; begin < 400; begin += 100) {
      std::vector<Sample> batch = samples(1, begin, begin + 100), other = samples(2, begin, begin + 100);
      batch.insert(batch.end(), other.begin(), other.end());
      ASSERT_TRUE(m->update(batch));
    }
    EXPECT_GT(pair_accuracy(*m, 1), 0.85) << parameters;
    EXPECT_GT(pair_accuracy(*m, 2), 0.85) << parameters;
    EXPECT_FALSE(m->report().incoming.empty());
  }
}

TEST(BoostedTrees, MeanPredictionIsNearTheMeanLabel) {
  auto m = model("tilewright");
  std::vector<Sample> batch = samples(1, 0, 200);
  ASSERT_TRUE(m->update(batch));
  Scores scores = predict(*m, batch);
  SampleStore store;
  store.add(batch);
  double mu = 0, y = 0;
  for (size_t i = 0; i < batch.size(); ++i) mu += scores.mu[i], y += store.label(batch[i]);
  EXPECT_NEAR(mu / y, 1, 0.1);
  for (float sigma : scores.sigma) EXPECT_TRUE(std::isfinite(sigma) && sigma >= 0);
  EXPECT_GT(*std::max_element(scores.sigma.begin(), scores.sigma.end()), 0);
}

TEST(BoostedTrees, ValidityIsLearntOnceTrialsFail) {
  auto m = model("tilewright");
  ASSERT_TRUE(m->update(samples(1, 0, 100)));
  for (float p : predict(*m, samples(1, 0, 100)).valid) EXPECT_EQ(p, 1);
  ASSERT_TRUE(m->update(samples(1, 100, 300, 0.3)));
  std::vector<Sample> fresh = samples(1, 5000, 5100, 0.5);
  Scores scores = predict(*m, fresh);
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (fresh[i].label == Label::invalid)
      EXPECT_LT(scores.valid[i], 0.2) << i;
    else
      EXPECT_GT(scores.valid[i], 0.8) << i;
  }
}

TEST(BoostedTrees, SameSamplesSameModelWhateverTheirOrderAndTheThreads) {
  std::vector<Sample> batch = samples(1, 0, 150, 0.2), reversed(batch.rbegin(), batch.rend());
  auto a = model("tilewright", 1), b = model("tilewright", 3);
  ASSERT_TRUE(a->update(batch));
  ASSERT_TRUE(b->update(reversed));
  EXPECT_EQ(a->digest(), b->digest());
  EXPECT_EQ(a->save().value(), b->save().value());
}

TEST(BoostedTrees, ARankModelIsTriedAtEveryFourthTraining) {
  auto m = model("tilewright");
  for (Hash64 round = 0; round < 4; ++round) ASSERT_TRUE(m->update(samples(1, round * 50, round * 50 + 50)));
  EXPECT_EQ(m->report().trainings, 4);
  EXPECT_TRUE(m->report().objective == "p-rmse" || m->report().objective == "lambdarank");
  EXPECT_GT(pair_accuracy(*m, 1), 0.8);
}

TEST(Objective, LambdarankOrdersATask) {
  SampleStore store;
  std::vector<Sample> batch = samples(1, 0, 300);
  store.add(batch);
  TrainingTable table;
  for (const auto& [id, sample] : store.samples()) table.append(sample, store.label(sample), 1);
  BoostPlan plan{&find_objective("lambdarank"), {.max_depth = 6, .eta = 0.2f}, 40, 0};
  BoostOutcome outcome = boost(table, {}, plan).value();
  TreeEvaluator trees = TreeEvaluator::parse(outcome.json).value();
  std::vector<double> scores = table.scores(trees.predict({table.values, table.width}));
  EXPECT_GT(model_metric("pair-accuracy", table.scored(scores)), 0.9);
}

TEST(Boosting, StopsAtTheBestHeldOutRound) {
  SampleStore store;
  std::vector<Sample> batch = samples(1, 0, 120);
  for (Sample& s : batch) s.seconds *= 1 + 0.5 * Rng(s.key).uniform();  // noise: more rounds overfit
  store.add(batch);
  TrainingTable all;
  for (const auto& [id, sample] : store.samples()) all.append(sample, store.label(sample), 1);
  TrainingTable train = all.filtered([](size_t i) { return i % 3 != 0; }),
                held = all.filtered([](size_t i) { return i % 3 == 0; });
  EXPECT_EQ(train.candidates() + held.candidates(), all.candidates());
  BoostPlan plan{&find_objective("p-rmse"), {.max_depth = 6, .eta = 0.3f}, 200, 10};
  BoostOutcome outcome = boost(train, held, plan).value();
  EXPECT_EQ(outcome.grown, outcome.best_rounds + 10);
  TreeEvaluator trees = TreeEvaluator::parse(outcome.json).value();
  auto error_after = [&](int rounds) {
    std::vector<float> margins = trees.first(static_cast<size_t>(rounds)).predict({held.values, held.width});
    return model_metric("p-rmse", held.scored(held.scores(margins)));
  };
  for (int rounds = 0; rounds <= outcome.grown; ++rounds)
    EXPECT_GE(error_after(rounds), error_after(outcome.best_rounds));
}

TEST(Twm, SavedModelPredictsTheSame) {
  auto m = model("tilewright");
  EXPECT_EQ(m->save().error().code(), "model-not-trained");
  ASSERT_TRUE(m->update(samples(1, 0, 120, 0.2)));
  std::string file = m->save().value();
  auto loaded = model("tilewright");
  ASSERT_TRUE(loaded->load(file));
  std::vector<Sample> fresh = samples(1, 5000, 5050);
  EXPECT_EQ(predict(*loaded, fresh).mu, predict(*m, fresh).mu);
  EXPECT_EQ(predict(*loaded, fresh).sigma, predict(*m, fresh).sigma);
  EXPECT_EQ(predict(*loaded, fresh).valid, predict(*m, fresh).valid);
  auto other = model("tilewright", 1, schema + 1);
  EXPECT_EQ(other->load(file).error().code(), "model-schema-differs");
}

TEST(Twm, DamageIsRefused) {
  auto m = model("metaschedule");
  ASSERT_TRUE(m->update(samples(1, 0, 100)));
  std::string file = m->save().value();
  std::string flipped = file;
  flipped[flipped.size() - 10] ^= 4;
  auto loaded = model("metaschedule");
  for (const std::string& bad : {std::string(), std::string("TWM2"), file.substr(0, 6), file.substr(0, 100),
                                 file.substr(0, file.size() - 5), flipped})
    EXPECT_FALSE(loaded->load(bad));
  EXPECT_EQ(loaded->load("junk").error().code(), "model-file-damaged");
  EXPECT_TRUE(loaded->load(file));
}

TEST(Twm, ResumeContinuesAsIfNothingHadHappened) {
  for (const char* parameters : {"tilewright", "metaschedule"}) {
    std::vector<Sample> seen = samples(1, 0, 110), next = samples(1, 110, 140);
    auto straight = model(parameters), resumed = model(parameters);
    ASSERT_TRUE(straight->update(seen));
    ASSERT_TRUE(resumed->resume(seen, straight->save().value()));
    EXPECT_EQ(resumed->digest(), straight->digest());
    ASSERT_TRUE(straight->update(next));
    ASSERT_TRUE(resumed->update(next));
    EXPECT_EQ(resumed->digest(), straight->digest()) << parameters;
    EXPECT_EQ(resumed->report().trainings, straight->report().trainings);
  }
}

TEST(Transfer, ABaseHelpsAtFirstAndFades) {
  auto teacher = model("tilewright");
  ASSERT_TRUE(teacher->update(samples(1, 0, 400)));
  auto student = model("tilewright");
  ASSERT_TRUE(student->load(teacher->save().value()));
  EXPECT_TRUE(student->trained());
  EXPECT_GT(pair_accuracy(*student, 3), 0.85);  // a task it has never seen
  ASSERT_TRUE(student->update(samples(3, 0, 40)));
  auto alone = model("tilewright");
  ASSERT_TRUE(alone->update(samples(3, 0, 40)));
  EXPECT_GT(pair_accuracy(*student, 3), pair_accuracy(*alone, 3));
  ASSERT_TRUE(student->update(samples(3, 40, 400)));  // 2^(-400/64) is below 0.05
  ASSERT_TRUE(alone->update(samples(3, 40, 400)));
  EXPECT_EQ(student->digest(), alone->digest());
}

}  // namespace
}  // namespace tilewright
