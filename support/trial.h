// The outcome of a trial in three words: how it ended (TrialStatus), how far it was measured (Stage), under which
// protocol (Mode). Shared by the event journal, the measurer, the search and the database, so that each name exists
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tilewright {

/// Who is answerable for a trial that did not end `ok`.
enum class Owner : uint8_t { nobody, candidate, environment, us };
/// What the cost model is told.
enum class Label : uint8_t { none, time, invalid };
/// What the tuner does next (only the tuner retries). `retry_*` say where; all are bounded to 3 attempts.
enum class Retry : uint8_t { final, retry_alone, retry_fresh, retry_later, retry_elsewhere, by_code };

// name, owner, label, retry, doc
#define TW_TRIAL_STATUSES(X)                                                                                         \
  X(unspecified, us, none, final, "not set, or a status that this version does not know")                            \
  X(ok, nobody, time, final, "built, ran, checked and settled, or ended early by the cut rule")                      \
  X(replay_refused, candidate, invalid, final, "the trace does not apply in the build worker")                       \
  X(lower_refused, candidate, invalid, final, "refused by the verifier or a device limit, before code generation")   \
  X(build_error, candidate, invalid, final, "the compiler or assembler failed, or gave a rejected diagnostic")       \
  X(build_timeout, candidate, invalid, retry_alone, "the build ran past its deadline")                               \
  X(build_memory, candidate, invalid, retry_alone, "the build ran past its memory limit")                            \
  X(build_crash, candidate, invalid, retry_alone, "the build worker died by a signal")                               \
  X(load_error, candidate, invalid, final, "the artifact does not load")                                             \
  X(launch_error, candidate, invalid, final, "the launch was refused")                                               \
  X(out_of_memory, candidate, invalid, retry_fresh, "a device allocation failed")                                    \
  X(host_memory, candidate, invalid, retry_fresh, "the running process ran past its memory limit")                   \
  X(run_timeout, candidate, invalid, final, "the kernel ran past its device deadline")                               \
  X(run_crash, candidate, invalid, retry_fresh, "a sticky device error, or a signal in the running process")         \
  X(wrong_result, candidate, invalid, retry_fresh, "the output is wrong, or memory outside the outputs was written") \
  X(nondeterministic, candidate, invalid, final, "two runs on the same inputs differ beyond the tolerance")          \
  X(implausible, candidate, none, final, "faster than the roofline allows, twice")                                   \
  X(throttled, environment, none, retry_later, "the clock would not settle")                                         \
  X(noisy, environment, none, retry_later, "the samples would not settle")                                           \
  X(device_lost, environment, none, retry_elsewhere, "the device vanished")                                          \
  X(worker_lost, environment, none, retry_elsewhere, "the worker was killed from outside, or answered out of form")  \
  X(agent_lost, environment, none, retry_elsewhere, "the agent was lost and does not know the job any more")         \
  X(rejected, environment, none, by_code, "the agent refused the job")                                               \
  X(cancelled, nobody, none, final, "cancelled by the user, the end of its task, or a revoked device")               \
  X(internal_error, us, none, final, "a bug in Tilewright")

enum class TrialStatus : uint8_t {
#define X(name, ...) name,
  TW_TRIAL_STATUSES(X)
#undef X
};

struct TrialStatusInfo {
  TrialStatus status;
  const char* name;
  Owner owner;
  Label label;
  Retry retry;
  const char* doc;
};
std::span<const TrialStatusInfo> all_trial_statuses();
const TrialStatusInfo& info(TrialStatus);

/// These three end a trace's use for good: it is never ranked or exported until a person unblocks it.
constexpr bool blocks(TrialStatus s) {
  return s == TrialStatus::wrong_result || s == TrialStatus::nondeterministic || s == TrialStatus::implausible;
}

/// How far a time was measured. Ordered: a later stage is trusted over an earlier one. `explain` times never rank.
enum class Stage : uint8_t { unspecified, imported, screen, confirm, final, explain };

/// Measuring protocol; part of a record's key, never compared with one another. `cold`: caches flushed, paced;
/// `cold_sustained`: flushed, device kept busy; `warm`: no flush.
enum class Mode : uint8_t { unspecified, cold, cold_sustained, warm };

const char* name(TrialStatus);
const char* name(Stage);
const char* name(Mode);

/// The value of that name; nothing if unknown. E is one of the three above.
template <class E>
std::optional<E> parse_name(std::string_view);
/// All values in order, for schemas and help. The size is static.
template <class E>
std::span<const E> all_values();

}  // namespace tilewright
