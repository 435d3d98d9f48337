#include "ir/analysis/dependences.h"

#include <algorithm>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

// The block's region at the values bound to its iters.
BufferRegion at_bindings(const Block& block, const BufferRegion& r) {
  VarMap map;
  for (const Iter& iter : block.iters) map[iter.var.get()] = iter.binding;
  return substitute(r, map);
}
Expr predicate_at_bindings(const Block& block) {
  if (!block.predicate) return nullptr;
  VarMap map;
  for (const Iter& iter : block.iters) map[iter.var.get()] = iter.binding;
  return substitute(block.predicate, map);
}

bool has_opaque_effect(const Block& block) {
  if (!block.reads.empty() || !block.writes.empty() || !block.body) return false;
  bool found = false;
  walk(
      block.body,
      [&](const Expr& e) {
        if (const Call* c = as<Call>(e)) found = found || c->op->effect != OpEffect::pure;
        return !found;
      },
      [&](const Stmt&) { return !found; });
  return found;
}

}  // namespace

BlockScope::BlockScope(const TreeIndex& tree, Place scope, AnalysisCache* cache) : tree_(tree), scope_(scope) {
  TW_CHECK(tree.block(scope), "a scope is a block");
  children_ = tree.child_blocks(scope);
  flags_ = cache ? &cache->scopes[tree.stmt(scope)->hash] : &own_;
  flags_->affine.resize(children_.size(), -1);
  flags_->apart.resize(children_.size(), -1);
  flags_->covered.resize(children_.size(), -1);
  collect();
}

int BlockScope::child_of(Place block) const {
  auto it = std::lower_bound(children_.begin(), children_.end(), block);
  return it != children_.end() && *it == block ? static_cast<int>(it - children_.begin()) : -1;
}

// Memory is known by its data pointer; an alias by its source's.
const VarNode* BlockScope::memory(const Buffer& b) const {
  const VarNode* v = b->data.get();
  for (size_t i = aliases_.size(); i-- > 0;)
    if (aliases_[i].first == v) v = aliases_[i].second;
  return v;
}

void BlockScope::collect() {
  for (Place p = scope_; p != kNoPlace; p = tree_.enclosing_block(p)) {
    std::vector<std::pair<const VarNode*, const VarNode*>> here;
    for (const MatchBuffer& m : tree_.block(p)->matches)
      here.push_back({m.buffer->data.get(), m.source.buffer->data.get()});
    aliases_.insert(aliases_.begin(), here.begin(), here.end());  // outer ones first: resolved last
  }
  int n = static_cast<int>(children_.size());
  std::vector<bool> opaque(children_.size());
  for (int i = 0; i < n; ++i) {
    const Block& b = *tree_.block(children_[i]);
    for (const BufferRegion& r : b.writes) accesses_.push_back({memory(r.buffer), i, true, r.buffer});
    for (const BufferRegion& r : b.reads) accesses_.push_back({memory(r.buffer), i, false, r.buffer});
    opaque[i] = has_opaque_effect(b);
  }
  auto add = [&](int from, int to, DependenceKind kind, const Buffer& buffer) {
    for (const Dependence& d : dependences_)
      if (d.from == from && d.to == to && d.kind == kind && (!buffer || d.buffer.same_as(buffer))) return;
    dependences_.push_back({from, to, kind, buffer});
  };
  // accesses_ is sorted by child.
  for (size_t j = 0; j < accesses_.size(); ++j)
    for (size_t i = 0; i < j; ++i) {
      const Access &x = accesses_[i], &y = accesses_[j];
      if (x.child == y.child || x.memory != y.memory || (!x.write && !y.write)) continue;
      add(x.child, y.child,
          !y.write  ? DependenceKind::raw
          : x.write ? DependenceKind::waw
                    : DependenceKind::war,
          y.buffer);
    }
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j)
      if (opaque[i] || opaque[j]) add(i, j, DependenceKind::opaque, nullptr);
}

namespace {
void add_unique(std::vector<Place>& out, Place p) {
  auto it = std::lower_bound(out.begin(), out.end(), p);
  if (it == out.end() || *it != p) out.insert(it, p);
}
bool carries_value(DependenceKind k) { return k == DependenceKind::raw || k == DependenceKind::waw; }
}  // namespace

