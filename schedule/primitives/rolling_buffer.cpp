// rolling_buffer: a producer under a loop keeps a window of its buffer: what earlier iterations computed is not
// computed again, and the axis that the loop moves along becomes circular.
//   for i: for ax in 6: B[i * 4 + ax] = …; C …   →   for i: for ax in 6: if i < 1 or 2 <= ax: B[(i * 4 + ax) % 6] = …;
//   C …
#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(dependence_not_raw, "dependence-not-raw",
                "the buffer, or one that the block reads, is written more than once");
TW_REFUSAL_CODE(rolling_pattern_not_found, "rolling-pattern-not-found",
                "no axis of the buffer overlaps from one iteration of a common loop to the next");
TW_REFUSAL_CODE(no_common_loop, "no-common-loop", "the block and its consumers have no loop in common");
TW_REFUSAL_CODE(axis_already_parallel, "axis-already-parallel",
                "a loop along which the buffer would roll runs in parallel");

/// An axis on which one iteration's box overlaps the one before.
struct Overlap {
  size_t axis;
  const For* loop;
  Expr min;         ///< of the box, in the loop
  int64_t overlap;  ///< elements that the iteration before has computed
};

struct Plan {
  const Block* block = nullptr;
  Buffer buffer, rolled;
  std::vector<Place> consumers;
  std::vector<const For*> common;  ///< loops around the block and all consumers, outer first
  std::vector<Expr> element;       ///< what an instance writes, at its bindings
  BufferRegion box;                ///< what one iteration of the innermost common loop writes
  std::vector<Overlap> overlaps;   ///< the first is the axis that becomes circular
  int64_t extent = 0;              ///< of that axis
};

bool under(const Context& c, const For* loop, Place p) { return c.state.tree().contains(c.state.place(*loop), p); }

/// Only reads of what the block writes; and its inputs are the same when they are read again.
Status check_dependences(const Context& c, const Plan& p) {
  const Place place = c.state.place(*p.block);
  const TreeIndex& tree = c.state.tree();
  const BlockScope scope = c.state.scope_of(place);
  for (const Dependence& d : scope.dependences())
    if (d.kind != DependenceKind::raw && (!d.buffer || d.buffer->data.same_as(p.buffer->data)))
      return c.refuse(dependence_not_raw,
                      fmt::format("block \"{}\" and \"{}\" write {}",
                                  tree.block(scope.children()[static_cast<size_t>(d.from)])->name,
                                  tree.block(scope.children()[static_cast<size_t>(d.to)])->name, p.buffer->name),
                      p.block);
  for (const BufferRegion& r : p.block->reads) {
    std::vector<Place> writers = scope.writers(r.buffer), readers = scope.readers(r.buffer);
    bool updated = writers.size() > 1;
    for (Place w : writers) updated = updated || w >= place || std::count(readers.begin(), readers.end(), w);
    if (updated)
      return c.refuse(dependence_not_raw, fmt::format("{}, which the block reads, changes", r.buffer->name), p.block);
  }
  return {};
}

