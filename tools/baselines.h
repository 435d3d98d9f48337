// --baseline: what a run's times are compared with.
#pragma once

#include <string>
#include <vector>

#include "tools/tune_run.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(baseline_unknown, "baseline-unknown", "there is no earlier result or no such trace to compare with");

/// Traces as JSON by task; empty: the untuned programs. A run that goes on keeps those that it began with.
tl::expected<std::vector<std::string>, std::vector<Diagnostic>> baselines_of(Tool&, const TuneRun&);

}  // namespace tilewright::tools
