// What users name on the command line, resolved in one place for every command:
//   RUN     path, id, unique prefix of either, or "last"
//   TRIAL   RUN:N, RUN:best, RUN:best/TASK, or N of the last run
//   RECORD  r-<12 hex> of the tuning database, or a unique prefix of it
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "database/replay.h"
#include "database/store.h"
#include "export/lock.h"
#include "tools/tool.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(run_unknown, "run-unknown", "no run has that name");
TW_REFUSAL_CODE(run_ambiguous, "run-ambiguous", "several runs have that name");
TW_REFUSAL_CODE(trial_unknown, "trial-unknown", "the run has no such trial");
TW_REFUSAL_CODE(record_unknown, "record-unknown", "the database has no such record");
TW_REFUSAL_CODE(record_ambiguous, "record-ambiguous", "several records have that name");

/// 2 for a name that means nothing or too much, 3 for a run or database that cannot be used, else 1.
int exit_of_name(const Refusal&);

Result<std::string> find_run(const std::string& name);

struct TrialName {
  std::string directory;
  RunState run;
  int64_t trial = -1;
};
Result<TrialName> find_trial(const std::string& name);

bool names_record(const std::string& name);
Result<Record> find_record(Database&, const std::string& name);
/// The database that --db names; it must be there.
Result<std::unique_ptr<Database>> existing_database(const Tool&);

/// A measured trace with everything that is needed to judge it or to measure it again, wherever it is kept.
struct Subject {
  std::string name;            ///< "a31f:12", "r-0123456789ab"
  std::string task;            ///< "gemm 512x512x512 float32"
  std::string program, trace;  ///< text; JSON
  SpaceKey space;
  Key128 trace_key;
  ByName<std::string> target;  ///< target_parts(): the target's text and what else times depend on
  std::string target_name;
  TrialStatus status = TrialStatus::unspecified;
  Stage stage = Stage::unspecified;
  bool verified = false, blocked = false;
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0, clock_mhz = 0;
  int64_t n = 0;
  std::string device;  ///< of a trial; empty for a record, which may come from several of one kind
  std::string toolchain, artifact;
  std::string record;  ///< its id in a database, whether or not it is in the one at hand
  uint64_t input_seed = 1;
  std::string runner = "local";

  bool valid() const { return status == TrialStatus::ok && verified && !blocked && n > 0; }
};
Subject subject_of(const LockedKernel&);
Subject subject_of(const TrialName&);
Result<Subject> subject_of(Database&, const Record&);
/// A TRIAL or a RECORD.
Result<Subject> find_subject(const Tool&, const std::string& name);
/// The winner of each task of a run that has one, in order of tasks; a run without any is refused. Tasks that lack one,
/// and those whose result is the untuned program, go to `without`, with the reason.
Result<std::vector<Subject>> winners_of(const std::string& directory, const RunState&,
                                        std::vector<Diagnostic>& without);
/// The best record of each workload, target and mode.
Result<std::vector<Subject>> best_of(Database&);

}  // namespace tilewright::tools
