// What keeps a program of the user's from being measured, though it is well-formed: said before a run, with its place,
// because the processes that would find it know nothing of the text.
#pragma once

#include <vector>

#include "ir/program.h"
#include "ir/source.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(extent_not_given, "extent-not-given", "a symbolic extent has no value, so that no inputs can be made");
TW_REFUSAL_CODE(parameter_not_a_buffer, "parameter-not-a-buffer", "a measured program takes buffers alone");
TW_REFUSAL_CODE(output_not_covered, "output-not-covered",
                "elements of an output are never written, so that results cannot be compared");

/// Empty: nothing was found.
std::vector<Diagnostic> check_measurable(const Function&, const SourceMap& spans);

}  // namespace tilewright::tools
