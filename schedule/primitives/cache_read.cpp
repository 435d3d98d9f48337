// cache_read: readers of a buffer use a copy of it, made by a new block just before the first of them.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

/// Redirects reads of the named consumers and of the blocks inside them; none named: all of `s`.
Stmt redirect_readers(const Stmt& s, const std::vector<BlockId>& named, const Redirect& how) {
  const Block* block = as<Block>(s);
  if (named.empty() || (block && std::count(named.begin(), named.end(), block->id))) return redirect(s, how);
  return map_children(
      s, [](const Expr& e) { return e; }, [&](const Stmt& child) { return redirect_readers(child, named, how); });
}

/// The part of the buffer that the readers need, as seen at `container`.
BufferRegion needed_region(const State& state, Place container, const Buffer& buffer, const std::vector<Place>& readers,
                           std::string_view storage) {
  std::optional<BufferRegion> out;
  Analyzer facts;
  bind_loops_above(facts, state, readers.front());
  for (Place reader : readers)
    for (const BufferRegion& r : state.tree().block(reader)->reads) {
      if (!r.buffer.same_as(buffer)) continue;
      BufferRegion needed = region_at(state, container, reader, r, storage);
      out = out ? region_union(*out, needed, facts) : needed;
    }
  return *out;
}

/// A buffer that a block of the scope writes: what it writes, where that is a box, else what is read. All of it is
/// there when the copy runs.
Result<BufferRegion> produced_region(const Context& c, const Block* block, const Buffer& buffer, Place container,
                                     Place writer, const std::vector<Place>& readers, std::string_view storage) {
  const TreeIndex& tree = c.state.tree();
  BlockScope scope = c.state.scope_of(writer);
  for (Place reader : readers)
    if (!scope.region_cover(reader, buffer))
      return c.refuse(scope_region_not_covered,
                      fmt::format("block \"{}\" reads elements of {} that \"{}\" does not write before",
                                  tree.block(reader)->name, buffer->name, tree.block(writer)->name),
                      tree.stmt(reader));
  const bool inside = std::all_of(readers.begin(), readers.end(), [&](Place p) { return tree.contains(container, p); });
  // Below a loop the readers in it may need less than is written; readers after the loop need all of it in the end.
  if (!tree.loop(container) || !inside)
    for (const BufferRegion& w : tree.block(writer)->writes)
      if (w.buffer.same_as(buffer))
        if (auto box = written_box(c.state, container, writer, w)) return *box;
  if (inside) {
    BufferRegion needed = needed_region(c.state, container, buffer, readers, storage);
    if (writes_whole(c.state, container, writer, needed)) return needed;
  }
  return c.refuse(region_has_gaps,
                  fmt::format("what block \"{}\" writes of {} may have gaps, which the copy would read",
                              tree.block(writer)->name, buffer->name),
                  block);
}

