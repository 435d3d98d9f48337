// The agent: one per host. Takes jobs from its tuner, has them built and run by worker processes, judges how those end,
// and keeps every result until it is acknowledged. One thread, one loop (agent_loop.cpp); no job can hurt more than its
// own worker.
//
// Read in this order: this file, agent_jobs.cpp (what becomes of a job), agent_work.cpp (which worker does what),
// agent_loop.cpp (events, deadlines, quiet windows).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/agent/worker_process.h"
#include "measure/devices/device.h"
#include "measure/session/codec.h"
#include "measure/session/machine.h"
#include "measure/timing/shootout.h"

namespace tilewright::measure {

struct AgentOptions {
  std::string binary;                ///< with the worker entries
  std::vector<std::string> devices;  ///< "cpu", "fake:3"
  int build_slots = 1;
  std::string fake;  ///< JSON of devices/fake.h
  std::vector<std::string> plugins;
};

/// What a build left: kept while somebody needs it, and a while longer for an equal build key.
struct Artifact {
  Fd file;
  EntryInfo entry;
  CheckPlan plan;
  BuildReport report;
};

/// Reference outputs of (program, target, seed) on one kind of device: built, run, cross-checked, then kept.
struct Reference {
  enum class State { building, running, verifying, ready, failed } state = State::building;
  std::string program, target, pipeline, device_kind;
  uint64_t seed = 0;
  int threads = 1;
  std::shared_ptr<Artifact> artifact;
  Fd file;
  std::string digest;
  TrialStatus failure = TrialStatus::unspecified;
  std::string failure_text, failure_code;
  Time begun{};
  uint16_t task = 0;
};

/// A job that has not ended.
struct Entry {
  Job job;
  std::string device_kind, pipeline, build_base;     ///< build_base: everything of the build key but the trace
  std::vector<std::shared_ptr<Artifact>> artifacts;  ///< one per contender
  std::shared_ptr<Reference> reference;
  Outcome outcome;  ///< of the parts that ran
  Rounds rounds;
  uint32_t parts = 1, parts_done = 0;  ///< a shoot-out is divided over fresh processes
  wire::JobState state = wire::ACCEPTED;
  bool run_queued = false, ended = false;
};

/// One thing for one worker to do.
struct Work {
  enum class Kind { build, verify, run, calibrate } kind = Kind::build;
  uint64_t ticket = 0, order = 0;
  int priority = 0;
  std::shared_ptr<Entry> entry;          ///< of a job, or
  std::shared_ptr<Reference> reference;  ///< for a reference
  size_t contender = 0;
  std::string device, avoid_device, device_kind;
  int threads = 1;
  bool fresh = false, alone = false;
  uint64_t calibration = 0;  ///< ticket of the tuner
  TrialStatus status = TrialStatus::unspecified;
};

class Agent {
 public:
  Agent(AgentOptions options, FrameSocket tuner);
  ~Agent();
  /// Serves until the tuner is gone; the exit code of the process.
  int run();

 private:
  // agent_loop.cpp
  void wait_for_events();
  int milliseconds_to_next_deadline() const;
  void read_tuner();
  void read_worker(WorkerProcess& worker);
  void handle_death(WorkerProcess& worker, const Exit& exit);
  void check_deadlines();
  void check_limits();
  void reap_orphans();
  void open_quiet(WorkerProcess& holder);
  void close_quiet(WorkerProcess& holder);
  void answer_quiet();
  void let_builders_go();
  void send(const wire::Down& message) { tuner_.send(message.SerializeAsString()); }
  void event(const std::string& line);
  void apply(const SessionStep& step);
  void send_opened_when_ready();

  // agent_jobs.cpp
  void accept(const wire::Job& message);
  void reject(const std::string& id, wire::RejectCode code, const std::string& text);
  void start_builds(const std::shared_ptr<Entry>& entry);
  void advance(const std::shared_ptr<Entry>& entry);
  void need_reference(const std::shared_ptr<Entry>& entry);
  void queue_run(const std::shared_ptr<Entry>& entry);
  void built(Work& work, const wire::WorkerBuilt& reply, Fd file);
  void ran(Work& work, WorkerProcess& worker, const wire::WorkerRan& reply, Fd file);
  void ran_job(Work& work, WorkerProcess& worker, Outcome outcome, const wire::WorkerRan& reply);
  void failed(Work& work, const std::string& exec, TrialStatus status, const std::string& phase,
              const std::string& detail, const std::string& log);
  void reference_failed(const std::shared_ptr<Reference>& reference, TrialStatus status, const std::string& detail,
                        const std::string& code);
  void verified(const std::shared_ptr<Reference>& reference, const std::string& unchecked);
  void reference_ready(const std::shared_ptr<Reference>& reference);
  void finish(const std::shared_ptr<Entry>& entry, Outcome outcome);
  void cancel(const std::string& id);
  void store_blob(const wire::Blob& blob);
  void fetch(const wire::Fetch& request);
  void calibrate(const wire::Calibrate& request);

  // agent_work.cpp
  void start_workers();
  void dispatch();
  bool any_busy() const;
  WorkerProcess* worker_for(const Work& work);
  bool may_serve(const WorkerProcess& worker, const Work& work) const;
  void assign(WorkerProcess& worker, Work work);
  void send_build(WorkerProcess& worker, const Work& work);
  void send_run(WorkerProcess& worker, const Work& work);
  void set_phase(WorkerProcess& worker, const wire::Phase& phase);
  void begin_phase(WorkerProcess& worker, uint64_t limit_ms);
  bool extend_phase(WorkerProcess& worker);
  void finish_task(WorkerProcess& worker);
  void queue(Work work);
  bool quiet_needed(const Work& work) const;

  struct DeviceSlot {
    std::string kind;
    int index = 0;
    DeviceInfo info;  ///< as its exec said
    WorkerProcess* exec = nullptr;
    std::string refused;  ///< why its exec does not start
  };

  AgentOptions options_;
  FrameSocket tuner_;
  SessionState session_ = SessionState::fresh;
  bool opened_ = false, closing_ = false;
  uint64_t campaign_ = 0;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
  std::vector<DeviceSlot> devices_;

  std::map<std::string, std::shared_ptr<Entry>> entries_;  ///< by encoded id
  std::map<std::string, std::string> spool_;               ///< encoded id → outcome that is not acknowledged
  std::map<std::string, std::shared_ptr<Reference>> references_;
  std::map<std::string, std::vector<std::shared_ptr<Entry>>> waiting_;  ///< entries by the reference they wait for
  std::map<std::string, std::shared_ptr<Artifact>> cache_;              ///< by build key
  std::deque<std::string> cache_order_;
  std::map<std::string, std::shared_ptr<Artifact>> returned_;  ///< by digest, for Fetch
  std::map<std::string, std::string> blobs_, partial_blobs_;

  std::vector<Work> queue_;           ///< by priority, then order
  std::map<uint64_t, Work> running_;  ///< by ticket
  std::shared_ptr<Entry> alone_;      ///< has the host to itself
  uint64_t next_ticket_ = 1, next_order_ = 1;

  std::set<WorkerProcess*> quiet_holders_, quiet_waiting_;
  bool tuner_quiet_ = false, quiet_asked_ = false;
  Time quiet_deadline_ = Time::max(), quiet_end_ = Time::max(), next_tick_{};
};

}  // namespace tilewright::measure
