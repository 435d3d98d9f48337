#include "measure/worker/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>

#include "measure/check/compare.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

using Clock = std::chrono::steady_clock;

// A candidate whose fastest check launch takes this many times the incumbent's time, and at least so long, is cut short
// before it is timed. A check launch is slower than a timed one (cold pages and caches), but not by so much.
constexpr double hopeless_ratio = 4, hopeless_ns = 2e6;
constexpr double floor_margin = 0.95;  // below this share of the roofline time a result is implausible

std::string describe(const CheckReport& report) {
  if (report.first.empty()) return "wrong result";
  const Mismatch& m = report.first.front();
  std::string out =
      fmt::format("{} of {} elements of {} are wrong on the {} inputs; element {}: expected {:.9g}, found {:.9g}",
                  report.mismatches, report.elements, m.buffer, report.sets.back(), m.index, m.expected, m.found);
  if (report.unwritten) out += fmt::format("; {} were never written", report.unwritten);
  return out;
}

}  // namespace

TrialResult TrialRunner::run(const TrialTask& task, const TrialHooks& hooks) {
  TrialResult result;
  Outcome& outcome = result.outcome;
  auto begin = Clock::now();
  outcome.started_us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  outcome.status = TrialStatus::ok;
  try {
    if (Attempt<void> done = run_unchecked(task, hooks, result); !done) {
      outcome.status = done.error().status;
      outcome.detail = done.error().detail;
      result.replace |= done.error().sticky;
    }
  } catch (const InternalError& error) {
    outcome.status = TrialStatus::internal_error;
    outcome.detail = error.what();
    result.replace = true;
  } catch (const std::bad_alloc&) {
    outcome.status = TrialStatus::host_memory;
    outcome.detail = "an allocation in exec failed";
    result.replace = true;
  }
  device_.unload_all();
  // A candidate that wrote where it must not may have hit our own data too.
  if (outcome.status == TrialStatus::wrong_result && outcome.check &&
      (!outcome.check->red_zones_ok || !outcome.check->inputs_unchanged))
    result.replace = true;
  if (result.replace) resident_.clear();
  outcome.wall_us =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count());
  return result;
}

Attempt<void> TrialRunner::run_unchecked(const TrialTask& task, const TrialHooks& hooks, TrialResult& result) {
  Outcome& outcome = result.outcome;
  if (task.kind == TrialTask::Kind::calibrate) {
    hooks.phase("calibrate", 0);
    auto calibration = device_.calibrate(task.spec.threads);
    if (!calibration) return tl::unexpected(calibration.error());
    result.calibration = *calibration;
    return {};
  }
  outcome.phase = "load";
  if (Attempt<void> ready = prepare(task, hooks); !ready) return ready;
  if (task.kind == TrialTask::Kind::reference) {
    outcome.phase = "reference";
    return make_reference(task, hooks, result);
  }
  outcome.phase = "check";
  fastest_check_ns_ = std::numeric_limits<double>::infinity();
  if (task.spec.check) {
    CheckReport& report = outcome.check.emplace();
    report.reference = task.reference_digest;
    for (CheckSet set : task.plan.sets()) {
      report.sets.emplace_back(to_string(set));
      for (size_t c = 0; c < task.artifacts.size(); ++c) {
        if (Attempt<void> passed = check(task, hooks, c, set, report); !passed) return passed;
      }
    }
    if (Attempt<void> passed = check_memory(report); !passed) return passed;
  }
  if (hopeless(task)) {
    Measurement& m = outcome.measurements.emplace_back();
    m.mode = task.spec.mode;
    m.stage = task.spec.stage;
    m.timer = device_.timer();
    m.launches_per_sample = 1;
    m.n = 1;
    m.min = m.q1 = m.median = m.q3 = m.ci_lo = m.ci_hi = fastest_check_ns_;
    m.incumbent_ratio = m.median / task.spec.incumbent_ns;
    m.cut_short = true;
    return {};
  }
  outcome.phase = "time";
  return time(task, hooks, result);
}

