// reindex: a block reads (or writes) a buffer through a copy of it that is laid out by the block's own iters.
//   C[vi, vj] = B[vj, vi]   →   B_reindex[v0, v1] = B[v1, v0];  C[vi, vj] = B_reindex[vi, vj]
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(block_not_leaf, "block-not-leaf", "there are blocks inside the block");
TW_REFUSAL_CODE(buffer_not_accessed, "buffer-not-accessed",
                "the block's signature names the buffer, its body does not use it");
TW_REFUSAL_CODE(access_not_unique, "access-not-unique", "the block accesses the buffer at several indices");
TW_REFUSAL_CODE(access_opaque, "access-opaque",
                "the block accesses the buffer by a pointer, an alias or a vector, or under a condition");

struct Plan {
  const Block* block = nullptr;
  Buffer buffer, copy;
  bool write = false;
  std::vector<Expr> indices;      ///< of the buffer, simplified, in the block's iters
  std::vector<const Iter*> used;  ///< those that the indices use, in order
  Expr predicate;                 ///< of the copy, in the block's iters
};

/// The indices of the one access.
Result<std::vector<Expr>> unique_access(const Context& c, const Block* block, const Buffer& buffer) {
  if (has_opaque_use(Stmt(block), buffer))
    return c.refuse(access_opaque,
                    fmt::format("block \"{}\" accesses {} by a pointer or an alias", block->name, buffer->name), block);
  std::optional<std::vector<Expr>> found;
  bool several = false, vector = false;
  auto access = [&](const std::vector<Expr>& indices) {
    for (const Expr& e : indices) vector = vector || e->dtype.lanes > 1;
    for (size_t d = 0; found && d < indices.size(); ++d) several = several || !same(indices[d], (*found)[d]);
    found = indices;
  };
  walk(
      Stmt(block),
      [&](const Expr& e) {
        if (const Load* node = as<Load>(e); node && node->buffer.same_as(buffer)) access(node->indices);
        return true;
      },
      [&](const Stmt& s) {
        if (const Store* node = as<Store>(s); node && node->buffer.same_as(buffer)) access(node->indices);
        return true;
      });
  if (!found)
    return c.refuse(buffer_not_accessed, fmt::format("block \"{}\" does not use {}", block->name, buffer->name), block);
  if (several)
    return c.refuse(access_not_unique,
                    fmt::format("block \"{}\" accesses {} at several indices", block->name, buffer->name), block);
  bool inner = false;  // an index may be another one in each iteration of a loop inside the block
  walk_stmts(block->body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    const Bind* bind = as<Bind>(s);
    const VarNode* bound = loop ? loop->var.get() : bind ? bind->var.get() : nullptr;
    for (const Expr& e : *found) inner = inner || (bound && uses_var(e, bound));
    return true;
  });
  if (inner)
    return c.refuse(access_not_unique, fmt::format("a loop inside block \"{}\" indexes {}", block->name, buffer->name),
                    block);
  if (vector)
    return c.refuse(access_opaque, fmt::format("block \"{}\" accesses {} by a vector", block->name, buffer->name),
                    block);
  return *found;
}

/// The copy is made once for all instances: what they write must be different elements, and each must be complete.
Status check_written(const Context& c, const Plan& p) {
  Place place = c.state.place(*p.block);
  bool conditional = false;  // an instance that stores nothing leaves its element of the copy without a value
  walk_stmts(p.block->body, [&](const Stmt& s) { return !(conditional |= as<If>(s) || as<While>(s)); });
  if (conditional && !p.block->init)
    return c.refuse(access_opaque, fmt::format("block \"{}\" stores under a condition", p.block->name), p.block);
  for (const Iter* iter : p.used)
    if (iter->type != IterType::spatial)
      return c.refuse(codes::reduction_iter_indexes_output,
                      fmt::format("iter {} of block \"{}\" indexes {} and is not spatial", iter->var->name,
                                  p.block->name, p.buffer->name),
                      p.block);
  if (!c.state.scope_of(place).instances_apart(place))
    return c.refuse(
        codes::instances_share_an_output,
        fmt::format("different instances of block \"{}\" write the same element of {}", p.block->name, p.buffer->name),
        p.block);
  return {};
}

