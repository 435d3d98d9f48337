// Structural checks of programs (schedule-language.md §1.10, third row): what text, primitives and passes must keep
// true. Nothing is reported that is not surely wrong: an access is outside its buffer only if there are loop values,
// allowed by all predicates and conditions around it, for which its index is outside. Form checkers of lowered programs
// are in lowering/.
#pragma once

#include "ir/program.h"
#include "ir/source.h"

namespace tilewright {

/// Empty: well-formed. Places come from `spans` (of parse_program), else from the printed program. At most
/// ErrorList::kLimit.
std::vector<Diagnostic> verify(const Program&, const SourceMap* spans = nullptr);

}  // namespace tilewright
