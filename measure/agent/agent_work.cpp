// Which worker does what, and under which limits.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "measure/agent/agent.h"
#include "measure/process/memfd.h"
#include "measure/process/memory_limit.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

using std::chrono::milliseconds;

constexpr uint64_t builder_tasks = 200, exec_tasks = 500;  // then replaced: leaks of compilers and drivers stay bounded
constexpr auto exec_age = std::chrono::minutes(10);
constexpr auto verify_limit = std::chrono::seconds(15);  // a second opinion is not worth more of a budget
constexpr auto calibrate_limit = std::chrono::seconds(60);
constexpr uint32_t reference_device_ms = 120'000;
constexpr uint32_t reply_ms = 2'500;     // of a run's budget, for everything that is neither load nor launch
constexpr int phase_extensions = 9;      // at most ten times the limit, however little CPU time a worker gets
constexpr uint64_t compare_ms = 20'000;  // our own comparisons of large outputs

/// Time for `launches` launches of a candidate.
uint64_t device_limit_ms(const RunSpec& spec, uint32_t launches) {
  if (spec.device_ms) return spec.device_ms;
  if (spec.incumbent_ns <= 0) return 10'000;
  return static_cast<uint64_t>(std::clamp(10 * spec.incumbent_ns * launches * 1e-6, 200.0, 10'000.0));
}

uint64_t memory_total() {
  std::ifstream meminfo("/proc/meminfo");
  std::string word;
  uint64_t kib = 0;
  meminfo >> word >> kib;
  return kib << 10;
}

}  // namespace

void Agent::queue(Work work) {
  work.ticket = next_ticket_++;
  work.order = next_order_++;
  auto at = std::find_if(queue_.begin(), queue_.end(), [&](const Work& w) { return w.priority < work.priority; });
  queue_.insert(at, std::move(work));
}

bool Agent::any_busy() const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [](const auto& w) { return w->state == WorkerProcess::State::busy; });
}

void Agent::start_workers() {
  Time now = Clock::now();
  for (auto& worker : workers_) {
    if (worker->state == WorkerProcess::State::ready) {
      bool old = worker->kind == WorkerKind::build
                     ? worker->tasks >= builder_tasks
                     : worker->tasks >= exec_tasks || (worker->tasks > 0 && now - worker->started > exec_age);
      if (old) worker->kill({TrialStatus::worker_lost, "replaced by rule"});
    }
    if (!worker->may_start(now)) continue;
    if (Status started = worker->start(now); !started) worker->last_output = started.error().diagnostic().message;
  }
}

bool Agent::may_serve(const WorkerProcess& worker, const Work& work) const {
  bool builds = work.kind == Work::Kind::build || work.kind == Work::Kind::verify;
  if (builds != (worker.kind == WorkerKind::build)) return false;
  if (builds) return true;
  auto slot = std::find_if(devices_.begin(), devices_.end(), [&](const DeviceSlot& d) { return d.exec == &worker; });
  if (slot == devices_.end() || slot->kind != work.device_kind) return false;
  if (!work.device.empty()) return slot->info.uuid == work.device;
  if (work.avoid_device.empty() || slot->info.uuid != work.avoid_device) return true;
  return std::none_of(devices_.begin(), devices_.end(), [&](const DeviceSlot& d) {
    return &d != &*slot && d.kind == work.device_kind && d.refused.empty();
  });
}

/// A ready worker for the work. A worker that must be fresh for it is replaced instead, and found here later.
WorkerProcess* Agent::worker_for(const Work& work) {
  for (auto& worker : workers_) {
    if (worker->state != WorkerProcess::State::ready || worker->killed || !may_serve(*worker, work)) continue;
    if (!work.fresh || worker->tasks == 0) return worker.get();
    worker->kill({TrialStatus::worker_lost, "a fresh process is asked for"});
    return nullptr;
  }
  return nullptr;
}

