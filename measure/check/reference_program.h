// The program whose outputs candidates are compared with: the unscheduled one, made precise and not needlessly slow.
#pragma once

#include "ir/program.h"

namespace tilewright::measure {

/// The same program for computing reference outputs (farm.md, "Reference"):
/// - float32 reductions accumulate in float64 and are rounded once, at their end;
/// - reduction loops lie outside the innermost spatial loop and the outermost spatial loop is parallel. Each element is
///   still summed in the program's order.
/// Blocks of other forms than a reduction alone under its loops stay as they are.
ProgramRef reference_program(const ProgramRef&);

}  // namespace tilewright::measure
