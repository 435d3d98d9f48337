#include "schedule/annotations.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/reducers.h"
#include "schedule/primitives/pipeline_blocks.h"

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

/// A list of n integers, each accepted by its place's test.
std::function<bool(const Attr&)> ints(std::vector<std::function<bool(int64_t)>> tests) {
  return [tests = std::move(tests)](const Attr& a) {
    auto* list = a.get<AttrList>();
    if (!list || list->size() != tests.size()) return false;
    for (size_t i = 0; i < tests.size(); ++i)
      if (auto* x = (*list)[i].get<int64_t>(); !x || !tests[i](*x)) return false;
    return true;
  };
}
bool registers(int64_t n) { return n >= 24 && n <= 240 && n % 8 == 0; }

// --- sites

using Why = std::optional<std::string>;

AnnotationCheck bound_to(const char* axis) {
  return [axis](const AnnotationSite& s, const Attr&) -> Why {
    if (s.loop->loop_kind == ForKind::thread_binding && s.loop->thread == axis) return {};
    return fmt::format("belongs on a loop that is bound to {}", axis);
  };
}
Why pipelined(const AnnotationSite& s, const Attr&) {
  if (s.loop->annotations.count("software_pipeline_stage")) return {};
  return "belongs on a pipelined loop, one with \"software_pipeline_stage\"";
}
Why root(const AnnotationSite& s, const Attr&) {
  if (s.state.tree().enclosing_block(s.state.place(*s.block)) == kNoPlace) return {};
  return "belongs on the root block";
}
Why writes_shared(const AnnotationSite& s, const Attr&) {
  for (const BufferRegion& w : s.block->writes)
    if (is_shared(w.buffer)) return {};
  return "belongs on a block that writes shared memory";
}
Why copy(const AnnotationSite& s, const Attr&) {
  if (is_copy(*s.block) && keeps_order(*s.block)) return {};
  return "belongs on a block that copies one buffer to another in the same order of elements";
}
Why multicast_copy(const AnnotationSite& s, const Attr&) {
  auto engine = s.block->annotations.find("tilewright.async_copy");
  const bool tma = engine != s.block->annotations.end() && engine->second == Attr("tma");
  const TreeIndex& tree = s.state.tree();
  for (Place p : tree.ancestors(s.state.place(*s.block)))
    if (const For* loop = tree.loop(p); tma && loop && loop->thread.rfind("clusterIdx", 0) == 0) return {};
  return "belongs on a copy by \"tma\" under a loop that is bound to clusterIdx";
}
Why known_reduction(const AnnotationSite& s, const Attr&) {
  if (s.block->init && match_reducer(*s.block)) return {};
  return "belongs on a reduction block with a known reducer";
}
Why fp8_block(const AnnotationSite& s, const Attr&) {
  for (const BufferRegion& r : s.block->reads)
    if (r.buffer->dtype.is_float() && r.buffer->dtype.bits == 8) return {};
  return "belongs on a block that multiplies fp8 elements";
}
Why cut_reduction(const AnnotationSite& s, const Attr& value) {
  if (Why why = bound_to("blockIdx.x")(s, value)) return why;
  const TreeIndex& tree = s.state.tree();
  const Place place = s.state.place(*s.loop);
  bool reduces = false;
  for (Place p : tree.blocks())
    for (const Iter& iter : tree.block(p)->iters)
      reduces = reduces || (tree.contains(place, p) && iter.type == IterType::reduction);
  if (reduces && s.loop->annotations.count("tilewright.persistent")) return {};
  return "belongs on a loop with \"tilewright.persistent\" and a reduction below";
}

// --- values where they stand

Why sum_only_atomic(const AnnotationSite& s, const Attr& value) {
  if (!(value == Attr("atomic")) || match_reducer(*s.block)->reducer->name == "sum") return {};
  return "\"atomic\" combines sums only";
}
Why written_buffer(const AnnotationSite& s, const Attr& value) {
  if (*value.get<int64_t>() < static_cast<int64_t>(s.block->writes.size())) return {};
  return fmt::format("expected a buffer below {}, found {}", s.block->writes.size(), *value.get<int64_t>());
}
/// Zero keeps all sums in the fast accumulator, which must be permitted.
Why permitted_promotion(const AnnotationSite& s, const Attr& value) {
  auto permitted = s.block->annotations.find("tilewright.precision");
  const bool fast = permitted != s.block->annotations.end() && permitted->second == Attr("fp8_fast_accum");
  if (*value.get<int64_t>() != 0 || fast) return {};
  return "0 needs \"tilewright.precision\" = \"fp8_fast_accum\" on the block";
}

