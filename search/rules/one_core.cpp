// one_core: a small program may be done sooner on one core than the others can be woken. Its root is marked in a branch
// of the space, and the rules that parallelise leave that branch serial (on_one_core in block_queries.h).
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

/// Above this many loop iterations waking the cores (some microseconds) is lost in the rest.
constexpr int64_t kSmall = int64_t{1} << 18;

/// Iterations of all innermost loops; nothing when an extent is not known.
std::optional<int64_t> iterations(const Schedule& s) {
  const TreeIndex& tree = s.state().tree();
  int64_t total = 0;
  for (Place p : tree.blocks()) {
    if (!tree.child_blocks(p).empty()) continue;
    int64_t product = 1;
    for (const For* loop : tree.loop_nodes_above(p)) {
      std::optional<int64_t> extent = const_int(loop->extent);
      if (!extent || __builtin_mul_overflow(product, *extent, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, product, &total)) return std::nullopt;
  }
  return total;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  if (!block || !context.target.is_cpu() || context.target.cores <= 1) return {s};
  if (s.state().tree().enclosing_block(s.state().place(**block)) != kNoPlace) return {s};
  std::optional<int64_t> n = iterations(s);
  if (!n || *n > kSmall) return {s};
  Schedule serial = s;
  if (!serial.annotate(rv, kOneCore, 1)) return {s};
  return {serial, s};
}

const Register<ScheduleRule> entry{"one_core", "small programs also on one core", {apply}};

}  // namespace

}  // namespace tilewright
