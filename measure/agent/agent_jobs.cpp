// What becomes of a job: accepted → its contenders built → the reference there → run (a shoot-out in parts) → one
// Outcome, kept until it is acknowledged. Nothing is retried here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "measure/agent/agent.h"
#include "measure/agent/agent_events.h"
#include "measure/process/memfd.h"
#include "schedule/target.h"
#include "support/check.h"

namespace tilewright::measure {

namespace {

constexpr size_t cached_artifacts = 256;
constexpr size_t spool_limit = 10'000;
constexpr size_t trace_limit = 256 << 10;
constexpr size_t blob_chunk = 64 << 10;
constexpr size_t blob_limit = 64 << 20;
constexpr uint32_t shootout_parts = 3;
constexpr int reference_priority = 1 << 20;  // jobs wait for it

std::string clip(std::string text, size_t limit) {
  if (text.size() > limit) text.resize(limit);
  return text;
}

}  // namespace

void Agent::reject(const std::string& id, wire::RejectCode code, const std::string& text) {
  wire::Down down;
  down.mutable_rejected()->set_id(id);
  down.mutable_rejected()->set_code(code);
  down.mutable_rejected()->set_text(text);
  send(down);
}

void Agent::accept(const wire::Job& message) {
  const std::string& id = message.measurement_id();
  if (id.size() != 16) return reject(id, wire::BAD_MESSAGE, fmt::format("an id of {} bytes, expected 16", id.size()));
  if (entries_.count(id)) return;  // seen before, and still at work
  if (auto spooled = spool_.find(id); spooled != spool_.end()) {
    tuner_.send(spooled->second);
    return;
  }
  if (!accepts_jobs(session_)) return reject(id, wire::DRAINING, "the agent accepts no jobs any more");
  if (spool_.size() >= spool_limit) return reject(id, wire::NO_CREDIT, "10000 results wait to be acknowledged");
  wire::Down need;
  for (const std::string& digest : {message.program(), message.target()})
    if (!blobs_.count(digest)) need.mutable_need()->add_digests(digest);
  if (need.has_need()) {
    send(need);
    return reject(id, wire::NO_CREDIT, "program or target text is not here yet");
  }
  auto entry = std::make_shared<Entry>();
  entry->job = decode(message);
  Job& job = entry->job;
  job.program = blobs_[message.program()];
  job.target = blobs_[message.target()];
  if (job.contenders.empty()) return reject(id, wire::BAD_MESSAGE, "a job without contenders");
  for (const Contender& c : job.contenders)
    if (c.trace.size() > trace_limit)
      return reject(id, wire::TOO_LARGE, fmt::format("a trace of {} bytes, at most {}", c.trace.size(), trace_limit));
  const DeviceSlot* device = nullptr;
  for (const DeviceSlot& d : devices_)
    if (job.run.device.empty() ? !device : d.info.uuid == job.run.device) device = &d;
  if (!device) return reject(id, wire::UNKNOWN_DEVICE, fmt::format("no device \"{}\" on this host", job.run.device));
  entry->device_kind = device->kind;
  const DeviceKind* kind = Registry<DeviceKind>::instance().find(device->kind);
  entry->pipeline =
      job.build.pipeline == "default" && kind && !kind->pipeline.empty() ? kind->pipeline : job.build.pipeline;
  if (entry->device_kind == "cpu" && entry->pipeline == "default" && !job.build_only) {
    // An instruction that this CPU lacks would look like a crash of the candidate.
    auto target = parse_target(job.target);
    if (!target) return reject(id, wire::UNSUPPORTED_TARGET, render_text(target.error().diagnostic()));
    std::vector<std::string> missing = features_missing_here(*target);
    if (!missing.empty())
      return reject(id, wire::UNSUPPORTED_TARGET,
                    fmt::format("this CPU lacks {} of target {}", fmt::join(missing, ", "), job.target));
  }
  entry->build_base = fmt::format("{}\n{}\n{}\n", message.program(), message.target(), entry->pipeline);
  for (const auto& [name, value] : job.build.options) entry->build_base += fmt::format("{}={}\n", name, value);
  for (const std::string& dump : job.build.dumps) entry->build_base += fmt::format("dump {}\n", dump);
  entry->outcome.id = job.id;
  entries_[id] = entry;
  start_builds(entry);
}

void Agent::start_builds(const std::shared_ptr<Entry>& entry) {
  Job& job = entry->job;
  entry->artifacts.resize(job.contenders.size());
  entry->outcome.builds.resize(job.contenders.size());
  entry->state = wire::BUILD_QUEUED;
  for (size_t c = 0; c < job.contenders.size(); ++c) {
    auto cached = cache_.find(content_key(entry->build_base + job.contenders[c].trace).hex());
    if (cached != cache_.end()) {
      entry->artifacts[c] = cached->second;
      entry->outcome.builds[c] = cached->second->report;
      entry->outcome.builds[c].cached = true;
      continue;
    }
    Work work;
    work.kind = Work::Kind::build;
    work.entry = entry;
    work.contender = c;
    work.priority = job.priority;
    work.alone = job.alone;
    queue(std::move(work));
  }
  advance(entry);
}

void Agent::built(Work& work, const wire::WorkerBuilt& reply, Fd file) {
  auto status = static_cast<TrialStatus>(reply.status());
  if (reply.status() > record_wire::INTERNAL_ERROR || status == TrialStatus::unspecified)
    status = TrialStatus::worker_lost;
  if (work.kind == Work::Kind::verify) {
    if (status == TrialStatus::ok) return verified(work.reference, reply.detail());
    return reference_failed(work.reference, status, reply.detail(), reply.refusal_code());
  }
  std::shared_ptr<Artifact> artifact;
  if (status == TrialStatus::ok) {
    auto plan = decode(reply.plan());
    if (!file || !plan) {
      status = TrialStatus::worker_lost;
    } else {
      artifact =
          std::make_shared<Artifact>(Artifact{std::move(file), decode(reply.entry()), *plan, decode(reply.report())});
    }
  }
  if (work.reference) {
    if (!artifact) return reference_failed(work.reference, status, reply.detail(), reply.refusal_code());
    work.reference->artifact = std::move(artifact);
    work.reference->state = Reference::State::running;
    Work run;
    run.kind = Work::Kind::run;
    run.reference = work.reference;
    run.device_kind = work.reference->device_kind;
    run.threads = work.reference->threads;
    run.priority = reference_priority;
    return queue(std::move(run));
  }
  Entry& entry = *work.entry;
  if (entry.ended) return;
  if (!artifact) {
    Outcome outcome = entry.outcome;
    outcome.status = status;
    outcome.phase = "build";
    outcome.detail = clip(reply.detail(), 4096);
    outcome.refusal_code = reply.refusal_code();
    if (status == TrialStatus::rejected) outcome.reject = RejectCode::unsupported_target;
    return finish(work.entry, std::move(outcome));
  }
  entry.artifacts[work.contender] = artifact;
  entry.outcome.builds[work.contender] = artifact->report;
  std::string key = content_key(entry.build_base + entry.job.contenders[work.contender].trace).hex();
  if (cache_.emplace(key, artifact).second) cache_order_.push_back(key);
  if (cache_order_.size() > cached_artifacts) {
    cache_.erase(cache_order_.front());
    cache_order_.pop_front();
  }
  if (entry.job.build.return_artifact) returned_[artifact->report.artifact] = artifact;
  advance(work.entry);
}

void Agent::advance(const std::shared_ptr<Entry>& entry) {
  if (entry->ended || entry->run_queued) return;
  for (const auto& artifact : entry->artifacts)
    if (!artifact) return;
  if (entry->job.build_only) {
    Outcome outcome = entry->outcome;
    outcome.status = TrialStatus::ok;
    outcome.phase = "build";
    return finish(entry, std::move(outcome));
  }
  if (entry->job.run.check && !entry->reference) return need_reference(entry);
  if (entry->reference && entry->reference->state != Reference::State::ready) return;
  queue_run(entry);
}

void Agent::need_reference(const std::shared_ptr<Entry>& entry) {
  const Job& job = entry->job;
  std::string key = content_key(fmt::format("{}\n{}\n{}\n{}\n{}", job.program, job.target, entry->device_kind,
                                            entry->pipeline, job.run.input_seed))
                        .hex();
  std::shared_ptr<Reference>& reference = references_[key];
  bool fresh = !reference;
  if (fresh) {
    reference = std::make_shared<Reference>();
    reference->program = job.program;
    reference->target = job.target;
    reference->pipeline = entry->pipeline;
    reference->device_kind = entry->device_kind;
    reference->seed = job.run.input_seed;
    reference->threads = job.run.threads;
    reference->begun = Clock::now();
    reference->task = job.id.task;
    reference->digest = key;
  }
  entry->reference = reference;
  if (reference->state == Reference::State::ready) return advance(entry);
  waiting_[key].push_back(entry);
  if (reference->state == Reference::State::failed)
    return reference_failed(reference, reference->failure, reference->failure_text, reference->failure_code);
  if (!fresh) return;
  Work work;
  work.kind = Work::Kind::build;
  work.reference = reference;
  work.priority = reference_priority;
  queue(std::move(work));
}

void Agent::reference_failed(const std::shared_ptr<Reference>& reference, TrialStatus status, const std::string& detail,
                             const std::string& code) {
  std::string key = reference->digest;
  reference->state = Reference::State::failed;
  reference->failure = status;
  reference->failure_text = detail;
  reference->failure_code = code;
  // A lost worker says nothing about the program: the next job tries again.
  if (info(status).owner == Owner::environment) references_.erase(key);
  std::vector<std::shared_ptr<Entry>> waiting;
  waiting.swap(waiting_[key]);
  waiting_.erase(key);
  for (const auto& entry : waiting) {
    Outcome outcome = entry->outcome;
    outcome.phase = "reference";
    // Not the candidate's fault: the unscheduled program itself does not build, run or agree with the interpreter.
    outcome.status = info(status).owner == Owner::environment ? status : TrialStatus::internal_error;
    outcome.refusal_code = code;
    outcome.detail =
        clip(fmt::format("the reference of this program failed ({}): {}", to_string(status), detail), 4096);
    finish(entry, std::move(outcome));
  }
}

/// The interpreter found nothing wrong; `unchecked`: why it could not say so of all elements that it was asked about.
void Agent::verified(const std::shared_ptr<Reference>& reference, const std::string& unchecked) {
  if (!unchecked.empty())
    event(warning_line("reference-unchecked", "the reference outputs are not cross-checked: " + unchecked));
  reference_ready(reference);
}

void Agent::reference_ready(const std::shared_ptr<Reference>& reference) {
  reference->state = Reference::State::ready;
  std::string inputs;
  int64_t elements = 0;
  for (CheckSet set : reference->artifact->plan.sets())
    inputs += fmt::format("{}{}", inputs.empty() ? "" : " ", to_string(set));
  for (const BufferPlan& b : reference->artifact->plan.buffers)
    if (b.is_output()) elements += b.elements();
  event(reference_built_line(reference->task, reference->digest, inputs, elements,
                             std::chrono::duration<double>(Clock::now() - reference->begun).count()));
  std::vector<std::shared_ptr<Entry>> waiting;
  waiting.swap(waiting_[reference->digest]);
  waiting_.erase(reference->digest);
  for (const auto& entry : waiting) advance(entry);
}

void Agent::queue_run(const std::shared_ptr<Entry>& entry) {
  const Job& job = entry->job;
  bool final = job.run.stage == Stage::final && job.contenders.size() > 1;
  entry->parts = final ? shootout_parts : 1;
  entry->run_queued = true;
  entry->state = wire::RUN_QUEUED;
  Work work;
  work.kind = Work::Kind::run;
  work.entry = entry;
  work.device = job.run.device;
  work.avoid_device = job.run.avoid_device;
  work.device_kind = entry->device_kind;
  work.threads = job.run.threads;
  work.priority = job.priority;
  work.fresh = job.run.fresh_exec || entry->parts_done > 0;
  work.alone = job.alone;
  queue(std::move(work));
}

void Agent::ran(Work& work, WorkerProcess& worker, const wire::WorkerRan& reply, Fd file) {
  Outcome outcome = decode(reply.outcome());
  if (outcome.status == TrialStatus::unspecified) outcome.status = TrialStatus::worker_lost;
  if (work.kind == Work::Kind::calibrate) {
    wire::Down down;
    *down.mutable_calibrated() = reply.calibrated();
    down.mutable_calibrated()->set_ticket(work.calibration);
    if (!outcome.ok())
      down.mutable_calibrated()->set_error(fmt::format("{}: {}", to_string(outcome.status), outcome.detail));
    return send(down);
  }
  if (work.reference) {
    if (outcome.ok() && !file) outcome.status = TrialStatus::worker_lost;
    if (!outcome.ok()) return reference_failed(work.reference, outcome.status, outcome.detail, "");
    work.reference->file = std::move(file);
    work.reference->state = Reference::State::verifying;
    Work verify;
    verify.kind = Work::Kind::verify;
    verify.reference = work.reference;
    verify.priority = reference_priority;
    return queue(std::move(verify));
  }
  ran_job(work, worker, std::move(outcome), reply);
}

void Agent::ran_job(Work& work, WorkerProcess& worker, Outcome outcome, const wire::WorkerRan& reply) {
  Entry& entry = *work.entry;
  if (entry.ended) return;
  outcome.id = entry.job.id;
  outcome.builds = entry.outcome.builds;
  outcome.exec = worker.incarnation();
  for (const DeviceSlot& d : devices_)
    if (d.exec == &worker) outcome.device = d.info.uuid;
  if (!outcome.ok()) outcome.log = worker.child().output();
  if (entry.job.run.stage != Stage::final || !outcome.ok()) return finish(work.entry, std::move(outcome));

  Rounds part;
  for (const auto& times : reply.rounds()) part.emplace_back(times.ns().begin(), times.ns().end());
  append(entry.rounds, part);
  uint64_t wall = entry.outcome.wall_us + outcome.wall_us;
  outcome.wall_us = entry.outcome.wall_us = wall;
  if (++entry.parts_done < entry.parts) return queue_run(work.entry);
  outcome.measurements =
      measurements_of(entry.rounds, entry.job.run, entry.device_kind == "fake" ? Timer::fake : Timer::tsc);
  outcome.paired = compare_with_first(entry.rounds);
  finish(work.entry, std::move(outcome));
}

/// The worker died, or was killed, while it did `work`.
void Agent::failed(Work& work, const std::string& exec, TrialStatus status, const std::string& phase,
                   const std::string& detail, const std::string& log) {
  if (work.kind == Work::Kind::calibrate) {
    wire::Down down;
    down.mutable_calibrated()->set_ticket(work.calibration);
    down.mutable_calibrated()->set_error(fmt::format("{}: {}", to_string(status), detail));
    return send(down);
  }
  if (work.kind == Work::Kind::verify && status == TrialStatus::build_timeout)
    return verified(work.reference, "the interpreter needs too long");
  if (work.reference) return reference_failed(work.reference, status, detail + (log.empty() ? "" : "\n" + log), "");
  if (work.entry->ended) return;
  Outcome outcome = work.entry->outcome;
  outcome.status = status;
  outcome.phase = work.kind == Work::Kind::build ? "build" : phase;
  outcome.detail = clip(detail, 4096);
  outcome.log = log;
  if (work.kind == Work::Kind::run) {
    outcome.exec = exec;
    outcome.device = exec.substr(0, exec.rfind('#'));
  }
  finish(work.entry, std::move(outcome));
}

void Agent::finish(const std::shared_ptr<Entry>& entry, Outcome outcome) {
  if (entry->ended) return;
  entry->ended = true;
  std::string id = encode_id(entry->job.id);
  outcome.host = "local";
  if (entry->job.build_only || outcome.phase == "build") outcome.measurements.clear();
  wire::Down down;
  encode(outcome, *down.mutable_result()->mutable_outcome());
  std::string bytes = down.SerializeAsString();
  if (bytes.size() > FrameSocket::max_frame) {  // only dumps can be this large
    for (auto& build : *down.mutable_result()->mutable_outcome()->mutable_builds()) build.clear_dumps();
    bytes = down.SerializeAsString();
  }
  tuner_.send(bytes);
  spool_[id] = std::move(bytes);
  entries_.erase(id);
  queue_.erase(std::remove_if(queue_.begin(), queue_.end(), [&](const Work& w) { return w.entry == entry; }),
               queue_.end());
  if (alone_ == entry) alone_.reset();
}

void Agent::cancel(const std::string& id) {
  auto it = entries_.find(id);
  if (it == entries_.end()) return;
  std::shared_ptr<Entry> entry = it->second;
  for (auto& [ticket, work] : running_) {
    if (work.entry != entry) continue;
    for (auto& worker : workers_)
      if (worker->state == WorkerProcess::State::busy && worker->ticket == ticket)
        worker->kill({TrialStatus::cancelled, "cancelled while it ran"});
  }
  Outcome outcome = entry->outcome;
  outcome.status = TrialStatus::cancelled;
  outcome.phase = "cancelled";
  finish(entry, std::move(outcome));
}

void Agent::store_blob(const wire::Blob& blob) {
  std::string& bytes = partial_blobs_[blob.digest()];
  if (blob.offset() != bytes.size() || bytes.size() + blob.data().size() > blob_limit) {
    partial_blobs_.erase(blob.digest());
    return;
  }
  bytes += blob.data();
  if (!blob.last()) return;
  // A blob is what its digest says, or it is nothing.
  if (content_key(bytes).hex() == blob.digest()) blobs_[blob.digest()] = std::move(bytes);
  partial_blobs_.erase(blob.digest());
}

void Agent::fetch(const wire::Fetch& request) {
  wire::Down down;
  wire::Blob& blob = *down.mutable_blob();
  blob.set_digest(request.digest());
  blob.set_offset(request.offset());
  blob.set_last(true);
  auto it = returned_.find(request.digest());
  Result<Mapping> bytes =
      it == returned_.end() ? Result<Mapping>(refuse(message_invalid, "unknown")) : Mapping::of(it->second->file);
  if (bytes && request.offset() <= bytes->bytes().size()) {
    std::string_view rest = bytes->bytes().substr(request.offset());
    blob.set_total(bytes->bytes().size());
    blob.set_last(rest.size() <= blob_chunk);
    std::string_view data = rest.substr(0, blob_chunk);
    blob.set_data(data.data(), data.size());
  }
  send(down);
}

void Agent::calibrate(const wire::Calibrate& request) {
  Work work;
  work.kind = Work::Kind::calibrate;
  work.device = request.device_uuid();
  work.threads = static_cast<int>(request.threads());
  work.calibration = request.ticket();
  work.priority = reference_priority;
  for (const DeviceSlot& d : devices_)
    if (work.device.empty() || d.info.uuid == work.device) {
      work.device_kind = d.kind;
      return queue(std::move(work));
    }
  wire::Down down;
  down.mutable_calibrated()->set_ticket(request.ticket());
  down.mutable_calibrated()->set_error(fmt::format("no device \"{}\"", request.device_uuid()));
  send(down);
}

}  // namespace tilewright::measure
