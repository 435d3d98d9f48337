// TensorIntrinsic: a piece of hardware that computes a small tensor program. `desc` says what it computes, `body` how
// it is called; both are programs with the same buffer parameters (schedule-language.md §6). `tensorize` finds desc in
// a schedule and puts body there. One file a family in schedule/intrinsics/; bodies name LLVM intrinsics, whose meaning
// the interpreter knows (ir/interpret/vector_calls.cpp).
#pragma once

#include <string>
#include <vector>

#include "ir/program.h"
#include "schedule/target.h"
#include "support/registry.h"

namespace tilewright {

struct TensorIntrinsic {
  static constexpr const char* registry_name = "intrinsic";
  std::string desc, body;             ///< program text: one function with a root block
  std::vector<std::string> features;  ///< that a target must have; alternatives joined by "|"

  bool on(const Target&) const;
  std::string needs() const;  ///< the features for people
};

/// The two programs, parsed once. Null for a name that is not registered.
struct IntrinsicPrograms {
  FunctionRef desc, body;
};
const IntrinsicPrograms* intrinsic_programs(const std::string& name);

}  // namespace tilewright
