#include "schedule/primitives/rewrite_blocks.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

class Redirector : public Rewriter {
 public:
  explicit Redirector(const Redirect& how) : how_(how) {}

  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    if (!node || !how_.loads || !node->buffer.same_as(how_.from)) return mapped;
    return load(how_.to, map(node->indices));
  }

  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const Store* node = as<Store>(mapped)) {
      if (!how_.stores || !node->buffer.same_as(how_.from)) return mapped;
      return make_stmt<Store>(how_.to, map(node->indices), node->value);
    }
    const Block* node = as<Block>(mapped);
    if (!node) return mapped;
    auto copy = edit(*node);
    bool changed = false;
    if (how_.loads)
      for (BufferRegion& r : copy->reads) changed |= region(r);
    if (how_.stores)
      for (BufferRegion& r : copy->writes) changed |= region(r);
    return changed ? Stmt(finish(std::move(copy))) : mapped;
  }

 private:
  std::vector<Expr> map(const std::vector<Expr>& indices) const {
    return how_.map_indices ? how_.map_indices(indices) : indices;
  }
  bool region(BufferRegion& r) const {
    if (!r.buffer.same_as(how_.from)) return false;
    std::vector<Expr> mins;
    for (const Range& range : r.region) mins.push_back(range.min);
    std::vector<Expr> mapped = map(mins);
    BufferRegion out{how_.to, {}};
    for (size_t i = 0; i < mapped.size(); ++i)
      out.region.push_back({mapped[i], i < r.region.size() ? r.region[i].extent : int_imm(1, mapped[i]->dtype)});
    r = std::move(out);
    return true;
  }
  const Redirect& how_;
};

}  // namespace

Stmt redirect(const Stmt& s, const Redirect& how) { return Redirector(how)(s); }

namespace {

/// Read regions that annotate_buffer_access has pinned stay as they are.
void keep_pinned(const Block& before, Block& now) {
  static const std::string kKey = "explicit_read_region";
  auto pinned = before.annotations.find(kKey);
  const AttrList* indices = pinned == before.annotations.end() ? nullptr : pinned->second.get<AttrList>();
  if (!indices) return;
  AttrList kept;
  for (const Attr& a : *indices) {
    const int64_t* i = a.get<int64_t>();
    if (!i || *i < 0 || *i >= static_cast<int64_t>(before.reads.size())) continue;
    for (size_t k = 0; k < now.reads.size(); ++k)
      if (now.reads[k].buffer.same_as(before.reads[static_cast<size_t>(*i)].buffer)) {
        now.reads[k] = before.reads[static_cast<size_t>(*i)];
        kept.emplace_back(static_cast<int64_t>(k));
      }
  }
  now.annotations[kKey] = Attr(std::move(kept));
}

}  // namespace

Stmt rederive_reads(const Stmt& s) {
  const Block* block = as<Block>(s);
  TW_CHECK(block);
  Signature signature = derive_signature(*block);
  auto copy = edit(*block);
  copy->reads = std::move(signature.reads);
  keep_pinned(*block, *copy);
  return finish(std::move(copy));
}

namespace {
/// `declared` with regions that cover `touched`, in the old order; null: it is true as it is.
std::optional<std::vector<BufferRegion>> refreshed(const std::vector<BufferRegion>& declared,
                                                   const std::vector<BufferRegion>& touched, Analyzer& facts) {
  std::vector<BufferRegion> out;
  bool changed = false;
  std::vector<const BufferNode*> known;
  for (const BufferRegion& d : declared) {
    auto t =
        std::find_if(touched.begin(), touched.end(), [&](const BufferRegion& x) { return x.buffer.same_as(d.buffer); });
    known.push_back(d.buffer.get());
    if (t == touched.end()) {
      changed = true;
    } else if (region_covers(d, *t, facts)) {
      out.push_back(d);
    } else {
      out.push_back(*t);
      changed = true;
    }
  }
  for (const BufferRegion& t : touched)
    if (std::find(known.begin(), known.end(), t.buffer.get()) == known.end()) {
      out.push_back(t);
      changed = true;
    }
  return changed ? std::optional(std::move(out)) : std::nullopt;
}
}  // namespace