std::vector<Place> BlockScope::producers(Place block) const {
  std::vector<Place> out;
  int c = child_of(block);
  for (const Dependence& d : dependences_)
    if (d.to == c && carries_value(d.kind)) add_unique(out, children_[d.from]);
  return out;
}

std::vector<Place> BlockScope::consumers(Place block) const {
  std::vector<Place> out;
  int c = child_of(block);
  for (const Dependence& d : dependences_)
    if (d.from == c && carries_value(d.kind)) add_unique(out, children_[d.to]);
  return out;
}

std::vector<Place> BlockScope::writers(const Buffer& buffer) const {
  std::vector<Place> out;
  for (const Access& a : accesses_)
    if (a.write && a.memory == memory(buffer)) add_unique(out, children_[a.child]);
  return out;
}

std::vector<Place> BlockScope::readers(const Buffer& buffer) const {
  std::vector<Place> out;
  for (const Access& a : accesses_)
    if (!a.write && a.memory == memory(buffer)) add_unique(out, children_[a.child]);
  return out;
}

bool BlockScope::is_output(Place block) const {
  int c = child_of(block);
  const std::vector<Buffer>& allocs = tree_.block(scope_)->allocs;
  for (const Access& a : accesses_) {
    if (!a.write || a.child != c) continue;
    if (std::none_of(allocs.begin(), allocs.end(), [&](const Buffer& b) { return b->data.get() == a.memory; }))
      return true;
  }
  return false;
}

std::vector<Place> BlockScope::output_blocks() const {
  std::vector<Place> out;
  for (Place p : children_)
    if (is_output(p)) out.push_back(p);
  return out;
}

bool BlockScope::affine_binding(Place block) {
  int c = child_of(block);
  TW_CHECK(c >= 0, "not a child of the scope");
  int8_t& flag = flags_->affine[c];
  if (flag < 0) {
    Analyzer a;
    flag = is_affine_binding(*tree_.block(block), tree_.loop_nodes_above(block), a);
  }
  return flag;
}

namespace {

/// Whether the spatial iters can be told from the indices of every write: bare iters, or a quasi-affine map that can be
/// inverted. Writes of whole ranges are taken at their word.
bool writes_apart(const Block& b) {
  for (const BufferRegion& w : b.writes) {
    std::vector<Expr> indices;
    bool point = true;
    for (const Range& r : w.region) {
      indices.push_back(r.min);
      point = point && is_const(r.extent, 1);
    }
    std::vector<VarRange> spatial;
    bool bare = true;
    for (const Iter& iter : b.iters) {
      if (iter.type != IterType::spatial || is_const(iter.dom.extent, 1)) continue;
      const bool used =
          std::any_of(indices.begin(), indices.end(), [&](const Expr& e) { return uses_var(e, iter.var.get()); });
      if (!used) return false;
      bare = bare && std::any_of(indices.begin(), indices.end(),
                                 [&](const Expr& e) { return as<VarNode>(e) == iter.var.get(); });
      spatial.push_back({iter.var, iter.dom});
    }
    if (bare || !point) continue;
    Analyzer facts;
    IterMap map = detect_iter_map(indices, spatial, nullptr, IterMapCheck::none, facts);
    if (!map) continue;  // not quasi-affine: nothing is known, and the program's word counts
    std::optional<std::vector<Expr>> back = inverse_map(map, spatial, indices, facts);
    if (!back) return false;
    facts.bind(spatial);
    for (size_t i = 0; i < spatial.size(); ++i)
      if (!facts.can_prove_equal((*back)[i], spatial[i].var)) return false;
  }
  return true;
}

}  // namespace

bool BlockScope::instances_apart(Place block) {
  int8_t& flag = flags_->apart[child_of(block)];
  if (flag < 0) flag = writes_apart(*tree_.block(block));
  return flag;
}

bool BlockScope::region_cover(Place block) {
  int c = child_of(block);
  TW_CHECK(c >= 0, "not a child of the scope");
  int8_t& flag = flags_->covered[c];
  if (flag < 0) flag = compute_cover(c, nullptr);
  return flag;
}

bool BlockScope::region_cover(Place block, const Buffer& buffer) const {
  int c = child_of(block);
  TW_CHECK(c >= 0, "not a child of the scope");
  return compute_cover(c, memory(buffer));
}

