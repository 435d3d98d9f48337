// A pass: one file in lowering/{block,loop,kernel}/ that registers one Pass. Passes are pure and deterministic; they
// refuse what they cannot do. Order: forms first, then `after`, then name (pipeline.cpp); tests/golden/lowering pins
// it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "lowering/options.h"
#include "schedule/target.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright::lowering {

/// lowering.md §0.1.
enum class Form : uint8_t {
  scheduled,  ///< blocks with iter vars and init, exact regions, annotations
  opened,     ///< blocks without iter vars and init; allocations at their final scope
  loops,      ///< no blocks; multi-dimensional buffers that carry a layout
  flat,       ///< one-dimensional buffers, every index an element offset
  kernels,    ///< ready for code generation
};
const char* form_name(Form);

struct PassContext {
  const Target& target;
  const LowerOptions& options;
  std::vector<std::string>* notes = nullptr;  ///< "slow-math: pow is called once an element", …

  void note(std::string text) const {
    if (notes) notes->push_back(std::move(text));
  }
};

struct Pass {
  static constexpr const char* registry_name = "pass";
  enum class For : uint8_t { any, cpu, cuda };

  Form in, out;
  std::vector<std::string> after;  ///< passes of the same input form that run earlier, if registered
  std::function<Result<FunctionRef>(const FunctionRef&, const PassContext&)> run;
  For runs_for = For::any;
  bool cleanup_after = false;  ///< simplify and drop dead statements behind it
};

}  // namespace tilewright::lowering
