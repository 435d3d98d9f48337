// rewrite_parallel_vectorize_unroll: acts on the root's annotations (search.md §4): leading spatial loops of each nest
// are fused and run in parallel, trailing ones are fused, cut to the vector limit and vectorised, the first loop gets
// the unroll pragma.
#include <algorithm>

#include "ir/analysis/iter_map.h"
#include "ir/visit.h"
#include "search/postprocs/postproc.h"
#include "search/rules/block_queries.h"

namespace tilewright {

namespace {

TW_REFUSAL_CODE(vectorize_failed, "vectorize-failed", "a loop that was to be vectorised cannot be");

struct Limits {
  int64_t parallel = -1, vectorize = -1, unroll = -1;
  bool explicit_unroll = false;
};

/// Loops above the block; how many leading ones to run in parallel, how many trailing ones as vectors.
struct Plan {
  std::vector<const For*> loops;
  int parallel = 0, vectorize = 0;
};

std::optional<int64_t> extent_of(const For* l) { return const_int(l->extent); }

/// Stride of an access in elements when `v` grows by one (row-major shape); nothing when it is not constant.
std::optional<int64_t> stride_of(const BufferRegion& region, const VarNode* v,
                                 const std::unordered_map<const VarNode*, Expr>& bindings) {
  int64_t stride = 1, total = 0;
  for (size_t d = region.region.size(); d-- > 0;) {
    Expr index = substitute(region.region[d].min, bindings);
    Expr step = simplify(substitute(index, {{v, Expr(Var(v)) + 1}}) - index);
    std::optional<int64_t> s = const_int(step), extent = const_int(region.buffer->shape[d]);
    if (!s || !extent) return std::nullopt;
    total += *s * stride;
    stride *= *extent;
  }
  return total;
}

/// Trailing loops that all accesses run through contiguously.
int contiguous_loops(const Block& b, const std::vector<const For*>& loops, const Plan& p) {
  std::unordered_map<const VarNode*, Expr> bindings;
  for (const Iter& iter : b.iters) bindings[iter.var.get()] = iter.binding;
  int fewest = static_cast<int>(p.loops.size());
  auto visit = [&](const BufferRegion& region) {
    int count = 0;
    int64_t expected = 0;  // stride that the next loop must have; 0: none used yet
    for (size_t i = loops.size(); i-- > 0;) {
      std::optional<int64_t> stride = stride_of(region, loops[i]->var.get(), bindings);
      if (!stride) break;
      if (*stride != 0) {
        bool innermost = i + 1 == loops.size();
        if (expected == 0 ? !(innermost || *stride == 1) : *stride != expected) break;
        expected = *stride * extent_of(loops[i]).value_or(1);
      }
      ++count;
    }
    fewest = std::min(fewest, count);
  };
  for (const BufferRegion& r : b.reads) visit(r);
  for (const BufferRegion& r : b.writes) visit(r);
  return fewest;
}

Plan make_plan(const Schedule& s, Place place, const Limits& limits) {
  const TreeIndex& tree = s.state().tree();
  const Block& b = *tree.block(place);
  Plan p;
  p.loops = tree.loop_nodes_above(place);
  auto spatial = [&](const For* l) {
    // Every block below must use the loop spatially (or not at all).
    for (Place child : tree.child_blocks(s.state().place(*l)))
      if (iter_types_driven(*tree.block(child), l->var.get()) & ~(1u << static_cast<int>(IterType::spatial)))
        return false;
    return true;
  };
  auto free_loop = [&](const For* l) { return l->loop_kind == ForKind::serial && l->annotations.empty(); };
  if (limits.parallel > 0) {
    int64_t product = 1;
    for (const For* l : p.loops) {
      if (!free_loop(l) || !spatial(l) || !extent_of(l)) break;
      ++p.parallel;
      product *= *extent_of(l);
      bool branches = l->body->kind == StmtKind::kSeq;
      if (product > limits.parallel || branches) break;
    }
    if (product == 1) p.parallel = 0;
  }
  if (limits.vectorize > 0) {
    int64_t product = 1;
    int most = contiguous_loops(b, p.loops, p);
    for (int i = 0; i < most; ++i) {
      const For* l = p.loops[p.loops.size() - 1 - i];
      bool single = l->body->kind != StmtKind::kSeq;
      if (!free_loop(l) || !spatial(l) || !extent_of(l) || !single || product * *extent_of(l) > limits.vectorize) break;
      product *= *extent_of(l);
      ++p.vectorize;
    }
    if (product == 1) p.vectorize = 0;
  }
  const int n = static_cast<int>(p.loops.size());
  if (p.parallel + p.vectorize > n) {
    bool all = p.parallel == n && p.vectorize == n;
    if (!all) p.parallel = n - p.vectorize;  // vectors win on conflict
  }
  return p;
}

/// Vector copies marked by rules (packing) are left alone: their loops are already vectorised.
Status rewrite(Schedule& s, const std::string& name, const Limits& limits) {
  const TreeIndex& tree = s.state().tree();
  Place place = tree.blocks_named(name).at(0);
  Plan plan = make_plan(s, place, limits);
  const bool all_spatial = is_spatial(*tree.block(place));
  if (plan.loops.empty()) return {};
  const int n = static_cast<int>(plan.loops.size());
  const int64_t lanes_limit = limits.vectorize;
  if (plan.parallel == 0 && plan.vectorize == 0 && (all_spatial || limits.unroll <= 0)) return {};
  TW_TRY(BlockRV block, s.get_sblock(name, s.function().name));
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(block));
  if (plan.parallel == n && plan.vectorize == n && n > 0) {
    TW_TRY(LoopRV fused, s.fuse(loops));
    TW_TRY(std::vector<LoopRV> halves, s.split(fused, TraceList{nullptr, lanes_limit}));
    TW_TRY_VOID(s.parallel(halves[0]));
    if (!s.vectorize(halves[1])) return refuse(vectorize_failed, name);
    return {};
  }
  std::vector<LoopRV> current = loops;
  if (plan.vectorize > 0) {
    std::vector<LoopRV> inner(current.end() - plan.vectorize, current.end());
    TW_TRY(LoopRV fused, s.fuse(inner));
    if (!s.vectorize(fused)) return refuse(vectorize_failed, name);
    current.erase(current.end() - plan.vectorize, current.end());
    current.push_back(fused);
  }
  if (plan.parallel > 0) {
    std::vector<LoopRV> outer(current.begin(), current.begin() + plan.parallel);
    TW_TRY(LoopRV fused, s.fuse(outer));
    TW_TRY_VOID(s.parallel(fused));
    current.erase(current.begin(), current.begin() + plan.parallel);
    current.insert(current.begin(), fused);
  }
  if (limits.unroll > 0 && !all_spatial) {
    TW_TRY_VOID(s.annotate(current[0], "pragma_auto_unroll_max_step", limits.unroll));
    TW_TRY_VOID(s.annotate(current[0], "pragma_unroll_explicit", limits.explicit_unroll ? 1 : 0));
  }
  return {};
}

std::optional<int64_t> take(const Block& root, const char* key) {
  auto it = root.annotations.find(key);
  if (it == root.annotations.end()) return std::nullopt;
  auto* value = it->second.get<int64_t>();
  return value ? std::optional(*value) : std::nullopt;
}

Status apply(Schedule& s, const PostprocContext&) {
  const Block* root = s.function().root();
  Limits limits;
  std::vector<std::string> keys;
  auto read = [&](const char* key, int64_t& into) {
    if (std::optional<int64_t> v = take(*root, key)) into = *v, keys.emplace_back(key);
  };
  read("meta_schedule.parallel", limits.parallel);
  read("meta_schedule.vectorize", limits.vectorize);
  read("meta_schedule.unroll_explicit", limits.unroll);
  limits.explicit_unroll = !keys.empty() && keys.back() == "meta_schedule.unroll_explicit";
  if (!limits.explicit_unroll) read("meta_schedule.unroll_implicit", limits.unroll);
  if (keys.empty()) return {};
  TW_TRY(BlockRV root_rv, s.get_sblock(root->name, s.function().name));
  for (const std::string& key : keys) TW_TRY_VOID(s.unannotate(root_rv, key));
  TW_TRY(std::vector<BlockRV> children, s.get_child_blocks(root_rv));
  std::vector<std::string> names;
  for (BlockRV child : children) {
    TW_TRY(const Block* block, s.block(child));
    names.push_back(block->name);
  }
  for (const std::string& name : names)
    if (s.state().tree().blocks_named(name).size() == 1) TW_TRY_VOID(rewrite(s, name, limits));
  return {};
}

const Register<Postproc> entry{
    "rewrite_parallel_vectorize_unroll", "parallelises, vectorises and unrolls by the root's annotations", {apply}};

}  // namespace

}  // namespace tilewright