void refresh_signatures(State& state, BlockId id) {
  Place p = state.tree().find(id);
  while (p != kNoPlace && state.tree().enclosing_block(p) != kNoPlace) {
    const Block* block = state.tree().block(p);
    id = block->id;
    Analyzer facts;
    facts.bind(domains_of(*block));
    Signature touched = derive_signature(*block, &facts);
    if (!touched.opaque) {
      auto reads = refreshed(block->reads, touched.reads, facts),
           writes = refreshed(block->writes, touched.writes, facts);
      if (reads || writes) {
        auto copy = edit(*block);
        if (reads) copy->reads = std::move(*reads);
        if (writes) copy->writes = std::move(*writes);
        state.replace(block, finish(std::move(copy)));
      }
    }
    p = state.tree().enclosing_block(state.tree().find(id));
  }
}

Buffer buffer_like(const Buffer& like, const std::string& name, const std::string& scope, std::vector<Expr> shape) {
  return derive_buffer(like, [&](BufferNode& b) {
    b.name = name;
    b.scope = scope;
    b.shape = std::move(shape);
    b.strides.clear();
    b.elem_offset = nullptr;
    b.data = make_var(name, kHandle);
  });
}

bool has_opaque_use(const Stmt& s, const Buffer& b) {
  bool found = false;
  walk(
      s,
      [&](const Expr& e) {
        if (const VarNode* v = as<VarNode>(e)) found = found || v == b->data.get();
        return !found;
      },
      [&](const Stmt& x) {
        if (const Block* block = as<Block>(x))
          for (const MatchBuffer& m : block->matches) found = found || m.source.buffer.same_as(b);
        return !found;
      });
  return found;
}

Stmt drop_allocation(const Stmt& root, const Buffer& b) {
  const Block* owner = nullptr;
  walk_stmts(root, [&](const Stmt& s) {
    if (const Block* block = as<Block>(s))
      for (const Buffer& a : block->allocs)
        if (a.same_as(b)) owner = block;
    return owner == nullptr;
  });
  if (!owner) return root;
  auto copy = edit(*owner);
  std::erase_if(copy->allocs, [&](const Buffer& a) { return a.same_as(b); });
  return replace_stmt(root, owner, finish(std::move(copy)));
}

Stmt add_allocation(const Block& owner, const Buffer& b) {
  auto copy = edit(owner);
  copy->allocs.push_back(b);
  return finish(std::move(copy));
}

Stmt make_copy(const CopyBlock& c, Analyzer& facts, BlockId* id) {
  auto scope = facts.scope();
  auto block = std::make_unique<Block>();
  block->name = c.name;
  block->predicate = c.predicate;
  std::vector<Var> loop_vars;
  std::vector<Expr> iters;
  for (size_t i = 0; i < c.domains.size(); ++i) {
    const DType type = c.loops[i].min->dtype;
    Var loop = make_var(fmt::format("ax{}", i), type), iter = make_var(fmt::format("v{}", i), type);
    loop_vars.push_back(loop);
    iters.push_back(iter);
    Expr binding = c.loops[i].min + loop;
    facts.bind(loop, {int_imm(0, loop->dtype), c.loops[i].extent});
    for (const Expr& within : {less_equal(int_imm(0, binding->dtype), binding), less(binding, c.shape[i])})
      if (!facts.can_prove(within)) block->predicate = and_of(block->predicate, facts.simplify(within));
    block->iters.push_back({iter, c.domains[i], IterType::spatial, binding});
  }
  std::vector<Expr> from = c.source_indices ? c.source_indices(iters) : iters;
  std::vector<Expr> to = c.target_indices ? c.target_indices(iters) : iters;
  block->reads = {point_region(c.source, from)};
  block->writes = {point_region(c.target, to)};
  block->body = make_stmt<Store>(c.target, to, load(c.source, from));
  *id = block->id;
  Stmt nest = finish(std::move(block));
  for (size_t i = c.domains.size(); i-- > 0;) nest = serial_loop(loop_vars[i], c.loops[i].extent, nest);
  return nest;
}

}  // namespace tilewright
