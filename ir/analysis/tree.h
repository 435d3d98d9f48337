// TreeIndex: the statements of a function body in pre-order, with parents: finds loops and blocks by id, loops above a
// block, children of a scope, order, membership. Built in one pass over statements (expressions are not visited).
// A *place* is an index into that table; it is valid for this tree only (ids survive a rewrite, places do not).
#pragma once

#include <vector>

#include "ir/program.h"

namespace tilewright {

using Place = int;
inline constexpr Place kNoPlace = -1;

class TreeIndex {
 public:
  /// Keeps `root` alive.
  explicit TreeIndex(Stmt root);

  const Stmt& root() const { return root_; }
  int size() const { return static_cast<int>(rows_.size()); }

  Place find(LoopId id) const;  ///< kNoPlace if there is none
  Place find(BlockId id) const;
  const StmtNode* stmt(Place p) const { return rows_[p].stmt; }
  Stmt ref(Place p) const { return Stmt(rows_[p].stmt); }
  const For* loop(Place p) const { return cast<For>(p); }       ///< null if it is no loop
  const Block* block(Place p) const { return cast<Block>(p); }  ///< null if it is no block

  Place parent(Place p) const { return rows_[p].parent; }
  /// One past the last place of the subtree: places of a subtree are contiguous.
  Place end(Place p) const { return rows_[p].end; }
  bool contains(Place ancestor, Place p) const { return ancestor <= p && p < rows_[ancestor].end; }
  /// Pre-order is program order: a < b and neither contains the other means that a runs first.
  bool before(Place a, Place b) const { return rows_[a].end <= b; }
  Place common_ancestor(Place a, Place b) const;
  bool in_init(Place p) const { return rows_[p].in_init; }  ///< below the init of its enclosing block

  /// The nearest block above (not p itself); kNoPlace for the root block.
  Place enclosing_block(Place p) const { return rows_[p].scope; }
  /// Loops above p up to its enclosing block, outer first.
  std::vector<Place> loops_above(Place p) const;
  std::vector<const For*> loop_nodes_above(Place p) const;
  /// Loops above p inside the subtree of `top` (top itself excluded unless it is a loop and inclusive is set).
  std::vector<Place> loops_between(Place top, Place p, bool inclusive = false) const;
  /// All loops and blocks above p, outer first (for analyzers: what is in scope).
  std::vector<Place> ancestors(Place p) const;
  /// Blocks directly below a block or loop (not below another block), in program order; the init's blocks are left out.
  std::vector<Place> child_blocks(Place p) const;
  /// All blocks and all loops, in program order.
  const std::vector<Place>& blocks() const { return blocks_; }
  const std::vector<Place>& loops() const { return loops_; }
  /// Places of all blocks with that name.
  std::vector<Place> blocks_named(std::string_view name) const;
  /// Whether p is the only statement of its parent chain up to `loop` (no siblings between).
  bool is_only_descendant(Place loop, Place p) const;

 private:
  template <class Node>
  const Node* cast(Place p) const {
    return rows_[p].stmt->kind == Node::kKind ? static_cast<const Node*>(rows_[p].stmt) : nullptr;
  }
  struct Row {
    const StmtNode* stmt;
    Place parent, scope, end;
    bool in_init;
  };
  void visit(const Stmt& s, Place parent, Place scope, bool in_init);
  Stmt root_;
  std::vector<Row> rows_;
  std::vector<Place> blocks_, loops_;
};

}  // namespace tilewright
