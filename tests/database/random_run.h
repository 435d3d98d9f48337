// A random but consistent run, as its events: several tasks, retries, failures of every kind, traces measured again at
// later stages, a quarantined device.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "support/events.h"
#include "support/rng.h"

namespace tilewright {

class RandomRun {
 public:
  explicit RandomRun(uint64_t seed, int tasks = 3) : rng_(seed) {
    RunStart start;
    start.run = fmt::format("run-{}", seed);
    start.campaign = {hash_combine(seed, 1)};
    start.seed = seed;
    start.settings = {{"search.trials", "100"}};
    emit(start);
    for (int64_t task = 0; task < tasks; ++task) emit(task_start(task));
    emit(DeviceFacts{"gpu-0", "host", "H", "sm_90a", {{"driver", "1"}}, {{"fma", 1.5}}});
    tasks_ = tasks;
  }

  /// One more trial: dispatched, perhaps retried, settled.
  void add_trial() {
    JobDispatched job;
    job.task = rng_.between(0, tasks_ - 1);
    job.trial = next_trial_++;
    job.trace = fmt::format(R"([[["GetSBlock",[],["C","main"],["b{}"]]],[]])", rng_.below(40));  // traces come again
    job.trace_key = content_key(job.trace);
    job.stage = static_cast<Stage>(rng_.between(2, 4));
    for (;; ++job.attempt) {
      emit(job);
      JobResult result = random_result(job);
      result.settled = job.attempt == 2 || rng_.chance(0.8);
      emit(result);
      if (result.settled) return;
    }
  }
  void quarantine() {
    DeviceQuarantined q;
    q.device = "gpu-1";
    q.reason = "canary";
    q.since_us = now_us_ - 20'000;
    emit(q);
  }
  /// An attempt that is under way.
  void dispatch_only() {
    JobDispatched job;
    job.trial = next_trial_++;
    job.trace = "[[],[]]";
    job.trace_key = content_key(job.trace);
    emit(job);
  }
  void emit(EventBody body) {
    events_.push_back({static_cast<int64_t>(events_.size()) + 1, t_ += 0.25, std::move(body)});
  }

  const std::vector<Event>& events() const { return events_; }

 private:
  TaskStart task_start(int64_t task) {
    TaskStart start;
    start.task = task;
    start.name = fmt::format("gemm {}", task % 2);  // two tasks may share a workload, on other targets
    start.program = fmt::format("def main{}(): pass", task % 2);
    start.workload_key = content_key(start.program + "\n1");
    start.anchor_key = content_key("gemm");
    start.shape = "4x4x4";
    start.target = fmt::format(R"({{"arch":"sm_90a","driver":{}}})", task / 2);
    start.target_name = "sm_90a";
    start.target_key = content_key(start.target);
    start.target_class = content_key("sm_90a H");
    start.mode = task == 2 ? Mode::warm : Mode::cold;
    return start;
  }
  JobResult random_result(const JobDispatched& job) {
    JobResult r;
    r.task = job.task;
    r.trial = job.trial;
    r.attempt = job.attempt;
    r.trace_key = job.trace_key;
    r.finished_us = now_us_ += 1000;
    r.device = rng_.chance(0.5) ? "gpu-0" : "gpu-1";
    r.stage = job.stage;
    auto statuses = all_values<TrialStatus>();
    r.status = rng_.chance(0.7) ? TrialStatus::ok : statuses[1 + rng_.below(statuses.size() - 1)];
    if (r.status != TrialStatus::ok) {
      r.detail = "it failed";
      return r;
    }
    r.verified = rng_.chance(0.9);
    r.n = rng_.between(10, 60);
    r.median_ns = 1000 * (1 + rng_.uniform());
    r.ci_lo_ns = r.median_ns * 0.99;
    r.ci_hi_ns = r.median_ns * 1.01;
    if (rng_.chance(0.5)) r.canary_ratio = 0.97 + 0.06 * rng_.uniform();
    r.samples_ns = {r.median_ns, r.median_ns + 1};
    r.build = {{"registers", 32}, {"spill_bytes", 0}};
    r.toolchain = "llvm 22";
    return r;
  }

  Rng rng_;
  std::vector<Event> events_;
  double t_ = 0;
  int64_t tasks_ = 0, next_trial_ = 0, now_us_ = 1'000'000;
};

}  // namespace tilewright
