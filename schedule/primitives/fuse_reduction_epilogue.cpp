// fuse_reduction_epilogue: an epilogue that is one more step of a reduction becomes the value that it starts from.
//   C = 0; C += A * B;  D = C + bias   →   D = bias; D += A * B
#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/reducers.h"
#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(epilogue_not_the_reducer, "epilogue-not-the-reducer",
                "the epilogue does not combine the whole result with one more value as the reduction does");
TW_REFUSAL_CODE(reduction_result_has_other_readers, "reduction-result-has-other-readers",
                "the reduction's result is read by other blocks than the epilogue, too");

struct Plan {
  const Block *reduction = nullptr, *epilogue = nullptr;
  Buffer result;              ///< of the reduction
  std::vector<Expr> indices;  ///< of the epilogue's output, in the reduction's iters
  Expr start;                 ///< what the reduction starts from, in its iters
};

/// The value that the epilogue adds, and where; in the iters of the reduction.
Status match_epilogue(const Context& c, Plan& p) {
  auto refuse = [&](const std::string& why) {
    return c.refuse(epilogue_not_the_reducer, fmt::format("block \"{}\": {}", p.epilogue->name, why), p.epilogue);
  };
  const Store *store = as<Store>(p.epilogue->body), *reduced = as<Store>(p.reduction->body);
  if (!store || !reduced) return refuse("expected one store in the reduction and in the epilogue");
  const Load* read = nullptr;
  walk(store->value, [&](const Expr& e) {
    const Load* node = as<Load>(e);
    if (!read && node && node->buffer.same_as(p.result)) read = node;
    return true;
  });
  if (!read) return refuse(fmt::format("it does not read {}", p.result->name));
  Expr added;
  const Reducer* combined = match_combine(Expr(read), store->value, &added);
  bool again = false;  // a second read would not be there at the start
  if (added)
    walk(added, [&](const Expr& e) {
      const Load* node = as<Load>(e);
      again = again || (node && node->buffer.same_as(p.result));
      return true;
    });
  if (!combined || again || store->buffer->dtype != p.result->dtype)
    return refuse(fmt::format("its value is not {} combined with one other value", p.result->name));
  const BlockScope scope = c.state.scope_of(c.state.place(*p.reduction));
  if (scope.readers(p.result).size() != 1)
    return c.refuse(reduction_result_has_other_readers,
                    fmt::format("{} is read by {} blocks", p.result->name, scope.readers(p.result).size()),
                    p.reduction);
  std::optional<MatchedReducer> reducer = match_reducer(*p.reduction);
  if (!reducer)
    return c.refuse(codes::no_matching_reducer,
                    fmt::format("init and update of block \"{}\" match no registered reducer", p.reduction->name),
                    p.reduction);
  if (reducer->reducer != combined)
    return refuse(fmt::format("the reduction is a {}, the epilogue a {}", reducer->reducer->name, combined->name));

  Analyzer facts;
  facts.bind(domains_of(*p.reduction));
  IterMap map = detect_iter_map(read->indices, domains_of(*p.epilogue), nullptr, IterMapCheck::bijective, facts);
  std::optional<std::vector<Expr>> inverse;
  if (map) inverse = inverse_map(map, domains_of(*p.epilogue), reduced->indices, facts);
  if (!inverse) return refuse(fmt::format("its iters are not determined by where it reads {}", p.result->name));
  TW_TRY(Expr predicate, predicate_over_iters(c, p.epilogue));
  VarMap iters;
  bool whole = !predicate;
  for (size_t i = 0; i < inverse->size(); ++i) {
    const Iter& iter = p.epilogue->iters[i];
    iters[iter.var.get()] = facts.simplify((*inverse)[i]);
    whole = whole && facts.can_prove_less_equal(iter.dom.min, (*inverse)[i]) &&
            facts.can_prove(less((*inverse)[i], end_of(iter.dom)));
  }
  for (size_t d = 0; d < reduced->indices.size(); ++d)
    whole = whole && facts.can_prove_equal(substitute(read->indices[d], iters), reduced->indices[d]);
  if (!whole) return refuse(fmt::format("it does not take every element of {}", p.result->name));
  for (const Expr& e : store->indices) p.indices.push_back(facts.simplify(substitute(e, iters)));
  p.start = facts.simplify(substitute(added, iters));
  return {};
}

