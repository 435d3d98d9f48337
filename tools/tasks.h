// From what the user names (operators, program files, campaign and suite files) to the tasks of a run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/parse.h"
#include "search/task.h"
#include "tools/campaign.h"
#include "tools/settings.h"

namespace tilewright::tools {

struct TaskRequest {
  std::vector<std::string> files;  ///< program text, or *.toml
  std::vector<std::string> ops;    ///< "gemm:m=512,n=512,k=512"
  Extents extents;                 ///< of the program files' symbolic extents
  std::vector<std::string> only;   ///< ids or tags of a suite's workloads; empty: all
};

struct RequestedTasks {
  std::vector<Task> tasks;
  std::string name;  ///< for the run: of the campaign, else of the first workload
};

/// Campaign settings go into `settings` (they are weaker than what the caller sets afterwards). On failure everything
/// has been reported and `exit` is set.
std::optional<RequestedTasks> read_tasks(Tool&, const TaskRequest&, TuneSettings& settings, int& exit);

/// A short word for a workload in file names: letters, digits, '-' and '_'.
std::string slug(const std::string& name);

}  // namespace tilewright::tools
