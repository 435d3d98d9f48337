// cache_inplace: a block updates a copy of a buffer: one block brings what it touches in, another takes it back.
//   C[vi] = C[vi] + 1   →   C_local[v0] = C[v0];  C_local[vi] = C_local[vi] + 1;  C[v0] = C_local[v0]
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(buffer_not_read_and_written, "buffer-not-read-and-written",
                "the block does not read and write the same region of the buffer");

/// Loops ax0… over the region at the block's bindings around a copy from or to the cache, of one block name.
Stmt copy_nest(const Block& block, const BufferRegion& region, const Buffer& cache, bool into_cache, Analyzer& facts,
               BlockId* id) {
  VarMap bindings;
  for (const Iter& iter : block.iters) bindings[iter.var.get()] = iter.binding;
  CopyBlock copy;
  copy.name = cache->name;
  copy.source = into_cache ? region.buffer : cache;
  copy.target = into_cache ? cache : region.buffer;
  for (size_t d = 0; d < region.region.size(); ++d) {
    const Expr& extent = region.buffer->shape[d];
    copy.domains.push_back({int_imm(0, extent->dtype), extent});
    copy.loops.push_back({facts.simplify(substitute(region.region[d].min, bindings)),
                          facts.simplify(substitute(region.region[d].extent, bindings))});
  }
  copy.predicate = block.predicate;
  copy.shape = region.buffer->shape;
  return make_copy(copy, facts, id);
}

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  const std::string& storage = c.text("storage_scope");
  TW_TRY_VOID(check_inner(c, block));
  TW_TRY_VOID(check_scope_name(c, storage));
  TW_TRY(BufferRegion read, region_of(c, block, c.integer("read_buffer_index"), false));
  TW_TRY_VOID(check_scope_covers(c, block, read, storage, false));
  Analyzer domains;
  domains.bind(domains_of(*block));
  bool updated = false;
  for (const BufferRegion& w : block->writes)
    updated = updated ||
              (w.buffer.same_as(read.buffer) && region_covers(read, w, domains) && region_covers(w, read, domains));
  if (!updated)
    return c.refuse(
        buffer_not_read_and_written,
        fmt::format("block \"{}\" does not read and write the same region of {}", block->name, read.buffer->name),
        block);
  // A block of several that first writes what it then reads has nothing to bring in.
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*block), scope = tree.enclosing_block(place);
  const std::vector<Buffer>& owned = tree.block(scope)->allocs;
  const bool here = std::any_of(owned.begin(), owned.end(), [&](const Buffer& b) { return b.same_as(read.buffer); });
  if (here && c.state.scope_of(place).writers(read.buffer).front() == place)
    return c.refuse(buffer_not_read_and_written,
                    fmt::format("nothing writes {} before block \"{}\"", read.buffer->name, block->name), block);
  if (has_opaque_use(Stmt(block), read.buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", read.buffer->name), block);
  const Buffer cache = whole_cache(read.buffer, storage);
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*block));
  BlockId in{}, out{};
  Stmt before = copy_nest(*block, read, cache, true, facts, &in);
  Stmt after = copy_nest(*block, read, cache, false, facts, &out);
  Stmt update = redirect(Stmt(block), {read.buffer, cache, nullptr, true, true});
  Stmt s = replace_stmt(tree.ref(scope), block, make_seq({before, update, after}));
  c.state.replace(tree.stmt(scope), add_allocation(*as<Block>(s), cache));
  c.give(in);
  c.give(out);
  return {};
}

const RegisterPrimitive entry{
    "cache_inplace",
    "a block that updates a buffer works on a copy, which is read before and written back after it",
    {.kind = "CacheInplace",
     .inputs = {{"block", ArgType::block, {}, "the block that reads and writes the buffer"}},
     .attrs = {{"read_buffer_index", ArgType::integer, {}, "index of the read region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::two_blocks,
     .output_kind = SymbolKind::block,
     .refusals = {labels::inner, labels::scope, labels::index, scope_region_not_covered, buffer_not_read_and_written,
                  codes::buffer_opaque_or_matched},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
