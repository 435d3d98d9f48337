// cache_read: readers of a buffer use a copy of it, made by a new block just before the first of them.
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(scope_region_not_covered, "scope-region-not-covered",
                "the region that the scope declares does not cover what the block reads");

/// Redirects reads of the named consumers (and of the blocks inside them), or of all readers but the copy.
Stmt redirect_readers(const Stmt& s, const std::vector<BlockId>& named, bool inside, const Redirect& how) {
  if (const Block* block = as<Block>(s)) {
    bool here = inside || named.empty() || std::count(named.begin(), named.end(), block->id);
    if (here && (inside || !named.empty() || !block->iters.empty() || block->reads.size())) return redirect(s, how);
  }
  return map_children(
      s, [](const Expr& e) { return e; },
      [&](const Stmt& child) { return redirect_readers(child, named, inside, how); });
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

  Place container = scope_place;
  BufferRegion region = full_region(buffer);
  if (!writers.empty()) {
    container = common_container(tree, {writers[0], readers.front()});
    if (tree.block(container)) {  // scope level: what the producer writes
      for (const BufferRegion& w : tree.block(writers[0])->writes)
        if (w.buffer.same_as(buffer)) region = region_at(c.state, container, writers[0], w, storage);
    } else if (std::any_of(readers.begin(), readers.end(), [&](Place p) { return !tree.contains(container, p); })) {
      // Below a loop, and readers after it: what the producer writes in one iteration, so that after all it is
      // complete.
      for (const BufferRegion& w : tree.block(writers[0])->writes)
        if (w.buffer.same_as(buffer)) region = region_at(c.state, container, writers[0], w, storage);
    } else {  // below a loop: what the readers need in one iteration
      bool first = true;
      Analyzer facts;
      bind_loops_above(facts, c.state, readers.front());
      for (Place reader : readers) {
        for (const BufferRegion& r : tree.block(reader)->reads) {
          if (!r.buffer.same_as(buffer)) continue;
          BufferRegion needed = region_at(c.state, container, reader, r, storage);
          region = first ? needed : region_union(region, needed, facts);
          first = false;
        }
      }
    }
  } else {
    // An input: the region that the scope declares, if it declares one.
    for (const BufferRegion& r : tree.block(scope_place)->reads)
      if (r.buffer.same_as(buffer)) region = r;
    Analyzer facts;
    BufferRegion needed = region_at(c.state, scope_place, c.state.place(*block), read, storage);
    bool declared = !tree.block(scope_place)->iters.empty() || !tree.block(scope_place)->reads.empty();
    if (declared && !region_covers(region, needed, facts))
      return c.refuse(scope_region_not_covered,
                      fmt::format("the scope reads less of {} than block \"{}\"", buffer->name, block->name), block);
  }
  CachePlan plan = plan_cache(c, buffer, region, container, storage, true);
  Redirect how{buffer, plan.cache, nullptr, true, false};
  if (!plan.offset.empty())
    how.map_indices = [offset = plan.offset](const std::vector<Expr>& v) {
      std::vector<Expr> out;
      for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i] - offset[i]);
      return out;
    };

  // Rewrite the scope: redirect readers, insert the copy, add the allocation.
  Stmt scope_stmt = tree.ref(scope_place);
  const Block* scope_block = as<Block>(scope_stmt);
  std::vector<std::pair<const StmtNode*, Stmt>> replaced;
  for (Place reader : readers) {
    Stmt at = tree.ref(reader);
    replaced.emplace_back(at.get(), redirect_readers(at, named, named.empty(), how));
  }
  const StmtNode* first = tree.stmt(child_containing(tree, container, readers.front()));
  const StmtNode* container_stmt = tree.stmt(container);
  Stmt container_new(container_stmt);
  bool at_start = writers.empty() && tree.block(container);
  auto apply_replacements = [&](Stmt s) {
    for (const auto& [from, to] : replaced) s = replace_stmt(s, from, to);
    return s;
  };
  if (at_start) {
    Stmt body = apply_replacements(scope_block->body);
    auto copy = edit(*scope_block);
    copy->body = make_seq({plan.copy, body});
    copy->allocs.push_back(plan.cache);
    c.state.replace(scope_block, finish(std::move(copy)));
  } else {
    Stmt first_new(first);
    for (const auto& [from, to] : replaced) {
      bool below = false;
      walk_stmts(Stmt(first), [&](const Stmt& s) { return !(below = below || s.get() == from); });
      if (below) first_new = replace_stmt(first_new, from, to);
    }
    Stmt s = scope_stmt;
    for (const auto& [from, to] : replaced) {
      bool below_first = false;
      walk_stmts(Stmt(first), [&](const Stmt& x) { return !(below_first = below_first || x.get() == from); });
      if (!below_first) s = replace_stmt(s, from, to);
    }
    s = replace_stmt(s, first, make_seq({plan.copy, first_new}));
    c.state.replace(scope_block, add_allocation(*as<Block>(s), plan.cache));
  }
  c.give(plan.copy_id);
  return {};
}

const RegisterPrimitive entry{"cache_read",
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
                               .refusals = {labels::scope, labels::inner, labels::index, codes::several_writers,
                                            not_a_consumer, scope_region_not_covered},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
