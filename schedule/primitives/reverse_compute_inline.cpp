// reverse_compute_inline: a consumer is moved into its one producer, which then writes the consumer's output.
//   C[vi, vj] = A[…]…;  D[vi, vj] = max(C[vi, vj], 0.0)   →   D[vi, vj] = max(A[…]…, 0.0)
#include <fmt/format.h>

#include <numeric>

#include "schedule/primitive.h"
#include "schedule/primitives/inline.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {

namespace {

/// The one load of `buffer` in the consumer's value (equal loads count once); null if there are different ones.
const Load* single_load(const Expr& value, const Buffer& buffer) {
  const Load* found = nullptr;
  bool several = false;
  walk(value, [&](const Expr& e) {
    const Load* node = as<Load>(e);
    if (node && node->buffer.same_as(buffer)) {
      several = several || (found && found->hash != node->hash);
      found = node;
    }
    return true;
  });
  return several ? nullptr : found;
}

/// Domains rounded up to what their iters are divided by in the indices: `i // 4, i % 4` of 14 instances are digits
/// of 16.
std::vector<VarRange> with_whole_digits(std::vector<VarRange> domains, const std::vector<Expr>& indices) {
  constexpr int64_t most = int64_t{1} << 20;
  for (VarRange& d : domains) {
    int64_t divisor = 1;
    for (const Expr& index : indices)
      walk(index, [&](const Expr& e) {
        const Binary* node = as<Binary>(e);
        if (node && (node->op == BinaryOp::floor_div || node->op == BinaryOp::floor_mod) && node->a.same_as(d.var))
          if (std::optional<int64_t> by = const_int(node->b); by && *by > 0 && *by <= most && divisor <= most)
            divisor = std::lcm(divisor, *by);
        return true;
      });
    std::optional<int64_t> extent = const_int(d.range.extent);
    if (extent && is_const(d.range.min, 0) && divisor <= most && *extent <= Interval::kMax - divisor)
      d.range.extent = int_imm((*extent + divisor - 1) / divisor * divisor, d.range.extent->dtype);
  }
  return domains;
}

}  // namespace

