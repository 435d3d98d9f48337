// What came of one measurement job: how it ended (TrialStatus), the times, the check and the build report.
// Plain data: search and tools include this without protobuf. proto/record.proto mirrors it field by field.
// Read first: support/trial.h; its table says for each ending whose fault it is, what the cost model sees, what is
// next.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/trial.h"

namespace tilewright::measure {

/// Names one attempt at one trial: 16 bytes on the wire. A resumed tuner never reuses an attempt.
struct MeasurementId {
  uint64_t campaign = 0;  ///< 64 random bits, one per campaign
  uint16_t task = 0;
  uint32_t trial = 0;  ///< run-wide trial number
  uint16_t attempt = 0;

  auto operator<=>(const MeasurementId&) const = default;
  MeasurementId with_attempt(uint16_t n) const { return {campaign, task, trial, n}; }
};

enum class Timer : uint8_t { events = 1, batch, activity, tsc, fake };

/// Times of one contender. All times in nanoseconds per launch.
struct Measurement {
  int contender = 0;  ///< index into Job::contenders
  Mode mode = Mode::cold;
  Stage stage = Stage::screen;
  Timer timer = Timer::tsc;
  uint32_t n = 0;          ///< samples kept
  uint32_t marked = 0;     ///< of those, above q3 + 3 IQR: counted, not deleted
  uint32_t discarded = 0;  ///< disturbed samples (context switch, steal) left out
  uint32_t launches_per_sample = 1;
  double min = 0, q1 = 0, median = 0, q3 = 0, mad = 0;
  double ci_lo = 0, ci_hi = 0;  ///< 95 % interval of the median (binomial order statistics)
  double clock_mhz = 0;         ///< of the cores or SMs while timing; 0: unknown
  double clock_change_ppm = 0;  ///< largest change over an accepted block
  double cycles = 0;            ///< median in clock cycles, if clock_mhz is known
  uint32_t throttle_reasons = 0;
  double canary_ratio = 0;     ///< last canary over this device's baseline; 0: not run
  double incumbent_ratio = 0;  ///< median over the incumbent's time; 0: no incumbent
  double overhead_ns = 0;      ///< time of an empty launch: stored, not subtracted
  bool cut_short = false;      ///< far slower than the incumbent: stopped early
  bool coarse = false;         ///< samples too short for the timer
  std::vector<float> samples;  ///< only with RunSpec::keep_samples, at most 64
};

/// One pair of a final shoot-out: contender against contender 0, from interleaved rounds.
struct Paired {
  int contender = 0;
  uint32_t rounds = 0;
  double ratio = 1;         ///< Hodges–Lehmann estimate of time(contender) / time(contender 0)
  double lo = 0, hi = 0;    ///< 95 % interval of the ratio
  double sign_p = 1;        ///< two-sided sign test
  bool left_early = false;  ///< more than twice the best after two rounds
};

struct BuildReport {
  std::string toolchain;  ///< names and versions of what built it
  std::string artifact;   ///< SHA-256 in hex
  uint64_t bytes = 0;
  uint32_t cpu_ms = 0, wall_ms = 0, peak_mib = 0;
  uint32_t registers = 0, spill_bytes = 0, stack_bytes = 0, shared_static = 0, shared_dynamic = 0, blocks_per_sm = 0;
  uint32_t replay_us = 0, lower_us = 0, codegen_us = 0, assemble_us = 0;
  bool cached = false;                ///< an equal build key was built before
  std::vector<std::string> warnings;  ///< codes
  std::string diagnostics;
  std::map<std::string, std::string> dumps;  ///< stage name -> text, as asked by BuildOptions::dumps
};

struct Mismatch {
  std::string buffer;
  uint64_t index = 0;  ///< linear, row major
  double expected = 0, found = 0, tolerance = 0;
};

struct CheckReport {
  std::string reference;          ///< SHA-256 in hex of the reference outputs
  std::vector<std::string> sets;  ///< "exact", "random"
  uint64_t elements = 0, mismatches = 0, unwritten = 0;
  double max_abs = 0, max_rel = 0;  ///< max_rel: largest |error| over its tolerance
  std::string tolerance;            ///< the formula with its numbers, for people
  std::vector<Mismatch> first;      ///< at most 8, in memory order
  bool red_zones_ok = true, inputs_unchanged = true, after_timing_ok = true;
};

struct Counters {
  std::string set, chip;
  uint32_t passes = 0;
  int32_t unavailable_code = 0;
  std::map<std::string, double> values;
};

/// Typed refusals of an agent; in Outcome::reject they say what to do with `rejected`.
enum class RejectCode : uint8_t {
  none,
  version,
  unauthenticated,
  stale_token,
  device_busy,
  registry_unavailable,
  no_credit,
  unknown_device,
  unsupported_target,
  missing_plugin,
  bad_message,
  too_large,
  unsigned_artifact,
  draining,
  quarantined,
};

struct Outcome {
  MeasurementId id;
  TrialStatus status = TrialStatus::unspecified;
  RejectCode reject = RejectCode::none;
  std::string phase;                      ///< where it ended: "build", "reference", "load", "check", "time", …
  std::string detail;                     ///< at most 4 KiB; for a refusal its rendered text, for a death its signal
  std::string refusal_code;               ///< kebab code, for replay_refused and lower_refused
  std::vector<BuildReport> builds;        ///< one per contender that was built
  std::vector<Measurement> measurements;  ///< one per contender that was timed
  std::vector<Paired> paired;             ///< stage final only
  std::optional<CheckReport> check;       ///< of the first contender that failed, else of the last one checked
  std::optional<Counters> counters;
  std::string device;              ///< uuid
  std::string host, exec;          ///< which host and which incarnation of exec
  int64_t started_us = 0;          ///< unix µs
  uint64_t device_us = 0;          ///< time in launches
  uint64_t wall_us = 0;            ///< exec's whole job, build excluded
  std::string log;                 ///< at most 16 KiB of the workers' standard error
  std::vector<std::string> flags;  ///< "coarse", "no-clock", "shared-host", "quiet-late", …

  bool ok() const { return status == TrialStatus::ok; }
  /// Of a shoot-out: the contender was so slow that it was not timed to the end.
  bool left_early(int contender) const {
    for (const Paired& p : paired)
      if (p.contender == contender) return p.left_early;
    return false;
  }
  /// Median time of contender 0 in nanoseconds; 0 if it was not timed.
  double median_ns() const { return measurements.empty() ? 0 : measurements.front().median; }
};

}  // namespace tilewright::measure
