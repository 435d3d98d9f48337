// The outcome of a trial in three words: how it ended (TrialStatus), how far it was measured (Stage), under which
// protocol (Mode). Shared by measurement, search, the event journal and the database. proto/record.proto has the same
// numbers; 0 is "unspecified" in each: not set, or a name of a newer version. Read first: the table `trial_statuses`;
// it says for each ending whose fault it is, what the cost model sees and what happens next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tilewright {

enum class TrialStatus : uint8_t {
  unspecified,
  ok,
  replay_refused,
  lower_refused,
  build_error,
  build_timeout,
  build_memory,
  build_crash,
  load_error,
  launch_error,
  out_of_memory,
  host_memory,
  run_timeout,
  run_crash,
  wrong_result,
  nondeterministic,
  implausible,
  throttled,
  noisy,
  device_lost,
  worker_lost,
  agent_lost,
  rejected,
  cancelled,
  internal_error,
};

/// Whose fault: the candidate's, the environment's, ours, nobody's.
enum class Owner : uint8_t { none, candidate, environment, ours };

/// What the cost model sees: a time, "invalid", or nothing at all.
enum class ModelLabel : uint8_t { none, time, invalid };

/// What the tuner does next (measure/retry.h applies it).
enum class Next : uint8_t {
  record,           ///< a time: store it
  final,            ///< a verdict: store it, never try again
  retry_alone,      ///< once more with nothing else on the host; then final
  retry_fresh,      ///< once more in a newly started exec, on another device if there is one; then final
  recheck,          ///< once more in a fresh exec: fails again => final, passes => nondeterministic
  confirm_floor,    ///< once more in a fresh exec: again below the floor => final and blocked, else the new outcome
                    ///< counts
  retry_low,        ///< up to two more at low priority, then kept with its flag, never ranked
  retry_elsewhere,  ///< up to the attempt limit, on another device if there is one
  by_reject_code,   ///< wait, other agent, or stop with the text
  again_if_wanted,  ///< planned again if the task goes on
};

struct TrialStatusInfo {
  TrialStatus status;
  const char* name;
  Owner owner;
  ModelLabel label;
  Next next;
  bool blocks;       ///< when final: the candidate is never exported (only `tilewright db unblock` clears it)
  bool quarantines;  ///< when final: the candidate is quarantined, artifact and reproducer are kept
  const char* meaning;
};

