// Task: one program on one target, what a search tunes. Read next: space.h (sketches), tuner.h (the loop).
#pragma once

#include "ir/program.h"
#include "schedule/target.h"
#include "support/hash.h"

namespace tilewright {

struct Task {
  std::string name;    ///< "gemm 512x512x512 float32"
  ProgramRef program;  ///< the unscheduled program
  Target target;
  std::string program_text;        ///< canonical text, as stored and sent to builders
  Hash64 key = 0;                  ///< structural hash of the program × target text
  double weight = 1;               ///< calls per job
  double flop = 0, min_bytes = 0;  ///< 0: not known
  int64_t trials = 0;              ///< limit of its own; 0: that of the run

  int64_t trials_of(int64_t run) const { return trials > 0 ? trials : run; }

  static Task make(std::string name, ProgramRef program, Target target, double flop = 0, double min_bytes = 0,
                   double weight = 1);
};

}  // namespace tilewright
