// Simplification between passes: expressions simplified under their loops and guards; statements without effect go.
#pragma once

#include "ir/program.h"

namespace tilewright::lowering {

FunctionRef cleanup(const FunctionRef&);
/// Only the second half, for code that constant folding has already simplified: linear in the size of the program.
Stmt drop_dead(const Stmt&);

}  // namespace tilewright::lowering
