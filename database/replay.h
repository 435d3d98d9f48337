// The state of a run, as its journal adds it up. Used by resume, by the report and by tests (replay of the journal must
// be equal to the database). A pure function of the events: no clock, no file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/events.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(journal_inconsistent, "journal-inconsistent", "an event contradicts those before it");

struct TrialState {
  int64_t task = 0;
  Key128 trace_key;
  std::string trace, origin;
  Stage stage = Stage::unspecified;
  int64_t next_attempt = 0;          ///< attempts used so far, those in flight and the withdrawn ones included
  bool in_flight = false;            ///< dispatched, no result yet: after a crash it is dispatched again
  std::vector<JobResult> results;    ///< in order, without withdrawn ones
  std::optional<JobResult> settled;  ///< the one that counts
  std::optional<double> predicted_ns;

  /// The result whose time counts: the last of a shoot-out (stage final), else the settled one; null: none.
  const JobResult* counting() const;
  /// The settled result as one that is known when the run goes on: further attempts come after the last one used.
  std::optional<JobResult> known() const;
};

struct TaskState {
  TaskStart start;
  std::optional<TaskDone> done;
  std::vector<int64_t> trials;  ///< in order of dispatch
  ByName<int64_t> settled_by_status;
  int64_t rounds = 0;
  std::optional<int64_t> best_trial;  ///< least time among settled, verified, not blocked traces, of the highest stage
};

struct RunState {
  std::optional<RunStart> start;
  std::optional<RunEnd> end;  ///< empty again after run.resumed
  std::optional<Checkpoint> checkpoint;
  int64_t incarnation = 0;
  double elapsed_s = 0;  ///< of the last event
  int64_t last_seq = 0;
  int64_t committed_through = 0;  ///< every result up to this event is in the database
  std::map<int64_t, TaskState> tasks;
  std::map<int64_t, TrialState> trials;  ///< by the run-wide trial number
  std::vector<RoundStart> rounds;
  std::vector<CandidatesRefused> refused;
  std::vector<RunSeeded> seeds;
  std::vector<Best> bests;
  std::vector<ModelFit> fits;
  std::map<std::string, DeviceQuarantined> quarantined;

  int64_t settled() const;
  std::vector<int64_t> in_flight() const;  ///< trial numbers, ascending
  /// A run that goes on proposes again what it proposed before: whether the journal has told of this already.
  bool holds(const EventBody&) const;

  /// Adds one event. Refusal journal-inconsistent: a result without its dispatch, a second settled result, an unknown
  /// task, an attempt that was used before.
  Status apply(const Event&);
};

/// Reads RUN/events.jsonl of `directory`. A damaged journal is refused.
Result<RunState> replay_run(const std::string& directory);

}  // namespace tilewright