void Agent::dispatch() {
  start_workers();
  for (size_t i = 0; i < queue_.size();) {
    const Work& work = queue_[i];
    bool mine = alone_ && (work.entry == alone_ || (work.reference && work.reference == alone_->reference));
    if (alone_ && !mine) {
      ++i;
      continue;
    }
    if (work.alone && !alone_) {
      if (any_busy()) return;  // nothing overtakes it, or it would wait for ever
      alone_ = work.entry;
    }
    WorkerProcess* worker = worker_for(work);
    if (!worker) {
      ++i;
      continue;
    }
    Work taken = std::move(queue_[i]);
    queue_.erase(queue_.begin() + static_cast<int64_t>(i));
    assign(*worker, std::move(taken));
  }
}

void Agent::assign(WorkerProcess& worker, Work work) {
  worker.state = WorkerProcess::State::busy;
  worker.ticket = work.ticket;
  worker.killed.reset();
  begin_phase(worker, 0);
  worker.cpu_limit_ms = 0;
  worker.memory_limit = 0;
  if (work.kind == Work::Kind::build || work.kind == Work::Kind::verify) {
    worker.phase = "build";
    if (work.entry) work.entry->state = wire::BUILDING;
    send_build(worker, work);
  } else {
    worker.phase = "load";
    if (work.entry) work.entry->state = wire::RUNNING;
    send_run(worker, work);
  }
  running_.emplace(work.ticket, std::move(work));
}

void Agent::send_build(WorkerProcess& worker, const Work& work) {
  Time now = Clock::now();
  wire::ToWorker message;
  if (work.kind == Work::Kind::verify) {
    auto& task = *message.mutable_verify();
    task.set_ticket(work.ticket);
    task.set_program(work.reference->program), task.set_target(work.reference->target);
    task.set_pipeline(work.reference->pipeline), task.set_input_seed(work.reference->seed);
    encode(work.reference->artifact->plan, *task.mutable_plan());
    worker.deadline = now + verify_limit;
    std::vector<Fd> files;
    files.push_back(duplicate(work.reference->file));
    return worker.socket.send(message.SerializeAsString(), std::move(files));
  }
  auto& task = *message.mutable_build();
  task.set_ticket(work.ticket);
  BuildOptions options;
  std::string kind;
  if (work.reference) {
    task.set_program(work.reference->program), task.set_target(work.reference->target);
    task.set_naive(true);
    options.pipeline = work.reference->pipeline;
    kind = work.reference->device_kind;
  } else {
    const Job& job = work.entry->job;
    task.set_program(job.program), task.set_target(job.target);
    task.set_trace(job.contenders[work.contender].trace);
    options = job.build;
    options.pipeline = work.entry->pipeline;
    kind = work.entry->device_kind;
  }
  if (kind == "fake" && !work.reference) task.set_config(options_.fake);  // references never fail by chance
  encode(options, *task.mutable_spec());
  worker.deadline = now + milliseconds(options.wall_ms);
  worker.cpu_limit_ms = worker.child().cpu_ms() + options.cpu_ms;
  // The worker's own data limit strikes first; this catches mappings that do not count as data.
  worker.memory_limit =
      options.memory_mib ? resident_limit((static_cast<uint64_t>(options.memory_mib) + 256) << 20) : 0;
  worker.socket.send(message.SerializeAsString());
}

bool Agent::quiet_needed(const Work& work) const {
  if (!work.entry || work.device_kind != "cpu") return false;
  auto cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores < work.threads + 2 || work.entry->job.run.stage >= Stage::confirm;
}