Result<Plan> make_plan(const Context& c) {
  Plan p;
  TW_TRY(p.block, c.block("block"));
  const TraceList& which = *c.value("buffer").get<TraceList>();
  p.write = *which[0].get<std::string>() == "write";
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY_VOID(check_pipeline(c, p.block));
  TW_TRY_VOID(check_sweeps_domain(c, p.block));  // the copy runs over the whole domains of the iters
  TW_TRY(BufferRegion region, region_of(c, p.block, *which[1].get<int64_t>(), p.write));
  p.buffer = region.buffer;
  const Place place = c.state.place(*p.block);
  if (!c.state.tree().child_blocks(place).empty())
    return c.refuse(block_not_leaf, fmt::format("block \"{}\" has blocks inside", p.block->name), p.block);
  TW_TRY(p.indices, unique_access(c, p.block, p.buffer));
  for (const BufferRegion& other : p.write ? p.block->reads : p.block->writes)
    if (other.buffer->data.same_as(p.buffer->data))
      return c.refuse(buffer_updated_in_place,
                      fmt::format("block \"{}\" reads and writes {}", p.block->name, p.buffer->name), p.block);
  Analyzer facts;
  facts.bind(domains_of(*p.block));
  for (Expr& e : p.indices)  // an index that is constant only because its iters are stays as it is written
    if (Expr simple = facts.simplify(e); !const_int(simple)) e = simple;
  for (const Iter& iter : p.block->iters)
    if (std::any_of(p.indices.begin(), p.indices.end(), [&](const Expr& e) { return uses_var(e, iter.var.get()); }))
      p.used.push_back(&iter);
  if (p.write) TW_TRY_VOID(check_written(c, p));
  TW_TRY(p.predicate, predicate_over_iters(c, p.block));
  return p;
}

/// The copy block's predicate uses the copied iters only: an instance of the block runs at all if it does so where its
/// other iters (those of a reduction) begin.
Result<Expr> copy_predicate(const Context& c, const Plan& p) {
  VarMap others;
  for (const Iter& iter : p.block->iters)
    if (std::none_of(p.used.begin(), p.used.end(), [&](const Iter* u) { return u == &iter; }))
      others[iter.var.get()] = iter.dom.min;
  Expr out;
  for (const Expr& conjunct : conjuncts(p.predicate)) {
    bool mixed = uses_any(conjunct, [&](const VarNode* v) { return others.count(v) > 0; });
    if (mixed && !p.write)
      return c.refuse(codes::predicate_not_implied_by_domain,
                      fmt::format("the predicate of block \"{}\" restricts iters that do not index {}", p.block->name,
                                  p.buffer->name),
                      p.block);
    out = and_of(out, substitute(conjunct, others));
  }
  return out;
}

Stmt copy_nest(const Plan& p, const Expr& predicate, BlockId* id) {
  auto block = std::make_unique<Block>();
  block->name = (p.write ? p.buffer : p.copy)->name + "_reindex";
  VarMap iters, loops;
  std::vector<Expr> inner;
  std::vector<Var> loop_vars;
  Analyzer facts;
  for (const Iter* iter : p.used) {
    const std::string number = fmt::format("{}", inner.size());
    Var v = make_var("v" + number, iter->var->dtype), ax = make_var("ax" + number, iter->var->dtype);
    iters[iter->var.get()] = v;
    loops[iter->var.get()] = ax;
    inner.push_back(place_of(*iter, v));
    loop_vars.push_back(ax);
    block->iters.push_back({v, iter->dom, IterType::spatial, ax});
    facts.bind(v, iter->dom);
  }
  block->predicate = substitute(predicate, loops);
  std::vector<Expr> outer;
  for (const Expr& e : p.indices) outer.push_back(substitute(e, iters));
  const Buffer &from = p.write ? p.copy : p.buffer, &to = p.write ? p.buffer : p.copy;
  const std::vector<Expr>&from_indices = p.write ? inner : outer, &to_indices = p.write ? outer : inner;
  Expr value = load(from, from_indices);
  if (!p.write) {
    // The block may guard a read that the copy makes for all instances: what lies outside is never used.
    auto assumed = facts.assume(substitute(predicate, iters));
    if (Expr inside = inside_buffer(from, from_indices, facts))
      value = if_then_else(inside, value, zero_of(from->dtype));
  }
  block->body = make_stmt<Store>(to, to_indices, value);
  block->writes = {point_region(to, to_indices)};
  *id = block->id;
  Stmt s = rederive_reads(finish(std::move(block)));
  for (size_t i = loop_vars.size(); i-- > 0;)
    s = make_stmt<For>(loop_vars[i], p.used[i]->dom.min, p.used[i]->dom.extent, Expr(), ForKind::serial, std::string(),
                       AttrDict(), s);
  return s;
}

