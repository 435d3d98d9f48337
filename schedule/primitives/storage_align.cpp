// storage_align: the stride of one axis of a written buffer becomes offset modulo factor (bank conflicts, alignment of
// rows). Recorded as a row (buffer index, axis, factor, offset) of the block annotation buffer_dim_align; strides
// appear in lowering.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(alignment_factor_not_positive, "alignment-factor-not-positive", "the alignment factor is below 1");
TW_REFUSAL_CODE(axis_out_of_range, "axis-out-of-range", "the buffer has no such axis");
TW_REFUSAL_CODE(alignment_annotation_malformed, "alignment-annotation-malformed",
                "buffer_dim_align is not a list of rows of four integers");

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  int64_t index = c.integer("buffer_index"), axis = c.integer("axis"), factor = c.integer("factor"),
          offset = c.integer("offset");
  TW_TRY(BufferRegion region, region_of(c, block, index, true));
  if (factor < 1)
    return c.refuse(alignment_factor_not_positive, fmt::format("expected a positive factor, found {}", factor), block);
  int64_t rank = region.buffer->rank();
  if (axis < -rank || axis >= rank)
    return c.refuse(axis_out_of_range,
                    fmt::format("buffer {} has {} axes, found axis {}", region.buffer->name, rank, axis), block);
  if (axis < 0) axis += rank;
  if (allocating_block(c.state, c.state.place(*block), region.buffer) == kNoPlace)
    return c.refuse(codes::buffer_not_allocated_here,
                    fmt::format("buffer {} is a parameter or an alias", region.buffer->name), block);
  auto copy = edit(*block);
  AttrList rows;
  if (auto it = copy->annotations.find("buffer_dim_align"); it != copy->annotations.end()) {
    auto* list = it->second.get<AttrList>();
    bool rows_of_four = list != nullptr;
    for (size_t i = 0; rows_of_four && i < list->size(); ++i) {
      auto* row = (*list)[i].get<AttrList>();
      rows_of_four = row && row->size() == 4;
      for (size_t k = 0; rows_of_four && k < 4; ++k) rows_of_four = (*row)[k].get<int64_t>() != nullptr;
    }
    if (!rows_of_four)
      return c.refuse(alignment_annotation_malformed, "expected a list of [buffer, axis, factor, offset]", block);
    for (const Attr& row : *list) {
      const AttrList& r = *row.get<AttrList>();
      if (*r[0].get<int64_t>() != index || *r[1].get<int64_t>() != axis) rows.push_back(row);
    }
  }
  AttrList row;
  for (int64_t value : {index, axis, factor, offset}) row.emplace_back(value);
  rows.emplace_back(std::move(row));
  copy->annotations["buffer_dim_align"] = rows;
  c.state.replace(block, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{"storage_align",
                              "makes the stride of an axis of a written buffer equal to offset modulo factor",
                              {.kind = "StorageAlign",
                               .inputs = {{"block", ArgType::block, {}, "the block that writes the buffer"}},
                               .attrs = {{"buffer_index", ArgType::integer, {}, "index of the write region"},
                                         {"axis", ArgType::integer, {}, "the axis; negative: from the end"},
                                         {"factor", ArgType::integer, {}, "in elements"},
                                         {"offset", ArgType::integer, {}, "in elements"}},
                               .refusals = {labels::index, alignment_factor_not_positive, axis_out_of_range,
                                            labels::alloc, alignment_annotation_malformed},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
