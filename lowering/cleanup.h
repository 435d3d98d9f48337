// Simplification between passes: expressions simplified under their loops and guards; statements without effect go.
#pragma once

#include "ir/program.h"

namespace tilewright::lowering {

FunctionRef cleanup(const FunctionRef&);
Stmt cleanup(const Stmt&);

}  // namespace tilewright::lowering
