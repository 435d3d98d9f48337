#include "schedule/annotations.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

bool non_negative(const Attr& a) { return a.get<int64_t>() && *a.get<int64_t>() >= 0; }
bool positive(const Attr& a) { return a.get<int64_t>() && *a.get<int64_t>() >= 1; }
bool flag(const Attr& a) {
  return a.get<bool>() || (a.get<int64_t>() && (*a.get<int64_t>() == 0 || *a.get<int64_t>() == 1));
}
bool text(const Attr& a) { return a.get<std::string>(); }
bool int_list(const Attr& a) {
  auto* list = a.get<AttrList>();
  return list &&
         std::all_of(list->begin(), list->end(), [](const Attr& x) { return x.get<int64_t>() || x.get<bool>(); });
}
std::function<bool(const Attr&)> one_of(std::vector<std::string> words) {
  return [words = std::move(words)](const Attr& a) {
    auto* s = a.get<std::string>();
    return s && std::find(words.begin(), words.end(), *s) != words.end();
  };
}
std::function<bool(const Attr&)> one_of_ints(std::vector<int64_t> values) {
  return [values = std::move(values)](const Attr& a) {
    auto* x = a.get<int64_t>();
    return x && std::find(values.begin(), values.end(), *x) != values.end();
  };
}

}  // namespace

const std::vector<AnnotationKey>& annotation_keys() {
  using enum AnnotationPlace;
  static const std::vector<AnnotationKey> keys{
      {"pragma_auto_unroll_max_step", loop, non_negative, "an integer >= 0",
       "unrolls loops below while statements x trips fit"},
      {"pragma_unroll_explicit", loop, flag, "0 or 1", "unrolls in our lowering, not in the code generator"},
      {"pragma_loop_partition_hint", loop, flag, "0 or 1", "loop_partition may split this loop"},
      {"software_pipeline_stage", loop, int_list, "a list of integers", "stage of each statement of the body"},
      {"software_pipeline_order", loop, int_list, "a list of integers", "order of the statements of the body"},
      {"software_pipeline_async_stages", loop, int_list, "a list of integers", "stages whose copies are asynchronous"},
      {"double_buffer_scope", block, non_negative, "a buffer index", "the written buffer is double-buffered"},
      {"auto_copy", block, flag, "True or False", "the block is a copy that lowering distributes over threads"},
      {"vector_bytes", block, positive, "an integer >= 1", "widest access of an automatic copy"},
      {"warp_execution", either, flag, "0 or 1", "threadIdx.x is the lane"},
      {"layout_free_buffers", block, int_list, "a list of parameter numbers",
       "buffers whose layout the schedule may choose"},
      {"tilewright.async_copy", block, one_of({"cp_async", "bulk", "tma", "tma_im2col"}),
       "\"cp_async\", \"bulk\", \"tma\", \"tma_im2col\"", "copy engine"},
      {"tilewright.swizzle", block, one_of_ints({0, 32, 64, 128}), "0, 32, 64 or 128",
       "xor pattern of the rows, in bytes"},
      {"tilewright.multicast", block, flag, "0 or 1", "one copy serves all blocks of the cluster"},
      {"tilewright.l2_hint", block, one_of_ints({0, 1, 2}), "0, 1 or 2", "cache policy"},
      {"tilewright.warp_specialize", loop, int_list, "[producer warpgroups, producer registers, consumer registers]",
       "copies run in warps of their own"},
      {"tilewright.consumer_schedule", loop, flag, "0 or 1", "cooperative or ping-pong consumers"},
      {"tilewright.wait_depth", loop, flag, "0 or 1", "wgmma groups in flight when a stage is released"},
      {"tilewright.hold_wait", loop, one_of_ints({0, 1, 2}), "0, 1 or 2", "keeps the assembler from hoisting a wait"},
      {"tilewright.promote_every", block, one_of_ints({0, 2, 4, 8}), "0, 2, 4 or 8",
       "partial accumulators are added every n instructions"},
      {"tilewright.persistent", loop, [](const Attr& a) { return a.get<int64_t>() && *a.get<int64_t>() != 0; },
       "a number of blocks, or -1", "tile loop inside the kernel"},
      {"tilewright.epilogue_overlap", loop, flag, "0 or 1", "store of a tile under the next tile's main loop"},
      {"tilewright.raster", loop, int_list, "[group, axis]", "order of tiles"},
      {"tilewright.stream_k", loop, one_of_ints({0, 1, 2}), "0, 1 or 2", "k ranges cut across blocks"},
      {"tilewright.cross_block_reduction", block, one_of({"dsmem", "atomic", "workspace"}),
       "\"dsmem\", \"atomic\" or \"workspace\"", "blocks combine their partial results"},
      {"tilewright.smem_reuse", block, flag, "0 or 1", "may alias a stage that is dead by then"},
      {"tilewright.precision", either, one_of({"ieee", "tf32", "fp8_fast_accum"}),
       "\"ieee\", \"tf32\" or \"fp8_fast_accum\"", "permitted precision"},
      {"tilewright.prefetch", block, int_list, "a list of [buffer, distance, locality] flattened",
       "prefetch of a read region, distance in iterations"},
      {"tilewright.nontemporal", block, flag, "0 or 1", "stores bypass the caches"},
      {"tilewright.reassociate", block, flag, "0 or 1", "the reduction may be re-associated by lowering"},
      {"tilewright.pdl", block, flag, "0 or 1", "dependent launch"},
      {"tilewright.prefetch_desc", block, flag, "0 or 1", "tensor-map prefetch"},
      {"tilewright.min_blocks_per_sm", block, positive, "an integer >= 1", "launch bound"},
      {"tilewright.max_registers", block, positive, "an integer >= 1", "launch bound"},
      {"tilewright.inputs", block, text, "a text", "ranges of the random inputs"},
  };
  return keys;
}

std::optional<AnnotationProblem> check_annotation(const std::string& key, const Attr& value, bool on_block) {
  std::vector<std::string> ours;
  for (const AnnotationKey& row : annotation_keys()) {
    if (key == row.key) {
      if (row.place != AnnotationPlace::either && on_block != (row.place == AnnotationPlace::block))
        return AnnotationProblem{&annotation_misplaced,
                                 fmt::format("annotation \"{}\" belongs on a {}, found it on a {}", key,
                                             on_block ? "loop" : "block", on_block ? "block" : "loop")};
      if (!row.accepts(value))
        return AnnotationProblem{&annotation_value_invalid, fmt::format("annotation \"{}\" takes {}", key, row.values)};
      return std::nullopt;
    }
    if (std::string_view(row.key).substr(0, 11) == "tilewright.") ours.emplace_back(row.key);
  }
  if (key.rfind("tilewright.", 0) != 0) return std::nullopt;
  std::string hint = did_you_mean(key, ours);
  return AnnotationProblem{&annotation_unknown,
                           fmt::format("no annotation is called \"{}\"{}", key,
                                       hint.empty() ? "" : fmt::format("; did you mean \"{}\"?", hint))};
}

}  // namespace tilewright