void Agent::send_run(WorkerProcess& worker, const Work& work) {
  wire::ToWorker message;
  auto& task = *message.mutable_run();
  task.set_ticket(work.ticket);
  std::vector<Fd> files;
  RunSpec spec;
  std::vector<std::shared_ptr<Artifact>> artifacts;
  task.set_kind(wire::MEASURE);
  if (work.kind == Work::Kind::calibrate) {
    task.set_kind(wire::CALIBRATE);
    spec.threads = work.threads;
  } else if (work.reference) {
    task.set_kind(wire::REFERENCE);
    spec.threads = work.threads;
    spec.input_seed = work.reference->seed;
    spec.device_ms = reference_device_ms;
    artifacts = {work.reference->artifact};
  } else {
    spec = work.entry->job.run;
    artifacts = work.entry->artifacts;
    task.set_rounds((spec.policy.max_samples + work.entry->parts - 1) / work.entry->parts);
  }
  for (const auto& artifact : artifacts) {
    encode(artifact->entry, *task.add_entries());
    files.push_back(duplicate(artifact->file));
  }
  std::shared_ptr<Reference> reference = work.reference ? work.reference : work.entry ? work.entry->reference : nullptr;
  if (!artifacts.empty()) {
    const CheckPlan& plan = artifacts.front()->plan;
    encode(plan, *task.mutable_plan());
    // Inputs stay while program, seed and thread count stay.
    const std::string& program = work.reference ? work.reference->program : work.entry->job.program;
    task.set_resident(content_key(fmt::format("{}\n{}\n{}", program, spec.input_seed, spec.threads)).hex());
  }
  if (reference && !work.reference) {
    task.set_reference(reference->digest);
    files.push_back(duplicate(reference->file));
  }
  encode(spec, *task.mutable_spec());
  task.set_quiet(quiet_needed(work));
  Time now = Clock::now();
  auto n = static_cast<uint64_t>(std::max<size_t>(1, artifacts.size()));
  uint64_t phases = (spec.load_ms + std::max<uint64_t>(10'000, spec.device_ms) + spec.policy.budget_us / 500) * n;
  uint64_t budget =
      phases * (1 + phase_extensions) + reply_ms + compare_ms;  // a last resort: each phase has its own limit
  worker.deadline = now + (work.kind == Work::Kind::calibrate ? calibrate_limit : milliseconds(budget));
  begin_phase(worker, spec.load_ms);
  static const uint64_t total = memory_total();
  worker.memory_limit = work.device_kind == "fake" ? resident_limit(uint64_t{128} << 20) : total / 4 * 3;
  worker.socket.send(message.SerializeAsString(), std::move(files));
}

void Agent::set_phase(WorkerProcess& worker, const wire::Phase& phase) {
  auto it = running_.find(worker.ticket);
  if (it == running_.end() || phase.ticket() != worker.ticket) return;
  worker.phase = phase.name().substr(0, 32);
  RunSpec spec;
  if (it->second.entry) spec = it->second.entry->job.run;
  if (it->second.reference) spec.device_ms = reference_device_ms;
  uint64_t limit = phase.launches() > 0     ? device_limit_ms(spec, phase.launches())
                   : worker.phase == "load" ? spec.load_ms
                                            : 0;
  begin_phase(worker, limit);
}

void Agent::begin_phase(WorkerProcess& worker, uint64_t limit_ms) {
  worker.phase_limit = milliseconds(limit_ms);
  worker.phase_deadline = limit_ms ? Clock::now() + worker.phase_limit : Time::max();
  worker.phase_cpu_ms = limit_ms ? worker.child().cpu_ms() : 0;
  worker.phase_extensions = 0;
}

/// A worker that was not given the CPU has not used up its limit: on a busy host wall time says little about a
/// candidate.
bool Agent::extend_phase(WorkerProcess& worker) {
  if (worker.phase_limit.count() == 0 || worker.phase_extensions >= phase_extensions) return false;
  if (worker.child().cpu_ms() - worker.phase_cpu_ms >= static_cast<uint64_t>(worker.phase_limit.count())) return false;
  ++worker.phase_extensions;
  worker.phase_deadline += worker.phase_limit;
  return true;
}

void Agent::finish_task(WorkerProcess& worker) {
  worker.state = WorkerProcess::State::ready;
  worker.deadline = worker.phase_deadline = Time::max();
  worker.cpu_limit_ms = worker.memory_limit = 0;
  ++worker.tasks;
  close_quiet(worker);
}

}  // namespace tilewright::measure