// Loops between `top` and `p` run while the buffer lives; loops above whose threads share it do too.
std::vector<VarRange> BlockScope::loops_to_relax(Place top, Place p, const Buffer& buffer) const {
  std::vector<VarRange> out;
  for (Place q : tree_.loops_above(p)) {
    const For& loop = *tree_.loop(q);
    bool below = q > top && tree_.contains(top, q);
    if (below || (loop.loop_kind == ForKind::thread_binding && in_storage_span(buffer->scope, loop.thread)))
      out.push_back({loop.var, range_of(loop)});
  }
  return out;
}

bool BlockScope::compute_cover(int child, const VarNode* only) const {
  Place reader = children_[child];
  const Block& block = *tree_.block(reader);
  for (const BufferRegion& read : block.reads) {
    const VarNode* data = memory(read.buffer);
    if (only && data != only) continue;
    struct Producer {
      Place place, meet;  ///< meet: common ancestor with the reader
    };
    std::vector<Producer> producers;
    for (const Access& a : accesses_)
      if (a.write && a.memory == data && a.child < child)
        if (Place p = children_[a.child]; producers.empty() || producers.back().place != p)
          producers.push_back({p, tree_.common_ancestor(p, reader)});
    if (producers.empty()) continue;
    // Innermost meeting place first: what is written below it counts further out too.
    std::vector<Place> meets;
    for (const Producer& p : producers) add_unique(meets, p.meet);
    for (size_t m = meets.size(); m-- > 0;) {
      Place top = meets[m];
      Analyzer a;
      for (Place q : tree_.loops_above(reader))
        if (q <= top) a.bind(*tree_.loop(q));
      BufferRegion wanted = clip_to_shape(
          relax(at_bindings(block, read), loops_to_relax(top, reader, read.buffer), predicate_at_bindings(block), a),
          a);
      std::vector<BufferRegion> written;
      for (const Producer& p : producers) {
        if (!tree_.contains(top, p.place)) continue;
        const Block& writer = *tree_.block(p.place);
        for (const BufferRegion& w : writer.writes) {
          if (memory(w.buffer) != data) continue;
          if (!w.buffer.same_as(read.buffer)) return false;  // through an alias: not compared
          if (auto box = lower_bound(at_bindings(writer, w), loops_to_relax(top, p.place, w.buffer),
                                     predicate_at_bindings(writer), a))
            written.push_back(std::move(*box));
        }
      }
      if (!boxes_cover(std::move(written), wanted, a)) return false;
    }
  }
  return true;
}

// --- checks ----------------------------------------------------------------------------------------------------------

std::optional<Violation> BlockScope::check_stage_pipeline() {
  for (Place p : children_)
    if (!region_cover(p)) {
      std::vector<Place> from = producers(p);
      return Violation{
          &codes::scope_not_a_stage_pipeline, p, from.empty() ? kNoPlace : from.back(), nullptr, nullptr, {}};
    }
  for (const Dependence& d : dependences_)
    if (d.kind == DependenceKind::war || d.kind == DependenceKind::opaque)
      return Violation{&codes::scope_not_a_stage_pipeline, children_[d.to], children_[d.from], d.buffer, nullptr, {}};
  return std::nullopt;
}

std::optional<Violation> BlockScope::check_sole_writer(Place block, Place subtree) const {
  int c = child_of(block);
  for (const Access& mine : accesses_) {
    if (mine.child != c || !mine.write) continue;
    for (const Access& other : accesses_) {
      if (!other.write || other.child == c || other.memory != mine.memory) continue;
      if (subtree != kNoPlace && !tree_.contains(subtree, children_[other.child])) continue;
      return Violation{&codes::block_not_sole_writer, block, children_[other.child], mine.buffer, nullptr, {}};
    }
  }
  return std::nullopt;
}

std::optional<Violation> BlockScope::check_complete(Place block, Place subtree) {
  int c = child_of(block);
  TW_CHECK(c >= 0, "not a child of the scope");
  for (const Iter& iter : tree_.block(block)->iters)
    if (iter.type != IterType::spatial)
      return Violation{&codes::iter_not_spatial, block, kNoPlace, nullptr, iter.var, {}};
  if (!instances_apart(block))
    return Violation{&codes::instances_share_an_output, block, kNoPlace, nullptr, nullptr, {}};
  if (auto v = check_sole_writer(block, subtree)) return v;
  for (const Access& r : accesses_) {
    if (r.child != c || r.write) continue;
    for (const Access& w : accesses_)
      if (w.child == c && w.write && w.memory == r.memory)
        return Violation{&codes::block_reads_its_output, block, kNoPlace, w.buffer, nullptr, {}};
  }
  return std::nullopt;
}

