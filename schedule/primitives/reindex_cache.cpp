#include "schedule/primitives/reindex_cache.h"

#include <fmt/format.h>

#include <set>

#include "schedule/primitives/instances.h"

namespace tilewright {

namespace {

struct Plan {
  const Block* block;
  BufferRegion region;
  std::vector<Expr> indices;      ///< of the buffer, in the block's iters
  std::vector<Expr> mapped;       ///< of the cache, in the block's iters
  std::vector<const Iter*> used;  ///< iters that the map uses
  Buffer cache;
};

/// The cache: the map tells the used iters apart, and its shape is the image.
Status lay_out(const Context& c, Plan& p, const std::vector<VarRange>& used_domains, const std::string& storage,
               Analyzer& facts) {
  IterMap detected = detect_iter_map(p.mapped, used_domains, nullptr, IterMapCheck::bijective, facts);
  bool injective = static_cast<bool>(detected);
  if (!injective) {  // digits may leave gaps in the image (padding): injective is enough, and an inverse proves it
    detected = detect_iter_map(p.mapped, used_domains, nullptr, IterMapCheck::none, facts);
    injective = detected && inverse_map(detected, used_domains, p.mapped, facts).has_value();
  }
  if (!injective)
    return c.refuse(codes::index_map_not_injective,
                    fmt::format("the map does not tell iters of block \"{}\" apart: {}", p.block->name,
                                detected.failure.empty() ? "its digits overlap, or one is missing" : detected.failure),
                    p.block);
  std::vector<Expr> shape;
  for (Expr& e : p.mapped) {
    SymbolicInterval bounds = bounds_over(e, used_domains, nullptr, facts);
    if (!bounds.bounded()) return c.refuse(codes::index_map_not_injective, "an index of the map has no bound", p.block);
    if (!facts.can_prove_not_negative(bounds.min))
      return c.refuse(codes::index_map_negative, fmt::format("index {} of the map may be below 0", shape.size()),
                      p.block);
    shape.push_back(facts.simplify(bounds.max + 1));
  }
  p.cache = buffer_like(p.region.buffer, p.region.buffer->name + "_" + storage, storage, shape);
  return {};
}

Result<Plan> make_plan(Context& c, bool write) {
  Plan p;
  TW_TRY(p.block, c.block("block"));
  const std::string& storage = c.text("storage_scope");
  TW_TRY_VOID(check_scope_name(c, storage));
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY(p.region, region_of(c, p.block, c.integer(write ? "write_buffer_index" : "read_buffer_index"), write));
  if (write) {
    TW_TRY_VOID(check_not_updated(c, p.block, p.region.buffer));
  } else {
    for (const BufferRegion& w : p.block->writes)  // the copy, made before, would not see what the block writes
      if (w.buffer.same_as(p.region.buffer))
        return c.refuse(codes::block_reads_its_output,
                        fmt::format("block \"{}\" reads and writes {}", p.block->name, w.buffer->name), p.block);
  }
  TW_TRY_VOID(check_not_opaque(c, c.state.place(*p.block), p.region.buffer));
  TW_TRY_VOID(check_pipeline(c, p.block));
  BlockScope scope = c.state.scope_of(c.state.place(*p.block));
  if (scope.writers(p.region.buffer).size() > 1)
    return c.refuse(codes::several_writers, fmt::format("buffer {} has several writers", p.region.buffer->name),
                    p.block);
  for (const Range& r : p.region.region) {
    if (!is_const(r.extent, 1))
      return c.refuse(access_not_a_point,
                      fmt::format("block \"{}\" accesses a range of {}", p.block->name, p.region.buffer->name),
                      p.block);
    if (reads_memory(r.min))  // the copy would be made before what it reads is known to be there
      return c.refuse(
          access_not_a_point,
          fmt::format("block \"{}\" reads from memory where it accesses {}", p.block->name, p.region.buffer->name),
          p.block);
    p.indices.push_back(r.min);
  }
  IndexMapRef map = c.index_map("index_map");
  if (map->inputs.size() != p.block->iters.size())
    return c.refuse(map_iters_differ,
                    fmt::format("expected {} indices, found {}", p.block->iters.size(), map->inputs.size()), p.block);
  Analyzer facts;
  facts.bind(domains_of(*p.block));
  std::vector<Expr> iters;
  for (const Iter& iter : p.block->iters) iters.push_back(iter.var);
  std::vector<VarRange> used_domains;
  for (const Expr& e : apply_index_map(*map, iters)) p.mapped.push_back(facts.simplify(e));
  for (const Iter& iter : p.block->iters) {
    bool used =
        std::any_of(p.mapped.begin(), p.mapped.end(), [&](const Expr& e) { return uses_var(e, iter.var.get()); });
    if (!used) {  // what the buffer is indexed by must be found in the cache again
      bool indexes =
          std::any_of(p.indices.begin(), p.indices.end(), [&](const Expr& e) { return uses_var(e, iter.var.get()); });
      if (indexes && !is_const(iter.dom.extent, 1))
        return c.refuse(codes::index_map_not_injective,
                        fmt::format("iter {} indexes {} and is not in the map", iter.var->name, p.region.buffer->name),
                        p.block);
      continue;
    }
    if (write && iter.type != IterType::spatial)
      return c.refuse(
          map_uses_a_reduction_iter,
          fmt::format("the map uses {}, which is no spatial iter of block \"{}\"", iter.var->name, p.block->name),
          p.block);
    p.used.push_back(&iter);
    used_domains.push_back({iter.var, iter.dom});
  }
  TW_TRY_VOID(lay_out(c, p, used_domains, storage, facts));
  return p;
}

/// The copy does without the loops that drive no iter of the map. It may run all the same wherever the block runs for
/// some values of those; the block must write its element in each instance.
Status check_instances(const Context& c, const Plan& p, Place top, bool write) {
  const State& state = c.state;
  Analyzer facts;
  facts.bind(domains_of(*state.tree().block(state.tree().enclosing_block(top))));
  VarMap gone;
  for (const For* l : state.tree().loop_nodes_above(state.place(*p.block))) {
    facts.bind(*l);
    const bool used =
        std::any_of(p.used.begin(), p.used.end(), [&](const Iter* i) { return uses_var(i->binding, l->var.get()); });
    if (!used && state.tree().contains(top, state.place(*l))) gone[l->var.get()] = l->min;
  }
  bool runs = true;
  for (const Expr& conjunct : conjuncts(p.block->predicate))
    if (uses_any(conjunct, [&](const VarNode* v) { return gone.count(v) > 0; }))
      runs = runs && facts.can_prove(substitute(conjunct, gone));
  Analyzer inside;
  inside.bind(domains_of(*p.block));
  if (write && !boxes_cover(surely_written(*p.block, p.region.buffer, inside), p.region, inside)) runs = false;
  if (runs) return {};
  return c.refuse(region_has_gaps,
                  fmt::format("block \"{}\" may not access all elements of {} that the copy would hold", p.block->name,
                              p.region.buffer->name),
                  p.block);
}

/// The copy block under copies of the loops from `top` inwards that the used iters need; loops and iters keep their
/// names. Loops above `top` go around the copy, too.
Stmt copy_nest(const State& state, const Plan& p, Place top, bool write, BlockId* id) {
  VarMap loop_map, iter_map;
  std::vector<const For*> loops;
  std::set<const VarNode*> gone;  ///< loops below `top` that the copy does without
  for (const For* l : state.tree().loop_nodes_above(state.place(*p.block))) {
    bool used =
        std::any_of(p.used.begin(), p.used.end(), [&](const Iter* i) { return uses_var(i->binding, l->var.get()); });
    if (!state.tree().contains(top, state.place(*l))) continue;
    if (!used) {
      gone.insert(l->var.get());
      continue;
    }
    loops.push_back(l);
    loop_map[l->var.get()] = make_var(l->var->name, l->var->dtype);
  }
  auto block = std::make_unique<Block>();
  block->name = p.cache->name;
  Expr predicate;
  for (const Iter* iter : p.used) {
    Var v = make_var(iter->var->name, iter->var->dtype);
    iter_map[iter->var.get()] = v;
    block->iters.push_back({v, iter->dom, IterType::spatial, substitute(iter->binding, loop_map)});
  }
  for (const Iter& iter : p.block->iters)
    if (!iter_map.count(iter.var.get())) iter_map[iter.var.get()] = iter.dom.min;
  for (const Expr& conjunct : conjuncts(p.block->predicate)) {
    bool covered = !uses_any(conjunct, [&](const VarNode* v) { return gone.count(v) > 0; });
    if (covered) predicate = and_of(predicate, substitute(conjunct, loop_map));
  }
  block->predicate = predicate;
  std::vector<Expr> original, mapped;
  for (const Expr& e : p.indices) original.push_back(substitute(e, iter_map));
  for (const Expr& e : p.mapped) mapped.push_back(substitute(e, iter_map));
  const Buffer& from = write ? p.cache : p.region.buffer;
  const Buffer& to = write ? p.region.buffer : p.cache;
  const std::vector<Expr>& from_indices = write ? mapped : original;
  const std::vector<Expr>& to_indices = write ? original : mapped;
  block->reads = {point_region(from, from_indices)};
  block->writes = {point_region(to, to_indices)};
  Expr value = load(from, from_indices);
  if (!write) {
    // The block may guard a read that the copy makes for all of its iters: what lies outside is never used.
    Analyzer facts;
    for (const Iter& iter : block->iters) facts.bind(iter.var, iter.dom);
    if (Expr inside = inside_buffer(from, from_indices, facts))
      value = if_then_else(inside, value, zero_of(from->dtype));
  }
  block->body = make_stmt<Store>(to, to_indices, value);
  *id = block->id;
  Stmt s = finish(std::move(block));
  for (size_t i = loops.size(); i-- > 0;) {
    auto copy = edit(*loops[i]);
    copy->var = Var(static_cast<const VarNode*>(loop_map[loops[i]->var.get()].get()));
    copy->extent = substitute(copy->extent, loop_map);
    copy->min = substitute(copy->min, loop_map);
    copy->loop_kind = ForKind::serial;
    copy->thread.clear();
    copy->annotations.clear();
    copy->id = fresh_loop_id();
    copy->body = s;
    s = finish(std::move(copy));
  }
  return s;
}

}  // namespace

Status reindex_cache(Context& c, bool write) {
  TW_TRY(Plan p, make_plan(c, write));
  const TreeIndex& tree = c.state.tree();
  Place place = c.state.place(*p.block), scope = tree.enclosing_block(place);
  // What comes from outside is copied where the scope starts, as cache_read does. Else the copy stands beside the
  // outermost statement that holds only this block's nest.
  const bool from_outside = !write && c.state.scope_of(place).writers(p.region.buffer).empty();
  Place top = place;
  for (Place up = tree.parent(top); from_outside ? up != scope : tree.loop(up) != nullptr; up = tree.parent(top))
    top = up;
  TW_TRY_VOID(check_instances(c, p, top, write));
  BlockId id{};
  Stmt copy = copy_nest(c.state, p, top, write, &id);
  Redirect how{p.region.buffer, p.cache, [&](const std::vector<Expr>&) { return p.mapped; }, true, write};
  Stmt nest = replace_stmt(tree.ref(top), p.block, redirect(Stmt(p.block), how));
  auto scope_new = edit(*tree.block(scope));
  if (from_outside)
    scope_new->body = make_seq({copy, replace_stmt(scope_new->body, tree.stmt(top), nest)});
  else
    scope_new->body =
        replace_stmt(scope_new->body, tree.stmt(top), write ? make_seq({nest, copy}) : make_seq({copy, nest}));
  scope_new->allocs.push_back(p.cache);
  const BlockId changed = scope_new->id;
  c.state.replace(tree.stmt(scope), finish(std::move(scope_new)));
  refresh_signatures(c.state, changed);
  c.give(id);
  return {};
}

}  // namespace tilewright
