// What rules ask about blocks (search.md §3: needs_tiling, needs_rfactor, …).
#pragma once

#include "schedule/schedule.h"
#include "schedule/target.h"

namespace tilewright {

bool is_spatial(const Block&);
/// Every block of the function is spatial.
bool is_spatial_function(const Schedule&);
bool has_annotation(const Block&, const std::string& key);
bool trivial_bindings(const Schedule&, const Block&);
bool needs_tiling(const Schedule&, const Block&);
bool needs_rfactor(const Schedule&, const Block&, int64_t max_parallel);
bool is_output(const Schedule&, const Block&);
/// Annotation of the root, put there by rule one_core: nothing is to run in parallel.
inline constexpr const char* kOneCore = "tilewright.one_core";
bool on_one_core(const Schedule&);
/// Iter types that drive each loop above the block, in order (trivial bindings).
std::vector<IterType> loop_types(const Schedule&, const Block&);

/// How a read index maps to the write index, over all reads (search.md §3.1, auto_inline).
struct ReadPattern {
  bool exists = true, injective = true, ordered = true;
};
ReadPattern read_pattern(const Block&);
/// One write and every read map injective and ordered: a ReLU or a fused epilogue.
bool is_elementwise_consumer(const Block&);

}  // namespace tilewright
