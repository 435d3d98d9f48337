#include "ir/analysis/tree.h"

#include <algorithm>

#include "ir/visit.h"

namespace tilewright {

TreeIndex::TreeIndex(Stmt root) : root_(std::move(root)) {
  rows_.reserve(64);
  if (root_) visit(root_, kNoPlace, kNoPlace, false);
}

void TreeIndex::visit(const Stmt& s, Place parent, Place scope, bool in_init) {
  Place here = size();
  rows_.push_back({s.get(), parent, scope, here, in_init});
  switch (s->kind) {
    case StmtKind::kFor:
      loops_.push_back(here);
      visit(static_cast<const For&>(*s).body, here, scope, in_init);
      break;
    case StmtKind::kBlock: {
      blocks_.push_back(here);
      const Block& block = static_cast<const Block&>(*s);
      if (block.init) visit(block.init, here, here, true);
      if (block.body) visit(block.body, here, here, false);
      break;
    }
    case StmtKind::kSeq:
      for (const Stmt& item : static_cast<const Seq&>(*s).stmts) visit(item, here, scope, in_init);
      break;
    case StmtKind::kStore:
    case StmtKind::kEvaluate:
      break;
    default:
      for_each_child(*s, [](const Expr&) {}, [&](const Stmt& child) { visit(child, here, scope, in_init); });
  }
  rows_[here].end = size();
}

// Programs have tens of loops and blocks: a scan of a small vector beats any map.
Place TreeIndex::find(LoopId id) const {
  for (Place p : loops_)
    if (static_cast<const For*>(rows_[p].stmt)->id == id) return p;
  return kNoPlace;
}

Place TreeIndex::find(BlockId id) const {
  for (Place p : blocks_)
    if (static_cast<const Block*>(rows_[p].stmt)->id == id) return p;
  return kNoPlace;
}

Place TreeIndex::common_ancestor(Place a, Place b) const {
  while (a != kNoPlace && !contains(a, b)) a = parent(a);
  return a;
}

std::vector<Place> TreeIndex::loops_above(Place p) const {
  std::vector<Place> out;
  for (Place up = parent(p); up != kNoPlace && !block(up); up = parent(up))
    if (loop(up)) out.push_back(up);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<const For*> TreeIndex::loop_nodes_above(Place p) const {
  std::vector<const For*> out;
  for (Place q : loops_above(p)) out.push_back(loop(q));
  return out;
}

std::vector<Place> TreeIndex::loops_between(Place top, Place p, bool inclusive) const {
  std::vector<Place> out;
  for (Place up = parent(p); up != kNoPlace && up > top; up = parent(up))
    if (loop(up)) out.push_back(up);
  if (inclusive && loop(top) && top != p && contains(top, p)) out.push_back(top);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Place> TreeIndex::ancestors(Place p) const {
  std::vector<Place> out;
  for (Place up = parent(p); up != kNoPlace; up = parent(up))
    if (loop(up) || block(up)) out.push_back(up);
  std::reverse(out.begin(), out.end());
  return out;
}

std::vector<Place> TreeIndex::child_blocks(Place p) const {
  std::vector<Place> out;
  for (Place q = p + 1; q < end(p);) {
    if (block(q)) {
      if (!(block(p) && in_init(q) && enclosing_block(q) == p)) out.push_back(q);
      q = end(q);
    } else {
      ++q;
    }
  }
  return out;
}

std::vector<Place> TreeIndex::blocks_named(std::string_view name) const {
  std::vector<Place> out;
  for (Place p : blocks_)
    if (block(p)->name == name) out.push_back(p);
  return out;
}

bool TreeIndex::is_only_descendant(Place loop, Place p) const {
  // Without siblings every statement between them is a single child, so the subtree is a chain down to p.
  return contains(loop, p) && end(loop) == end(p) && [&] {
    for (Place q = p; q != loop; q = parent(q))
      if (parent(q) != q - 1) return false;
    return true;
  }();
}

}  // namespace tilewright
