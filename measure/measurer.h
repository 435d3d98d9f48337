// What the search layer sees of measurement: submit jobs, poll outcomes, acknowledge what has been committed.
//
//   TW_TRY(auto measurer, open_measurer(options));
//   measurer->submit(job);                              // after `job.dispatched` is in the journal
//   for (Outcome& o : measurer->poll(200ms)) …          // arrival order; the search consumes in slot order
//   commit to journal and database;  measurer->acknowledge(ids);
//
// Plain C++: the implementation lives in libtilewright-measure.so, which is opened on first use. Retries are the
// caller's (measure/retry.h decides them); a Measurer runs what it is given once and answers every job exactly once.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "measure/outcome.h"
#include "measure/policy.h"
#include "support/component.h"
#include "support/hash.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(measurer_unavailable, "measurer-unavailable",
                "no measurer of that name, or its processes do not start");

/// One candidate of a job.
struct Contender {
  std::string trace;  ///< trace JSON `[instructions, decisions]`; empty: the unscheduled program
  Key128 trace_key;
};

struct BuildOptions {
  std::string pipeline = "default";            ///< "default", "naive", or one registered by a plug-in or test
  std::map<std::string, std::string> options;  ///< LowerOptions by name, as text
  uint32_t cpu_ms = 10'000, wall_ms = 20'000;
  uint32_t memory_mib = 2'048;
  bool return_artifact = false;    ///< keep the artifact for Measurer::artifact()
  std::vector<std::string> dumps;  ///< stage names to return as text (BuildReport::dumps)
};

struct RunSpec {
  std::string device;        ///< uuid; empty: any device that serves the target
  std::string avoid_device;  ///< uuid; another one is taken if there is one (retries)
  Stage stage = Stage::screen;
  Mode mode = Mode::cold;
  MeasurePolicy policy = MeasurePolicy::screen();
  int threads = 1;          ///< CPU: size of exec's pinned pool; part of the target
  double incumbent_ns = 0;  ///< best verified time of the task; 0: none
  double floor_ns = 0;      ///< roofline time; below 0.95 of it a result is implausible; 0: no floor known
  uint64_t input_seed = 0;
  uint32_t load_ms = 5'000;
  uint32_t device_ms = 0;  ///< 0: clamp(10 × incumbent × launches, 0.2 s, 10 s)
  std::string counters;    ///< set name; empty: none
  bool keep_samples = false;
  bool check = true;        ///< false only for jobs whose times are never ranked
  bool fresh_exec = false;  ///< in a newly started exec
};

/// One unit of work: build every contender, check every one, time them (stage final: interleaved, ABBA).
struct Job {
  MeasurementId id;
  std::string program;                ///< program text; equal texts share inputs and reference
  std::string target;                 ///< target text, as printed by schedule/target.h
  std::vector<Contender> contenders;  ///< contender 0 is the incumbent of a shoot-out
  BuildOptions build;
  RunSpec run;
  int priority = 0;         ///< larger first; equal: in the order submitted
  bool alone = false;       ///< nothing else runs on the host meanwhile
  bool build_only = false;  ///< stop after the build
};

struct DeviceInfo {
  std::string uuid;  ///< "cpu-…", "fake-0", "GPU-…"
  std::string kind;  ///< "cpu", "cuda", "fake"
  std::string name;  ///< marketing or model name
  std::map<std::string, std::string> facts;
  std::string health;  ///< "serving", "starting", "suspect", "quarantined: reason"
};

/// Measured ceilings of one device, which reports divide by. Rates are the best of several runs.
struct Calibration {
  std::string device;
  int threads = 1;
  std::map<std::string, double> flops_per_s;  ///< dtype -> fused multiply-adds × 2 per second
  double stream_bytes_per_s = 0;              ///< triad a = b + s·c, bytes read + written
  double copy_bytes_per_s = 0;
  double clock_mhz = 0;
  double launch_ns = 0;  ///< an empty launch
};

struct MeasurerOptions {
  std::string binary;  ///< program with the worker entries; empty: `tilewright` of this installation, else this program
  std::vector<std::string> devices{"cpu"};  ///< "cpu", "fake", "fake:3" (three of them)
  int build_slots = 0;                      ///< 0: cores − 1, at least 1
  std::string fake;                         ///< JSON of devices/fake.h, for devices "fake"
  std::vector<std::string> plugins;         ///< opened by every worker
  uint64_t campaign = 0;
  std::string sandbox = "embedded";
};

class Measurer {
 public:
  virtual ~Measurer() = default;

  /// Takes any number of jobs; they wait in the tuner until the agent has credits. Never blocks.
  virtual void submit(Job job) = 0;
  /// Everything that has ended since the last call; waits up to `timeout` for the first. Interrupted by wake().
  virtual std::vector<Outcome> poll(std::chrono::milliseconds timeout) = 0;
  /// The outcomes are committed: the agent forgets them.
  virtual void acknowledge(std::span<const MeasurementId> ids) = 0;
  /// Drops queued jobs and kills running ones; each still ends in one Outcome (`cancelled`, unless it had just ended).
  virtual void cancel(std::span<const MeasurementId> ids) = 0;
  /// Makes a waiting poll return (from a signal-handling thread).
  virtual void wake() = 0;

  /// Jobs submitted and not yet returned by poll.
  virtual size_t in_flight() const = 0;
  /// Jobs that keep all builders and devices busy: submit while in_flight() < capacity().
  virtual size_t capacity() const = 0;

  virtual std::vector<DeviceInfo> devices() const = 0;
  virtual Result<Calibration> calibrate(const std::string& device, int threads) = 0;
  /// Bytes of an artifact that a job with `return_artifact` built; digest as in BuildReport::artifact.
  virtual Result<std::string> artifact(const std::string& digest) = 0;
  /// For the journal, since the last call: device.facts, reference.built, warning, … as lines of support/events.h
  /// (parse_line), whose numbers and times the journal replaces. Text, because events.h is a heavy header and most
  /// users need none.
  virtual std::vector<std::string> take_events() = 0;

  /// Timing on this host wants quiet: a search calls this between batches; it blocks while a timing window is open (at
  /// most 0.2 s).
  virtual void park_while_quiet() = 0;
};

/// Registered by name: "embedded" (worker processes over socket pairs, no ports).
struct MeasurerFactory {
  static constexpr const char* registry_name = "measurer";
  std::function<Result<std::unique_ptr<Measurer>>(const MeasurerOptions&)> make;
};

inline Result<std::unique_ptr<Measurer>> open_measurer(const MeasurerOptions& options,
                                                       std::string_view name = "embedded") {
  TW_TRY_VOID(open_component("measure"));
  const auto& registry = Registry<MeasurerFactory>::instance();
  const MeasurerFactory* factory = registry.find(name);
  if (!factory) {
    Refusal unknown(measurer_unavailable, "no measurer is named \"" + std::string(name) + "\"");
    std::string near = registry.suggestion(name);
    return refuse(near.empty() ? unknown : unknown.with_help("did you mean \"" + near + "\"?"));
  }
  return factory->make(options);
}

}  // namespace tilewright::measure
