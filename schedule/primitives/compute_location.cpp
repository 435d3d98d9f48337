// Moving a block: where it may stand, which part of its iteration space is needed there, and the new nest.
#include "schedule/primitives/compute_location.h"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/primitives/cache.h"
#include "schedule/primitives/inline.h"

namespace tilewright {

namespace {

struct Move {
  Context& c;
  const Block* block;
  const For* loop;
  MoveDirection direction;
  Place place, loop_place;
  bool producer() const { return direction == MoveDirection::to_consumers; }
};

/// Items of the loop's body, as places' statements.
std::vector<Stmt> body_items(const For* loop) {
  const Seq* seq = as<Seq>(loop->body);
  return seq ? seq->stmts : std::vector<Stmt>{loop->body};
}

int item_containing(const TreeIndex& tree, const std::vector<Stmt>& items, Place p) {
  for (Place at = p; at != kNoPlace; at = tree.parent(at))
    for (size_t i = 0; i < items.size(); ++i)
      if (items[i].get() == tree.stmt(at)) return static_cast<int>(i);
  return -1;
}

Status check(const Move& m) {
  Context& c = m.c;
  const TreeIndex& tree = c.state.tree();
  TW_TRY_VOID(check_inner(c, m.block));
  if (tree.enclosing_block(m.place) != tree.enclosing_block(m.loop_place))
    return c.refuse(
        block_and_loop_in_different_scopes,
        fmt::format("block \"{}\" and loop {} are in different scope blocks", m.block->name, m.loop->var->name),
        m.block);
  TW_TRY_VOID(check_pipeline(c, m.block));
  TW_TRY_VOID(check_either(c, m.block));
  if (tree.contains(m.loop_place, m.place))
    return c.refuse(loop_above_block,
                    fmt::format("loop {} already encloses block \"{}\"", m.loop->var->name, m.block->name), m.loop);
  if (m.producer()) TW_TRY_VOID(check_temp(c, m.block));
  BlockScope scope = c.state.scope_of(m.place);
  std::vector<Place> required = m.producer() ? scope.consumers(m.place) : scope.producers(m.place);
  for (Place p : required)
    if (!tree.contains(m.loop_place, p)) {
      const RefusalCode& code = m.producer() ? consumer_outside_loop : producer_outside_loop;
      return c.refuse(
          code,
          fmt::format("block \"{}\" has {} {}s and \"{}\" is outside loop {}", m.block->name, required.size(),
                      m.producer() ? "consumer" : "producer", tree.block(p)->name, m.loop->var->name),
          tree.stmt(p));
    }
  if (!m.producer())
    for (Place p : required) {
      std::vector<const For*> around{m.loop};
      for (const For* l : tree.loop_nodes_above(m.loop_place)) around.push_back(l);
      for (const For* l : around)
        if (iter_types_driven(*tree.block(p), l->var.get()) & (1u << static_cast<int>(IterType::reduction)))
          return c.refuse(producer_not_complete_under_loop,
                          fmt::format("loop {} drives a reduction of block \"{}\"", l->var->name, tree.block(p)->name),
                          l);
    }
  if (required.empty())
    return c.refuse(m.producer() ? consumer_outside_loop : producer_outside_loop,
                    fmt::format("block \"{}\" has no {} under loop {}", m.block->name,
                                m.producer() ? "consumer" : "producer", m.loop->var->name),
                    m.block);
  return {};
}

/// Position among the items of the loop's body.
Result<int> insertion_point(const Move& m, const std::vector<Stmt>& items, int64_t index) {
  const TreeIndex& tree = m.c.state.tree();
  BlockScope scope = m.c.state.scope_of(m.place);
  int first = 0, last = static_cast<int>(items.size());
  for (Place p : scope.producers(m.place)) {
    int at = item_containing(tree, items, p);
    if (at >= 0) first = std::max(first, at + 1);
  }
  for (Place p : scope.consumers(m.place)) {
    int at = item_containing(tree, items, p);
    if (at >= 0) last = std::min(last, at);
  }
  TW_CHECK(first <= last, "block {} stood after its producers and before its consumers", m.block->name);
  if (index == -1) return last;
  if (index == -2) return first;
  if (index < first || index > last)
    return m.c.refuse(insertion_index_invalid,
                      fmt::format("expected a place from {} to {}, found {}", first, last, index), m.loop);
  return static_cast<int>(index);
}

/// The needed part of each iter: unset = the whole domain.
using Needed = std::vector<std::optional<Range>>;

/// Narrows iters from one dimension: the block touches `touched` (a function of its iters) where `needed` is wanted.
/// `shape`: extent of the buffer in that dimension.
bool solve_dimension(const Move& m, const Range& touched, const Range& needed, const Expr& shape, Needed& out,
                     Analyzer& facts) {
  const std::vector<Iter>& iters = m.block->iters;
  auto iter_of = [&](const Expr& e) -> int {
    const VarNode* v = as<VarNode>(e);
    for (size_t i = 0; v && i < iters.size(); ++i)
      if (iters[i].var.get() == v) return static_cast<int>(i);
    return -1;
  };
  auto narrow = [&](int i, const Range& r) {
    if (!out[i]) {
      out[i] = facts.simplify(r);
      return true;
    }
    // A consumer runs where all of what it reads is there: one answer, or none.
    if (!m.producer())
      return facts.can_prove_equal(out[i]->min, r.min) && facts.can_prove_equal(out[i]->extent, r.extent);
    Expr lo = min_of(out[i]->min, r.min), hi = max_of(end_of(*out[i]), end_of(r));
    out[i] = facts.simplify(Range{lo, hi - lo});
    return true;
  };
  int used = -1, count = 0;
  for (size_t i = 0; i < iters.size(); ++i)
    if (uses_var(touched.min, iters[i].var.get())) used = static_cast<int>(i), ++count;
  if (!m.producer()) {
    // All instances may run in each iteration if all that they read is there; else each must find its iteration.
    SymbolicInterval low = bounds_over(touched.min, domains_of(*m.block), nullptr, facts);
    SymbolicInterval high = bounds_over(end_of(touched), domains_of(*m.block), nullptr, facts);
    if (low.bounded() && high.bounded() && facts.can_prove_less_equal(needed.min, low.min) &&
        facts.can_prove_less_equal(high.max, end_of(needed)))
      return true;
    // What it only would read outside the buffer (a guarded read) is there in no iteration.
    bool inside = low.bounded() && high.bounded() && facts.can_prove_less_equal(int_imm(0, shape->dtype), low.min) &&
                  facts.can_prove_less_equal(high.max, shape);
    if (count == 0 || !is_const(touched.extent, 1) || !inside) return false;
  }
  if (count == 0) return true;
  // What the widest instance touches: an extent that depends on the block's own iters means nothing outside it.
  const Expr width = const_int(touched.extent) ? touched.extent
                                               : bounds_over(touched.extent, domains_of(*m.block), nullptr, facts).max;
  if (count == 1 && width) {
    const Var& v = iters[used].var;
    // touched.min = a * v + b
    Expr at0 = substitute(touched.min, {{v.get(), int_imm(0, v->dtype)}});
    Expr slope = facts.simplify(touched.min - at0);
    if (iter_of(slope) == used) {  // v + b: min of the region is v's, extents above 1 widen downwards
      Expr lo = needed.min - at0, hi = end_of(needed) - at0;
      if (!is_const(touched.extent, 1)) lo = lo - (width - 1);
      return narrow(used, {lo, hi - lo});
    }
    if (const Binary* mul = as<Binary>(slope); mul && mul->op == BinaryOp::mul && iter_of(mul->a) == used) {
      if (std::optional<int64_t> k = const_int(mul->b); k && *k > 0) {  // k * v + b
        Expr lo = needed.min - at0, hi = end_of(needed) - at0;          // k v in (lo - extent, hi)
        Expr first = floor_div(lo - (width - 1) + (*k - 1), *k);
        Expr last = floor_div(hi - 1, *k);
        return narrow(used, {first, last - first + 1});
      }
    }
    if (const Binary* div = as<Binary>(touched.min);
        div && (div->op == BinaryOp::floor_div || div->op == BinaryOp::floor_mod)) {
      std::optional<int64_t> k = const_int(div->b);
      if (k && *k > 0 && iter_of(div->a) == used && div->op == BinaryOp::floor_div && is_const(touched.extent, 1)) {
        return narrow(used, {needed.min * *k, needed.extent * *k});
      }
    }
  }
  // Several iters or another form: a producer makes all of it; for a consumer there is no answer.
  for (size_t i = 0; i < iters.size(); ++i)
    if (uses_var(touched.min, iters[i].var.get())) out[i] = iters[i].dom;
  return m.producer();
}

/// Whether what `writer` writes of `region` in one iteration of the loop is a whole box: in each dimension a sum of
/// loops inside it whose steps leave no gap, no loop in two dimensions, nothing masked but what lies outside the
/// buffer. A region is a hull; who reads where nothing was written reads rubbish.
bool writes_without_gaps(const Move& m, const Block& writer, const BufferRegion& region, Analyzer& facts) {
  Analyzer own;
  own.bind(domains_of(writer));  // an iter of extent 1 is the constant that the signature may say
  if (!boxes_cover(surely_written(writer, region.buffer, own), region, own)) return false;
  const TreeIndex& tree = m.c.state.tree();
  VarMap bindings;
  for (const Iter& iter : writer.iters) bindings[iter.var.get()] = iter.binding;
  std::vector<Expr> starts;
  for (const Range& r : region.region) starts.push_back(substitute(r.min, bindings));
  VarMap firsts;  // loops inside at their beginning
  Place place = m.c.state.place(writer);
  for (size_t d = 0; d < starts.size(); ++d) {
    std::optional<int64_t> width = const_int(region.region[d].extent);
    if (!width) return false;
    std::vector<std::pair<int64_t, int64_t>> steps;  // step, extent of the loops inside
    for (const For* loop : tree.loop_nodes_above(place)) {
      if (loop == m.loop || !tree.contains(m.loop_place, m.c.state.place(*loop))) continue;
      firsts[loop->var.get()] = loop->min;
      if (!uses_var(starts[d], loop->var.get())) continue;
      Expr next = substitute(starts[d], {{loop->var.get(), Expr(loop->var) + 1}});
      std::optional<int64_t> step = const_int(facts.simplify(next - starts[d])), extent = const_int(loop->extent);
      if (!step || !extent) return false;
      for (size_t e = 0; e < d; ++e)
        if (uses_var(starts[e], loop->var.get())) return false;
      steps.emplace_back(std::abs(*step), *extent);
    }
    std::sort(steps.begin(), steps.end());
    int64_t reach = *width;
    for (auto [step, extent] : steps) {
      if (step > reach) return false;
      reach += step * (extent - 1);
    }
  }
  for (const Expr& conjunct : conjuncts(writer.predicate)) {
    if (is_true(conjunct)) continue;
    const Binary* cmp = as<Binary>(conjunct);
    bool edge = false;
    for (size_t d = 0; cmp && cmp->op == BinaryOp::lt && d < starts.size(); ++d)
      edge = edge ||
             (facts.can_prove_equal(cmp->a, starts[d]) && facts.can_prove_less_equal(region.buffer->shape[d], cmp->b) &&
              // an iteration that writes nothing has nothing for its consumer
              facts.can_prove_less_equal(substitute(starts[d], firsts) + 1, region.buffer->shape[d]));
    if (!edge) return false;
  }
  return true;
}

/// The block's iters that are needed under the loop.
Result<Needed> needed_iters(const Move& m, Analyzer& facts) {
  const State& state = m.c.state;
  const TreeIndex& tree = state.tree();
  BlockScope scope = state.scope_of(m.place);
  Needed out(m.block->iters.size());
  const std::vector<BufferRegion>& own = m.producer() ? m.block->writes : m.block->reads;
  std::vector<Place> others = m.producer() ? scope.consumers(m.place) : scope.producers(m.place);
  for (const BufferRegion& touched : own) {
    std::optional<BufferRegion> needed;
    for (Place other : others) {
      const Block* b = tree.block(other);
      for (const BufferRegion& r : m.producer() ? b->reads : b->writes) {
        if (!r.buffer.same_as(touched.buffer) && r.buffer->data.get() != touched.buffer->data.get()) continue;
        if (!m.producer() && !writes_without_gaps(m, *b, r, facts))
          return m.c.refuse(region_not_solvable,
                            fmt::format("what block \"{}\" writes of {} under loop {} may have gaps", b->name,
                                        r.buffer->name, m.loop->var->name),
                            b);
        // A producer makes what all threads that share the buffer need. A consumer finds in one iteration of a thread
        // loop what that thread has written: the others may not have come so far, whatever memory they share.
        BufferRegion at = region_at(state, m.loop_place, other, r, m.producer() ? touched.buffer->scope : "local");
        needed = needed ? region_union(*needed, at, facts) : at;
      }
      // An update block reads what it writes without saying so in its signature (it has an init).
      if (m.producer() && b->init) {
        for (const BufferRegion& r : b->writes) {
          if (!r.buffer.same_as(touched.buffer)) continue;
          BufferRegion at = region_at(state, m.loop_place, other, r, touched.buffer->scope);
          needed = needed ? region_union(*needed, at, facts) : at;
        }
      }
    }
    if (!needed) continue;
    for (size_t d = 0; d < touched.region.size(); ++d)
      if (!solve_dimension(m, touched.region[d], needed->region[d], touched.buffer->shape[d], out, facts))
        return m.c.refuse(
            region_not_solvable,
            fmt::format(
                "the part of block \"{}\" that is needed under loop {} cannot be derived from dimension {} of {}",
                m.block->name, m.loop->var->name, d, touched.buffer->name),
            m.block);
  }
  return out;
}

struct NewNest {
  Stmt stmt;
};

/// Loops ax0… over the needed ranges around the block with new bindings.
Stmt build_nest(const Move& m, const Needed& needed, bool preserve_unit_loops, Analyzer& facts) {
  auto block = edit(*m.block);
  Expr predicate;
  std::vector<std::pair<Var, Expr>> loops;
  VarMap bindings_by_iter;
  for (size_t i = 0; i < block->iters.size(); ++i) {
    Iter& iter = block->iters[i];
    Range dom = iter.dom, range = needed[i] ? *needed[i] : dom;
    if (needed[i]) {
      Expr lo = range.min, hi = end_of(range), dom_hi = end_of(dom);
      bool inside = facts.can_prove_less_equal(dom.min, lo) && facts.can_prove_less_equal(hi, dom_hi);
      if (!inside) {
        bool domain_inside = facts.can_prove_less_equal(lo, dom.min) && facts.can_prove_less_equal(dom_hi, hi);
        if (domain_inside) {
          range = dom;
        } else {
          Expr cut_lo = facts.simplify(max_of(lo, dom.min)), cut_hi = facts.simplify(min_of(hi, dom_hi));
          Expr extent = facts.simplify(cut_hi - cut_lo);
          if (const_int(extent)) {
            range = {cut_lo, extent};
          }  // else: the loop covers the region, and the domain becomes a predicate below
        }
      }
    }
    range = facts.simplify(range);
    if (!preserve_unit_loops && is_const(range.extent, 1)) {
      iter.binding = range.min;
    } else {
      Var ax = make_var(fmt::format("ax{}", loops.size()), iter.var->dtype);
      iter.binding = facts.simplify(range.min + ax);  // before its range is known: a unit loop stays in it
      facts.bind(ax, {int_imm(0, ax->dtype), range.extent});
      loops.emplace_back(ax, range.extent);
    }
    Expr low = less_equal(dom.min, iter.binding), high = less(iter.binding, end_of(dom));
    if (!facts.can_prove(low)) predicate = and_of(predicate, facts.simplify(low));
    if (!facts.can_prove(high)) predicate = and_of(predicate, facts.simplify(high));
    bindings_by_iter[iter.var.get()] = iter.binding;
  }
  block->predicate = is_true(predicate) ? Expr() : predicate;
  Stmt nest = finish(std::move(block));
  for (size_t i = loops.size(); i-- > 0;) nest = serial_loop(loops[i].first, loops[i].second, nest);
  return nest;
}

/// The block's own predicate is about loops that vanish: it must follow from the iters' domains.
Status check_own_predicate(const Move& m) {
  if (is_true(m.block->predicate)) return {};
  // A predicate made by a split says that the binding is inside the domain; bindings rewritten as iters make that
  // visible.
  for (const Expr& conjunct : conjuncts(m.block->predicate)) {
    const Binary* cmp = as<Binary>(conjunct);
    bool about_domain = false;
    for (const Iter& iter : m.block->iters) {
      if (!cmp || cmp->op != BinaryOp::lt) break;
      Analyzer facts;
      about_domain = about_domain || (facts.can_prove_equal(cmp->a, iter.binding) &&
                                      facts.can_prove_less_equal(end_of(iter.dom), cmp->b));
    }
    if (!about_domain)
      return m.c.refuse(codes::predicate_not_implied_by_domain,
                        fmt::format("the predicate of block \"{}\" would be lost", m.block->name), m.block);
  }
  return {};
}

}  // namespace

Status move_block(Context& c, const Block* block, const For* loop, bool preserve_unit_loops, int64_t index,
                  MoveDirection direction) {
  Move m{c, block, loop, direction, c.state.place(*block), c.state.place(*loop)};
  TW_TRY_VOID(check(m));
  std::vector<Stmt> items = body_items(loop);
  TW_TRY(int position, insertion_point(m, items, index));
  TW_TRY_VOID(check_own_predicate(m));
  Analyzer facts;
  bind_loops_above(facts, c.state, m.loop_place);
  facts.bind(*loop);
  TW_TRY(Needed needed, needed_iters(m, facts));
  Stmt nest = build_nest(m, needed, preserve_unit_loops, facts);
  items.insert(items.begin() + position, nest);
  Stmt moved = with_loop_body(*loop, make_seq(std::move(items)));
  const StmtNode* gone = removable_nest(c.state, m.place);
  Stmt root = replace_stmt(c.state.root(), loop, moved);
  root = replace_stmt(root, gone, nullptr);
  c.state.set_root(root);
  return check_moved_under_parallel(c, block->id);
}

Status apply_compute_location(Context& c, MoveDirection direction) {
  TW_TRY(const Block* block, c.block("block"));
  Symbol symbol = *c.value("loop").get<Symbol>();
  if (symbol.number >= 0 && symbol.number < static_cast<int>(c.schedule.symbols().size())) {
    uint64_t id = c.schedule.symbols()[symbol.number].id;
    if (id == kRootLocation) return {};
    if (id == kInlineLocation)
      return direction == MoveDirection::to_consumers ? inline_block(c, block) : reverse_inline_block(c, block);
  }
  TW_TRY(const For* loop, c.loop("loop"));
  return move_block(c, block, loop, c.boolean("preserve_unit_loops"), c.integer("index"), direction);
}

}  // namespace tilewright
