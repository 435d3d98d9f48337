#include "measure/timing/shootout.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "measure/timing/statistics.h"

namespace tilewright::measure {

namespace {

constexpr double gone = std::numeric_limits<double>::quiet_NaN();
constexpr double leaving_ratio = 2;

std::vector<double> present(const std::vector<double>& round_times) {
  std::vector<double> out;
  for (double x : round_times)
    if (!std::isnan(x)) out.push_back(x);
  return out;
}

}  // namespace

Attempt<Rounds> shoot_out(Device& device, size_t contenders, uint32_t rounds, uint32_t least, double budget_ns,
                          const RunSpec& spec, const TimingHooks& hooks) {
  Rounds out(contenders);
  std::vector<uint32_t> launches(contenders, 1);
  std::vector<bool> in(contenders, true);
  for (size_t c = 0; c < contenders; ++c) {
    auto n = launches_per_sample(device, c, spec, hooks);
    if (!n) return tl::unexpected(n.error());
    launches[c] = *n;
    hooks.planned(1);
    auto warm = device.time(c, {1, 1, spec.mode, spec.policy.flush_bytes});
    if (!warm) return tl::unexpected(warm.error());
  }
  double spent = 0;
  for (uint32_t round = 0; round < rounds && (round < least || spent < budget_ns); ++round) {
    hooks.quiet(true);
    for (size_t i = 0; i < contenders; ++i) {
      size_t c = round % 2 == 0 ? i : contenders - 1 - i;
      if (!in[c]) {
        out[c].push_back(gone);
        continue;
      }
      hooks.planned(launches[c]);
      auto block = device.time(c, {1, launches[c], spec.mode, spec.policy.flush_bytes});
      if (!block) {
        hooks.quiet(false);
        return tl::unexpected(block.error());
      }
      spent += block->elapsed_ns;
      out[c].push_back(block->ns.empty() ? gone : block->ns.front());
    }
    hooks.quiet(false);
    if (round != 1) continue;
    double best = std::numeric_limits<double>::infinity();
    std::vector<double> medians(contenders, std::numeric_limits<double>::infinity());
    for (size_t c = 0; c < contenders; ++c) {
      std::vector<double> times = present(out[c]);
      if (!times.empty()) medians[c] = median(times);
      best = std::min(best, medians[c]);
    }
    for (size_t c = 1; c < contenders; ++c)
      if (medians[c] > leaving_ratio * best) in[c] = false;  // the first stays: all are compared with it
  }
  return out;
}

void append(Rounds& all, const Rounds& part) {
  all.resize(std::max(all.size(), part.size()));
  for (size_t c = 0; c < part.size(); ++c) all[c].insert(all[c].end(), part[c].begin(), part[c].end());
}

std::vector<Measurement> measurements_of(const Rounds& rounds, const RunSpec& spec, Timer timer) {
  std::vector<Measurement> out;
  for (size_t c = 0; c < rounds.size(); ++c) {
    std::vector<double> times = present(rounds[c]);
    if (times.empty()) continue;
    Summary s = summarize(times);
    Measurement m;
    m.contender = static_cast<int>(c);
    m.mode = spec.mode;
    m.stage = spec.stage;
    m.timer = timer;
    m.n = static_cast<uint32_t>(s.n);
    m.marked = static_cast<uint32_t>(s.marked);
    m.min = s.min, m.q1 = s.q1, m.median = s.median, m.q3 = s.q3, m.mad = s.mad;
    m.ci_lo = s.ci.lo, m.ci_hi = s.ci.hi;
    m.discarded = static_cast<uint32_t>(rounds[c].size() - times.size());
    if (spec.keep_samples)
      m.samples.assign(times.begin(), times.begin() + static_cast<int64_t>(std::min<size_t>(64, times.size())));
    out.push_back(std::move(m));
  }
  return out;
}

std::vector<Paired> compare_with_first(const Rounds& rounds) {
  std::vector<Paired> out;
  for (size_t c = 1; c < rounds.size(); ++c) {
    // Ratios, so logarithms: a slow moment then weighs the same for a fast and a slow contender.
    std::vector<double> differences;
    for (size_t r = 0; r < rounds[c].size() && r < rounds[0].size(); ++r)
      if (!std::isnan(rounds[c][r]) && !std::isnan(rounds[0][r]))
        differences.push_back(std::log(rounds[c][r] / rounds[0][r]));
    Paired p;
    p.contender = static_cast<int>(c);
    p.rounds = static_cast<uint32_t>(differences.size());
    p.left_early = differences.size() < rounds[0].size();
    if (!differences.empty()) {
      Interval interval = hodges_lehmann_interval(differences);
      p.ratio = std::exp(hodges_lehmann(differences));
      p.lo = std::exp(interval.lo);
      p.hi = std::exp(interval.hi);
      p.sign_p = sign_test(differences);
    }
    out.push_back(p);
  }
  return out;
}

}  // namespace tilewright::measure
