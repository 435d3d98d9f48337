// compute_inline: the body of a producer is substituted into all of its readers, and the producer disappears.
//   B[vi] = A[vi] + 1.0;  C[vi] = B[vi] * 2.0   →   C[vi] = (A[vi] + 1.0) * 2.0
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/inline.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

Status inline_block(Context& c, const Block* block) {
  TW_TRY_VOID(check_inner(c, block));
  if (block->init) return c.refuse(codes::block_has_init, fmt::format("block \"{}\" has an init", block->name), block);
  if (block->writes.size() != 1)
    return c.refuse(codes::block_writes_several_buffers,
                    fmt::format("block \"{}\" writes {} buffers", block->name, block->writes.size()), block);
  TW_TRY_VOID(check_pipeline(c, block));
  TW_TRY_VOID(check_temp(c, block));
  TW_TRY_VOID(check_complete(c, block));
  // The store's indices must name each iter once; iters of extent 1 may be absent (they equal their minimum).
  const Store* store = as<Store>(block->body);
  auto not_plain = [&](const std::string& what) {
    return c.refuse(codes::body_not_a_plain_store, fmt::format("block \"{}\": {}", block->name, what), block);
  };
  if (!store || !block->matches.empty() || !block->allocs.empty()) return not_plain("expected one store as body");
  const Buffer buffer = store->buffer;
  std::vector<const VarNode*> index_vars;
  VarMap unit;
  for (const Expr& index : store->indices) {
    const VarNode* v = as<VarNode>(index);
    if (!v && !const_int(index)) return not_plain("expected bare iters as indices of the store");
    if (v && std::count(index_vars.begin(), index_vars.end(), v)) return not_plain("an iter indexes two dimensions");
    index_vars.push_back(v);
  }
  for (const Iter& iter : block->iters) {
    if (std::count(index_vars.begin(), index_vars.end(), iter.var.get())) continue;
    if (!is_const(iter.dom.extent, 1))
      return not_plain(fmt::format("iter {} does not index the store", iter.var->name));
    unit[iter.var.get()] = iter.dom.min;
  }
  const Place place = c.state.place(*block);
  const Place scope = c.state.tree().enclosing_block(place);
  if (has_opaque_use(c.state.tree().ref(scope), buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", buffer->name), block);
  TW_TRY_VOID(check_removable(c, block));

  class Inline : public Rewriter {
   public:
    Inline(const Store& s, Expr value, std::vector<const VarNode*> vars)
        : store_(s), value_(std::move(value)), vars_(std::move(vars)) {}
    Expr operator()(const Expr& e) override {
      Expr mapped = Rewriter::operator()(e);
      const Load* node = as<Load>(mapped);
      if (!node || !node->buffer.same_as(store_.buffer)) return mapped;
      VarMap map;
      for (size_t i = 0; i < vars_.size(); ++i)
        if (vars_[i]) map[vars_[i]] = node->indices[i];
      return substitute(value_, map);
    }
    Stmt operator()(const Stmt& s) override {
      Stmt mapped = Rewriter::operator()(s);
      const Block* b = as<Block>(mapped);
      if (!b) return mapped;
      // A signature may name the buffer though the body does not use it.
      const bool named = std::any_of(b->reads.begin(), b->reads.end(),
                                     [&](const BufferRegion& r) { return r.buffer.same_as(store_.buffer); });
      return mapped.same_as(s) && !named ? mapped : refreshed(mapped);
    }

   private:
    Stmt refreshed(const Stmt& s) {
      const Block* b = as<Block>(s);
      if (b->iters.empty() && b->reads.empty() && b->writes.empty()) return s;  // the root's signature stays empty
      return rederive_reads(s);
    }
    const Store& store_;
    Expr value_;
    std::vector<const VarNode*> vars_;
  };

  const StmtNode* gone = removable_nest(c.state, place);
  Stmt root = replace_stmt(c.state.root(), gone, nullptr);
  root = Inline(*store, substitute(store->value, unit), index_vars)(root);
  c.state.set_root(drop_allocation(root, buffer));
  return {};
}

namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  return inline_block(c, block);
}

const RegisterPrimitive entry{"compute_inline",
                              "substitutes the body of a producer into all of its readers and removes it",
                              {.kind = "ComputeInline",
                               .inputs = {{"block", ArgType::block, {}, "the producer"}},
                               .refusals = {inline_refusals},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
