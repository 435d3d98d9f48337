#include "measure/timing/adaptive.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/timing/statistics.h"

namespace tilewright::measure {

namespace {

constexpr double warm_sample_ns = 100'000;
constexpr int clock_repeats = 3;  // a block whose clock moved is taken again this often, then the trial is throttled
constexpr double disturbed_waits_ms[] = {20, 100, 500};  // before a mostly disturbed block is taken again; then noisy
constexpr int outlier_blocks = 3;                        // more blocks while over a tenth of the samples are marked
constexpr double hopeless = 10;  // an interval this many times wider than asked for, at the end of the budget, is noise
constexpr double window_ns = 150e6;  // quiet windows stay below the agent's limit of 0.2 s

/// One accepted block, or why none was.
class Sampler {
 public:
  Sampler(Device& device, size_t slot, const RunSpec& spec, uint32_t launches, const TimingHooks& hooks)
      : device_(device), slot_(slot), spec_(spec), launches_(launches), hooks_(hooks) {}

  Attempt<Block> block(uint32_t samples, Measurement& m) {
    int clock_moved = 0;
    size_t disturbed = 0;
    for (;;) {
      open_window();
      hooks_.planned(samples * launches_);
      auto taken = device_.time(slot_, {samples, launches_, spec_.mode, spec_.policy.flush_bytes});
      if (!taken) return taken;
      window_used_ += taken->elapsed_ns;
      elapsed += taken->elapsed_ns;
      m.discarded += taken->discarded;
      if (window_used_ > window_ns) close_window();
      if (spec_.policy.pacing_us) hooks_.pause(spec_.policy.pacing_us / 1000.0);

      if (taken->discarded > samples / 2) {
        if (disturbed == std::size(disturbed_waits_ms))
          return fault(TrialStatus::noisy, fmt::format("{} of {} samples were disturbed by other processes, {} times",
                                                       taken->discarded, samples, disturbed + 1));
        close_window();
        hooks_.pause(disturbed_waits_ms[disturbed++]);
        continue;
      }
      double change = 0;
      if (taken->clock_before > 0 && taken->clock_after > 0)
        change = std::fabs(taken->clock_after / taken->clock_before - 1) * 1e6;
      if (change > spec_.policy.clock_change_ppm) {
        if (++clock_moved > clock_repeats)
          return fault(TrialStatus::throttled, fmt::format("the clock moved from {:.0f} to {:.0f} MHz inside a block",
                                                           taken->clock_before, taken->clock_after));
        continue;
      }
      m.clock_change_ppm = std::max(m.clock_change_ppm, change);
      if (taken->clock_after > 0) m.clock_mhz = taken->clock_after;
      coarse |= taken->coarse;
      return taken;
    }
  }

  void close_window() {
    if (open_) hooks_.quiet(false);
    open_ = false;
  }

  double elapsed = 0;
  bool coarse = false;

 private:
  void open_window() {
    if (open_) return;
    hooks_.quiet(true);
    open_ = true;
    window_used_ = 0;
  }

