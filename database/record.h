// What the tuning database holds, as plain reflected structs, and how a record follows from its measurements
// (summarize). Read first: summarize(); `db verify` recomputes it, and a record is never anything else than its result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/events.h"
#include "support/hash.h"
#include "support/reflect.h"
#include "support/trial.h"

namespace tilewright {

/// Key of a workload: its canonical program text and the version of the text form.
Key128 workload_key(std::string_view program, int64_t ir_version);
/// Key of a trace: its JSON text. Also the key of a target: its target_text().
Key128 text_key(std::string_view json);
/// Everything that can change a time, as one JSON object {"target":…, then the environment}: device model, threads,
/// toolchain. Without an environment it is the target's own text.
std::string target_text(std::string_view target, const ByName<std::string>& environment);
/// Key of the class of a target: its architecture and device model.
Key128 target_class(std::string_view arch, std::string_view device);
/// The parts of such a text, "target" among them.
ByName<std::string> target_parts(std::string_view text);

struct WorkloadEntry {
  Key128 key, anchor_key;  ///< anchor: equal for workloads that differ in the epilogue only
  std::string program;
  int64_t ir_version = 1;  ///< 0: not a program of ours, kept as it came
  std::string name, shape;
  double flops = 0, bytes = 0;
  TW_FIELDS(key, anchor_key, program, ir_version, name, shape, flops, bytes)
};

struct TargetEntry {
  Key128 key, class_key;  ///< key: everything that can change a time; class: architecture and device model
  std::string name, text;
  TW_FIELDS(key, class_key, name, text)
};

struct CampaignEntry {
  Id64 id;
  std::string run, name, version;
  uint64_t seed = 0;
  ByName<std::string> settings;
  int64_t started_us = 0;
  std::string state;  ///< "running", or the reason of its end
  TW_FIELDS(id, run, name, version, seed, settings, started_us, state)
};

/// One attempt: (campaign, seq, attempt) names it for ever, so that it is stored at most once.
struct Measurement {
  Id64 campaign;
  int64_t seq = 0;  ///< task << 32 | trial
  Key128 workload, target;
  Mode mode = Mode::cold;
  std::string trace;       ///< JSON; may be empty if the record has it
  std::string source;      ///< the line of a foreign file it came from, byte for byte
  bool withdrawn = false;  ///< its device proved bad afterwards
  JobResult result;
  TW_FIELDS(campaign, seq, workload, target, mode, trace, source, withdrawn, result)
};

/// What is known of one trace for one workload, target and mode.
struct Record {
  Key128 workload, target;
  Mode mode = Mode::cold;
  Key128 trace_key;
  std::string trace;  ///< JSON; empty once pruned
  TrialStatus status = TrialStatus::unspecified;
  Stage stage = Stage::unspecified;
  std::optional<double> rank_ns, ci_lo_ns, ci_hi_ns;
  int64_t n = 0;                          ///< samples behind rank_ns
  int64_t measurements = 0, settled = 0;  ///< attempts stored; trials settled
  bool verified = false;                  ///< every check passed behind rank_ns: only such a record may be exported
  bool blocked = false;                   ///< proved wrong once: never ranked until a person unblocks it
  std::string unblocked_reason;
  std::optional<int64_t> unblocked_us;  ///< verdicts up to this time do not block any more
  ByName<int64_t> failures;             ///< attempts by status
  std::string toolchain, artifact;
  std::vector<std::string> plugins;
  int64_t updated_us = 0;
  TW_FIELDS(workload, target, mode, trace_key, trace, status, stage, rank_ns, ci_lo_ns, ci_hi_ns, n, measurements,
            settled, verified, blocked, unblocked_reason, unblocked_us, failures, toolchain, artifact, plugins,
            updated_us)

  uint64_t short_id() const;  ///< 48 bits of the content key of (workload, target, mode, trace)
  std::string id() const;     ///< "r-<12 hex>"
};

/// 48 bits of "r-<12 hex>"; nothing if `id` is not of that form.
std::optional<uint64_t> parse_record_id(std::string_view id);

/// Sets everything of `record` that follows from its measurements (all of them, in any order):
///   rank_ns  = mean of the medians of the highest stage reached (final > confirm > screen) over verified ok results,
///   of
///              each trial the last, weighted by n, each divided by its canary ratio: the least value would reward
///              luck; without a verified result, the same over ok results, and verified is false;
///   blocked  = a settled result after unblocked_us that was wrong, not deterministic or implausible;
///   status   = ok if a result ranks, else that of the last result.
/// Withdrawn measurements count as absent.
void summarize(Record& record, std::vector<const Measurement*> measurements);

std::string to_json_text(const Record&);
std::string record_schema();

}  // namespace tilewright
