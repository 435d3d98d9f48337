// Statistics, adaptive repeats and the shoot-out on scripted devices: no clock, no processes.
#include <gtest/gtest.h>

#include <cmath>

#include "measure/timing/adaptive.h"
#include "measure/timing/shootout.h"
#include "measure/timing/statistics.h"
#include "support/rng.h"

namespace tilewright::measure {
namespace {

double normal(Rng& rng) { return std::sqrt(-2 * std::log(1 - rng.uniform())) * std::cos(2 * M_PI * rng.uniform()); }

TEST(Statistics, TheIntervalOfTheMedianCoversItAtLeast95Percent) {
  const uint64_t seed = 7;
  Rng rng(seed);
  for (size_t n : {6u, 10u, 30u, 100u}) {
    int covered = 0;
    for (int trial = 0; trial < 2000; ++trial) {
      std::vector<double> x;
      for (size_t i = 0; i < n; ++i) x.push_back(std::exp(normal(rng)));  // median 1, skewed
      Interval ci = summarize(x).ci;
      covered += ci.lo <= 1 && 1 <= ci.hi;
    }
    EXPECT_GE(covered, 1880) << "n = " << n << ", seed " << seed;
  }
}

TEST(Statistics, ALargerSampleGivesANarrowerInterval) {
  Rng rng(8);
  std::vector<double> x;
  for (int i = 0; i < 400; ++i) x.push_back(normal(rng));
  Interval few = summarize(std::span(x).first(20)).ci, many = summarize(x).ci;
  EXPECT_LT(many.hi - many.lo, few.hi - few.lo);
}

TEST(Statistics, OutliersAreMarkedAndDoNotMoveTheMedian) {
  std::vector<double> x{10, 11, 10, 11, 10, 11, 10, 11, 10, 1000};
  Summary s = summarize(x);
  EXPECT_EQ(s.marked, 1u);
  EXPECT_LE(s.median, 11);
  EXPECT_EQ(summarize({}).n, 0u);
}

TEST(Statistics, TheSignTestKnowsItsExtremes) {
  std::vector<double> all_faster(10, -1), mixed{-1, 1, -1, 1};
  EXPECT_NEAR(sign_test(all_faster), 2 * std::pow(0.5, 10), 1e-12);
  EXPECT_EQ(sign_test(mixed), 1);
  EXPECT_EQ(sign_test(std::vector<double>{0, 0}), 1);
  EXPECT_NEAR(hodges_lehmann(all_faster), -1, 1e-12);
}

/// Times come from a function of (slot, sample number).
class Scripted : public Device {
 public:
  std::function<double(size_t, size_t)> time_of = [](size_t, size_t) { return 1000.0; };
  std::function<void(Block&, size_t)> change = [](Block&, size_t) {};
  size_t samples = 0, blocks = 0;
  std::vector<size_t> order;