/// The copy stands before or after `top`, the outermost statement around the block: what it says must mean the same
/// there, and nothing else inside may touch what it copies.
Status check_order(const Context& c, const Plan& p, Place top) {
  const TreeIndex& tree = c.state.tree();
  for (Place at = c.state.place(*p.block); at != top; at = tree.parent(at)) {
    const StmtKind around = tree.stmt(tree.parent(at))->kind;
    if (around != StmtKind::kFor && around != StmtKind::kSeq)
      return c.refuse(access_opaque,
                      fmt::format("block \"{}\" stands under a statement other than a loop", p.block->name), p.block);
  }
  for (const For* loop : tree.loop_nodes_above(c.state.place(*p.block)))
    if (std::any_of(p.indices.begin(), p.indices.end(), [&](const Expr& e) { return uses_var(e, loop->var.get()); }))
      return c.refuse(access_opaque, fmt::format("loop {} indexes {} without an iter", loop->var->name, p.buffer->name),
                      p.block);
  std::vector<Buffer> used{p.buffer};  // and what the indices are read from
  for (const Expr& index : p.indices)
    walk(index, [&](const Expr& e) {
      if (const Load* node = as<Load>(e)) used.push_back(node->buffer);
      return true;
    });
  for (Place other : tree.child_blocks(tree.enclosing_block(top))) {
    const Block* b = tree.block(other);
    if (b == p.block || !tree.contains(top, other)) continue;
    auto touches = [&](const std::vector<BufferRegion>& regions) {
      return std::any_of(regions.begin(), regions.end(), [&](const BufferRegion& r) {
        return std::any_of(used.begin(), used.end(), [&](const Buffer& x) { return r.buffer->data.same_as(x->data); });
      });
    };
    if (touches(b->writes) || (p.write && touches(b->reads)))
      return c.refuse(codes::dependence_would_break,
                      fmt::format("block \"{}\" under the same loop uses {}, and the copy would stand {} that loop",
                                  b->name, p.buffer->name, p.write ? "after" : "before"),
                      b);
  }
  return {};
}

Status apply(Context& c) {
  TW_TRY(Plan p, make_plan(c));
  TW_TRY(Expr predicate, copy_predicate(c, p));
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*p.block), scope = tree.enclosing_block(place);
  const Place top_place = child_containing(tree, scope, place);
  TW_TRY_VOID(check_order(c, p, top_place));
  const Stmt top = tree.ref(top_place);
  std::vector<Expr> shape;
  for (const Iter* iter : p.used) shape.push_back(simplify(iter->dom.extent));
  p.copy = buffer_like(p.buffer, p.buffer->name + "_reindex", p.buffer->scope, shape);
  BlockId id{};
  Stmt copy = copy_nest(p, predicate, &id);
  std::vector<Expr> at;
  for (const Iter* iter : p.used) at.push_back(place_of(*iter, iter->var));
  Stmt redirected =
      redirect(Stmt(p.block), {p.buffer, p.copy, [&](const std::vector<Expr>&) { return at; }, true, p.write});
  Stmt nest = replace_stmt(top, p.block, redirected);
  Stmt s = replace_stmt(tree.ref(scope), top.get(), p.write ? make_seq({nest, copy}) : make_seq({copy, nest}));
  c.state.replace(tree.stmt(scope), add_allocation(*as<Block>(s), p.copy));
  c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "reindex",
    "a block reads or writes a buffer through a copy that is laid out by the block's iters",
    {.kind = "ReIndex",
     .inputs = {{"block", ArgType::block, {}, "the block that accesses the buffer"}},
     .attrs = {{"buffer", ArgType::buffer, {}, "(\"read\" or \"write\", index), or the buffer's name"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .refusals = {labels::inner, labels::pipeline, codes::binding_not_affine, labels::index,
                  codes::buffer_name_not_found, codes::buffer_name_ambiguous, block_not_leaf, buffer_not_accessed,
                  access_not_unique, access_opaque, buffer_updated_in_place, codes::reduction_iter_indexes_output,
                  codes::instances_share_an_output, codes::predicate_not_implied_by_domain,
                  codes::dependence_would_break},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
