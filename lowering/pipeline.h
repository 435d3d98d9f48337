// Lowering: from a scheduled block program to a function that code generation prints one to one.
//
//   TW_TRY(auto lowered, lowering::lower(function, target, {}));
//   TW_TRY(auto object, codegen::compile(lowered, target, {}));
//
// Refusals become TrialStatus::lower_refused.
#pragma once

#include <functional>
#include <span>

#include "lowering/pass.h"

namespace tilewright::lowering {

TW_REFUSAL_CODE(pass_unknown, "pass-unknown", "no lowering pass of that name is registered");
TW_REFUSAL_CODE(passes_out_of_order, "pass-order", "the requested passes do not follow the pipeline's order of forms");

TW_REFUSAL_CODE(option_not_on_target, "option-not-on-target",
                "an option of lowering cannot be followed on this kind of target");

struct StageTime {
  std::string pass;
  double ms = 0;
};

/// Form K. CPU: `function` is one entry whose `parallel` loops are the bodies that code generation outlines; every
/// Allocate says by annotation `place` where it lives: "stack", or "workspace" / "slice" with `offset` in bytes.
struct LoweredFunction {
  FunctionRef function;
  LowerOptions options;
  int64_t workspace_bytes = 0;        ///< shared part of the caller's workspace
  int64_t workspace_slice_bytes = 0;  ///< one slice for each worker behind it; both are multiples of 64
  std::vector<std::string> notes;
  std::vector<StageTime> times;

  int64_t workspace_size(int workers) const { return workspace_bytes + workers * workspace_slice_bytes; }
};

/// Called after each pass with its result (the name "" and the input first).
using StageObserver = std::function<void(const std::string& pass, const FunctionRef&)>;

Result<LoweredFunction> lower(const Function&, const Target&, const LowerOptions& = {}, const StageObserver& = {});

/// Names in pipeline order for a kind of target.
std::vector<std::string> pass_order(TargetKind);
/// Runs the named passes in the order given (`opt --pass a,b`).
Result<FunctionRef> run_passes(const Function&, std::span<const std::string> names, const PassContext&);

}  // namespace tilewright::lowering
