// How a candidate becomes an artifact: one registered BuildPipeline. It runs in a build worker; a crash, a hang or a
// hunger for memory costs that process only.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "measure/check/plan.h"
#include "measure/measurer.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(reference_disagrees, "reference-disagrees",
                "the reference outputs of a program differ from what the interpreter computes");

struct BuildRequest {
  std::string program, target, trace;
  BuildOptions options;
  bool naive = false;  ///< for reference outputs (check/reference_program.h): every rounding kept
  std::string config;  ///< the device kind's own JSON (fake devices)
};

struct BuildProduct {
  std::string artifact;  ///< loads without a compiler: a shared object, a cubin container
  EntryInfo entry;
  CheckPlan plan;  ///< of the unscheduled program: the same for every trace
  BuildReport report;
};

struct BuildFailure {
  TrialStatus status = TrialStatus::build_error;
  std::string detail;
  std::string refusal_code;
};

/// Cross-checks reference outputs by another way of computing them, on sampled elements.
struct VerifyRequest {
  std::string program, target;
  CheckPlan plan;
  uint64_t seed = 0;
  std::string_view reference;  ///< outputs in order, set by set
};

struct BuildPipeline {
  static constexpr const char* registry_name = "build pipeline";
  std::function<tl::expected<BuildProduct, BuildFailure>(const BuildRequest&)> build;
  /// Empty text: the reference agrees. Other text: why it could not be checked, and counts all the same, with a
  /// warning.
  std::function<Result<std::string>(const VerifyRequest&)> verify;
};

}  // namespace tilewright::measure
