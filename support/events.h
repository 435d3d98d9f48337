// The events of a run. One struct per kind is the only definition: the journal line, the reader, the JSON Schema and
// the typed Observer derive from it. A line of events.jsonl is {"v":1,"seq":…,"t":…,"kind":"…", then the struct's
// fields}. To add a kind: write its struct and name it in EventBody. To add a field: text, list, map or optional only,
// because the journals that exist lack it (support/reflect_json.h). Units are in the names; times of day are unix
// microseconds.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "support/hash.h"
#include "support/reflect.h"
#include "support/result.h"
#include "support/trial.h"

namespace tilewright {

TW_REFUSAL_CODE(event_invalid, "event-invalid",
                "a journal line is not an event: not JSON, or without a required field");

#define TW_EVENT(text, line)                     \
  static constexpr std::string_view kind = text; \
  static constexpr const char* doc = line

template <class T>
using ByName = std::map<std::string, T>;  ///< sorted, so that equal runs write equal lines

// ---- the run ------------------------------------------------------------------------------------------------------

struct RunStart {
  TW_EVENT("run.start", "the first event of a run: who, with which settings, where");
  std::string run, name;
  Id64 campaign;  ///< random; with (sequence, attempt) it identifies a measurement for ever
  uint64_t seed = 0;
  int64_t incarnation = 1;  ///< grows with each start of the same run
  int64_t started_us = 0;
  std::string version;
  std::vector<std::string> command_line;
  ByName<std::string> settings, environment;
  TW_FIELDS(run, name, campaign, seed, incarnation, started_us, version, command_line, settings, environment)
};

struct RunSeeded {
  TW_EVENT("run.seeded",
           "a trace taken from an earlier run or the database, so that the run does not depend on either");
  int64_t task = 0;
  Key128 trace_key;
  std::string trace, origin, record;  ///< origin: "class", "imported", "run"
  std::optional<double> median_ns, predicted_ns;
  TW_FIELDS(task, trace_key, trace, origin, record, median_ns, predicted_ns)
};

struct RunResumed {
  TW_EVENT("run.resumed", "the run goes on after a stop or a crash");
  int64_t incarnation = 0;
  int64_t started_us = 0;
  double elapsed_s = 0;       ///< wall time of the run so far, summed over its starts
  int64_t events = 0;         ///< events read back
  int64_t dropped_bytes = 0;  ///< of a torn last line
  std::string version;
  ByName<std::string> settings;  ///< those that changed
  TW_FIELDS(incarnation, started_us, elapsed_s, events, dropped_bytes, version, settings)
};

struct RunEnd {
  TW_EVENT("run.end", "the run stopped, with its totals");
  std::string reason;
  int64_t trials = 0, ok = 0, failed = 0;  ///< settled trials
  double elapsed_s = 0;
  ByName<int64_t> failures;  ///< by status
  ByName<double> seconds;    ///< wall time by activity: run, build, search, train, wait
  TW_FIELDS(reason, trials, ok, failed, elapsed_s, failures, seconds)
};

struct Warning {
  TW_EVENT("warning", "something a person should know");
  std::string code, message, help;
  std::optional<int64_t> task, trial;
  TW_FIELDS(code, message, help, task, trial)
};

struct Checkpoint {
  TW_EVENT("checkpoint", "search state after a round; the file may be deleted, the journal rebuilds it");
  int64_t round = 0, trials = 0;
  Hash64 state = 0;  ///< digest of strategy state, model and counters
  std::string file;
  ByName<double> metrics,
      seconds;  ///< registered metrics of the round; wall time by activity since the last checkpoint
  TW_FIELDS(round, trials, state, file, metrics, seconds)
};

// ---- tasks and search ---------------------------------------------------------------------------------------------

struct TaskStart {
  TW_EVENT("task.start", "a task: one workload on one target; holds what is needed to rebuild its database rows");
  int64_t task = 0;
  std::string name;
  Key128 workload_key, anchor_key;
  std::string program;  ///< program text as the search sees it
  int64_t ir_version = 1;
  std::string shape;
  double flops = 0, bytes = 0;  ///< per call
  std::string target_name;
  Key128 target_key, target_class;
  std::string target;  ///< the target's full description, JSON
  Mode mode = Mode::cold;
  double weight = 1;                ///< calls per job
  ByName<std::string> environment;  ///< what times depend on besides: device model, threads, toolchain
  int64_t sketches = 0;
  std::optional<double> roofline_ns;
  std::string bound;              ///< what bounds the roofline: "compute", "memory", "launch"
  std::optional<int64_t> trials;  ///< limit of its own
  TW_FIELDS(task, name, workload_key, anchor_key, program, ir_version, shape, flops, bytes, target_name, target_key,
            target_class, target, mode, weight, environment, sketches, roofline_ns, bound, trials)
};

struct TaskDone {
  TW_EVENT("task.done", "a task ended");
  int64_t task = 0;
  std::string reason;
  int64_t trials = 0, ok = 0, failed = 0;
  std::optional<int64_t> best_trial;
  std::optional<double> best_ns;
  std::string record;  ///< of the winner, r-<12 hex>
  ByName<int64_t> failures;
  TW_FIELDS(task, reason, trials, ok, failed, best_trial, best_ns, record, failures)
};

struct RoundStart {
  TW_EVENT("round.start", "the scheduler picked a task for a round");
  int64_t round = 0, task = 0, candidates = 0;
  std::string why;
  ByName<double> weights;               ///< bandit weights of the strategy
  std::optional<double> expected_gain;  ///< as a share of the best time
  TW_FIELDS(round, task, candidates, why, weights, expected_gain)
};

struct CandidatesRefused {
  TW_EVENT("candidates.refused", "one stage of the failure funnel in one round");
  int64_t round = 0, task = 0;
  std::string stage;  ///< "sampled", "constraints", "deduplicated", "selected", "replayed", "verified"
  int64_t kept = 0, lost = 0;
  ByName<int64_t> reasons;       ///< lost, by refusal code
  ByName<std::string> examples;  ///< the first message of each code
  TW_FIELDS(round, task, stage, kept, lost, reasons, examples)
};

struct Best {
  TW_EVENT("best", "a new best time of a task");
  int64_t task = 0, trial = 0;
  Key128 trace_key;
  Stage stage = Stage::screen;
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0;
  std::optional<double> previous_ns, predicted_ns;
  std::string origin;  ///< what proposed it: a mutator, a rule, a seed
  TW_FIELDS(task, trial, trace_key, stage, median_ns, ci_lo_ns, ci_hi_ns, previous_ns, predicted_ns, origin)
};

struct ModelFit {
  TW_EVENT("model.fit", "the cost model was scored on the incoming batch, then trained on it");
  int64_t round = 0, task = -1;  ///< task -1: one model for all tasks
  int64_t samples = 0;
  Hash64 model = 0;  ///< digest
  double elapsed_s = 0;
  ByName<double> metrics;  ///< on the batch before it was trained on: pair_accuracy, recall, …
  TW_FIELDS(round, task, samples, model, elapsed_s, metrics)
};

// ---- measurement --------------------------------------------------------------------------------------------------

struct JobDispatched {
  TW_EVENT("job.dispatched",
           "a job is about to leave; in the journal before it does, so that no attempt is used twice");
  int64_t task = 0, trial = 0, attempt = 0;  ///< trial counts over the run, attempt from 0
  Key128 trace_key;
  std::string trace;  ///< JSON
  Stage stage = Stage::screen;
  std::optional<int64_t> round;
  std::string sketch, origin, device;
  std::optional<double> predicted_ns;
  TW_FIELDS(task, trial, attempt, trace_key, trace, stage, round, sketch, origin, device, predicted_ns)
};

struct JobResult {
  TW_EVENT("job.result", "the outcome of one attempt");
  int64_t task = 0, trial = 0, attempt = 0;
  Key128 trace_key;
  TrialStatus status = TrialStatus::unspecified;
  Stage stage = Stage::unspecified;
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0;  ///< 0 when n is 0
  int64_t n = 0;                                     ///< samples
  bool verified = false;                             ///< every check passed
  bool settled = false;                              ///< false if a retry follows; exactly one is true per trial
  std::string phase, detail;                         ///< where it failed, and the first lines of why
  std::string device, exec, toolchain, artifact;
  std::string record;  ///< not measured by this run: the record of the database that it was taken from
  int64_t finished_us = 0;
  std::optional<double> min_ns, q1_ns, q3_ns, mad_ns, canary_ratio, clock_mhz, cycles;
  std::optional<int64_t> marked, discarded;
  std::vector<std::string> flags, plugins;  ///< flags: "cut_short", "coarse", "throttled", …
  std::vector<double> samples_ns;
  ByName<double> build, counters;  ///< registers, spill_bytes, cpu_ms, …; hardware counters by name
  std::optional<int64_t> device_us, wall_us;
  TW_FIELDS(task, trial, attempt, trace_key, status, stage, median_ns, ci_lo_ns, ci_hi_ns, n, verified, settled, phase,
            detail, device, exec, toolchain, artifact, record, finished_us, min_ns, q1_ns, q3_ns, mad_ns, canary_ratio,
            clock_mhz, cycles, marked, discarded, flags, plugins, samples_ns, build, counters, device_us, wall_us)
};

struct DbCommitted {
  TW_EVENT("db.committed", "the database holds every result up to an event");
  int64_t through = 0;  ///< seq of the last event that is in the database
  int64_t rows = 0;     ///< rows really inserted
  double elapsed_s = 0;
  TW_FIELDS(through, rows, elapsed_s)
};

struct ReferenceBuilt {
  TW_EVENT("reference.built", "the reference outputs of a task were computed and cross-checked");
  int64_t task = 0;
  std::string inputs, digest;  ///< input set: "exact", "random"
  int64_t elements = 0;
  double elapsed_s = 0;
  TW_FIELDS(task, inputs, digest, elements, elapsed_s)
};

struct DeviceFacts {
  TW_EVENT("device.facts", "what a device is, when it is first used or changed");
  std::string device, host, model, device_class;
  ByName<std::string> facts;
  ByName<double> baselines;  ///< canary times, ns
  TW_FIELDS(device, host, model, device_class, facts, baselines)
};

struct DeviceQuarantined {
  TW_EVENT("device.quarantined",
           "a device is not used any more; its verdicts since its last good canary are withdrawn");
  std::string device, reason, evidence;
  int64_t since_us = 0;  ///< verdicts after this time are withdrawn
  std::optional<int64_t> until_us;
  TW_FIELDS(device, reason, evidence, since_us, until_us)
};

struct CampaignPaused {
  TW_EVENT("campaign.paused", "nothing is dispatched until a person acts");
  std::string reason, resume;  ///< resume: the command to paste
  TW_FIELDS(reason, resume)
};

struct RegistryLost {
  TW_EVENT("registry.lost", "the registry does not answer; open sessions go on");
  std::string registry, reason;
  TW_FIELDS(registry, reason)
};

struct RegistryFound {
  TW_EVENT("registry.found", "the registry answers again");
  std::string registry;
  double lost_s = 0;
  TW_FIELDS(registry, lost_s)
};

struct CountersUnavailable {
  TW_EVENT("counters.unavailable", "hardware counters cannot be read on a device");
  std::string device;
  int64_t code = 0;
  std::string help;
  TW_FIELDS(device, code, help)
};

#undef TW_EVENT

using EventBody =
    std::variant<RunStart, RunSeeded, RunResumed, RunEnd, TaskStart, TaskDone, RoundStart, CandidatesRefused, Best,
                 ModelFit, Warning, Checkpoint, JobDispatched, JobResult, DbCommitted, DeviceFacts, DeviceQuarantined,
                 CampaignPaused, RegistryLost, RegistryFound, CountersUnavailable, ReferenceBuilt>;

struct Event {
  int64_t seq = 0;  ///< from 1, without gaps
  double t = 0;     ///< seconds of the run, summed over its starts; rounded to microseconds
  EventBody body;
};

std::string_view kind(const EventBody&);
bool operator==(const EventBody&, const EventBody&) = delete;  // compare to_line(): a NaN equals itself there

/// One JSON line, without its newline.
std::string to_line(const Event&);

struct ParsedEvent {
  int64_t seq = 0;
  std::optional<Event> event;  ///< nothing: a kind of a newer version, to be skipped
};
/// Refusal event-invalid: not JSON, another format version, or a field that is missing or of another type.
Result<ParsedEvent> parse_line(std::string_view line);

/// JSON Schema (draft 2020-12) of a journal line; also registered as schema "events".
std::string events_schema();

/// Receives the events of a run, in order, typed: `if (auto* best = std::get_if<Best>(&event.body)) …`.
/// Called on the thread that emits; must not emit.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event&) = 0;
};

/// Numbers and times the events of one run and hands each to every observer, one at a time, in order. The journal is
/// the first observer; the screen and the user's come after it. Any thread may emit.
class EventStream {
 public:
  /// `clock` gives the seconds of the run so far; `last_seq` is that of the journal which is continued, or 0.
  explicit EventStream(std::function<double()> clock, int64_t last_seq = 0);
  /// `observer` must outlive the stream.
  void add(Observer& observer);
  int64_t emit(EventBody body);  ///< its seq
  int64_t last_seq() const;

 private:
  mutable std::mutex mutex_;
  std::function<double()> clock_;
  std::vector<Observer*> observers_;
  int64_t seq_;
};

}  // namespace tilewright
