#include "search/measuring.h"

#include <map>

namespace tilewright {

measure::Job Measuring::make_job(const Trial& trial, double incumbent_ns) const {
  const Task& task = tasks_[trial.task];
  measure::Job job;
  job.id = {options_.campaign, static_cast<uint16_t>(trial.task), static_cast<uint32_t>(trial.number), 0};
  job.program = task.program_text;
  job.target = task.target.text();
  job.contenders = {{trial.trace, trial.trace_key}};
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
  if (m.clock_mhz > 0) r.clock_mhz = m.clock_mhz;
  if (m.cut_short) r.flags.push_back("cut_short");
  r.verified = o.status == TrialStatus::ok && o.check.has_value() && o.check->mismatches == 0;
  return r;
}

std::vector<JobResult> Measuring::run(const std::vector<Trial>& trials, const std::vector<double>& incumbent_ns) {
  std::vector<JobResult> results(trials.size());
  std::map<int64_t, size_t> slot;  // by trial number
  std::map<measure::MeasurementId, measure::Job> flying;
  std::vector<measure::Job> waiting;
  auto dispatch = [&](const measure::Job& job, const Trial& trial) {
    JobDispatched d;
    d.task = static_cast<int64_t>(trial.task);
    d.trial = trial.number;
    d.attempt = job.id.attempt;
    d.trace_key = trial.trace_key;
    d.trace = trial.trace;
    d.stage = job.run.stage;
    d.round = trial.round;
    d.sketch = trial.sketch;
    d.origin = trial.origin;
    emit_(d);
    retry_.dispatched();
    flying[job.id] = job;
    measurer_.submit(job);
  };
  for (size_t i = 0; i < trials.size(); ++i) {
    slot[trials[i].number] = i;
    if (known_)
      if (std::optional<JobResult> known = known_(trials[i].task, trials[i].trace_key)) {
        results[i] = *known;
        ++reused_;
        continue;
      }
    waiting.push_back(make_job(trials[i], incumbent_ns[trials[i].task]));
  }
  size_t next = 0;
  while (next < waiting.size() || !flying.empty()) {
    while (next < waiting.size() && measurer_.in_flight() < measurer_.capacity() && !stop_) {
      const measure::Job& job = waiting[next++];
      dispatch(job, trials[slot[job.id.trial]]);
    }
    if (stop_ && flying.empty()) break;
    std::vector<measure::MeasurementId> done;
    for (measure::Outcome& o : measurer_.poll(std::chrono::milliseconds(200))) {
      auto it = flying.find(o.id);
      if (it == flying.end()) continue;
      const measure::Job job = it->second;
      flying.erase(it);
      const Trial& trial = trials[slot[job.id.trial]];
      measure::Verdict verdict = retry_.decide(job, o);
      const bool settled = verdict.settled || stop_;
      JobResult r = to_result(trial, verdict.outcome, settled);
      ++measured_;
      emit_(r);
      done.push_back(job.id);
      if (settled)
        results[slot[job.id.trial]] = r;
      else
        dispatch(verdict.retry, trial);
    }
    for (const std::string& line : measurer_.take_events())
      if (auto parsed = parse_line(line); parsed && parsed->event) emit_(std::move(parsed->event->body));
    measurer_.acknowledge(done);
  }
  return results;
}

std::optional<measure::Outcome> Measuring::shoot_out(size_t task, const std::vector<Trial>& contenders) {
  measure::Job job = make_job(contenders.front(), 0);
  job.id.trial |= 0x80000000u;  // numbers of shoot-outs never meet those of trials
  job.contenders.clear();
  for (const Trial& t : contenders) job.contenders.push_back({t.trace, t.trace_key});
  job.run.stage = Stage::final;
  job.alone = true;
  job.build.wall_ms *= static_cast<uint32_t>(contenders.size());
  job.build.cpu_ms *= static_cast<uint32_t>(contenders.size());
  (void)task;
  measurer_.submit(job);
  while (true) {
    for (measure::Outcome& o : measurer_.poll(std::chrono::milliseconds(200))) {
      if (o.id != job.id) continue;
      std::vector<measure::MeasurementId> ids{o.id};
      measurer_.acknowledge(ids);
      return o.ok() ? std::optional(o) : std::nullopt;
    }
    if (measurer_.in_flight() == 0) return std::nullopt;
  }
}

}  // namespace tilewright
