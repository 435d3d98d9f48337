// read_at: under a loop, all blocks read a copy of what one iteration reads of a buffer.
//   for i: for j: C[i, j] = A[i, j]   →   for i: A_shared[i, 0:16] = A[i, 0:16]; for j: C[i, j] = A_shared[i, j]
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/copy_at.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(write_after_first_read, "write-after-first-read",
                "under the loop a block writes the buffer when another has begun to read it");

/// What one iteration of the loop reads. Of a buffer that blocks of the scope write, one reader must read all of that:
/// between the parts that several read, or other threads, nothing may have been written.
Result<BufferRegion> region_read(const Context& c, const CopyAt& a, const std::string& storage) {
  const TreeIndex& tree = c.state.tree();
  const Place loop = c.state.place(*a.loop);
  Analyzer facts;
  bind_loops_above(facts, c.state, loop);
  facts.bind(*a.loop);
  // What other threads write of the buffer may not be there yet.
  const std::vector<Place> writers = c.state.scope_of(c.state.place(*a.block)).writers(a.buffer);
  std::vector<const For*> above = tree.loop_nodes_above(loop);
  above.push_back(a.loop);
  const bool by_threads = std::any_of(above.begin(), above.end(), [&](const For* l) {
    return l->loop_kind == ForKind::thread_binding &&
           std::any_of(writers.begin(), writers.end(), [&](Place w) { return tree.contains(c.state.place(*l), w); });
  });
  const std::string shared = by_threads ? "local" : a.buffer->scope;
  std::optional<BufferRegion> all;
  std::vector<BufferRegion> known;
  for (Place p : a.readers)
    for (const BufferRegion& r : tree.block(p)->reads) {
      if (!r.buffer.same_as(a.buffer)) continue;
      BufferRegion region = clip_to_shape(region_at(c.state, loop, p, r, storage), facts);
      all = all ? region_union(*all, region, facts) : region;
      known.push_back(clip_to_shape(region_at(c.state, loop, p, r, shared), facts));
    }
  const bool whole =
      std::any_of(known.begin(), known.end(), [&](const BufferRegion& r) { return region_covers(r, *all, facts); });
  if (!whole && !writers.empty())
    return c.refuse(
        region_not_exact,
        fmt::format("the blocks under loop {} read different parts of {}", a.loop->var->name, a.buffer->name), a.loop);
  for (Range& r : all->region) r = facts.simplify(r);
  return *all;
}

Status apply(Context& c) {
  TW_TRY(CopyAt a, copy_at_arguments(c, false));
  const TreeIndex& tree = c.state.tree();
  const Place first_place = child_containing(tree, c.state.place(*a.loop), a.readers.front());
  for (Place w : a.writers)
    if (!tree.before(w, first_place))
      return c.refuse(write_after_first_read,
                      fmt::format("block \"{}\" writes {} when \"{}\" has begun to read it", tree.block(w)->name,
                                  a.buffer->name, tree.block(a.readers.front())->name),
                      tree.stmt(w));
  const std::string& storage = c.text("storage_scope");
  TW_TRY(BufferRegion region, region_read(c, a, storage));
  const Buffer cache = whole_cache(a.buffer, storage);
  BlockId id{};
  const Stmt copy = make_auto_copy(c.state, a.loop, region, cache, true, &id);
  std::vector<std::pair<const StmtNode*, Stmt>> replaced;
  for (Place p : a.readers)
    replaced.emplace_back(tree.stmt(p), redirect(tree.ref(p), {a.buffer, cache, nullptr, true, false}));
  insert_copy(c, a, tree.ref(first_place), true, copy, cache, replaced);
  c.give(id);
  return {};
}

const RegisterPrimitive entry{"read_at",
                              "under a loop, blocks read a copy of what one iteration reads of a buffer",
                              {.kind = "ReadAt",
                               .inputs = {{"loop", ArgType::loop, {}, "the copy is made in each of its iterations"},
                                          {"block", ArgType::block, {}, "a reader under the loop"}},
                               .attrs = {{"read_buffer_index", ArgType::integer, {}, "index of the read region"},
                                         {"storage_scope", ArgType::text, {}, "memory of the copy"}},
                               .outputs = OutputShape::one_block,
                               .output_kind = SymbolKind::block,
                               .refusals = {copy_at_refusals, write_after_first_read, region_not_exact},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
