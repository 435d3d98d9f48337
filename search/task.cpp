#include "search/task.h"

#include "ir/equal.h"
#include "ir/print.h"

namespace tilewright {

Task Task::make(std::string name, ProgramRef program, Target target, double flop, double min_bytes, double weight) {
  Task t;
  t.name = std::move(name);
  t.program_text = print(*program);
  t.key = hash_combine(structural_hash(*program), hash_text(target.text()));
  t.program = std::move(program);
  t.target = std::move(target);
  t.flop = flop;
  t.min_bytes = min_bytes;
  t.weight = weight;
  return t;
}

}  // namespace tilewright