std::optional<Violation> BlockScope::check_reduction(Place block, Place subtree) {
  const Block& b = *tree_.block(block);
  if (!b.init) return Violation{&codes::block_has_no_init, block, kNoPlace, nullptr, nullptr, {}};
  if (!affine_binding(block)) return Violation{&codes::binding_not_affine, block, kNoPlace, nullptr, nullptr, {}};
  for (const Iter& iter : b.iters)
    if (iter.type != IterType::spatial && iter.type != IterType::reduction)
      return Violation{&codes::iter_not_spatial_or_reduction, block, kNoPlace, nullptr, iter.var, {}};
  if (!instances_apart(block))
    return Violation{&codes::instances_share_an_output, block, kNoPlace, nullptr, nullptr, {}};
  if (auto v = check_sole_writer(block, subtree)) return v;
  for (const BufferRegion& w : b.writes)
    for (const Range& r : w.region)
      for (const Iter& iter : b.iters)
        if (iter.type == IterType::reduction && (uses_var(r.min, iter.var.get()) || uses_var(r.extent, iter.var.get())))
          return Violation{&codes::reduction_iter_indexes_output, block, kNoPlace, w.buffer, iter.var, {}};
  return std::nullopt;
}

std::optional<Violation> BlockScope::check_either(Place block, Place subtree) {
  auto complete = check_complete(block, subtree);
  if (!complete) return std::nullopt;
  auto reduction = check_reduction(block, subtree);
  if (!reduction) return std::nullopt;
  return Violation{
      &codes::block_neither_complete_nor_reduction, block, kNoPlace, nullptr, nullptr, {*complete, *reduction}};
}

std::optional<Violation> BlockScope::check_compact(Place loop) {
  for (Place p : children_) {
    if (!tree_.contains(loop, p) || p == loop) continue;
    if (auto v = check_either(p, loop)) return Violation{&codes::dataflow_not_compact, p, loop, nullptr, nullptr, {*v}};
  }
  return std::nullopt;
}

std::string describe(const Violation& v, const TreeIndex& tree) {
  std::string out;
  if (const Block* b = v.block == kNoPlace ? nullptr : tree.block(v.block)) out = fmt::format("block {}: ", b->name);
  out += v.code->doc;
  if (v.iter) out += fmt::format(" (iter {})", v.iter->name);
  if (v.buffer) out += fmt::format(" (buffer {})", v.buffer->name);
  if (v.other != kNoPlace) {
    if (const Block* b = tree.block(v.other)) out += fmt::format("; other block: {}", b->name);
    if (const For* l = tree.loop(v.other)) out += fmt::format("; loop: {}", l->var->name);
  }
  for (const Violation& inner : v.inner) out += fmt::format("; {}: {}", inner.code->text, describe(inner, tree));
  return out;
}

// --- what a loop drives ----------------------------------------------------------------------------------------------

std::optional<Violation> find_non_parallel_iter(const TreeIndex& tree, Place loop,
                                                const std::function<bool(const Block&, const Iter&)>& exempt) {
  std::vector<const VarNode*> driven{tree.loop(loop)->var.get()};
  for (Place p = loop + 1; p < tree.end(loop); ++p) {
    const Block* block = tree.block(p);
    if (!block) continue;
    for (const Iter& iter : block->iters) {
      bool uses = uses_any(
          iter.binding, [&](const VarNode* v) { return std::find(driven.begin(), driven.end(), v) != driven.end(); });
      if (!uses) continue;
      if (iter.type != IterType::spatial && !(exempt && exempt(*block, iter)))
        return Violation{&codes::loop_drives_a_non_parallel_iter, p, loop, nullptr, iter.var, {}};
      driven.push_back(iter.var.get());
    }
  }
  return std::nullopt;
}

unsigned iter_types_driven(const Block& block, const VarNode* loop_var) {
  unsigned mask = 0;
  for (const Iter& iter : block.iters)
    if (uses_var(iter.binding, loop_var)) mask |= 1u << static_cast<unsigned>(iter.type);
  return mask;
}

}  // namespace tilewright
