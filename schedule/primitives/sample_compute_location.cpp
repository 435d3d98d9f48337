// sample_compute_location: where a block could be computed: -2 inline, -1 root, k the k-th loop of its first consumer's
// chain.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/compute_location.h"
#include "schedule/primitives/inline.h"
#include "schedule/primitives/sampling_codes.h"

namespace tilewright {

std::vector<int64_t> compute_locations(Context& c, const Block* block) {
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*block);
  BlockScope scope = c.state.scope_of(place);
  std::vector<int64_t> out;
  const State saved = c.state;
  if (inline_block(c, block)) out.push_back(-2);
  c.state = saved;
  out.push_back(-1);
  std::vector<Place> consumers = scope.consumers(place);
  if (consumers.empty()) return out;
  Place common = consumers[0];
  for (Place p : consumers) common = tree.common_ancestor(common, p);
  std::vector<Place> loops = tree.loops_above(consumers[0]);
  // Loops below the consumers' common ancestor do not enclose all of them.
  std::vector<const For*> chain;
  for (Place p : loops)
    if (tree.contains(p, common) && (consumers.size() == 1 || p <= common)) chain.push_back(tree.loop(p));
  auto is_spatial = [&](const For* l) {  // for every block below
    unsigned driven = 0;
    for (Place p : tree.child_blocks(c.state.place(*l))) driven |= iter_types_driven(*tree.block(p), l->var.get());
    return (driven & ~(1u << static_cast<int>(IterType::spatial))) == 0;
  };
  size_t end = chain.size();
  while (end > 0 && !is_spatial(chain[end - 1])) --end;  // no trailing reduction loops
  bool behind_reduction = false;
  for (size_t k = 0; k < end; ++k) {
    if (is_const(chain[k]->extent, 1)) continue;
    const bool spatial = is_spatial(chain[k]);
    if (spatial && behind_reduction) break;  // no spatial loop behind a reduction loop, nor what is below it
    behind_reduction = !spatial;
    bool legal = move_block(c, block, chain[k], true, -1, MoveDirection::to_consumers).has_value();
    c.state = saved;
    if (legal) out.push_back(static_cast<int64_t>(k));
  }
  return out;
}

namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY_VOID(check_inner(c, block));
  std::vector<int64_t> locations = compute_locations(c, block);
  int64_t chosen;
  if (c.decision()) {
    auto* decided = c.decision()->get<int64_t>();
    if (!decided) return c.refuse(wrong_argument_type, "expected an integer as decision", block);
    chosen = *decided;
    if (!std::count(locations.begin(), locations.end(), chosen)) {
      int64_t lower = -1;  // the next lower candidate, then root
      for (int64_t l : locations)
        if (l < chosen && l > lower) lower = l;
      TW_TRY_VOID(c.repair(std::to_string(chosen), std::to_string(lower), block));
      chosen = lower;
    }
  } else {
    chosen = locations[c.schedule.rng().below(locations.size())];
  }
  c.decide(chosen);
  if (chosen == -1) {
    c.give(static_cast<LoopId>(kRootLocation));
  } else if (chosen == -2) {
    c.give(static_cast<LoopId>(kInlineLocation));
  } else {
    const TreeIndex& tree = c.state.tree();
    Place consumer = c.state.scope_of(c.state.place(*block)).consumers(c.state.place(*block)).front();
    c.give(tree.loop(tree.loops_above(consumer)[chosen])->id);
  }
  return {};
}

const RegisterPrimitive entry{
    "sample_compute_location",
    "draws a place where the block could be computed: -2 inline, -1 root, k a loop of its first consumer",
    {.kind = "SampleComputeLocation",
     .inputs = {{"block", ArgType::block, {}, "the producer"}},
     .outputs = OutputShape::one_loop,
     .output_kind = SymbolKind::loop,
     .pure = true,
     .samples = true,
     .refusals = {labels::inner, decision_does_not_fit},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
