// What sample_pipeline_depth and pipeline share: the copies into shared memory under a loop, and how much of it they
// need (schedule-language.md §5.2).
#pragma once

#include "schedule/primitives/tree_ops.h"

namespace tilewright {

/// Statements of the loop's body in order; a copy is one whose blocks all move elements, unchanged or masked, into
/// shared memory.
struct PipelineStatement {
  Stmt stmt;
  bool copy = false;
  std::vector<const Block*> blocks;
};
std::vector<PipelineStatement> pipeline_statements(const State&, const For*);

/// The block stores what it loads: `target[…] = source[…]`, or a constant where a guard does not hold.
bool is_copy(const Block&);
/// Of a copy: source and target are indexed by the same variables in the same order, the innermost one with stride 1.
bool keeps_order(const Block&);
bool is_shared(const Buffer&);

TW_REFUSAL_CODE(loop_has_no_copy_block, "loop-has-no-copy-block",
                "no block of the loop's body copies to shared memory");

/// Bytes of shared memory: of one iteration of the loop's copies, each buffer rounded up to 1 KiB, with 16 for
/// barriers; and of all other buffers. Nothing if a size is not constant.
struct SharedBytes {
  int64_t stage = 0, others = 0;
};
std::optional<SharedBytes> shared_bytes(const State&, const For*);

}  // namespace tilewright