/// The box that one iteration of the common loops writes, and where it overlaps the one before.
Status find_overlaps(const Context& c, Plan& p, const BufferRegion& region) {
  auto not_found = [&](const std::string& why) {
    return c.refuse(rolling_pattern_not_found, fmt::format("block \"{}\": {}", p.block->name, why), p.block);
  };
  VarMap bindings;
  for (const Iter& iter : p.block->iters) bindings[iter.var.get()] = iter.binding;
  for (const Range& r : region.region) {
    if (!is_const(r.extent, 1)) return not_found(fmt::format("it writes a range of {}", p.buffer->name));
    p.element.push_back(substitute(r.min, bindings));
  }
  std::vector<VarRange> inner;
  const std::vector<const For*> above = c.state.tree().loop_nodes_above(c.state.place(*p.block));
  for (size_t i = p.common.size(); i < above.size(); ++i) inner.push_back({above[i]->var, range_of(*above[i])});
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*p.block));
  std::optional<BufferRegion> box = lower_bound(point_region(p.buffer, p.element), inner, nullptr, facts);
  if (!box) return not_found("what it writes in one iteration may have gaps");
  p.box = *box;
  for (size_t d = 0; d < box->region.size(); ++d) {
    const Range& r = box->region[d];
    std::optional<int64_t> extent = const_int(facts.simplify(r.extent));
    const For* loop = nullptr;
    int loops = 0;
    for (const For* l : p.common)
      if (uses_var(r.min, l->var.get())) loop = l, ++loops;
    if (!extent || loops != 1 || (loop->step && !is_const(loop->step, 1))) continue;
    // A box that moves along two axes at once leaves corners that no iteration before has computed.
    if (std::count_if(box->region.begin(), box->region.end(),
                      [&](const Range& x) { return uses_var(x.min, loop->var.get()); }) != 1)
      continue;
    std::optional<int64_t> stride =
        const_int(simplify(substitute(r.min, {{loop->var.get(), Expr(loop->var) + 1}}) - r.min));
    if (!stride || *stride < 1 || *stride >= *extent) continue;
    if (p.overlaps.empty()) p.extent = *extent;
    // Loops outside of the circular axis' come back to places that have been overwritten.
    const bool inside =
        p.overlaps.empty() || (loop != p.overlaps[0].loop && under(c, p.overlaps[0].loop, c.state.place(*loop)));
    if (inside) p.overlaps.push_back({d, loop, r.min, *extent - *stride});
  }
  if (p.overlaps.empty()) return not_found("no axis overlaps from one iteration to the next");
  return {};
}

Result<Plan> make_plan(const Context& c) {
  Plan p;
  TW_TRY(p.block, c.block("block"));
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY(BufferRegion region, region_of(c, p.block, c.integer("write_buffer_index"), true));
  p.buffer = region.buffer;
  TW_TRY_VOID(check_temp(c, p.block));
  TW_TRY_VOID(check_dependences(c, p));
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*p.block), scope = tree.enclosing_block(place);
  if (has_opaque_use(tree.ref(scope), p.buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", p.buffer->name), p.block);
  p.consumers = c.state.scope_of(place).readers(p.buffer);
  for (const For* l : tree.loop_nodes_above(place))
    if (std::all_of(p.consumers.begin(), p.consumers.end(), [&](Place q) { return under(c, l, q); }))
      p.common.push_back(l);
  if (p.common.empty() || p.consumers.empty())
    return c.refuse(no_common_loop, fmt::format("block \"{}\" and its consumers have no common loop", p.block->name),
                    p.block);
  TW_TRY_VOID(find_overlaps(c, p, region));
  Analyzer facts;
  bind_loops_above(facts, c.state, place);
  for (Place q : p.consumers)
    for (const BufferRegion& r : tree.block(q)->reads)
      if (r.buffer.same_as(p.buffer) &&
          !region_covers(p.box, region_at(c.state, c.state.place(*p.common.back()), q, r, p.buffer->scope), facts))
        return c.refuse(rolling_pattern_not_found,
                        fmt::format("block \"{}\" reads more of {} than one iteration has made", tree.block(q)->name,
                                    p.buffer->name),
                        tree.stmt(q));
  for (const Overlap& o : p.overlaps)
    if (o.loop->loop_kind != ForKind::serial && o.loop->loop_kind != ForKind::unrolled)
      return c.refuse(axis_already_parallel, fmt::format("loop {} runs in parallel", o.loop->var->name), o.loop);
  TW_TRY(Expr own, predicate_over_iters(c, p.block));  // it must skip the same elements in every iteration
  return p;
}

/// Indices along the circular axis, and regions.
class Roll : public Rewriter {
 public:
  explicit Roll(const Plan& p) : p_(p), axis_(p.overlaps[0].axis) {}
  Expr operator()(const Expr& e) override {
    Expr mapped = Rewriter::operator()(e);
    const Load* node = as<Load>(mapped);
    return node && node->buffer.same_as(p_.buffer) ? load(p_.rolled, rolled(node->indices)) : mapped;
  }
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const Store* node = as<Store>(mapped); node && node->buffer.same_as(p_.buffer))
      return make_stmt<Store>(p_.rolled, rolled(node->indices), node->value);
    const Block* node = as<Block>(mapped);
    if (!node) return mapped;
    auto copy = edit(*node);
    bool changed = false;
    for (auto* regions : {&copy->reads, &copy->writes})
      for (BufferRegion& r : *regions) changed |= region(r);
    return changed ? Stmt(finish(std::move(copy))) : mapped;
  }

 private:
  Expr wrapped(const Expr& e) const { return floor_mod(e, p_.extent); }
  std::vector<Expr> rolled(std::vector<Expr> indices) const {
    indices[axis_] = wrapped(indices[axis_]);
    return indices;
  }
  bool region(BufferRegion& r) const {
    if (!r.buffer.same_as(p_.buffer)) return false;
    r.buffer = p_.rolled;
    Range& along = r.region[axis_];
    const DType type = along.min->dtype;
    along = is_const(along.extent, 1) ? Range{wrapped(along.min), along.extent}
                                      : Range{int_imm(0, type), int_imm(p_.extent, type)};
    return true;
  }
  const Plan& p_;
  size_t axis_;
};

