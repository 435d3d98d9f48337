// rewrite_reduction_block: the init of a reduction moves in front of the outermost loop that is not spatial.
#include "ir/visit.h"
#include "search/postprocs/postproc.h"
#include "search/rules/block_queries.h"

namespace tilewright {

namespace {

/// Names cannot tell blocks apart that rules duplicated, so blocks are named by their place: the search for work starts
/// anew after each change.
struct Work {
  std::string name;
  int loop;  ///< index in get_loops
};

std::optional<Work> find_work(const Schedule& s) {
  const TreeIndex& tree = s.state().tree();
  for (Place p : tree.blocks()) {
    const Block* b = tree.block(p);
    if (!b->init || tree.enclosing_block(p) == kNoPlace) continue;
    std::vector<const For*> loops = tree.loop_nodes_above(p);
    int at = static_cast<int>(loops.size());
    bool bound = false;
    for (size_t i = 0; i < loops.size(); ++i) {
      unsigned types = iter_types_driven(*b, loops[i]->var.get());
      bool reduction = types & (1u << static_cast<int>(IterType::reduction));
      if (!reduction) continue;
      bound = bound || loops[i]->loop_kind == ForKind::thread_binding;
      at = std::min(at, static_cast<int>(i));
    }
    if (bound || at == static_cast<int>(loops.size())) continue;
    if (tree.blocks_named(b->name).size() != 1) continue;
    return Work{b->name, at};
  }
  return std::nullopt;
}

/// The init of a block that becomes an intrinsic is another block: its mark says which intrinsic fills, or that none
/// does ("").
Status mark_init(Schedule& s, BlockRV init) {
  constexpr const char *kIntrinsic = "meta_schedule.auto_tensorize", *kFill = "meta_schedule.auto_tensorize_init";
  TW_TRY(const Block* block, s.block(init));
  if (!has_annotation(*block, kIntrinsic)) return {};
  std::string fill;
  if (auto it = block->annotations.find(kFill); it != block->annotations.end())
    if (auto* name = std::get_if<std::string>(&it->second.value)) fill = *name;
  TW_TRY_VOID(s.unannotate(init, kIntrinsic));
  return s.annotate(init, kIntrinsic, fill);
}

Status apply(Schedule& s, const PostprocContext&) {
  while (std::optional<Work> work = find_work(s)) {
    TW_TRY(BlockRV block, s.get_sblock(work->name, s.function().name));
    TW_TRY(std::vector<LoopRV> loops, s.get_loops(block));
    TW_TRY(BlockRV init, s.decompose_reduction(block, loops[work->loop]));
    TW_TRY_VOID(mark_init(s, init));
  }
  return {};
}

const Register<Postproc> entry{
    "rewrite_reduction_block", "moves the init of reductions out of their reduction loops", {apply}};

}  // namespace

}  // namespace tilewright