  DeviceInfo info() const override { return {"scripted", "fake", "", {}, "serving"}; }
  Timer timer() const override { return Timer::fake; }
  Attempt<void> bind(const CheckPlan&, uint64_t, int) override { return {}; }
  Attempt<void> load(size_t, const Fd&, const EntryInfo&) override { return {}; }
  void unload_all() override {}
  Attempt<double> launch(size_t, CheckSet) override { return 0.0; }
  Attempt<Block> time(size_t slot, const BlockSpec& spec) override {
    Block b;
    order.push_back(slot);
    for (uint32_t i = 0; i < spec.samples; ++i) {
      b.ns.push_back(time_of(slot, samples++));
      b.elapsed_ns += b.ns.back() * spec.launches_per_sample;
    }
    b.clock_before = b.clock_after = 3000;
    change(b, blocks++);
    return b;
  }
  Attempt<std::string_view> output(size_t) override { return ""; }
  std::string hit_red_zone() override { return ""; }
  std::string changed_input() override { return ""; }
  double canary() override { return 1; }
  Attempt<Calibration> calibrate(int) override { return Calibration{}; }
};

struct Recorded {
  double paused = 0;
  int windows = 0, open = 0;
  TimingHooks hooks{[](uint32_t) {}, [this](double ms) { paused += ms; },
                    [this](bool on) {
                      windows += on;
                      open += on ? 1 : -1;
                      EXPECT_TRUE(open == 0 || open == 1);
                    }};
};

Attempt<Measurement> measure(Scripted& device, RunSpec spec, Recorded& recorded) {
  auto m = measure_adaptive(device, 0, spec, recorded.hooks);
  EXPECT_EQ(recorded.open, 0) << "a quiet window was left open";
  return m;
}

TEST(Adaptive, AQuietDeviceStopsAtTheLeastNumberOfSamples) {
  Scripted device;
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(m->median, 1000);
  EXPECT_LE(m->n, 13u);
  EXPECT_EQ(m->cycles, 3000);
  EXPECT_EQ(recorded.windows, 1);
}

TEST(Adaptive, NoiseTakesMoreSamplesUpToTheLimit) {
  Scripted device;
  Rng rng(3);
  device.time_of = [&](size_t, size_t) { return 1000 * std::exp(0.05 * normal(rng)); };
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_TRUE(m.has_value()) << m.error().detail;
  EXPECT_GT(m->n, 20u);
  EXPECT_LE(m->n, MeasurePolicy::screen().max_samples);
  EXPECT_NEAR(m->median, 1000, 30);
}

TEST(Adaptive, HopelessNoiseAndBimodalOutliersAreNoisy) {
  Scripted device;
  Rng rng(4);
  device.time_of = [&](size_t, size_t) { return 1000 * std::exp(1.5 * normal(rng)); };
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(m.error().status, TrialStatus::noisy);
  device.time_of = [](size_t, size_t i) { return i % 5 == 0 ? 9000.0 : 1000.0 + static_cast<double>(i % 3); };
  m = measure(device, {}, recorded);
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(m.error().status, TrialStatus::noisy);
}

TEST(Adaptive, TheBudgetEndsALongKernel) {
  Scripted device;
  Rng rng(5);
  device.time_of = [&](size_t, size_t) { return 5e6 * std::exp(0.03 * normal(rng)); };
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_TRUE(m.has_value()) << m.error().detail;
  EXPECT_LE(m->n * 5e6, 2.5 * 30e6) << "budget 30 ms";
}

TEST(Adaptive, ASlowCandidateIsCutAfterThreeSamplesAndASlightlySlowerOneIsNot) {
  Scripted device;
  RunSpec spec;
  spec.incumbent_ns = 500;
  Recorded recorded;
  auto m = measure(device, spec, recorded);
  ASSERT_TRUE(m.has_value());
  EXPECT_TRUE(m->cut_short);
  EXPECT_EQ(m->n, 3u);
  spec.incumbent_ns = 900;
  m = measure(device, spec, recorded);
  EXPECT_FALSE(m->cut_short);
  EXPECT_GE(m->n, 10u);
}

TEST(Adaptive, ABlockWhoseClockMovesIsRepeatedAndThenThrottled) {
  Scripted device;
  device.change = [](Block& b, size_t i) {
    if (i == 1) b.clock_after = 2000;
  };
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_TRUE(m.has_value());
  EXPECT_EQ(device.blocks, 3u) << "three samples, ten, and ten again";
  device.change = [](Block& b, size_t) { b.clock_after = 2000; };
  m = measure(device, {}, recorded);
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(m.error().status, TrialStatus::throttled);
}

TEST(Adaptive, DisturbedBlocksWaitLongerAndLongerAndThenAreNoisy) {
  Scripted device;
  device.change = [](Block& b, size_t) {
    b.discarded = static_cast<uint32_t>(b.ns.size());
    b.ns.clear();
  };
  Recorded recorded;
  auto m = measure(device, {}, recorded);
  ASSERT_FALSE(m.has_value());
  EXPECT_EQ(m.error().status, TrialStatus::noisy);
  EXPECT_EQ(recorded.paused, 20 + 100 + 500);
}

TEST(ShootOut, GoesForwardsAndBackwardsAndDropsTheHopeless) {
  Scripted device;
  device.time_of = [](size_t slot, size_t) { return slot == 2 ? 5000.0 : 1000.0 + 10 * static_cast<double>(slot); };
  Recorded recorded;
  auto rounds = shoot_out(device, 3, 4, 4, 1e12, {}, recorded.hooks);
  ASSERT_TRUE(rounds.has_value());
  EXPECT_EQ(device.order, (std::vector<size_t>{0, 1, 2, /**/ 0, 1, 2, /**/ 2, 1, 0, /**/ 0, 1, /**/ 1, 0}));
  auto paired = compare_with_first(*rounds);
  EXPECT_NEAR(paired[0].ratio, 1.01, 1e-9);
  EXPECT_TRUE(paired[1].left_early);
  EXPECT_EQ(paired[1].rounds, 2u);
}

TEST(ShootOut, DriftDoesNotMakeAWinnerAndTwoPercentAreFound) {
  const uint64_t seed = 99;
  int false_winners = 0, found = 0;
  constexpr int trials = 200;
  for (int t = 0; t < trials; ++t) {
    for (double planted : {1.0, 0.98}) {
      Scripted device;
      Rng rng = Rng::keyed(seed, t, planted < 1);
      device.time_of = [&](size_t slot, size_t i) {
        double drift = 1 + 0.001 * static_cast<double>(i);  // six percent over the shoot-out
        return 1000 * drift * (slot == 1 ? planted : 1) * std::exp(0.01 * normal(rng));
      };
      Recorded recorded;
      auto rounds = shoot_out(device, 2, 30, 30, 1e12, {}, recorded.hooks);
      Paired p = compare_with_first(*rounds)[0];
      bool winner = p.hi < 0.995 && p.sign_p < 0.05;
      (planted < 1 ? found : false_winners) += winner;
    }
  }
  EXPECT_LE(false_winners, trials / 20) << "seed " << seed;
  EXPECT_GE(found, trials * 9 / 10) << "seed " << seed;
}

}  // namespace
}  // namespace tilewright::measure