// clang-format off
inline constexpr std::array<TrialStatusInfo, 25> trial_statuses{{
  {TrialStatus::unspecified, "unspecified", Owner::none, ModelLabel::none, Next::final, false, false, "not set, or a status of a newer version"},
  {TrialStatus::ok, "ok", Owner::none, ModelLabel::time, Next::record, false, false, "built, ran, verified, settled or ended by the cut rule"},
  {TrialStatus::replay_refused, "replay_refused", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "the trace does not apply in the build worker"},
  {TrialStatus::lower_refused, "lower_refused", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "verifier or device limits, before code generation"},
  {TrialStatus::build_error, "build_error", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "the code generator, assembler or linker failed, or a diagnostic the target rejects"},
  {TrialStatus::build_timeout, "build_timeout", Owner::candidate, ModelLabel::invalid, Next::retry_alone, false, false, "build CPU or wall time limit"},
  {TrialStatus::build_memory, "build_memory", Owner::candidate, ModelLabel::invalid, Next::retry_alone, false, false, "build memory limit"},
  {TrialStatus::build_crash, "build_crash", Owner::candidate, ModelLabel::invalid, Next::retry_fresh, false, true, "signal or abort in the build worker"},
  {TrialStatus::load_error, "load_error", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "the artifact does not load"},
  {TrialStatus::launch_error, "launch_error", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "launch refused without a sticky error"},
  {TrialStatus::out_of_memory, "out_of_memory", Owner::candidate, ModelLabel::invalid, Next::retry_fresh, false, false, "device allocation failed"},
  {TrialStatus::host_memory, "host_memory", Owner::candidate, ModelLabel::invalid, Next::retry_fresh, false, false, "memory limit or OOM kill in exec"},
  {TrialStatus::run_timeout, "run_timeout", Owner::candidate, ModelLabel::invalid, Next::final, false, false, "device deadline"},
  {TrialStatus::run_crash, "run_crash", Owner::candidate, ModelLabel::invalid, Next::retry_fresh, false, true, "sticky device error, or exec died by its own signal or exit"},
  {TrialStatus::wrong_result, "wrong_result", Owner::candidate, ModelLabel::invalid, Next::recheck, true, true, "check failed, red zone hit, input changed or output unwritten"},
  {TrialStatus::nondeterministic, "nondeterministic", Owner::candidate, ModelLabel::invalid, Next::final, true, true, "two runs on the same inputs differ beyond tolerance"},
  {TrialStatus::implausible, "implausible", Owner::candidate, ModelLabel::none, Next::confirm_floor, true, false, "faster than the floor of the device"},
  {TrialStatus::throttled, "throttled", Owner::environment, ModelLabel::none, Next::retry_low, false, false, "the clock would not settle"},
  {TrialStatus::noisy, "noisy", Owner::environment, ModelLabel::none, Next::retry_low, false, false, "the samples would not settle"},
  {TrialStatus::device_lost, "device_lost", Owner::environment, ModelLabel::none, Next::retry_elsewhere, false, false, "the device vanished"},
  {TrialStatus::worker_lost, "worker_lost", Owner::environment, ModelLabel::none, Next::retry_elsewhere, false, false, "a worker was killed from outside or spoke garbage"},
  {TrialStatus::agent_lost, "agent_lost", Owner::environment, ModelLabel::none, Next::retry_elsewhere, false, false, "the agent is gone and does not know the job"},
  {TrialStatus::rejected, "rejected", Owner::environment, ModelLabel::none, Next::by_reject_code, false, false, "typed refusal by the agent"},
  {TrialStatus::cancelled, "cancelled", Owner::none, ModelLabel::none, Next::again_if_wanted, false, false, "user, task end or revoke"},
  {TrialStatus::internal_error, "internal_error", Owner::ours, ModelLabel::none, Next::final, false, false, "a bug of ours, caught at the trial boundary"},
}};
// clang-format on

constexpr const TrialStatusInfo& info(TrialStatus status) { return trial_statuses[static_cast<size_t>(status)]; }

/// How far a time was measured. Ordered: a later stage is trusted over an earlier one, but `explain` times never rank.
enum class Stage : uint8_t { unspecified, imported, screen, confirm, final, explain };

/// Measuring protocol, part of a record's key: modes are never compared. `cold`: caches flushed before each sample,
/// paced; `warm`: not flushed; `cold_sustained`: flushed, the device kept busy.
enum class Mode : uint8_t { unspecified, cold, warm, cold_sustained };

inline constexpr std::array<const char*, 6> stage_names{"unspecified", "imported", "screen",
                                                        "confirm",     "final",    "explain"};
inline constexpr std::array<const char*, 4> mode_names{"unspecified", "cold", "warm", "cold_sustained"};

constexpr const char* to_string(TrialStatus status) { return info(status).name; }
constexpr const char* to_string(Stage stage) { return stage_names[static_cast<size_t>(stage)]; }
constexpr const char* to_string(Mode mode) { return mode_names[static_cast<size_t>(mode)]; }

/// Number of values of one of the three enums above.
template <class E>
inline constexpr size_t enum_size = 0;
template <>
inline constexpr size_t enum_size<TrialStatus> = trial_statuses.size();
template <>
inline constexpr size_t enum_size<Stage> = stage_names.size();
template <>
inline constexpr size_t enum_size<Mode> = mode_names.size();

/// All values in order, "unspecified" first.
template <class E>
constexpr std::array<E, enum_size<E>> all_values() {
  std::array<E, enum_size<E>> values{};
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<E>(i);
  return values;
}

/// The value of that name; nothing if there is none.
template <class E>
constexpr std::optional<E> parse_name(std::string_view name) {
  for (E value : all_values<E>())
    if (name == to_string(value)) return value;
  return std::nullopt;
}

}  // namespace tilewright