/// A buffer from outside: the region that the scope declares (the root declares none: all of it).
Result<BufferRegion> declared_region(const Context& c, const Buffer& buffer, Place scope,
                                     const std::vector<Place>& readers, std::string_view storage) {
  const TreeIndex& tree = c.state.tree();
  if (tree.enclosing_block(scope) == kNoPlace && tree.block(scope)->reads.empty()) return full_region(buffer);
  BufferRegion region = full_region(buffer);
  for (const BufferRegion& r : tree.block(scope)->reads)
    if (r.buffer.same_as(buffer)) region = r;
  Analyzer facts;
  facts.bind(domains_of(*tree.block(scope)));
  region = clip_to_shape(region, facts);
  for (Place reader : readers)
    for (const BufferRegion& r : tree.block(reader)->reads)
      if (r.buffer.same_as(buffer) &&
          !region_covers(region, clip_to_shape(region_at(c.state, scope, reader, r, storage), facts), facts))
        return c.refuse(
            scope_region_not_covered,
            fmt::format("the scope reads less of {} than block \"{}\"", buffer->name, tree.block(reader)->name),
            tree.stmt(reader));
  // All of what the scope declares has been written before the scope runs.
  for (Place p = scope, up; (up = tree.enclosing_block(p)) != kNoPlace; p = up)
    if (!BlockScope(tree, up).region_cover(p, buffer))
      return c.refuse(region_has_gaps,
                      fmt::format("some of what block \"{}\" declares to read of {} may not have been written",
                                  tree.block(p)->name, buffer->name),
                      tree.stmt(p));
  return region;
}

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(std::vector<const Block*> consumers, c.blocks("consumer_blocks"));
  const std::string& storage = c.text("storage_scope");
  TW_TRY_VOID(check_scope_name(c, storage));
  TW_TRY_VOID(check_inner(c, block));
  TW_TRY(BufferRegion read, region_of(c, block, c.integer("read_buffer_index"), false));
  const TreeIndex& tree = c.state.tree();
  const Buffer buffer = read.buffer;
  Place scope_place = tree.enclosing_block(c.state.place(*block));
  BlockScope scope = c.state.scope_of(c.state.place(*block));
  std::vector<Place> writers = scope.writers(buffer), readers = scope.readers(buffer);
  // A block that updates the buffer in place is a writer and a reader; the copy stands between it and the other
  // readers.
  if (writers.size() > 1)
    return c.refuse(codes::several_writers, fmt::format("buffer {} has {} writers", buffer->name, writers.size()),
                    block);
  if (!writers.empty()) std::erase_if(readers, [&](Place p) { return p <= writers[0]; });
  if (!std::count(readers.begin(), readers.end(), c.state.place(*block)))
    return c.refuse(
        not_a_consumer,
        fmt::format("block \"{}\" does not read what another block has written to {}", block->name, buffer->name),
        block);
  std::vector<BlockId> named;
  if (!consumers.empty()) {
    for (const Block* consumer : consumers) named.push_back(consumer->id);
    TW_TRY(readers, named_consumers(c, consumers, buffer, scope_place, readers));
  }
  for (Place reader : readers) TW_TRY_VOID(check_not_opaque(c, reader, buffer));

  Place container = scope_place;
  BufferRegion region;
  if (writers.empty()) {
    TW_TRY(region, declared_region(c, buffer, scope_place, readers, storage));
  } else {
    container = common_container(tree, {writers[0], readers.front()});
    TW_TRY(region, produced_region(c, block, buffer, container, writers[0], readers, storage));
  }
  CachePlan plan = plan_cache(c, buffer, region, container, storage, true);
  Redirect how{buffer, plan.cache, nullptr, true, false};
  if (!plan.offset.empty())
    how.map_indices = [offset = plan.offset](const std::vector<Expr>& v) {
      std::vector<Expr> out;
      for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i] - offset[i]);
      return out;
    };

  // The copy before the statement with the first reader, or at the start of the scope; then the readers turn to it.
  const Block* scope_block = tree.block(scope_place);
  const StmtNode* first =
      writers.empty() ? scope_block->body.get() : tree.stmt(child_containing(tree, container, readers.front()));
  Stmt s = replace_stmt(Stmt(scope_block), first, make_seq({plan.copy, Stmt(first)}));
  for (Place reader : readers) s = replace_stmt(s, tree.stmt(reader), redirect_readers(tree.ref(reader), named, how));
  std::vector<BlockId> changed;
  for (Place reader : readers) changed.push_back(tree.block(reader)->id);
  changed.insert(changed.end(), named.begin(), named.end());
  c.state.replace(scope_block, add_allocation(*as<Block>(s), plan.cache));
  for (BlockId id : changed) refresh_signatures(c.state, id);
  c.give(plan.copy_id);
  return {};
}

const RegisterPrimitive entry{
    "cache_read",
    "readers of a buffer use a copy of it in another memory",
    {.kind = "CacheRead",
     .inputs = {{"block", ArgType::block, {}, "a reader"},
                {"consumer_blocks", ArgType::blocks, TraceValue(TraceList{}),
                 "only these use the copy; empty: all readers"}},
     .attrs = {{"read_buffer_index", ArgType::integer, {}, "index of the read region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .python_order = {"block", "read_buffer_index", "storage_scope", "consumer_blocks"},
     .refusals = {labels::scope, labels::inner, labels::index, codes::several_writers, not_a_consumer,
                  codes::buffer_opaque_or_matched, scope_region_not_covered, region_has_gaps},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
