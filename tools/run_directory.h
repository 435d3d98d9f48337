// Run directories: runs/20261130-0312-gemm-a31f/ with the journal of the run (database/journal.h). A run is named by
// its path, its id, a unique prefix of that, or "last".
#pragma once

#include <string>
#include <vector>

#include "database/replay.h"
#include "tools/tool.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(run_unknown, "run-unknown", "no run has that name");
TW_REFUSAL_CODE(run_ambiguous, "run-ambiguous", "several runs have that name");

/// A path for a new run called `name`; the four digits at its end are its id.
std::string new_run_directory(const std::string& name, uint64_t campaign);
/// The folder's id: what follows the last '-'.
std::string run_id(const std::string& directory);
Result<std::string> find_run(const std::string& name);
/// All runs in runs/.
std::vector<std::string> runs_latest_first();
bool is_run(const std::string& directory);

/// A trial of a run: "RUN:N", "RUN:best", "RUN:best/TASK", "N" (of the last run).
struct TrialName {
  std::string directory;
  RunState run;
  int64_t trial = -1;
};
TW_REFUSAL_CODE(trial_unknown, "trial-unknown", "the run has no such trial");
Result<TrialName> find_trial(const std::string& name);

}  // namespace tilewright::tools
