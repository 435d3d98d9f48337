// random_compute_location: an untiled producer may be computed at any legal loop of its consumer.
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

/// Child of the root with loops, alone under its outermost loop, untiled, with a consumer.
bool movable(const Schedule& s, const Block& b) {
  const TreeIndex& tree = s.state().tree();
  Place p = s.state().place(b);
  Place scope = tree.enclosing_block(p);
  if (scope == kNoPlace || tree.enclosing_block(scope) != kNoPlace ||
      has_annotation(b, "meta_schedule.tiling_structure"))
    return false;
  std::vector<Place> loops = tree.loops_above(p);
  if (loops.empty() || tree.child_blocks(loops.front()).size() != 1) return false;
  return !s.state().scope_of(p).consumers(p).empty();
}

bool move(Schedule& s, BlockRV rv) {
  auto block = s.block(rv);
  if (!block || !movable(s, **block)) return false;
  auto location = s.sample_compute_location(rv);
  return location && s.compute_at(rv, *location, true);
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext&) {
  auto block = s.block(rv);
  if (!block || !movable(s, **block)) return {s};
  const Schedule original = s;
  std::optional<BlockRV> producer;
  if (has_annotation(**block, "meta_schedule.random_compute_producer")) {
    auto producers = s.get_producers(rv);
    if (!producers || producers->size() != 1 || !s.unannotate(rv, "meta_schedule.random_compute_producer"))
      return {original};
    producer = (*producers)[0];
  }
  if (!move(s, rv)) return {original};
  if (producer) {
    const Schedule before = s;
    if (!move(s, *producer)) s = before;
  }
  return {s};
}

const Register<ScheduleRule> entry{"random_compute_location", "samples where untiled producers are computed", {apply}};

}  // namespace

}  // namespace tilewright
