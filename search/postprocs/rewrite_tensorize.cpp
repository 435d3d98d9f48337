// rewrite_tensorize: blocks that a rule marked become the tensor intrinsic that the mark names. An empty mark is that
// of an init without one: its loop is vectorised. A block that is not what the intrinsic computes fails the candidate.
#include <fmt/format.h>

#include "search/postprocs/postproc.h"
#include "search/rules/block_queries.h"

namespace tilewright {

namespace {

TW_REFUSAL_CODE(tensorize_failed, "tensorize-failed", "a block that a rule marked is not what the intrinsic computes");

constexpr const char* kMark = "meta_schedule.auto_tensorize";

struct Work {
  std::string block, intrinsic;
};

std::optional<Work> find_work(const Schedule& s) {
  const TreeIndex& tree = s.state().tree();
  for (Place p : tree.blocks()) {
    const Block& b = *tree.block(p);
    auto mark = b.annotations.find(kMark);
    const std::string* name = mark == b.annotations.end() ? nullptr : std::get_if<std::string>(&mark->second.value);
    if (name && tree.blocks_named(b.name).size() == 1) return Work{b.name, *name};
  }
  return std::nullopt;
}

/// The loop of the one block inside, if there is one.
Status vectorize_inside(Schedule& s, BlockRV outer) {
  TW_TRY(std::vector<BlockRV> inside, s.get_child_blocks(outer));
  if (inside.size() != 1) return {};
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(inside[0]));
  return loops.size() == 1 ? s.vectorize(loops[0]) : Status();
}

Status apply(Schedule& s, const PostprocContext&) {
  while (std::optional<Work> work = find_work(s)) {
    TW_TRY(BlockRV block, s.get_sblock(work->block, s.function().name));
    TW_TRY_VOID(s.unannotate(block, kMark));
    if (work->intrinsic.empty()) {
      TW_TRY_VOID(vectorize_inside(s, block));
    } else if (auto done = s.tensorize(block, work->intrinsic); !done) {
      return refuse(tensorize_failed, done.error().diagnostic().message);
    }
  }
  return {};
}

const Register<Postproc> entry{"rewrite_tensorize", "marked blocks become tensor intrinsics", {apply}};

}  // namespace

}  // namespace tilewright
