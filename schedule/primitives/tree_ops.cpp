#include "schedule/primitives/tree_ops.h"

#include <fmt/format.h>

namespace tilewright {

void bind_loops_above(Analyzer& facts, const State& state, Place p, bool keep_units) {
  Place scope = state.tree().enclosing_block(p);
  if (scope != kNoPlace)
    for (const VarRange& iter : domains_of(*state.tree().block(scope))) facts.bind(iter.var, iter.range);
  for (const For* loop : state.tree().loop_nodes_above(p))
    if (!keep_units || !is_const(loop->extent, 1)) facts.bind(*loop);
}

Status check_zero(const Context& c, const For* loop) {
  if (!is_const(loop->min, 0))
    return c.refuse(codes::loop_does_not_start_at_zero, fmt::format("loop {} does not start at 0", loop->var->name),
                    loop);
  if (loop->step && !is_const(loop->step, 1))
    return c.refuse(codes::loop_step_not_one, fmt::format("loop {} has a step other than 1", loop->var->name), loop);
  return {};
}

Status check_plain(const Context& c, const For* loop) {
  if (!loop->annotations.empty())
    return c.refuse(codes::loop_has_annotations,
                    fmt::format("loop {} carries annotation \"{}\"", loop->var->name, loop->annotations.begin()->first),
                    loop);
  if (loop->loop_kind == ForKind::thread_binding)
    return c.refuse(codes::loop_bound_to_thread, fmt::format("loop {} is bound to {}", loop->var->name, loop->thread),
                    loop);
  return {};
}

tl::unexpected<Refusal> refuse_violation(const Context& c, const Violation& v) {
  const TreeIndex& tree = c.state.tree();
  const StmtNode* place = v.block == kNoPlace ? nullptr : tree.stmt(v.block);
  return c.refuse(*v.code, describe(v, tree), place);
}

Status check_inner(const Context& c, const Block* block) {
  if (c.state.tree().enclosing_block(c.state.place(*block)) != kNoPlace) return {};
  return c.refuse(codes::root_block_not_allowed, "the root block was given where an inner block is needed", block);
}

namespace {
Status from(const Context& c, const std::optional<Violation>& v) {
  if (v) return refuse_violation(c, *v);
  return {};
}
}  // namespace

Status check_pipeline(const Context& c, const Block* b) {
  return from(c, c.state.scope_of(c.state.place(*b)).check_stage_pipeline());
}
Status check_complete(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  return from(c, c.state.scope_of(p).check_complete(p));
}
Status check_reduction(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  return from(c, c.state.scope_of(p).check_reduction(p));
}
Status check_either(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  return from(c, c.state.scope_of(p).check_either(p));
}

Status check_temp(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  if (!c.state.scope_of(p).is_output(p)) return {};
  return c.refuse(codes::block_is_output,
                  fmt::format("block \"{}\" writes a buffer that its scope does not allocate", b->name), b);
}

Status check_removable(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  if (c.state.tree().child_blocks(c.state.tree().enclosing_block(p)).size() > 1) return {};
  return c.refuse(codes::block_is_last_of_its_scope,
                  fmt::format("block \"{}\" is the only block of its scope", b->name), b);
}

Status check_affine(const Context& c, const Block* b) {
  Place p = c.state.place(*b);
  if (c.state.scope_of(p).affine_binding(p)) return {};
  return c.refuse(codes::binding_not_affine,
                  fmt::format("the bindings of block \"{}\" are not an affine map of its loops", b->name), b);
}

Status check_trivial(const Context& c, const Block* b) {
  if (is_trivial_binding(*b, c.state.tree().loop_nodes_above(c.state.place(*b)))) return {};
  return c.refuse(codes::binding_not_trivial,
                  fmt::format("the bindings of block \"{}\" are not bare loop variables", b->name), b);
}

Status check_scope_name(const Context& c, const std::string& scope) {
  static const std::vector<std::string> roots{"global",
                                              "shared",
                                              "shared.dyn",
                                              "warp",
                                              "local",
                                              "wmma.matrix_a",
                                              "wmma.matrix_b",
                                              "wmma.accumulator",
                                              "m16n8k8.matrixA",
                                              "m16n8k8.matrixB",
                                              "m16n8k8.matrixC",
                                              "texture",
                                              "mma.matrix_a",
                                              "mma.matrix_b",
                                              "mma.accumulator",
                                              "wgmma.matrix_a",
                                              "wgmma.accumulator"};
  for (const std::string& root : roots)
    if (scope == root || (scope.size() > root.size() && scope.compare(0, root.size() + 1, root + ".") == 0)) return {};
  std::string hint = did_you_mean(scope, roots);
  auto refusal = c.refuse(codes::storage_scope_unknown,
                          fmt::format("expected a storage scope such as \"global\", found \"{}\"", scope));
  return hint.empty() ? refusal
                      : tl::unexpected<Refusal>(refusal.value().with_help(fmt::format("did you mean \"{}\"?", hint)));
}

Status check_parallel_legal(const Context& c, const For* loop, const std::string& thread) {
  auto exempt = [&](const Block& block, const Iter& iter) {
    if (iter.type != IterType::reduction) return false;
    if (thread.rfind("threadIdx", 0) == 0) return true;
    return (thread.rfind("blockIdx", 0) == 0 || thread.rfind("clusterIdx", 0) == 0) &&
           block.annotations.count("tilewright.cross_block_reduction") > 0;
  };
  return from(c, find_non_parallel_iter(c.state.tree(), c.state.place(*loop), exempt));
}

Status set_parallel_kind(Context& c, const For* loop, ForKind kind, const std::string& thread) {
  Place p = c.state.place(*loop);
  TW_TRY_VOID(from(c, c.state.scope_of(p).check_compact(p)));
  TW_TRY_VOID(check_parallel_legal(c, loop, thread));
  auto copy = edit(*loop);
  copy->loop_kind = kind;
  copy->thread = thread;
  c.state.replace(loop, finish(std::move(copy)));
  return {};
}

Status check_moved_under_parallel(const Context& c, BlockId id) {
  const TreeIndex& tree = c.state.tree();
  for (const For* loop : tree.loop_nodes_above(tree.find(id))) {
    if (loop->loop_kind == ForKind::serial || loop->loop_kind == ForKind::unrolled) continue;
    TW_TRY_VOID(check_parallel_legal(c, loop, loop->thread));
  }
  return {};
}

Stmt rebind_blocks(const Stmt& s, const VarMap& map, Analyzer& facts, const Expr& extra, bool keep_units) {
  if (const For* loop = as<For>(s)) {
    auto copy = edit(*loop);
    copy->min = substitute(loop->min, map);
    copy->extent = substitute(loop->extent, map);
    auto scope = facts.scope();
    if (!keep_units || !is_const(copy->extent, 1)) facts.bind(copy->var, {copy->min, copy->extent});
    copy->body = rebind_blocks(loop->body, map, facts, extra, keep_units);
    return finish(std::move(copy));
  }
  if (const Block* block = as<Block>(s)) {
    auto copy = edit(*block);
    for (Iter& iter : copy->iters) {
      Expr replaced = substitute(iter.binding, map);
      if (!replaced.same_as(iter.binding) || !map.empty()) iter.binding = facts.simplify(replaced);
    }
    Expr predicate;
    for (const Expr& conjunct : conjuncts(substitute(block->predicate, map)))
      predicate = and_of(predicate, facts.simplify(conjunct));
    if (extra) predicate = and_of(predicate, facts.simplify(extra));
    copy->predicate = is_true(predicate) ? Expr() : predicate;
    return finish(std::move(copy));
  }
  return map_children(
      s, [&](const Expr& e) { return substitute(e, map); },
      [&](const Stmt& child) { return rebind_blocks(child, map, facts, extra, keep_units); });
}

Stmt with_loop_body(const For& loop, Stmt body) {
  auto copy = edit(loop);
  copy->body = std::move(body);
  return finish(std::move(copy));
}

Stmt nest(const std::vector<const For*>& loops, Stmt body) {
  for (size_t i = loops.size(); i-- > 0;) body = with_loop_body(*loops[i], std::move(body));
  return body;
}

Stmt serial_loop(const Var& var, const Expr& extent, Stmt body, LoopId id) {
  auto node = std::make_unique<For>();
  node->var = var;
  node->min = int_imm(0, var->dtype);
  node->extent = extent;
  node->body = std::move(body);
  node->id = id;
  return finish(std::move(node));
}

void insert_before(State& state, Place p, const Stmt& s) {
  Stmt at = state.tree().ref(p);
  state.replace(at.get(), make_seq({s, at}));
}

void insert_after(State& state, Place p, const Stmt& s) {
  Stmt at = state.tree().ref(p);
  state.replace(at.get(), make_seq({at, s}));
}

const StmtNode* removable_nest(const State& state, Place block) {
  const TreeIndex& tree = state.tree();
  Place p = block;
  while (tree.loop(tree.parent(p))) p = tree.parent(p);
  return tree.stmt(p);
}

Result<BufferRegion> region_of(const Context& c, const Block* block, int64_t index, bool write) {
  const std::vector<BufferRegion>& regions = write ? block->writes : block->reads;
  if (index >= 0 && index < static_cast<int64_t>(regions.size())) return regions[index];
  return c.refuse(codes::buffer_index_out_of_range,
                  fmt::format("block \"{}\" has {} {} regions, found index {}", block->name, regions.size(),
                              write ? "write" : "read", index),
                  block);
}

Place allocating_block(const State& state, Place from, const Buffer& buffer) {
  const TreeIndex& tree = state.tree();
  for (Place p = from; p != kNoPlace; p = tree.enclosing_block(p))
    if (const Block* block = tree.block(p))
      for (const Buffer& b : block->allocs)
        if (b.same_as(buffer)) return p;
  return kNoPlace;
}

}  // namespace tilewright