bool TrialRunner::hopeless(const TrialTask& task) const {
  const RunSpec& spec = task.spec;
  return spec.check && spec.stage == Stage::screen && task.artifacts.size() == 1 && spec.policy.cut_ppm > 0 &&
         spec.incumbent_ns > 0 && fastest_check_ns_ > std::max(hopeless_ns, hopeless_ratio * spec.incumbent_ns);
}

Attempt<void> TrialRunner::prepare(const TrialTask& task, const TrialHooks& hooks) {
  hooks.phase("load", 0);
  if (resident_.empty() || task.resident != resident_) {
    resident_.clear();
    if (Attempt<void> bound = device_.bind(task.plan, task.spec.input_seed, task.spec.threads); !bound) return bound;
    resident_ = task.resident;
  }
  for (size_t c = 0; c < task.artifacts.size(); ++c)
    if (Attempt<void> loaded = device_.load(c, task.artifacts[c].file, task.artifacts[c].entry); !loaded) return loaded;
  return {};
}

Attempt<void> TrialRunner::make_reference(const TrialTask& task, const TrialHooks& hooks, TrialResult& result) {
  for (CheckSet set : task.plan.sets()) {
    hooks.phase("reference", 1);
    if (auto launched = device_.launch(0, set); !launched) return tl::unexpected(launched.error());
    for (size_t b = 0; b < task.plan.buffers.size(); ++b) {
      if (!task.plan.buffers[b].is_output()) continue;
      auto bytes = device_.output(b);
      if (!bytes) return tl::unexpected(bytes.error());
      result.reference += *bytes;
    }
  }
  return {};
}

/// One launch on one set, compared with the reference.
Attempt<void> TrialRunner::check(const TrialTask& task, const TrialHooks& hooks, size_t slot, CheckSet set,
                                 CheckReport& report) {
  hooks.phase("check", 1);
  auto launched = device_.launch(slot, set);
  if (!launched) return tl::unexpected(launched.error());
  fastest_check_ns_ = std::min(fastest_check_ns_, *launched);
  hooks.phase("compare", 0);  // from here on the time is ours, not the candidate's
  if (sigma_digest_ != task.reference_digest || task.reference_digest.empty()) {
    sigmas_.clear();
    sigma_digest_ = task.reference_digest;
  }
  size_t at = 0;
  bool passed = true;
  for (CheckSet s : task.plan.sets()) {
    for (size_t b = 0; b < task.plan.buffers.size(); ++b) {
      const BufferPlan& buffer = task.plan.buffers[b];
      if (!buffer.is_output()) continue;
      TW_CHECK(at + buffer.bytes() <= task.reference.size(), "the reference is too short");
      std::string_view expected = task.reference.substr(at, buffer.bytes());
      at += buffer.bytes();
      if (s != set) continue;
      auto found = device_.output(b);
      if (!found) return tl::unexpected(found.error());
      auto [it, fresh] = sigmas_.try_emplace({s, b}, 0.0);
      if (fresh) it->second = rms(buffer, expected);
      passed &= compare_output(buffer, tolerance_of(buffer, set, it->second), expected, *found, report);
    }
  }
  if (!passed) return fault(TrialStatus::wrong_result, describe(report));
  return {};
}

Attempt<void> TrialRunner::check_memory(CheckReport& report) {
  if (std::string zone = device_.hit_red_zone(); !zone.empty()) {
    report.red_zones_ok = false;
    return fault(TrialStatus::wrong_result, fmt::format("memory outside buffer {} was written", zone), true);
  }
  if (std::string input = device_.changed_input(); !input.empty()) {
    report.inputs_unchanged = false;
    return fault(TrialStatus::wrong_result, fmt::format("input {} was changed", input), true);
  }
  return {};
}

