#include "schedule/primitives/rewrite_blocks.h"

#include <fmt/format.h>

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

Stmt rederive_reads(const Stmt& s) {
  const Block* block = as<Block>(s);
  TW_CHECK(block);
  Signature signature = derive_signature(*block);
  auto copy = edit(*block);
  copy->reads = std::move(signature.reads);
  return finish(std::move(copy));
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

Stmt make_copy(const CopyBlock& c, BlockId* id) {
  auto block = std::make_unique<Block>();
  block->name = c.name;
  std::vector<Var> loop_vars;
  std::vector<Expr> iters;
  for (size_t i = 0; i < c.domains.size(); ++i) {
    Var loop = make_var(fmt::format("ax{}", i)), iter = make_var(fmt::format("v{}", i));
    loop_vars.push_back(loop);
    iters.push_back(iter);
    block->iters.push_back({iter, c.domains[i], IterType::spatial, c.loops[i].min + loop});
  }
  std::vector<Expr> from = c.source_indices ? c.source_indices(iters) : iters;
  std::vector<Expr> to = c.target_indices ? c.target_indices(iters) : iters;
  block->reads = {point_region(c.source, from)};
  block->writes = {point_region(c.target, to)};
  block->body = make_stmt<Store>(c.target, to, load(c.source, from));
  block->id = *id = fresh_block_id();
  Stmt nest = finish(std::move(block));
  for (size_t i = c.domains.size(); i-- > 0;) nest = serial_loop(loop_vars[i], c.loops[i].extent, nest);
  return nest;
}

}  // namespace tilewright
