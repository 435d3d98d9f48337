// The lock file of a production build, kernels.lock.json: what to build, reviewed and committed like source. Program
// and trace are lists of lines and instructions, so that a change shows as a change. Building from it never tunes and
// never opens a database.
#pragma once

#include <string>
#include <vector>

#include "export/export.h"
#include "support/events.h"

namespace tilewright {

TW_REFUSAL_CODE(lock_invalid, "lock-invalid", "a lock file is not JSON of the schema that `schema lock` prints");

struct LockedKernel {
  std::string name, task;
  std::vector<std::string> program;  ///< lines of the unscheduled program
  std::string trace;                 ///< JSON; empty: the unscheduled program
  std::string target;
  ByName<std::string> measured_on;  ///< device, threads, toolchain
  Mode mode = Mode::cold;
  std::string record;
  double median_ns = 0, ci_lo_ns = 0, ci_hi_ns = 0;
  int64_t n = 0;
  std::string stage, measured;
  std::string toolchain;      ///< that wrote the files
  ByName<std::string> files;  ///< content key of each file of this kernel, by form and name
  TW_FIELDS(name, task, program, trace, target, measured_on, mode, record, median_ns, ci_lo_ns, ci_hi_ns, n, stage,
            measured, toolchain, files)
};

struct Lock {
  std::vector<LockedKernel> kernels;  ///< by name
  TW_FIELDS(kernels)

  const LockedKernel* find(std::string_view name) const;
  /// Adds the kernel, or replaces the one of that name.
  void put(LockedKernel);
};

/// `file` names the text in errors.
Result<Lock> parse_lock(std::string_view text, const std::string& file);
std::string to_text(const Lock&);
std::string lock_schema();

/// What to export for a locked kernel.
Result<ExportRequest> request_of(const LockedKernel&);

}  // namespace tilewright
