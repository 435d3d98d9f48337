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
  TW_TRY_VOID(check_not_opaque(c, place, buffer));
  for (Place p : readers)  // before the block in the text, after it in the next iteration of a loop around both
    if (p < place && tree.loop(common_container(tree, {p, place})))
      return c.refuse(codes::dependence_would_break,
                      fmt::format("block \"{}\" reads {} in an iteration after the one in which \"{}\" writes it",
                                  tree.block(p)->name, buffer->name, block->name),
                      tree.stmt(p));
  std::erase_if(readers, [&](Place p) { return p <= place; });  // earlier ones read what was there before
  TW_TRY(std::vector<Place> served, named_consumers(c, consumers, buffer, scope_place, readers));
  for (Place p : served) {
    TW_TRY_VOID(check_not_opaque(c, p, buffer));
    if (!scope.region_cover(p, buffer))
      return c.refuse(scope_region_not_covered,
                      fmt::format("block \"{}\" reads elements of {} that \"{}\" does not write before",
                                  tree.block(p)->name, buffer->name, block->name),
                      tree.stmt(p));
    std::erase(readers, p);
  }

  // Before the first reader that is left, or at the end of the scope.
  const Place container = readers.empty() ? scope_place : common_container(tree, {place, readers.front()});
  std::optional<BufferRegion> region = written_box(c.state, container, place, write);
  if (!region)
    return c.refuse(region_has_gaps,
                    fmt::format("what block \"{}\" writes of {} may have gaps, into which the copy would write rubbish",
                                block->name, buffer->name),
                    block);
  CachePlan plan = plan_cache(c, buffer, *region, container, storage, false);
  Redirect how{buffer, plan.cache, nullptr, true, true};
  if (!plan.offset.empty())
    how.map_indices = [offset = plan.offset](const std::vector<Expr>& v) {
      std::vector<Expr> out;
      for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i] - offset[i]);
      return out;
    };
  const Block* scope_block = tree.block(scope_place);
  const Stmt before = readers.empty() ? Stmt() : Stmt(tree.stmt(child_containing(tree, container, readers.front())));
  Stmt s = before ? replace_stmt(Stmt(scope_block), before.get(), make_seq({plan.copy, before}))
                  : replace_stmt(Stmt(scope_block), scope_block->body.get(), make_seq({scope_block->body, plan.copy}));
  s = replace_stmt(s, block, redirect(Stmt(block), how));
  for (Place p : served) s = replace_stmt(s, tree.stmt(p), redirect(tree.ref(p), how));
  c.state.replace(scope_block, add_allocation(*as<Block>(s), plan.cache));
  refresh_signatures(c.state, scope_block->id);
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
                  not_a_consumer, codes::buffer_opaque_or_matched, codes::dependence_would_break,
                  scope_region_not_covered, region_has_gaps},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
