#include "search/baseline.h"

#include "ir/equal.h"
#include "search/rules/block_queries.h"

namespace tilewright {

namespace {

void move_reductions_out(Schedule& s, const std::string& name) {
  auto rv = s.get_sblock(name, s.function().name);
  if (!rv) return;
  auto block = s.block(*rv);
  if (!block || is_spatial(**block) || !trivial_bindings(s, **block)) return;
  std::vector<IterType> types = loop_types(s, **block);
  auto loops = s.get_loops(*rv);
  if (!loops) return;
  size_t last_spatial = loops->size();
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i] == IterType::spatial) last_spatial = i;
  if (last_spatial == loops->size()) return;
  std::vector<LoopRV> order;
  for (size_t i = 0; i < loops->size(); ++i)
    if (i != last_spatial) order.push_back((*loops)[i]);
  order.push_back((*loops)[last_spatial]);
  const Schedule before = s;
  if (!s.reorder(order)) s = before;
}

}  // namespace

Schedule baseline_schedule(const Task& task, int cores) {
  Schedule s(task.program, 0);
  std::vector<std::string> names;
  for (Place p : s.state().tree().blocks())
    if (s.state().tree().enclosing_block(p) != kNoPlace) names.push_back(s.state().tree().block(p)->name);
  for (const std::string& name : names) move_reductions_out(s, name);
  Schedule plain = s;
  auto root = s.get_sblock(s.function().root()->name, s.function().name);
  bool annotated = root && s.annotate(*root, "meta_schedule.parallel", int64_t{cores > 1 ? cores * 16 : 0}) &&
                   s.annotate(*root, "meta_schedule.vectorize", 64);
  if (!annotated) return plain;
  (void)s.enter_postproc().has_value();
  PostprocContext context{task.target};
  for (const char* name : {"rewrite_parallel_vectorize_unroll", "rewrite_reduction_block"})
    if (!Registry<Postproc>::instance().find(name)->apply(s, context)) return plain;
  return s;
}

std::vector<Schedule> baseline_schedules(const Task& task) {
  std::vector<Schedule> out{baseline_schedule(task, task.target.cores)};
  if (task.target.cores <= 1) return out;
  Schedule serial = baseline_schedule(task, 1);
  if (structural_hash(serial.function()) != structural_hash(out[0].function())) out.push_back(std::move(serial));
  return out;
}

}  // namespace tilewright