/// What the epilogue reads must be there when the reduction begins.
Status check_order(const Context& c, const Plan& p) {
  const TreeIndex& tree = c.state.tree();
  const Place reduction = c.state.place(*p.reduction), epilogue = c.state.place(*p.epilogue);
  Place common = tree.common_ancestor(reduction, epilogue);
  while (!tree.loop(common) && !tree.block(common)) common = tree.parent(common);
  for (Place other : c.state.scope_of(epilogue).producers(epilogue)) {
    // Under a loop around both, only what that iteration needs has been made.
    bool early = tree.before(other, reduction) && !(tree.loop(common) && tree.contains(common, other));
    if (other != reduction && !early)
      return c.refuse(codes::dependence_would_break,
                      fmt::format("block \"{}\" reads what \"{}\" makes after the reduction has begun",
                                  p.epilogue->name, tree.block(other)->name),
                      tree.stmt(other));
  }
  return {};
}

Status apply(Context& c) {
  Plan p;
  TW_TRY(p.reduction, c.block("reduction_block"));
  TW_TRY(p.epilogue, c.block("epilogue_block"));
  TW_TRY_VOID(check_inner(c, p.reduction));
  TW_TRY_VOID(check_inner(c, p.epilogue));
  TW_TRY_VOID(check_pipeline(c, p.reduction));
  if (p.reduction->writes.size() != 1)
    return c.refuse(codes::block_writes_several_buffers,
                    fmt::format("block \"{}\" writes {} buffers", p.reduction->name, p.reduction->writes.size()),
                    p.reduction);
  TW_TRY_VOID(check_reduction(c, p.reduction));
  TW_TRY_VOID(check_complete(c, p.epilogue));
  TW_TRY_VOID(check_sweeps_domain(c, p.epilogue));
  TW_TRY_VOID(check_temp(c, p.reduction));
  p.result = p.reduction->writes[0].buffer;
  const TreeIndex& tree = c.state.tree();
  const Place scope = tree.enclosing_block(c.state.place(*p.reduction));
  if (has_opaque_use(tree.ref(scope), p.result))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", p.result->name),
                    p.reduction);
  TW_TRY_VOID(match_epilogue(c, p));
  TW_TRY_VOID(check_order(c, p));

  const Buffer output = as<Store>(p.epilogue->body)->buffer;
  Stmt redirected =
      redirect(Stmt(p.reduction), {p.result, output, [&](const std::vector<Expr>&) { return p.indices; }, true, true});
  auto fused = edit(*as<Block>(redirected));
  fused->init = make_stmt<Store>(output, p.indices, p.start);
  fused->writes = {point_region(output, p.indices)};
  const StmtNode* gone = removable_nest(c.state, c.state.place(*p.epilogue));
  Stmt root = replace_stmt(c.state.root(), p.reduction, rederive_reads(finish(std::move(fused))));
  root = replace_stmt(root, gone, nullptr);
  c.state.set_root(drop_allocation(root, p.result));
  return {};
}

const RegisterPrimitive entry{
    "fuse_reduction_epilogue",
    "an epilogue that is one more step of a reduction becomes the value that the reduction starts from",
    {.kind = "FuseReductionEpilogue",
     .inputs = {{"reduction_block", ArgType::block, {}, "the reduction"},
                {"epilogue_block", ArgType::block, {}, "the one reader of its result"}},
     .refusals = {labels::inner, labels::pipeline, codes::block_writes_several_buffers, labels::reduction,
                  labels::complete, labels::temp, codes::buffer_opaque_or_matched, epilogue_not_the_reducer,
                  reduction_result_has_other_readers, codes::no_matching_reducer,
                  codes::predicate_not_implied_by_domain, codes::dependence_would_break},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
