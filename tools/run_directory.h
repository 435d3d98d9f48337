// Run directories: runs/20261130-0312-gemm-a31f/ with the journal of the run (database/journal.h).
// How they are named on the command line: objects.h.
#pragma once

#include <string>
#include <vector>

namespace tilewright::tools {

/// A path for a new run called `name`; the four digits at its end are its id.
std::string new_run_directory(const std::string& name, uint64_t campaign);
/// The folder's id: what follows the last '-'.
std::string run_id(const std::string& directory);
/// All runs in runs/.
std::vector<std::string> runs_latest_first();
bool is_run(const std::string& directory);

}  // namespace tilewright::tools