  Device& device_;
  size_t slot_;
  const RunSpec& spec_;
  uint32_t launches_;
  const TimingHooks& hooks_;
  bool open_ = false;
  double window_used_ = 0;
};

/// Half the width of the interval over the median, ppm.
double half_width_ppm(const Summary& s) { return s.median > 0 ? (s.ci.hi - s.ci.lo) / 2 / s.median * 1e6 : 0; }

void store(const Summary& s, Measurement& m) {
  m.n = static_cast<uint32_t>(s.n);
  m.marked = static_cast<uint32_t>(s.marked);
  m.min = s.min, m.q1 = s.q1, m.median = s.median, m.q3 = s.q3, m.mad = s.mad;
  m.ci_lo = s.ci.lo, m.ci_hi = s.ci.hi;
  m.cycles = m.median * m.clock_mhz * 1e-3;
}

/// Samples of the first block: three, fewer where one alone uses up the budget.
uint32_t first_samples(const MeasurePolicy& policy, double about_ns) {
  double budget = policy.budget_us * 1e3;
  return std::min(about_ns > 10 * budget ? 1u : about_ns > budget ? 2u : 3u, policy.block);
}

Attempt<Measurement> sample_until_known(Sampler& sampler, const RunSpec& spec, Measurement m, double about_ns) {
  const MeasurePolicy& policy = spec.policy;
  const double cut_first = spec.incumbent_ns * (1 + policy.cut_ppm * 1e-6);
  const double cut_later = spec.incumbent_ns * (1 + 0.6 * policy.cut_ppm * 1e-6);
  const bool may_cut = spec.incumbent_ns > 0 && policy.cut_ppm > 0;
  std::vector<double> samples;
  int extra = 0;
  for (;;) {
    uint32_t room = policy.max_samples - std::min<uint32_t>(policy.max_samples, static_cast<uint32_t>(samples.size()));
    uint32_t want = samples.empty() ? first_samples(policy, about_ns) : policy.block;
    auto block = sampler.block(std::clamp(room, 1u, std::max(1u, want)), m);
    if (!block) return tl::unexpected(block.error());
    samples.insert(samples.end(), block->ns.begin(), block->ns.end());
    if (samples.empty()) continue;
    Summary s = summarize(samples);
    store(s, m);
    if (may_cut && (s.n <= 3 ? s.min > cut_first : s.ci.lo > cut_later)) {
      m.cut_short = true;
      break;
    }
    bool enough = s.n >= policy.min_samples;
    bool spent = sampler.elapsed >= policy.budget_us * 1e3 || s.n >= policy.max_samples;
    bool known = enough && half_width_ppm(s) <= policy.ci_ppm;
    if (!known && !spent) continue;
    if (s.marked * 10 > s.n && ++extra <= outlier_blocks) continue;
    if (s.marked * 10 > s.n && s.n >= 10)
      return fault(TrialStatus::noisy, fmt::format("{} of {} samples are outliers", s.marked, s.n));
    if (!known && half_width_ppm(s) > hopeless * policy.ci_ppm && s.n >= 6)
      return fault(TrialStatus::noisy,
                   fmt::format("after {} samples the median is known to ±{:.1f} % only, expected ±{:.1f} %", s.n,
                               half_width_ppm(s) * 1e-4, policy.ci_ppm * 1e-4));
    break;
  }
  if (spec.incumbent_ns > 0) m.incumbent_ratio = m.median / spec.incumbent_ns;
  if (spec.keep_samples)
    m.samples.assign(samples.begin(), samples.begin() + static_cast<int64_t>(std::min<size_t>(64, samples.size())));
  return m;
}

}  // namespace

Attempt<uint32_t> launches_per_sample(Device& device, size_t slot, const RunSpec& spec, const TimingHooks& hooks) {
  if (spec.mode != Mode::warm) return 1;
  hooks.planned(2);
  auto once = device.time(slot, {2, 1, Mode::warm, 0});  // the first warms, the second counts
  if (!once) return tl::unexpected(once.error());
  double ns = once->ns.empty() ? warm_sample_ns : std::max(1.0, once->ns.back());
  return static_cast<uint32_t>(std::clamp(std::ceil(warm_sample_ns / ns), 1.0, 1e5));
}

Attempt<Measurement> measure_adaptive(Device& device, size_t slot, const RunSpec& spec, const TimingHooks& hooks,
                                      double about_ns) {
  const bool long_enough = about_ns > 10 * warm_sample_ns;
  auto launches = long_enough ? Attempt<uint32_t>(1) : launches_per_sample(device, slot, spec, hooks);
  if (!launches) return tl::unexpected(launches.error());
  Measurement m;
  m.mode = spec.mode;
  m.stage = spec.stage;
  m.timer = device.timer();
  m.launches_per_sample = *launches;
  Sampler sampler(device, slot, spec, *launches, hooks);
  auto result = sample_until_known(sampler, spec, m, about_ns);
  sampler.close_window();
  if (result) result->coarse = sampler.coarse;
  return result;
}

}  // namespace tilewright::measure
