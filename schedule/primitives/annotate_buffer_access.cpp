// annotate_buffer_access: a region of a block's signature is given by the caller, and marked so that it is kept.
//   T.reads(A[vi])   →   (lambda i: [(i - 1, i + 2)])   T.reads(A[vi - 1:vi + 2]), explicit_read_region = [0]
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"
#include "schedule/primitives/signature.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(range_arity, "range-arity",
                "the function takes one index for each iter and gives one (begin, end) for each dimension");
TW_REFUSAL_CODE(region_does_not_cover_body, "region-does-not-cover-body",
                "the block's body touches more of the buffer than the new region");

/// The new region in the block's iters.
Result<BufferRegion> new_region(const Context& c, const Block* block, const Buffer& buffer) {
  IndexMapRef map = c.index_map("gen_new_ranges");
  if (map->inputs.size() != block->iters.size() || static_cast<int>(map->ranges.size()) != buffer->rank())
    return c.refuse(range_arity,
                    fmt::format("expected {} indices and {} ranges, found {} and {}", block->iters.size(),
                                buffer->rank(), map->inputs.size(), map->ranges.size()),
                    block);
  VarMap iters;
  for (size_t i = 0; i < block->iters.size(); ++i) iters[map->inputs[i].get()] = block->iters[i].var;
  BufferRegion out{buffer, {}};
  for (const Range& r : map->ranges)
    out.region.push_back({simplify(substitute(r.min, iters)), simplify(substitute(r.extent, iters))});
  return out;
}

/// Only what is provably touched outside counts: a body may be too complicated to be sure.
Status check_covers(const Context& c, const Block* block, const BufferRegion& region, bool write) {
  Signature signature = derive_signature(*block);
  Analyzer facts;
  facts.bind(domains_of(*block));
  for (const BufferRegion& r : write ? signature.writes : signature.reads) {
    if (!r.buffer.same_as(region.buffer)) continue;
    for (size_t d = 0; d < r.region.size(); ++d)
      if (facts.can_prove_less(r.region[d].min, region.region[d].min) ||
          facts.can_prove_less(end_of(region.region[d]), end_of(r.region[d])))
        return c.refuse(region_does_not_cover_body,
                        fmt::format("block \"{}\" {} more of dimension {} of {}", block->name,
                                    write ? "writes" : "reads", d, r.buffer->name),
                        block);
  }
  return {};
}

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  TW_TRY(bool write, is_write_side(c, block));
  const int64_t index = c.integer("buffer_index");
  TW_TRY(BufferRegion old, region_of(c, block, index, write));
  TW_TRY(BufferRegion region, new_region(c, block, old.buffer));
  TW_TRY_VOID(check_covers(c, block, region, write));
  auto copy = edit(*block);
  (write ? copy->writes : copy->reads)[static_cast<size_t>(index)] = region;
  const std::string key = write ? "explicit_write_region" : "explicit_read_region";
  AttrList indices;
  if (auto known = copy->annotations.find(key); known != copy->annotations.end())
    if (auto* list = known->second.get<AttrList>()) indices = *list;
  const bool listed = std::any_of(indices.begin(), indices.end(),
                                  [&](const Attr& a) { return a.get<int64_t>() && *a.get<int64_t>() == index; });
  if (!listed) indices.emplace_back(index);
  copy->annotations[key] = Attr(std::move(indices));
  c.state.replace(block, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{
    "annotate_buffer_access",
    "gives a region of a block's signature; the caller promises that the body stays inside",
    {.kind = "AnnotateBufferAccess",
     .inputs = {{"block", ArgType::block, {}, "the block"},
                {"buffer_index", ArgType::integer, {}, "index of the region"},
                {"buf_type", ArgType::side, {}, "\"read\" or \"write\""},
                {"gen_new_ranges", ArgType::index_map, {}, "iters to one (begin, end) for each dimension"}},
     .unsafe = true,
     .refusals = {buffer_type_unknown, labels::index, range_arity, region_does_not_cover_body},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
