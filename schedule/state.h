// State: the program that a schedule works on, with look-ups. The tree is immutable: a change builds a new path to the
// root and swaps the pointer, so copying a State copies a few pointers, and undoing a refused primitive is assigning
// the old one back.
#pragma once

#include "ir/analysis/dependences.h"
#include "ir/analysis/tree.h"
#include "ir/program.h"
#include "ir/rewrite.h"

namespace tilewright {

class State {
 public:
  State(ProgramRef program, const Function* function);

  const ProgramRef& program() const { return program_; }
  const Function& function() const { return *function_; }
  const Stmt& root() const { return function_->body; }

  /// Index of the current tree; built on first use after a change.
  const TreeIndex& tree() const;
  /// Null when it is gone.
  const Block* find(BlockId id) const;
  const For* find(LoopId id) const;
  Place place(const Block& b) const { return tree().find(b.id); }
  Place place(const For& l) const { return tree().find(l.id); }
  /// Dependences and flags of the scope around a block or loop (its nearest enclosing block).
  BlockScope scope_of(Place p) const { return BlockScope(tree(), tree().enclosing_block(p), cache_.get()); }

  /// Replaces one statement of the current tree (null removes it).
  void replace(const StmtNode* from, const Stmt& to);
  void set_root(Stmt body);
  void set_function(FunctionRef);

 private:
  ProgramRef program_;
  FunctionRef function_;
  mutable std::shared_ptr<const TreeIndex> tree_;
  std::shared_ptr<AnalysisCache> cache_ = std::make_shared<AnalysisCache>();
};

}  // namespace tilewright