Status reverse_inline_block(Context& c, const Block* block) {
  TW_TRY_VOID(check_inner(c, block));
  if (block->init) return c.refuse(codes::block_has_init, fmt::format("block \"{}\" has an init", block->name), block);
  TW_TRY_VOID(check_pipeline(c, block));
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*block);
  BlockScope scope = c.state.scope_of(place);
  std::vector<Place> producers = scope.producers(place);
  Buffer buffer;
  for (const BufferRegion& r : block->reads) {
    if (scope.writers(r.buffer).empty()) continue;
    if (buffer && !buffer.same_as(r.buffer))
      return c.refuse(block_reads_several_produced_buffers,
                      fmt::format("block \"{}\" reads {} and {}", block->name, buffer->name, r.buffer->name), block);
    buffer = r.buffer;
  }
  TW_TRY_VOID(check_complete(c, block));
  if (producers.size() != 1 || !buffer)
    return c.refuse(producer_not_single, fmt::format("block \"{}\" has {} producers", block->name, producers.size()),
                    block);
  const Block* producer = tree.block(producers[0]);
  TW_TRY_VOID(check_complete(c, producer));
  TW_TRY_VOID(check_temp(c, producer));
  if (scope.readers(buffer).size() != 1)
    return c.refuse(producer_not_single,
                    fmt::format("buffer {} has other readers than block \"{}\"", buffer->name, block->name), block);
  if (!is_true(block->predicate))
    return c.refuse(codes::predicate_not_trivial, fmt::format("block \"{}\" has a predicate", block->name), block);
  const Store *store = as<Store>(block->body), *produced = as<Store>(producer->body);
  const Load* read = store ? single_load(store->value, buffer) : nullptr;
  auto not_invertible = [&](const std::string& what) {
    return c.refuse(body_not_invertible, fmt::format("block \"{}\": {}", block->name, what), block);
  };
  if (!store || !produced || !produced->buffer.same_as(buffer))
    return not_invertible("expected one store in consumer and producer");
  if (!read) return not_invertible(fmt::format("{} is read at more than one place", buffer->name));
  if (has_opaque_use(tree.ref(scope.scope()), buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", buffer->name), block);

  // Iters of the consumer from the producer's store indices: the read map must be invertible on the iters' domains.
  Analyzer facts;
  facts.bind(domains_of(*producer));
  // An instance whose read lies outside the buffer (behind a guard) would have no instance of the producer to move
  // into.
  for (size_t d = 0; d < read->indices.size(); ++d) {
    SymbolicInterval bounds = bounds_over(read->indices[d], domains_of(*block), nullptr, facts);
    if (!bounds.bounded() || !facts.can_prove_less_equal(int_imm(0, read->indices[d]->dtype), bounds.min) ||
        !facts.can_prove(less(bounds.max, buffer->shape[d])))
      return not_invertible(fmt::format("it may read outside {}", buffer->name));
  }
  std::vector<VarRange> domains = domains_of(*block);
  IterMap map = detect_iter_map(read->indices, domains, nullptr, IterMapCheck::bijective, facts);
  if (!map) {
    // What is inverted on more instances than there are is inverted: the guard below leaves the others out.
    domains = with_whole_digits(std::move(domains), read->indices);
    IterMap wider = detect_iter_map(read->indices, domains, nullptr, IterMapCheck::bijective, facts);
    if (!wider) return not_invertible(map.failure);
    map = std::move(wider);
  }
  std::optional<std::vector<Expr>> inverse = inverse_map(map, domains, produced->indices, facts);
  if (!inverse) return not_invertible("the iters are not determined by the indices read");
  VarMap iters;
  Expr guard;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    const Iter& iter = block->iters[i];
    iters[iter.var.get()] = facts.simplify((*inverse)[i]);
    // Where the producer computes more than the consumer takes, only the consumer's domain is stored.
    Expr low = less_equal(iter.dom.min, (*inverse)[i]), high = less((*inverse)[i], end_of(iter.dom));
    if (!facts.can_prove(low)) guard = and_of(guard, facts.simplify(low));
    if (!facts.can_prove(high)) guard = and_of(guard, facts.simplify(high));
  }
  // Nor where the consumer looks elsewhere, at a constant index say.
  for (size_t d = 0; d < produced->indices.size(); ++d) {
    Expr looked_at = facts.simplify(substitute(read->indices[d], iters));
    if (!facts.can_prove_equal(looked_at, produced->indices[d]))
      guard = and_of(guard, facts.simplify(equal(looked_at, produced->indices[d])));
  }
  class ReplaceLoad : public Rewriter {
   public:
    ReplaceLoad(Buffer b, Expr v) : buffer_(std::move(b)), value_(std::move(v)) {}
    Expr operator()(const Expr& e) override {
      const Load* node = as<Load>(e);
      return node && node->buffer.same_as(buffer_) ? value_ : Rewriter::operator()(e);
    }
    using Rewriter::operator();

   private:
    Buffer buffer_;
    Expr value_;
  };
  // Substitute the consumer's iters first: the producer's value uses the producer's.
  Expr value = ReplaceLoad(buffer, produced->value)(substitute(store->value, iters));
  std::vector<Expr> indices;
  for (const Expr& index : store->indices) indices.push_back(facts.simplify(substitute(index, iters)));
  auto merged = edit(*producer);
  merged->body = make_stmt<Store>(store->buffer, indices, value);
  merged->writes = {point_region(store->buffer, indices)};
  VarMap bindings;
  for (const Iter& iter : producer->iters) bindings[iter.var.get()] = iter.binding;
  if (guard) {
    // The producer's body keeps its own iters; the guard is a predicate over its bindings.
    merged->predicate = and_of(merged->predicate, substitute(guard, bindings));
  }
  Stmt replaced = rederive_reads(finish(std::move(merged)));
  const StmtNode* gone = removable_nest(c.state, place);
  Stmt root = replace_stmt(c.state.root(), producer, replaced);
  root = replace_stmt(root, gone, nullptr);
  c.state.set_root(drop_allocation(root, buffer));
  return {};
}

namespace {

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  return reverse_inline_block(c, block);
}

const RegisterPrimitive entry{"reverse_compute_inline",
                              "moves a consumer into its one producer",
                              {.kind = "ReverseComputeInline",
                               .inputs = {{"block", ArgType::block, {}, "the consumer"}},
                               .refusals = {reverse_inline_refusals},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
