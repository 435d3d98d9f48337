#include "schedule/primitives/cache.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

Result<std::vector<Place>> named_consumers(const Context& c, const std::vector<const Block*>& named,
                                           const Buffer& buffer, Place scope, const std::vector<Place>& readers) {
  const TreeIndex& tree = c.state.tree();
  std::vector<Place> out;
  for (const Block* block : named) {
    Place p = c.state.place(*block);
    while (p != kNoPlace && tree.enclosing_block(p) != scope) p = tree.enclosing_block(p);
    if (!std::count(readers.begin(), readers.end(), p))
      return c.refuse(not_a_consumer,
                      fmt::format("block \"{}\" does not read what is written to {}", block->name, buffer->name),
                      block);
    out.push_back(p);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Status check_not_updated(const Context& c, const Block* block, const Buffer& buffer) {
  for (const BufferRegion& r : block->reads)
    if (r.buffer.same_as(buffer))
      return c.refuse(buffer_updated_in_place,
                      fmt::format("block \"{}\" reads and writes {}", block->name, buffer->name), block);
  return {};
}

Status check_not_opaque(const Context& c, Place p, const Buffer& buffer) {
  if (!has_opaque_use(c.state.tree().ref(p), buffer)) return {};
  const Block* block = c.state.tree().block(p);
  return c.refuse(codes::buffer_opaque_or_matched,
                  fmt::format("block \"{}\" uses {} through a pointer or a match_buffer", block->name, buffer->name),
                  block);
}

Place common_container(const TreeIndex& tree, const std::vector<Place>& places) {
  Place common = places.at(0);
  for (Place p : places) common = tree.common_ancestor(common, p);
  // Blocks below the scope cannot hold the copy: climb from a place that is itself one of the accesses, and out of
  // sequences.
  while (common != kNoPlace &&
         (std::count(places.begin(), places.end(), common) || (!tree.loop(common) && !tree.block(common))))
    common = tree.parent(common);
  return common;
}

Place child_containing(const TreeIndex& tree, Place container, Place p) {
  while (true) {
    Place up = tree.parent(p);
    if (up == container) return p;
    // An item of the container's sequence is the statement to put siblings next to.
    if (tree.parent(up) == container && tree.stmt(up)->kind == StmtKind::kSeq) return p;
    p = up;
  }
}

namespace {

VarMap bindings_of(const Block& block) {
  VarMap out;
  for (const Iter& iter : block.iters) out[iter.var.get()] = iter.binding;
  return out;
}
Expr predicate_at(const Block& block, const VarMap& bindings) {
  return block.predicate ? substitute(block.predicate, bindings) : Expr();
}

/// Facts about what stays fixed in one iteration of `container`.
void bind_around(Analyzer& facts, const State& state, Place container) {
  const TreeIndex& tree = state.tree();
  if (tree.block(container)) {
    facts.bind(domains_of(*tree.block(container)));
    return;
  }
  bind_loops_above(facts, state, container);
  facts.bind(*tree.loop(container));
}

std::vector<VarRange> loops_inside(const TreeIndex& tree, Place container, Place block) {
  std::vector<VarRange> out;
  for (Place l : tree.loops_between(container, block)) out.push_back({tree.loop(l)->var, range_of(*tree.loop(l))});
  return out;
}

}  // namespace

BufferRegion region_at(const State& state, Place container, Place block, const BufferRegion& region,
                       std::string_view storage_scope) {
  const TreeIndex& tree = state.tree();
  const Block* b = tree.block(block);
  VarMap bindings = bindings_of(*b);
  std::vector<VarRange> inner;
  Analyzer facts;
  Place scope = tree.enclosing_block(block);
  for (const VarRange& iter : domains_of(*tree.block(scope))) facts.bind(iter.var, iter.range);
  for (Place l : tree.loops_above(block)) {
    const For* loop = tree.loop(l);
    facts.bind(*loop);
    bool below = tree.contains(container, l) && l != container;
    bool shared = loop->loop_kind == ForKind::thread_binding && in_storage_span(storage_scope, loop->thread);
    if (below || shared) inner.push_back({loop->var, range_of(*loop)});
  }
  return relax(substitute(region, bindings), inner, predicate_at(*b, bindings), facts);
}

bool writes_whole(const State& state, Place container, Place block, const BufferRegion& region) {
  const Block& b = *state.tree().block(block);
  const VarMap bindings = bindings_of(b);
  const std::vector<VarRange> inner = loops_inside(state.tree(), container, block);
  Analyzer facts;
  bind_around(facts, state, container);
  std::vector<BufferRegion> boxes;
  for (const BufferRegion& box : surely_written(b, region.buffer, facts))
    if (auto all = lower_bound(substitute(box, bindings), inner, predicate_at(b, bindings), facts))
      boxes.push_back(std::move(*all));
  return boxes_cover(std::move(boxes), clip_to_shape(region, facts), facts);
}

std::optional<BufferRegion> written_box(const State& state, Place container, Place block, const BufferRegion& write) {
  BufferRegion hull = region_at(state, container, block, write, "local");
  if (!writes_whole(state, container, block, hull)) return std::nullopt;
  return hull;
}

CachePlan plan_cache(const Context& c, const Buffer& buffer, const BufferRegion& region, Place container,
                     const std::string& scope, bool into_cache) {
  CachePlan plan;
  plan.container = container;
  plan.region = region;
  // An allocation has the same shape in every instance of the scope.
  const Block* scope_block = c.state.tree().block(container);
  const bool scope_level = scope_block && std::none_of(region.region.begin(), region.region.end(), [&](const Range& r) {
                             return uses_any(r.extent, [&](const VarNode* v) {
                               return std::any_of(scope_block->iters.begin(), scope_block->iters.end(),
                                                  [&](const Iter& iter) { return iter.var.get() == v; });
                             });
                           });
  std::vector<Expr> shape;
  CopyBlock copy;
  copy.shape = buffer->shape;
  for (size_t i = 0; i < region.region.size(); ++i) {
    const Range& r = region.region[i];
    shape.push_back(scope_level ? r.extent : buffer->shape[i]);
    if (scope_level) {
      plan.offset.push_back(r.min);
      copy.domains.push_back({int_imm(0, r.extent->dtype), r.extent});
      copy.loops.push_back({int_imm(0, r.extent->dtype), r.extent});
    } else {
      copy.domains.push_back({int_imm(0, buffer->shape[i]->dtype), buffer->shape[i]});
      copy.loops.push_back(r);
    }
  }
  plan.cache = buffer_like(buffer, buffer->name + "_" + scope, scope, shape);
  copy.name = plan.cache->name;
  copy.source = into_cache ? buffer : plan.cache;
  copy.target = into_cache ? plan.cache : buffer;
  auto shifted = [offset = plan.offset](const std::vector<Expr>& v) {
    std::vector<Expr> out;
    for (size_t i = 0; i < v.size(); ++i) out.push_back(offset.empty() ? v[i] : offset[i] + v[i]);
    return out;
  };
  (into_cache ? copy.source_indices : copy.target_indices) = shifted;
  Analyzer facts;
  bind_around(facts, c.state, container);
  plan.copy = make_copy(copy, facts, &plan.copy_id);
  return plan;
}

}  // namespace tilewright
