// cache_write: a block writes a copy of its output, and a new block after it copies that to the output.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(std::vector<const Block*> consumers, c.blocks("consumer_blocks"));
  const std::string& storage = c.text("storage_scope");
  TW_TRY_VOID(check_scope_name(c, storage));
  TW_TRY_VOID(check_inner(c, block));
  TW_TRY(BufferRegion write, region_of(c, block, c.integer("write_buffer_index"), true));
  const TreeIndex& tree = c.state.tree();
  const Buffer buffer = write.buffer;
  const Place place = c.state.place(*block), scope_place = tree.enclosing_block(place);
  BlockScope scope = c.state.scope_of(place);
  std::vector<Place> writers = scope.writers(buffer), readers = scope.readers(buffer);
  if (writers.size() > 1)
    return c.refuse(codes::several_writers, fmt::format("buffer {} has {} writers", buffer->name, writers.size()),
                    block);
  TW_TRY_VOID(check_not_updated(c, block, buffer));
  std::erase_if(readers, [&](Place p) { return p <= place; });  // earlier ones read what was there before
  TW_TRY(std::vector<Place> served, named_consumers(c, consumers, buffer, scope_place, readers));
  for (Place p : served) std::erase(readers, p);

  Place container = readers.empty() ? scope_place : common_container(tree, {place, readers.front()});
  if (readers.empty()) {
    // No reader left in the scope: the copy goes to the end of the innermost statement list that holds the writer's
    // nest.
    container = scope_place;
  }
  BufferRegion region = region_at(c.state, container, place, write, storage);
  CachePlan plan = plan_cache(c, buffer, region, container, storage, false);
  Redirect how{buffer, plan.cache, nullptr, true, true};
  if (!plan.offset.empty())
    how.map_indices = [offset = plan.offset](const std::vector<Expr>& v) {
      std::vector<Expr> out;
      for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i] - offset[i]);
      return out;
    };
  Stmt s = tree.ref(scope_place);
  // The statement before which the copy stands, found before anything moves.
  const StmtNode* before = readers.empty() ? nullptr : tree.stmt(child_containing(tree, container, readers.front()));
  s = replace_stmt(s, block, redirect(Stmt(block), how));
  for (Place p : served) s = replace_stmt(s, tree.stmt(p), redirect(tree.ref(p), how));
  if (before) {
    bool moved = false;  // `before` may hold a redirected statement only if the writer is inside it, which
                         // child_containing excludes
    walk_stmts(s, [&](const Stmt& x) { return !(moved = moved || x.get() == before); });
    TW_CHECK(moved);
    s = replace_stmt(s, before, make_seq({plan.copy, Stmt(before)}));
    s = add_allocation(*as<Block>(s), plan.cache);
  } else {
    auto copy = edit(*as<Block>(s));
    copy->body = make_seq({copy->body, plan.copy});
    copy->allocs.push_back(plan.cache);
    s = finish(std::move(copy));
  }
  c.state.replace(tree.stmt(scope_place), s);
  c.give(plan.copy_id);
  return {};
}

const RegisterPrimitive entry{
    "cache_write",
    "a block writes a copy of its output, which a new block copies to the output",
    {.kind = "CacheWrite",
     .inputs = {{"block", ArgType::block, {}, "the writer"},
                {"consumer_blocks", ArgType::blocks, TraceValue(TraceList{}), "these read the copy directly"}},
     .attrs = {{"write_buffer_index", ArgType::integer, {}, "index of the write region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .python_order = {"block", "write_buffer_index", "storage_scope", "consumer_blocks"},
     .refusals = {labels::scope, labels::inner, labels::index, codes::several_writers, buffer_updated_in_place,
                  not_a_consumer},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
