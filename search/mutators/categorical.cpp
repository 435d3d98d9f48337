// categorical: another candidate of one categorical choice; half of the time a neighbour, since candidates are mostly
// ordered. unroll: the same for the one choice that feeds the unroll annotation.
#include "schedule/primitive.h"
#include "search/mutators/mutator.h"

namespace tilewright {

namespace {

bool change(const Sketch& sketch, DecisionVector& decisions, Rng& rng, const std::vector<size_t>& places,
            bool neighbours) {
  std::vector<size_t> open;
  for (size_t i : places)
    if (sketch.trace.instructions[sketch.samplings[i]].attrs[0].get<TraceList>()->size() > 1) open.push_back(i);
  if (open.empty()) return false;
  size_t which = open[rng.below(open.size())];
  int64_t n =
      static_cast<int64_t>(sketch.trace.instructions[sketch.samplings[which]].attrs[0].get<TraceList>()->size());
  int64_t now = *decisions[which].get<int64_t>();
  if (neighbours && rng.chance(0.5)) {
    int64_t next = now + (rng.chance(0.5) ? 1 : -1);
    if (next < 0 || next >= n) next = now == 0 ? 1 : now - 1;
    decisions[which] = next;
    return true;
  }
  int64_t other = static_cast<int64_t>(rng.below(static_cast<uint64_t>(n - 1)));
  decisions[which] = other >= now ? other + 1 : other;
  return true;
}

bool apply(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  return change(sketch, decisions, rng, decisions_of(sketch, "sample_categorical"), true);
}

bool feeds_unroll(const Sketch& sketch, size_t position) {
  const std::vector<Symbol>& outputs = sketch.trace.instructions[sketch.samplings[position]].outputs;
  for (const Instruction& instruction : sketch.trace.instructions) {
    if (instruction.kind->name != "annotate") continue;
    auto* key = instruction.attrs[0].get<std::string>();
    auto* value = instruction.inputs[1].get<Symbol>();
    if (key && value && key->find("unroll") != std::string::npos && *value == outputs.at(0)) return true;
  }
  return false;
}

bool apply_unroll(const Sketch& sketch, DecisionVector& decisions, Rng& rng) {
  std::vector<size_t> places;
  for (size_t i : decisions_of(sketch, "sample_categorical"))
    if (feeds_unroll(sketch, i)) places.push_back(i);
  return change(sketch, decisions, rng, places, false);
}

const Register<Mutator> entry{"categorical", "another candidate of a categorical choice, often a neighbour", {apply}};
const Register<Mutator> unroll{"unroll", "another unroll limit", {apply_unroll}};

}  // namespace

}  // namespace tilewright
