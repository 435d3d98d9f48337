// The end of a run: why it stopped, the winners, where the time went, what to be wary of, and commands to paste.
#pragma once

#include "tools/board.h"
#include "tools/tool.h"
#include "tools/tune_run.h"

namespace tilewright::tools {

void print_summary(Tool&, const TuneRun&, const RunReport&, const Board&);

}  // namespace tilewright::tools
