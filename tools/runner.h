// The place where candidates are measured, as `measure.runner` names it, and what its times depend on.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/measurer.h"
#include "schedule/target.h"
#include "support/events.h"

namespace tilewright::tools {

/// "local", "fake" or "fake:FILE" (devices/fake.h as JSON).
Result<std::unique_ptr<measure::Measurer>> open_runner(const std::string& runner, uint64_t campaign);

/// Device model, threads of the measured kernel, and toolchain: results are compared only where all of it is equal.
/// `lower`: options of lowering that are not at their defaults, as LowerOptions::text().
Result<ByName<std::string>> environment_of(const measure::Measurer&, const std::string& runner, int run_threads,
                                           const Target&, const std::string& lower);

/// Options of lowering as the "lower" of such an environment has them, for a job.
std::map<std::string, std::string> lower_options_of(const ByName<std::string>& environment);

/// One job to its end; again, a few times, while only the machine is to blame.
measure::Outcome run_job(measure::Measurer&, measure::Job);

}  // namespace tilewright::tools
