#include "search/measuring.h"

#include <fmt/format.h>

#include <algorithm>

#include "support/check.h"

namespace tilewright {

measure::Job Measuring::make_job(const Trial& trial, double incumbent_ns) const {
  const Task& task = tasks_[trial.task];
  measure::Job job;
  job.id = {options_.campaign, static_cast<uint16_t>(trial.task), static_cast<uint32_t>(trial.number), 0};
  job.program = task.program_text;
  job.target = task.target.text();
  job.contenders = {{trial.trace, trial.trace_key}};
  job.build.options = options_.lower;
  job.run.mode = options_.mode;
  job.run.threads = options_.run_threads;
  job.run.incumbent_ns = incumbent_ns;
  job.run.input_seed = options_.seed;
  return job;
}

JobResult Measuring::to_result(const Trial& trial, const measure::Outcome& o, bool settled) const {
  JobResult r;
  r.task = static_cast<int64_t>(trial.task);
  r.trial = trial.number;
  r.attempt = o.id.attempt;
  r.trace_key = trial.trace_key;
  r.status = o.status;
  r.stage = Stage::screen;
  r.settled = settled;
  r.phase = o.phase;
  r.detail = o.detail;
  r.device = o.device;
  r.exec = o.exec;
  r.finished_us = o.started_us + static_cast<int64_t>(o.wall_us);
  r.device_us = static_cast<int64_t>(o.device_us);
  r.wall_us = static_cast<int64_t>(o.wall_us);
  r.flags = o.flags;
  if (!o.builds.empty()) {
    const measure::BuildReport& b = o.builds.front();
    r.toolchain = b.toolchain;
    r.artifact = b.artifact;
    r.build = {{"wall_ms", b.wall_ms},        {"cpu_ms", b.cpu_ms},     {"bytes", static_cast<double>(b.bytes)},
               {"replay_us", b.replay_us},    {"lower_us", b.lower_us}, {"codegen_us", b.codegen_us},
               {"spill_bytes", b.spill_bytes}};
  }
  if (o.measurements.empty()) return r;
  const measure::Measurement& m = o.measurements.front();
  r.stage = m.stage;
  r.median_ns = m.median;
  r.ci_lo_ns = m.ci_lo;
  r.ci_hi_ns = m.ci_hi;
  r.n = m.n;
  r.min_ns = m.min;
  r.q1_ns = m.q1;
  r.q3_ns = m.q3;
  r.mad_ns = m.mad;
  r.marked = m.marked;
  r.discarded = m.discarded;
  if (m.canary_ratio > 0) r.canary_ratio = m.canary_ratio;
  if (m.clock_mhz > 0) r.clock_mhz = m.clock_mhz;
  if (m.cut_short) r.flags.push_back("cut_short");
  r.verified = o.status == TrialStatus::ok && o.check.has_value() && o.check->mismatches == 0;
  return r;
}

void Measuring::announce(const Trial& trial, int64_t attempt, Stage stage) {
  last_attempt_[trial.number] = attempt;
  JobDispatched d;
  d.task = static_cast<int64_t>(trial.task);
  d.trial = trial.number;
  d.attempt = attempt;
  d.trace_key = trial.trace_key;
  d.trace = trial.trace;
  d.stage = stage;
  d.round = trial.round;
  d.sketch = trial.sketch;
  d.origin = trial.origin;
  emit_(d);
}

JobResult Measuring::reuse(const Trial& trial, JobResult known) {
  ++reused_;
  if (known.trial >= 0) {
    last_attempt_[known.trial] = known.attempt;
    return known;
  }
  known.task = static_cast<int64_t>(trial.task);
  known.trial = trial.number;
  known.trace_key = trial.trace_key;
  announce(trial, 0, known.stage);
  emit_(known);
  return known;
}

void Measuring::dispatch(const measure::Job& job) {
  announce(trials_[slot_.at(job.id.trial)], job.id.attempt, job.run.stage);
  retry_.dispatched();
  flying_[job.id] = job;
  measurer_.submit(job);
}

void Measuring::begin(std::vector<Trial> trials, const std::vector<double>& incumbent_ns) {
  TW_CHECK(flying_.empty() && waiting_.empty(), "a batch is still being measured");
  trials_ = std::move(trials);
  results_.assign(trials_.size(), {});
  known_slots_.clear();
  slot_.clear();
  cancelled_ = false;
  for (size_t i = 0; i < trials_.size(); ++i) {
    slot_[trials_[i].number] = i;
    if (known_)
      if (std::optional<JobResult> known = known_(trials_[i].task, trials_[i].trace_key)) {
        results_[i] = reuse(trials_[i], std::move(*known));
        known_slots_.insert(i);
        continue;
      }
    waiting_.push_back(make_job(trials_[i], incumbent_ns[trials_[i].task]));
  }
  pump(std::chrono::milliseconds(0));
}

void Measuring::take(const measure::Outcome& outcome) {
  auto it = flying_.find(outcome.id);
  if (it == flying_.end()) return;
  const measure::Job job = std::move(it->second);
  flying_.erase(it);
  const size_t slot = slot_.at(job.id.trial);
  measure::Verdict verdict = retry_.decide(job, outcome);
  if (verdict.budget_spent) {
    // Most of this machine's attempts come to nothing: more of them would not tell more.
    verdict.settled = true;
    if (!said_retries_) {
      Warning w;
      w.code = "retries-exceed-share";
      w.message =
          fmt::format("{} of the attempts so far were retries; what fails now is not tried again", retry_.retries());
      w.help = "run `tilewright doctor`";
      emit_(w);
      said_retries_ = true;
    }
  }
  JobResult r = to_result(trials_[slot], verdict.outcome, verdict.settled);
  ++measured_;
  emit_(r);
  if (verdict.settled)
    results_[slot] = std::move(r);
  else if (may_start_())
    dispatch(verdict.retry);
  // else: the trial stays open, and a resumed run measures it
}

void Measuring::forward_events() {
  for (const std::string& line : measurer_.take_events())
    if (auto parsed = parse_line(line); parsed && parsed->event) emit_(std::move(parsed->event->body));
}

/// After a stop what is in flight has a while to end by itself; then it is cancelled, as it is when the budget is
/// spent.
void Measuring::cancel_late() {
  constexpr std::chrono::seconds grace(10);
  if (cancelled_) return;
  const auto now = std::chrono::steady_clock::now();
  if (stop_ && !stopped_at_) stopped_at_ = now;
  if (!overdue_() && (!stopped_at_ || now < *stopped_at_ + grace)) return;
  std::vector<measure::MeasurementId> ids;
  for (const auto& [id, job] : flying_) ids.push_back(id);
  measurer_.cancel(ids);
  cancelled_ = true;
}

void Measuring::pump(std::chrono::milliseconds timeout) {
  if (waiting_.empty() && flying_.empty()) return;
  if (!may_start_()) waiting_.clear();
  std::vector<measure::MeasurementId> done;
  if (!flying_.empty()) {
    for (const measure::Outcome& o : measurer_.poll(timeout)) {
      done.push_back(o.id);
      take(o);
    }
  }
  while (!waiting_.empty() && measurer_.in_flight() < std::max<size_t>(measurer_.capacity(), 1)) {
    dispatch(waiting_.front());
    waiting_.pop_front();
  }
  forward_events();
  if (!done.empty()) measurer_.acknowledge(done);
  cancel_late();
}

std::vector<JobResult> Measuring::finish() {
  while (!waiting_.empty() || !flying_.empty()) pump(std::chrono::milliseconds(200));
  return std::move(results_);
}

void Measuring::emit_finals(const std::vector<Trial>& contenders, const measure::Outcome& outcome) {
  measure::Outcome one = outcome;
  for (const measure::Measurement& m : outcome.measurements) {
    const auto c = static_cast<size_t>(m.contender);
    if (m.n == 0 || outcome.left_early(m.contender)) continue;
    const Trial& trial = contenders[c];
    one.measurements = {m};
    one.builds.clear();
    if (c < outcome.builds.size()) one.builds.push_back(outcome.builds[c]);
    announce(trial, last_attempt_[trial.number] + 1, Stage::final);
    JobResult r = to_result(trial, one, false);
    r.attempt = last_attempt_[trial.number];
    emit_(std::move(r));
    one.device_us = one.wall_us = 0;  // of the whole comparison: counted once
  }
}

std::optional<measure::Outcome> Measuring::shoot_out(const std::vector<Trial>& contenders) {
  measure::Job job = make_job(contenders.front(), 0);
  job.id.trial |= 0x80000000u;  // numbers of shoot-outs never meet those of trials
  job.contenders.clear();
  for (const Trial& t : contenders) job.contenders.push_back({t.trace, t.trace_key});
  job.run.stage = Stage::final;
  job.alone = true;
  job.build.wall_ms *= static_cast<uint32_t>(contenders.size());
  job.build.cpu_ms *= static_cast<uint32_t>(contenders.size());
  measurer_.submit(job);
  bool cancelled = false;
  while (true) {
    if ((stop_ || overdue_()) && !cancelled) {
      measurer_.cancel(std::vector{job.id});
      cancelled = true;
    }
    for (measure::Outcome& o : measurer_.poll(std::chrono::milliseconds(200))) {
      if (o.id != job.id) continue;
      std::vector<measure::MeasurementId> ids{o.id};
      if (o.ok()) emit_finals(contenders, o);
      measurer_.acknowledge(ids);
      return o.ok() ? std::optional(o) : std::nullopt;
    }
    if (measurer_.in_flight() == 0) return std::nullopt;
  }
}

}  // namespace tilewright