/// The block with its iters along the rolled loops made opaque: their order matters now.
std::unique_ptr<Block> ordered(const Block& block, const Plan& p) {
  auto copy = edit(block);
  for (Iter& iter : copy->iters)
    for (const Overlap& o : p.overlaps)
      if (uses_var(iter.binding, o.loop->var.get())) iter.type = IterType::opaque;
  return copy;
}

Status apply(Context& c) {
  TW_TRY(Plan p, make_plan(c));
  const Overlap& circular = p.overlaps[0];
  p.rolled = derive_buffer(p.buffer, [&](BufferNode& b) {
    b.shape[circular.axis] = int_imm(p.extent, b.shape[circular.axis]->dtype);
    b.strides.clear();
    b.elem_offset = nullptr;
    b.data = make_var(b.name, kHandle);
  });
  const TreeIndex& tree = c.state.tree();
  const Place scope = tree.enclosing_block(c.state.place(*p.block));
  Analyzer facts;
  bind_loops_above(facts, c.state, c.state.place(*p.block));
  auto block = ordered(*p.block, p);
  Expr predicate;
  for (const Overlap& o : p.overlaps)
    predicate = and_of(predicate, binary(BinaryOp::logical_or, less(o.loop->var, facts.simplify(o.loop->min + 1)),
                                         facts.simplify(less_equal(o.min + o.overlap, p.element[o.axis]))));
  block->predicate = and_of(predicate, block->predicate);
  Stmt s = replace_stmt(tree.ref(scope), p.block, finish(std::move(block)));
  for (Place q : p.consumers) s = replace_stmt(s, tree.stmt(q), finish(ordered(*tree.block(q), p)));
  s = Roll(p)(s);
  auto root = edit(*as<Block>(s));
  for (Buffer& b : root->allocs)
    if (b.same_as(p.buffer)) b = p.rolled;
  c.state.replace(tree.stmt(scope), finish(std::move(root)));
  return {};
}

const RegisterPrimitive entry{
    "rolling_buffer",
    "keeps a window of a buffer: along an axis that overlaps from iteration to iteration it becomes circular",
    {.kind = "RollingBuffer",
     .inputs = {{"block", ArgType::block, {}, "the producer, under a loop of its consumers"}},
     .attrs = {{"write_buffer_index", ArgType::integer, {}, "index of the write region"}},
     .refusals = {labels::inner, labels::index, labels::temp, dependence_not_raw, codes::buffer_opaque_or_matched,
                  no_common_loop, rolling_pattern_not_found, axis_already_parallel,
                  codes::predicate_not_implied_by_domain},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
