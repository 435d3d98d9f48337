// The typed front of Schedule: each method is one call by name.
#include "schedule/schedule.h"

namespace tilewright {

namespace {

template <class RV>
Result<RV> one(Result<std::vector<Symbol>> r) {
  if (!r) return refuse(r.error());
  return RV{r->at(0)};
}
template <class RV>
Result<std::vector<RV>> many(Result<std::vector<Symbol>> r) {
  if (!r) return refuse(r.error());
  std::vector<RV> out;
  for (const Symbol& s : *r) out.push_back(RV{s});
  return out;
}
Status none(Result<std::vector<Symbol>> r) {
  if (!r) return refuse(r.error());
  return {};
}
TraceValue optional_text(const std::string& s) { return s.empty() ? TraceValue() : TraceValue(s); }

}  // namespace

Result<std::vector<IntRV>> Schedule::sample_perfect_tile(LoopRV l, int n, int limit,
                                                         std::optional<TraceValue> decision) {
  return many<IntRV>(
      call("sample_perfect_tile", {{"loop", l}, {"n", n}, {"max_innermost_factor", limit}}, std::move(decision)));
}
Result<std::vector<IntRV>> Schedule::sample_partitioned_tile(LoopRV l, int n, int pos, int inner,
                                                             std::optional<TraceValue> decision) {
  return many<IntRV>(call("sample_partitioned_tile",
                          {{"loop", l}, {"n", n}, {"partition_pos", pos}, {"innerpart_factor", inner}},
                          std::move(decision)));
}
Result<IntRV> Schedule::sample_categorical(std::vector<int64_t> candidates, std::vector<double> probs,
                                           std::optional<TraceValue> decision) {
  return one<IntRV>(call("sample_categorical", {{"candidates", candidates}, {"probs", probs}}, std::move(decision)));
}
Result<LoopRV> Schedule::sample_compute_location(BlockRV b, std::optional<TraceValue> decision) {
  return one<LoopRV>(call("sample_compute_location", {{"block", b}}, std::move(decision)));
}
Result<BlockRV> Schedule::get_sblock(const std::string& name, const std::string& func_name) {
  return one<BlockRV>(call("get_sblock", {{"name", name}, {"func_name", optional_text(func_name)}}));
}
Result<std::vector<LoopRV>> Schedule::get_loops(BlockRV b) { return many<LoopRV>(call("get_loops", {{"block", b}})); }
Result<std::vector<BlockRV>> Schedule::get_child_blocks(Symbol s) {
  return many<BlockRV>(call("get_child_blocks", {{"block_or_loop", s}}));
}
Result<std::vector<BlockRV>> Schedule::get_producers(BlockRV b) {
  return many<BlockRV>(call("get_producers", {{"block", b}}));
}
Result<std::vector<BlockRV>> Schedule::get_consumers(BlockRV b) {
  return many<BlockRV>(call("get_consumers", {{"block", b}}));
}
Result<std::vector<BlockRV>> Schedule::get_output_blocks(BlockRV b) {
  return many<BlockRV>(call("get_output_blocks", {{"block", b}}));
}
Result<LoopRV> Schedule::fuse(std::vector<LoopRV> loops, bool preserve) {
  return one<LoopRV>(call("fuse", {{"loops", loops}, {"preserve_unit_iters", preserve}}));
}
Result<std::vector<LoopRV>> Schedule::split(LoopRV l, TraceList factors, bool preserve, bool disable_predication) {
  return many<LoopRV>(call("split", {{"loop", l},
                                     {"factors", TraceValue(std::move(factors))},
                                     {"preserve_unit_iters", preserve},
                                     {"disable_predication", disable_predication}}));
}
Status Schedule::reorder(std::vector<LoopRV> loops) { return none(call("reorder", {{"loops", loops}})); }
Status Schedule::reorder_block_iter_var(BlockRV b, std::vector<int64_t> order) {
  return none(call("reorder_block_iter_var", {{"block", b}, {"new_order", order}}));
}
Result<LoopRV> Schedule::add_unit_loop(Symbol s) { return one<LoopRV>(call("add_unit_loop", {{"block_or_loop", s}})); }
Status Schedule::parallel(LoopRV l) { return none(call("parallel", {{"loop", l}})); }
Status Schedule::vectorize(LoopRV l) { return none(call("vectorize", {{"loop", l}})); }
Status Schedule::unroll(LoopRV l) { return none(call("unroll", {{"loop", l}})); }
Status Schedule::bind(LoopRV l, const std::string& axis) {
  return none(call("bind", {{"loop", l}, {"thread_axis", axis}}));
}
Result<BlockRV> Schedule::cache_read(BlockRV b, int index, const std::string& scope, std::vector<BlockRV> consumers) {
  return one<BlockRV>(
      call("cache_read",
           {{"block", b}, {"read_buffer_index", index}, {"storage_scope", scope}, {"consumer_blocks", consumers}}));
}
Result<BlockRV> Schedule::cache_write(BlockRV b, int index, const std::string& scope, std::vector<BlockRV> consumers) {
  return one<BlockRV>(
      call("cache_write",
           {{"block", b}, {"write_buffer_index", index}, {"storage_scope", scope}, {"consumer_blocks", consumers}}));
}
Result<BlockRV> Schedule::reindex_cache_read(BlockRV b, int index, const std::string& scope, IndexMapRef map) {
  return one<BlockRV>(call("reindex_cache_read",
                           {{"block", b}, {"read_buffer_index", index}, {"storage_scope", scope}, {"index_map", map}}));
}
Result<BlockRV> Schedule::reindex_cache_write(BlockRV b, int index, const std::string& scope, IndexMapRef map) {
  return one<BlockRV>(
      call("reindex_cache_write",
           {{"block", b}, {"write_buffer_index", index}, {"storage_scope", scope}, {"index_map", map}}));
}
Status Schedule::compute_at(BlockRV b, LoopRV l, bool preserve, int index) {
  return none(call("compute_at", {{"block", b}, {"loop", l}, {"preserve_unit_loops", preserve}, {"index", index}}));
}
Status Schedule::reverse_compute_at(BlockRV b, LoopRV l, bool preserve, int index) {
  return none(
      call("reverse_compute_at", {{"block", b}, {"loop", l}, {"preserve_unit_loops", preserve}, {"index", index}}));
}
Status Schedule::compute_inline(BlockRV b) { return none(call("compute_inline", {{"block", b}})); }
Status Schedule::reverse_compute_inline(BlockRV b) { return none(call("reverse_compute_inline", {{"block", b}})); }
Result<BlockRV> Schedule::decompose_reduction(BlockRV b, LoopRV l) {
  return one<BlockRV>(call("decompose_reduction", {{"block", b}, {"loop", l}}));
}
Result<BlockRV> Schedule::rfactor(LoopRV l, int axis) {
  return one<BlockRV>(call("rfactor", {{"loop", l}, {"factor_axis", axis}}));
}
Result<BlockRV> Schedule::blockize(LoopRV l, bool preserve_unit_iters) {
  return one<BlockRV>(call("blockize", {{"target", l}, {"preserve_unit_iters", preserve_unit_iters}}));
}
Status Schedule::tensorize(Symbol block_or_loop, const std::string& tensor_intrin, bool preserve_unit_iters) {
  return none(call("tensorize", {{"block_or_loop", block_or_loop},
                                 {"tensor_intrin", tensor_intrin},
                                 {"preserve_unit_iters", preserve_unit_iters}}));
}
Status Schedule::storage_align(BlockRV b, int index, int axis, int factor, int offset) {
  return none(call("storage_align",
                   {{"block", b}, {"buffer_index", index}, {"axis", axis}, {"factor", factor}, {"offset", offset}}));
}
Status Schedule::set_scope(BlockRV b, int index, const std::string& scope) {
  return none(call("set_scope", {{"block", b}, {"buffer_index", index}, {"storage_scope", scope}}));
}
Status Schedule::annotate(Symbol s, const std::string& key, TraceValue v) {
  return none(call("annotate", {{"block_or_loop", s}, {"ann_key", key}, {"ann_val", std::move(v)}}));
}
Status Schedule::unannotate(Symbol s, const std::string& key) {
  return none(call("unannotate", {{"block_or_loop", s}, {"ann_key", key}}));
}
Status Schedule::transform_layout(BlockRV b, const std::string& side, int index, IndexMapRef map, TraceValue pad,
                                  bool injective) {
  return none(call("transform_layout", {{"block", b},
                                        {"buffer", TraceList{side, index}},
                                        {"index_map", map},
                                        {"pad_value", std::move(pad)},
                                        {"assume_injective_transform", injective}}));
}
Status Schedule::pad_einsum(BlockRV b, std::vector<int64_t> padding) {
  return none(call("pad_einsum", {{"block", b}, {"padding", padding}}));
}
Status Schedule::enter_postproc() { return none(call("enter_postproc", {})); }

}  // namespace tilewright
