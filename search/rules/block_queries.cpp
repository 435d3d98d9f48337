#include "search/rules/block_queries.h"

#include <algorithm>

#include "ir/analysis/iter_map.h"
#include "ir/visit.h"

namespace tilewright {

bool is_spatial(const Block& b) {
  return std::all_of(b.iters.begin(), b.iters.end(), [](const Iter& i) { return i.type == IterType::spatial; });
}

bool is_spatial_function(const Schedule& s) {
  const TreeIndex& tree = s.state().tree();
  return std::all_of(tree.blocks().begin(), tree.blocks().end(), [&](Place p) { return is_spatial(*tree.block(p)); });
}

bool has_annotation(const Block& b, const std::string& key) { return b.annotations.count(key) > 0; }

bool trivial_bindings(const Schedule& s, const Block& b) {
  return is_trivial_binding(b, s.state().tree().loop_nodes_above(s.state().place(b)));
}

bool needs_tiling(const Schedule& s, const Block& b) {
  if (has_annotation(b, "meta_schedule.tiling_structure")) return false;
  if (b.writes.size() != 1 || b.reads.empty() || is_spatial(b) || !trivial_bindings(s, b)) return false;
  std::vector<const BufferNode*> seen;
  int unused = 0;
  for (const BufferRegion& read : b.reads) {
    if (std::count(seen.begin(), seen.end(), read.buffer.get())) return false;
    seen.push_back(read.buffer.get());
    if (read.buffer.same_as(b.writes[0].buffer)) continue;
    for (const Range& r : read.region)
      if (!const_int(r.extent)) return false;
    for (const Iter& iter : b.iters) {
      if (iter.type != IterType::spatial || is_const(iter.dom.extent, 1)) continue;
      bool used = std::any_of(read.region.begin(), read.region.end(),
                              [&](const Range& r) { return uses_var(r.min, iter.var.get()); });
      unused += !used;
    }
  }
  return unused >= 1;
}

std::vector<IterType> loop_types(const Schedule& s, const Block& b) {
  std::vector<IterType> out;
  for (const For* l : s.state().tree().loop_nodes_above(s.state().place(b))) {
    IterType type = IterType::opaque;
    for (const Iter& iter : b.iters)
      if (uses_var(iter.binding, l->var.get())) type = iter.type;
    out.push_back(type);
  }
  return out;
}

bool on_one_core(const Schedule& s) { return has_annotation(*s.function().root(), kOneCore); }

bool needs_rfactor(const Schedule& s, const Block& b, int64_t max_parallel) {
  if (is_spatial(b) || !b.init || has_annotation(b, "meta_schedule.tiling_structure") || !trivial_bindings(s, b))
    return false;
  const TreeIndex& tree = s.state().tree();
  Place place = s.state().place(b);
  int64_t spatial = 1, reduction = 1;
  bool any_reduction = false;
  std::vector<const For*> loops = tree.loop_nodes_above(place);
  std::vector<IterType> types = loop_types(s, b);
  for (size_t i = 0; i < loops.size(); ++i) {
    std::optional<int64_t> extent = const_int(loops[i]->extent);
    if (!extent || tree.child_blocks(s.state().place(*loops[i])).size() != 1) return false;
    if (types[i] == IterType::spatial)
      spatial *= *extent;
    else if (types[i] == IterType::reduction)
      reduction *= *extent, any_reduction = true;
    else
      return false;
  }
  if (!any_reduction) return false;
  if (needs_tiling(s, b)) return spatial < reduction && spatial <= max_parallel;
  return reduction > 1;
}

bool is_output(const Schedule& s, const Block& b) {
  Place p = s.state().place(b);
  return s.state().scope_of(p).is_output(p);
}

ReadPattern read_pattern(const Block& b) {
  ReadPattern out;
  if (b.writes.size() != 1) return {false, false, false};
  std::vector<const VarNode*> write;
  for (const Range& r : b.writes[0].region) write.push_back(as<VarNode>(r.min));
  for (const BufferRegion& read : b.reads) {
    std::vector<const VarNode*> used;
    int last = -1;
    for (const Range& r : read.region) {
      if (const_int(r.min)) continue;
      const VarNode* v = as<VarNode>(r.min);
      if (const Binary* sum = as<Binary>(r.min);
          !v && sum && (sum->op == BinaryOp::add || sum->op == BinaryOp::sub) && const_int(sum->b))
        v = as<VarNode>(sum->a);
      auto at = std::find(write.begin(), write.end(), v);
      if (!v || at == write.end()) {
        out.exists = out.injective = out.ordered = false;
        return out;
      }
      if (std::count(used.begin(), used.end(), v)) out.injective = false;
      used.push_back(v);
      int place = static_cast<int>(at - write.begin());
      if (place < last) out.ordered = false;
      last = place;
    }
  }
  return out;
}

bool is_elementwise_consumer(const Block& b) {
  if (b.writes.size() != 1 || b.reads.empty() || !is_spatial(b)) return false;
  ReadPattern p = read_pattern(b);
  return p.exists && p.injective && p.ordered;
}

}  // namespace tilewright
