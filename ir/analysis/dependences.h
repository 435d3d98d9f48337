// Dependences between the child blocks of a scope, and the block properties that primitives check (schedule-language.md
// §2): complete, reduction, region cover, stage pipeline, compact dataflow. Analyses look at signatures, never at
// bodies.
//   AnalysisCache cache;                        // one for each schedule; keyed by content, so it survives rewrites
//   BlockScope scope(tree, scope_place, cache);
//   if (auto why = scope.check_complete(block)) …
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "ir/analysis/codes.h"
#include "ir/analysis/regions.h"
#include "ir/analysis/tree.h"

namespace tilewright {

enum class DependenceKind : uint8_t { raw, war, waw, opaque };

/// `from` runs first. Blocks are numbered as in BlockScope::children().
struct Dependence {
  int from, to;
  DependenceKind kind;
  Buffer buffer;  ///< as the later block names it; null for opaque
};

/// Why a property does not hold.
struct Violation {
  const RefusalCode* code;
  Place block = kNoPlace;        ///< the block that violates it
  Place other = kNoPlace;        ///< the other end, where there is one
  Buffer buffer;                 ///< the buffer concerned, where there is one
  Var iter;                      ///< the iter concerned, where there is one
  std::vector<Violation> inner;  ///< block-neither-complete-nor-reduction: the first violation of both
};
/// One line that names the block, the iter, the buffer and the other end.
std::string describe(const Violation&, const TreeIndex&);

/// Results by content of a scope block. Belongs to one schedule (one thread); entries survive its rewrites.
struct ScopeFlags {
  std::vector<int8_t> affine, covered, apart;  ///< by child: -1 unknown, 0, 1
};
struct AnalysisCache {
  std::unordered_map<Hash64, ScopeFlags> scopes;
};

class BlockScope {
 public:
  /// `scope`: place of a block. `cache` may be null.
  BlockScope(const TreeIndex& tree, Place scope, AnalysisCache* cache = nullptr);

  Place scope() const { return scope_; }
  const std::vector<Place>& children() const { return children_; }
  int child_of(Place block) const;  ///< its number, -1 if the block is no child
  const std::vector<Dependence>& dependences() const { return dependences_; }

  /// Other ends of RAW and WAW edges, in program order, without repeats.
  std::vector<Place> producers(Place block) const;
  std::vector<Place> consumers(Place block) const;
  /// Writers of the buffer (aliases included) among the children.
  std::vector<Place> writers(const Buffer& buffer) const;
  std::vector<Place> readers(const Buffer& buffer) const;
  /// Blocks that write a buffer which the scope does not allocate.
  bool is_output(Place block) const;
  std::vector<Place> output_blocks() const;

  bool affine_binding(Place block);
  /// No two values of the block's spatial iters are known to write one element.
  bool instances_apart(Place block);
  bool region_cover(Place block);
  bool region_cover(Place block, const Buffer& buffer) const;  ///< of what it reads of this buffer
  bool stage_pipeline() { return !check_stage_pipeline(); }

  std::optional<Violation> check_stage_pipeline();
  /// `subtree`: read "scope" as this loop's subtree (compact dataflow); kNoPlace: the scope.
  std::optional<Violation> check_complete(Place block, Place subtree = kNoPlace);
  std::optional<Violation> check_reduction(Place block, Place subtree = kNoPlace);
  std::optional<Violation> check_either(Place block, Place subtree = kNoPlace);
  /// Every child below the loop (or block) is complete or reduction within it.
  std::optional<Violation> check_compact(Place loop);

 private:
  struct Access {
    const VarNode* memory;
    int child;
    bool write;
    Buffer buffer;
  };
  void collect();
  const VarNode* memory(const Buffer& b) const;
  std::vector<VarRange> loops_to_relax(Place top, Place p, const Buffer& buffer) const;
  std::optional<Violation> check_sole_writer(Place block, Place subtree) const;
  bool compute_cover(int child, const VarNode* only) const;  ///< only: this memory; null: all

  const TreeIndex& tree_;
  Place scope_;
  std::vector<Place> children_;
  std::vector<Dependence> dependences_;
  std::vector<Access> accesses_;                                    ///< in program order of the children
  std::vector<std::pair<const VarNode*, const VarNode*>> aliases_;  ///< alias and source, outer ones first
  ScopeFlags own_;
  ScopeFlags* flags_;
};

/// Types of the iters whose bindings use the loop variable, over the blocks below the loop that are bound by it
/// (directly or through bindings of blocks between). First one that is not spatial, if any: the loop must not run in
/// parallel. `exempt(block, iter)`: iters that may be driven all the same (bind to threadIdx allows reductions).
std::optional<Violation> find_non_parallel_iter(const TreeIndex& tree, Place loop,
                                                const std::function<bool(const Block&, const Iter&)>& exempt = {});
/// Iter types that the loop feeds in one block (bit mask of 1 << IterType).
unsigned iter_types_driven(const Block& block, const VarNode* loop_var);

}  // namespace tilewright