Attempt<void> TrialRunner::time(const TrialTask& task, const TrialHooks& hooks, TrialResult& result) {
  Outcome& outcome = result.outcome;
  TimingHooks timing;
  bool late = false;
  double device_ns = 0;
  timing.planned = [&](uint32_t launches) { hooks.phase("time", launches); };
  timing.pause = [&](double ms) {
    hooks.phase("wait", 0);
    hooks.pause(ms);
  };
  timing.quiet = [&](bool on) {
    hooks.phase("quiet", 0);
    late |= !hooks.quiet(on);
  };

  CheckSet last = task.plan.sets().back();
  auto compare_again = [&](size_t c) -> Attempt<void> {
    if (!task.spec.check) return {};
    hooks.phase("compare", 0);
    // The buffers still hold what the last timed launch wrote: races that need back-to-back launches show here.
    CheckReport again;
    again.sets = {to_string(last)};
    size_t at = task.reference.size();
    for (size_t b = task.plan.buffers.size(); b-- > 0;) {
      const BufferPlan& buffer = task.plan.buffers[b];
      if (!buffer.is_output()) continue;
      at -= buffer.bytes();
      auto found = device_.output(b);
      if (!found) return tl::unexpected(found.error());
      if (compare_output(buffer, tolerance_of(buffer, last, sigmas_[{last, b}]),
                         task.reference.substr(at, buffer.bytes()), *found, again))
        continue;
      outcome.check->after_timing_ok = false;
      outcome.check->first = again.first;
      outcome.check->mismatches += again.mismatches;
      return fault(TrialStatus::nondeterministic,
                   fmt::format("contender {} was right at first and wrong after timing: {}", c, describe(again)));
    }
    return {};
  };

  uint32_t period = task.spec.policy.canary_period;
  if (period > 0 && timed_tasks_++ % period == 0 && canary_baseline_ > 0) {
    hooks.phase("canary", 0);
    canary_ratio_ = device_.canary() / canary_baseline_;
  }
  if (task.spec.stage == Stage::final) {
    auto rounds =
        shoot_out(device_, task.artifacts.size(), task.rounds, std::min(task.rounds, task.spec.policy.min_samples),
                  task.spec.policy.budget_us * 1e3, task.spec, timing);
    if (!rounds) return tl::unexpected(rounds.error());
    result.rounds = *rounds;
    for (size_t c = 0; c < task.artifacts.size(); ++c) {
      // Outputs of the interleaved launches overwrote one another: one more timed launch each, then compare.
      hooks.phase("time", 1);
      auto block = device_.time(c, {1, 1, Mode::warm, 0});
      if (!block) return tl::unexpected(block.error());
      if (Attempt<void> same = compare_again(c); !same) return same;
    }
  } else {
    for (size_t c = 0; c < task.artifacts.size(); ++c) {
      auto m = measure_adaptive(device_, c, task.spec, timing, task.spec.check ? fastest_check_ns_ : 0);
      if (!m) {
        // Wrong values say more than times that will not settle, and may be why they do not.
        if (m.error().status == TrialStatus::noisy || m.error().status == TrialStatus::throttled)
          if (Attempt<void> same = compare_again(c); !same) return same;
        return tl::unexpected(m.error());
      }
      m->contender = static_cast<int>(c);
      m->canary_ratio = canary_ratio_;
      device_ns += m->median * m->n * m->launches_per_sample;
      if (m->coarse) outcome.flags.emplace_back("coarse");
      outcome.measurements.push_back(*m);
      if (Attempt<void> same = compare_again(c); !same) return same;
    }
  }
  outcome.device_us = static_cast<uint64_t>(device_ns / 1e3);
  if (late) outcome.flags.emplace_back("quiet-late");
  if (task.spec.check)
    if (Attempt<void> passed = check_memory(*outcome.check); !passed) return passed;
  if (outcome.measurements.size() == 1 && task.spec.floor_ns > 0 &&
      outcome.median_ns() < floor_margin * task.spec.floor_ns)
    return fault(TrialStatus::implausible, fmt::format("{:.1f} ns is faster than the floor of the device, {:.1f} ns",
                                                       outcome.median_ns(), task.spec.floor_ns));
  outcome.phase = "done";
  return {};
}

}  // namespace tilewright::measure