std::vector<int64_t> listed(const Attr& a) {
  std::vector<int64_t> out;
  for (const Attr& x : *a.get<AttrList>()) out.push_back(x.get<bool>() ? *x.get<bool>() : *x.get<int64_t>());
  return out;
}
/// A consumer's stage is not below its producer's, and at equal stages it comes later.
Why ordered_stages(const AnnotationSite& s, const std::vector<int64_t>& stage, const std::vector<int64_t>& order) {
  const std::vector<PipelineStatement> statements = pipeline_statements(s.state, s.loop);
  auto feeds = [](const PipelineStatement& x, const PipelineStatement& y) {
    for (const Block* p : x.blocks)
      for (const Block* q : y.blocks)
        for (const BufferRegion& w : p->writes)
          for (const BufferRegion& r : q->reads)
            if (w.buffer->data.same_as(r.buffer->data)) return true;
    return false;
  };
  for (size_t i = 0; i < statements.size(); ++i)
    for (size_t j = i + 1; j < statements.size(); ++j)
      if (feeds(statements[i], statements[j]) && (stage[j] < stage[i] || (stage[j] == stage[i] && order[j] < order[i])))
        return fmt::format("statement {} would run before statement {}, which it needs", j, i);
  return {};
}
Why one_per_statement(const AnnotationSite& s, const std::vector<int64_t>& list) {
  const size_t statements = seq_items(s.loop->body).size();
  if (list.size() == statements) return {};
  return fmt::format("expected one number for each of {} statements, found {}", statements, list.size());
}
Why stage_list(const AnnotationSite& s, const Attr& value) {
  const std::vector<int64_t> stage = listed(value);
  if (Why why = one_per_statement(s, stage)) return why;
  auto order = s.loop->annotations.find("software_pipeline_order");
  if (order == s.loop->annotations.end() || !int_list(order->second)) return {};
  return ordered_stages(s, stage, listed(order->second));
}
Why order_list(const AnnotationSite& s, const Attr& value) {
  const std::vector<int64_t> order = listed(value);
  if (Why why = one_per_statement(s, order)) return why;
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int64_t>(i)) return "expected a permutation of the statements";
  auto stage = s.loop->annotations.find("software_pipeline_stage");
  if (stage == s.loop->annotations.end() || !int_list(stage->second)) return {};
  return ordered_stages(s, listed(stage->second), order);
}
Why known_stages(const AnnotationSite& s, const Attr& value) {
  auto stage = s.loop->annotations.find("software_pipeline_stage");
  if (stage == s.loop->annotations.end() || !int_list(stage->second)) return {};
  const std::vector<int64_t> stages = listed(stage->second);
  for (int64_t x : listed(value))
    if (!std::count(stages.begin(), stages.end(), x)) return fmt::format("no statement has stage {}", x);
  return {};
}

}  // namespace

