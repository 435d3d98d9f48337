#include "schedule/primitives/instances.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright {

namespace {

/// The conjunct only keeps a binding inside its domain, as the predicate of a split does.
bool is_about_domain(const Block& block, const Expr& conjunct, Analyzer& facts) {
  const Binary* cmp = as<Binary>(conjunct);
  return cmp && cmp->op == BinaryOp::lt && std::any_of(block.iters.begin(), block.iters.end(), [&](const Iter& iter) {
           return facts.can_prove_equal(cmp->a, iter.binding) && facts.can_prove_less_equal(end_of(iter.dom), cmp->b);
         });
}

}  // namespace

Status check_sweeps_domain(const Context& c, const Block* block) {
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*block));
  auto swept = edit(*block);
  swept->predicate = nullptr;
  for (const Expr& conjunct : conjuncts(block->predicate))
    if (is_about_domain(*block, conjunct, facts)) swept->predicate = and_of(swept->predicate, conjunct);
  if (is_affine_binding(*swept, c.state.tree().loop_nodes_above(c.state.place(*block)), facts)) return {};
  return c.refuse(codes::binding_not_affine,
                  fmt::format("the bindings of block \"{}\" do not reach all of the iters' domains", block->name),
                  block);
}

Result<Expr> predicate_over_iters(const Context& c, const Block* block) {
  if (is_true(block->predicate)) return Expr();
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*block));
  std::vector<Expr> bindings, iters;
  for (const Iter& iter : block->iters) {
    bindings.push_back(iter.binding);
    iters.push_back(iter.var);
  }
  const std::vector<const For*> loops = c.state.tree().loop_nodes_above(c.state.place(*block));
  const std::vector<VarRange> ranges = ranges_of(loops);
  IterMap map = detect_iter_map(bindings, ranges, nullptr, IterMapCheck::bijective, facts);
  std::optional<std::vector<Expr>> values;
  if (map) values = inverse_map(map, ranges, iters, facts);
  Analyzer domains;
  domains.bind(domains_of(*block));
  Expr out;
  for (const Expr& conjunct : conjuncts(block->predicate)) {
    if (is_about_domain(*block, conjunct, facts)) continue;
    if (!values)
      return c.refuse(codes::predicate_not_implied_by_domain,
                      fmt::format("the predicate of block \"{}\" is no condition on its iters", block->name), block);
    VarMap loop_values;
    for (size_t i = 0; i < loops.size(); ++i) loop_values[loops[i]->var.get()] = (*values)[i];
    Expr condition = domains.simplify(substitute(conjunct, loop_values));
    if (!is_true(condition)) out = and_of(out, condition);
  }
  return out;
}

Expr inside_buffer(const Buffer& buffer, const std::vector<Expr>& indices, Analyzer& facts) {
  Expr inside;
  for (size_t d = 0; d < indices.size(); ++d) {
    Expr low = less_equal(int_imm(0, indices[d]->dtype), indices[d]), high = less(indices[d], buffer->shape[d]);
    if (!facts.can_prove(low)) inside = and_of(inside, facts.simplify(low));
    if (!facts.can_prove(high)) inside = and_of(inside, facts.simplify(high));
  }
  return inside;
}

Expr place_of(const Iter& iter, const Expr& value) { return simplify(value - iter.dom.min); }

Buffer whole_cache(const Buffer& buffer, const std::string& storage_scope) {
  return buffer_like(buffer, buffer->name + "_" + storage_scope, storage_scope, buffer->shape);
}

Status check_scope_covers(const Context& c, const Block* block, const BufferRegion& touched,
                          const std::string& storage_scope, bool write) {
  const TreeIndex& tree = c.state.tree();
  const Place scope_place = tree.enclosing_block(c.state.place(*block));
  const Block& scope = *tree.block(scope_place);
  if (scope.iters.empty() && scope.reads.empty() && scope.writes.empty()) return {};
  BufferRegion declared = full_region(touched.buffer);
  for (const BufferRegion& r : write ? scope.writes : scope.reads)
    if (r.buffer.same_as(touched.buffer)) declared = r;
  Analyzer facts;
  if (region_covers(declared, region_at(c.state, scope_place, c.state.place(*block), touched, storage_scope), facts))
    return {};
  return c.refuse(scope_region_not_covered,
                  fmt::format("the scope {} less of {} than block \"{}\"", write ? "writes" : "reads",
                              touched.buffer->name, block->name),
                  block);
}

}  // namespace tilewright
