// write_at: under a loop, all blocks write a copy of a buffer, which is moved to the buffer once an iteration.
//   for i: for j: C[i, j] = …   →   for i: for j: C_local[i, j] = …; C[i, 0:16] = C_local[i, 0:16]
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/copy_at.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(read_after_last_write, "read-after-last-write",
                "under the loop a block reads the buffer when the last one has written it");

/// What one iteration of the loop writes: exactly, since all of it is copied. Other threads may not have come so far,
/// whatever memory they share.
Result<BufferRegion> region_written(const Context& c, const CopyAt& a) {
  const TreeIndex& tree = c.state.tree();
  const Place loop = c.state.place(*a.loop);
  Analyzer facts;
  bind_loops_above(facts, c.state, loop);
  facts.bind(*a.loop);
  std::optional<BufferRegion> all;
  for (Place p : a.writers) {
    const Block& block = *tree.block(p);
    VarMap bindings;
    for (const Iter& iter : block.iters) bindings[iter.var.get()] = iter.binding;
    std::vector<VarRange> inner;
    for (const For* l : tree.loop_nodes_above(p))
      if (l != a.loop && tree.contains(loop, c.state.place(*l))) inner.push_back({l->var, range_of(*l)});
    for (const BufferRegion& w : block.writes) {
      if (!w.buffer.same_as(a.buffer)) continue;
      std::optional<BufferRegion> exact = lower_bound(substitute(w, bindings), inner, block.predicate, facts);
      const bool equal = exact && (!all || (region_covers(*exact, *all, facts) && region_covers(*all, *exact, facts)));
      if (!equal)
        return c.refuse(region_not_exact,
                        fmt::format("what one iteration of loop {} writes of {} is not known exactly",
                                    a.loop->var->name, a.buffer->name),
                        tree.stmt(p));
      all = exact;
    }
  }
  for (Range& r : all->region) r = facts.simplify(r);
  return *all;
}

Status apply(Context& c) {
  TW_TRY(CopyAt a, copy_at_arguments(c, true));
  const TreeIndex& tree = c.state.tree();
  const Place last_place = child_containing(tree, c.state.place(*a.loop), a.writers.back());
  for (Place p : a.readers) {
    if (std::count(a.writers.begin(), a.writers.end(), p)) TW_TRY_VOID(check_not_updated(c, tree.block(p), a.buffer));
    if (tree.before(last_place, p))
      return c.refuse(
          read_after_last_write,
          fmt::format("block \"{}\" reads {} when it has been written", tree.block(p)->name, a.buffer->name),
          tree.stmt(p));
  }
  TW_TRY(BufferRegion region, region_written(c, a));
  const Buffer cache = whole_cache(a.buffer, c.text("storage_scope"));
  BlockId id{};
  const Stmt copy = make_auto_copy(c.state, a.loop, region, cache, false, &id);
  std::vector<std::pair<const StmtNode*, Stmt>> replaced;
  for (const std::vector<Place>* list : {&a.writers, &a.readers})
    for (Place p : *list)
      replaced.emplace_back(tree.stmt(p), redirect(tree.ref(p), {a.buffer, cache, nullptr, true, true}));
  insert_copy(c, a, tree.ref(last_place), false, copy, cache, replaced);
  c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "write_at",
    "under a loop, blocks write a copy of a buffer, which is moved to the buffer once an iteration",
    {.kind = "WriteAt",
     .inputs = {{"loop", ArgType::loop, {}, "the copy is moved in each of its iterations"},
                {"block", ArgType::block, {}, "a writer under the loop"}},
     .attrs = {{"write_buffer_index", ArgType::integer, {}, "index of the write region"},
               {"storage_scope", ArgType::text, {}, "memory of the copy"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .refusals = {copy_at_refusals, read_after_last_write, buffer_updated_in_place, region_not_exact},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