const std::vector<AnnotationKey>& annotation_keys() {
  using enum AnnotationPlace;
  static const std::vector<AnnotationKey> keys{
      {"pragma_auto_unroll_max_step", loop, non_negative, "an integer >= 0",
       "unrolls loops below while statements x trips fit"},
      {"pragma_unroll_explicit", loop, flag, "0 or 1", "unrolls in our lowering, not in the code generator"},
      {"pragma_loop_partition_hint", loop, flag, "0 or 1", "loop_partition may split this loop"},
      {"software_pipeline_stage",
       loop,
       int_list,
       "a list of integers",
       "stage of each statement of the body",
       {},
       stage_list},
      {"software_pipeline_order",
       loop,
       int_list,
       "a list of integers",
       "order of the statements of the body",
       {},
       order_list},
      {"software_pipeline_async_stages",
       loop,
       int_list,
       "a list of integers",
       "stages whose copies are asynchronous",
       {},
       known_stages},
      {"double_buffer_scope",
       block,
       non_negative,
       "a buffer index",
       "the written buffer is double-buffered",
       {},
       written_buffer},
      {"auto_copy", block, flag, "True or False", "the block is a copy that lowering distributes over threads"},
      {"local_stage", block, flag, "0 or 1", "a register stage between global and shared memory"},
      {"permuted_layout", block, [](const Attr& a) { return text(a) || flag(a); }, "a text, 0 or 1",
       "layout of a fragment copy in shared memory"},
      {"vector_bytes", block, positive, "an integer >= 1", "widest access of an automatic copy"},
      {"warp_execution", either, flag, "0 or 1", "threadIdx.x is the lane"},
      {"layout_free_buffers", block, int_list, "a list of parameter numbers",
       "buffers whose layout the schedule may choose"},
      {"tilewright.async_copy", block, one_of({"cp_async", "bulk", "tma", "tma_im2col"}),
       "\"cp_async\", \"bulk\", \"tma\", \"tma_im2col\"", "copy engine", copy},
      {"tilewright.swizzle", block, one_of_ints({0, 32, 64, 128}), "0, 32, 64 or 128",
       "xor pattern of the rows, in bytes", writes_shared},
      {"tilewright.multicast", block, flag, "0 or 1", "one copy serves all blocks of the cluster", multicast_copy},
      {"tilewright.l2_hint", block, one_of_ints({0, 1, 2}), "0, 1 or 2", "cache policy", copy},
      {"tilewright.warp_specialize", loop, ints({[](int64_t n) { return n >= 1; }, registers, registers}),
       "[producer warpgroups, producer registers, consumer registers]", "copies run in warps of their own", pipelined},
      {"tilewright.consumer_schedule", loop, flag, "0 or 1", "cooperative or ping-pong consumers",
       bound_to("threadIdx.y")},
      {"tilewright.wait_depth", loop, flag, "0 or 1", "wgmma groups in flight when a stage is released", pipelined},
      {"tilewright.hold_wait", loop, one_of_ints({0, 1, 2}), "0, 1 or 2", "keeps the assembler from hoisting a wait",
       pipelined},
      {"tilewright.promote_every", block, one_of_ints({0, 2, 4, 8}), "0, 2, 4 or 8",
       "partial accumulators are added every n instructions", fp8_block, permitted_promotion},
      {"tilewright.persistent", loop,
       [](const Attr& a) { return a.get<int64_t>() && (*a.get<int64_t>() > 0 || *a.get<int64_t>() == -1); },
       "a number of blocks, or -1", "tile loop inside the kernel", bound_to("blockIdx.x")},
      {"tilewright.epilogue_overlap", loop, flag, "0 or 1", "store of a tile under the next tile's main loop",
       bound_to("blockIdx.x")},
      {"tilewright.raster", loop,
       ints({[](int64_t n) { return n >= -1; }, [](int64_t axis) { return axis == 0 || axis == 1; }}), "[group, axis]",
       "order of tiles", bound_to("blockIdx.x")},
      {"tilewright.stream_k", loop, one_of_ints({0, 1, 2}), "0, 1 or 2", "k ranges cut across blocks", cut_reduction},
      {"tilewright.cross_block_reduction", block, one_of({"dsmem", "atomic", "workspace"}),
       "\"dsmem\", \"atomic\" or \"workspace\"", "blocks combine their partial results", known_reduction,
       sum_only_atomic},
      {"tilewright.smem_reuse", block, flag, "0 or 1", "may alias a stage that is dead by then", writes_shared},
      {"tilewright.precision", either, one_of({"ieee", "tf32", "fp8_fast_accum"}),
       "\"ieee\", \"tf32\" or \"fp8_fast_accum\"", "permitted precision"},
      {"tilewright.prefetch", block, int_list, "a list of [buffer, distance, locality] flattened",
       "prefetch of a read region, distance in iterations"},
      {"tilewright.nontemporal", block, flag, "0 or 1", "stores bypass the caches"},
      {"tilewright.reassociate", block, flag, "0 or 1", "the reduction may be re-associated by lowering"},
      {"tilewright.pdl", block, flag, "0 or 1", "dependent launch", root},
      {"tilewright.prefetch_desc", block, flag, "0 or 1", "tensor-map prefetch", root},
      {"tilewright.min_blocks_per_sm", block, positive, "an integer >= 1", "launch bound", root},
      {"tilewright.max_registers", block, positive, "an integer >= 1", "launch bound", root},
      {"tilewright.inputs", block, text, "a text", "ranges of the random inputs"},
  };
  return keys;
}

std::optional<AnnotationProblem> check_annotation(const std::string& key, const Attr& value,
                                                  const AnnotationSite& site) {
  const bool on_block = site.block != nullptr;
  std::vector<std::string> ours;
  for (const AnnotationKey& row : annotation_keys()) {
    if (key == row.key) {
      if (row.place != AnnotationPlace::either && on_block != (row.place == AnnotationPlace::block))
        return AnnotationProblem{&annotation_misplaced,
                                 fmt::format("annotation \"{}\" belongs on a {}, found it on a {}", key,
                                             on_block ? "loop" : "block", on_block ? "block" : "loop")};
      if (!row.accepts(value))
        return AnnotationProblem{&annotation_value_invalid, fmt::format("annotation \"{}\" takes {}", key, row.values)};
      if (row.site)
        if (Why why = row.site(site, value))
          return AnnotationProblem{&annotation_misplaced, fmt::format("annotation \"{}\" {}", key, *why)};
      if (row.there)
        if (Why why = row.there(site, value))
          return AnnotationProblem{&annotation_value_invalid, fmt::format("annotation \"{}\": {}", key, *why)};
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
