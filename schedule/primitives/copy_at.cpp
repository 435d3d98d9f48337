#include "schedule/primitives/copy_at.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

Result<CopyAt> copy_at_arguments(const Context& c, bool write) {
  CopyAt a;
  TW_TRY(a.loop, c.loop("loop"));
  TW_TRY(a.block, c.block("block"));
  TW_TRY_VOID(check_inner(c, a.block));
  TW_TRY_VOID(check_pipeline(c, a.block));
  TW_TRY_VOID(check_scope_name(c, c.text("storage_scope")));
  TW_TRY(BufferRegion region,
         region_of(c, a.block, c.integer(write ? "write_buffer_index" : "read_buffer_index"), write));
  a.buffer = region.buffer;
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*a.block), loop = c.state.place(*a.loop);
  const std::vector<const For*> above = tree.loop_nodes_above(place);
  if (!std::count(above.begin(), above.end(), a.loop))
    return c.refuse(codes::loop_not_above_block,
                    fmt::format("loop {} is not above block \"{}\"", a.loop->var->name, a.block->name), a.loop);
  if (has_opaque_use(Stmt(a.loop), a.buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", a.buffer->name), a.loop);
  const BlockScope scope = c.state.scope_of(place);
  for (Place p : scope.readers(a.buffer))
    if (tree.contains(loop, p)) a.readers.push_back(p);
  for (Place p : scope.writers(a.buffer))
    if (tree.contains(loop, p)) a.writers.push_back(p);
  return a;
}

Stmt make_auto_copy(const State& state, const For* loop, const BufferRegion& region, const Buffer& cache,
                    bool into_cache, BlockId* id) {
  std::vector<const For*> loops = state.tree().loop_nodes_above(state.place(*loop));
  loops.push_back(loop);
  auto block = std::make_unique<Block>();
  block->name = cache->name;
  block->annotations["auto_copy"] = Attr(true);
  VarMap iters;
  for (const Range& r : region.region)
    for (const Expr& e : {r.min, r.extent})
      for (const Var& v : vars_of(e))
        for (const For* l : loops) {
          if (l->var.get() != v.get() || iters.count(v.get())) continue;
          Var iter = make_var(fmt::format("v{}", block->iters.size()), v->dtype);
          iters[v.get()] = iter;
          block->iters.push_back({iter, range_of(*l), IterType::spatial, l->var});
        }
  BufferRegion source = substitute(region, iters), target = source;
  (into_cache ? target : source).buffer = cache;
  std::vector<Var> vars;
  std::vector<Expr> at;
  for (const Range& r : source.region) {
    vars.push_back(make_var(fmt::format("ax{}", vars.size()), r.min->dtype));
    at.push_back(r.min + vars.back());
  }
  Stmt body = make_stmt<Store>(target.buffer, at, load(source.buffer, at));
  for (size_t i = vars.size(); i-- > 0;) body = serial_loop(vars[i], source.region[i].extent, body);
  block->reads = {source};
  block->writes = {target};
  block->body = body;
  *id = block->id;
  return finish(std::move(block));
}

void insert_copy(Context& c, const CopyAt& a, const Stmt& item, bool before, const Stmt& copy, const Buffer& cache,
                 const std::vector<std::pair<const StmtNode*, Stmt>>& replaced) {
  const TreeIndex& tree = c.state.tree();
  const Place scope = tree.enclosing_block(c.state.place(*a.block));
  Stmt s = replace_stmt(tree.ref(scope), item.get(), before ? make_seq({copy, item}) : make_seq({item, copy}));
  for (const auto& [from, to] : replaced) s = replace_stmt(s, from, to);
  c.state.replace(tree.stmt(scope), add_allocation(*as<Block>(s), cache));
}

}  // namespace tilewright
