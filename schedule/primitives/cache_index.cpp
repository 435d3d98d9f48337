// cache_index: what a block computes from its iters alone, again and again, is computed once into tables.
//   C[vi, vj] = A[vi * 4 + vj] * A[vi * 4 + vj]   →   index_var_0[v0, v1] = v0 * 4 + v1;  … A[index_var_0[vi, vj]] …
#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/regions.h"
#include "schedule/primitive.h"
#include "schedule/primitives/instances.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(threshold_negative, "threshold-negative", "cse_thresh is below 0");

struct Candidate {
  Expr value;  ///< as it first occurs
  Hash64 key;  ///< of its normal form
  int64_t count = 0;
  int size = 0;
  std::vector<const Iter*> iters;  ///< in order of appearance
};

int size_of(const Expr& e) {
  int n = 0;
  walk(e, [&](const Expr&) { return ++n > 0; });
  return n;
}

class Collector {
 public:
  Collector(const Block& block, Analyzer& facts) : block_(block), facts_(facts) {}

  /// Largest first, then by first appearance (values before the indices that they are stored to).
  std::vector<Candidate> collect() {
    walk_all(block_.body, [&](const Expr& e) { add(e); });
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Candidate& a, const Candidate& b) { return a.size > b.size; });
    return found_;
  }
  /// Nothing, if the expression is no candidate.
  std::optional<Hash64> key(const Expr& e) const {
    if (!eligible(e)) return std::nullopt;
    Expr normal = facts_.simplify(e);
    if (const_int(normal)) return std::nullopt;
    return normal->hash;
  }
  static void walk_all(const Stmt& s, const std::function<void(const Expr&)>& f) {
    const std::function<bool(const Expr&)> each = [&](const Expr& e) {
      f(e);
      return true;
    };
    if (const Store* store = as<Store>(s)) {
      walk(store->value, each);
      for (const Expr& e : store->indices) walk(e, each);
      return;
    }
    if (as<Block>(s)) return;  // what is computed from the iters of blocks inside is theirs to cache
    for_each_child(*s, [&](const Expr& e) { walk(e, each); }, [&](const Stmt& child) { walk_all(child, f); });
  }

 private:
  /// A scalar computed from iters of the block, total: it is computed for all of their values.
  bool eligible(const Expr& e) const {
    if (e->dtype.lanes > 1 || e->dtype == kHandle) return false;
    const bool atom = as<VarNode>(e) || as<IntImm>(e) || as<FloatImm>(e) || as<StringImm>(e);
    if (atom || reads_memory(e) || has_effect(e)) return false;
    bool total = true, iters = false;
    walk(e, [&](const Expr& x) {
      if (const VarNode* v = as<VarNode>(x)) {
        const bool own =
            std::any_of(block_.iters.begin(), block_.iters.end(), [&](const Iter& i) { return i.var.get() == v; });
        iters = iters || own;
        total = total && own;
      }
      const Binary* b = as<Binary>(x);
      if (b && (b->op == BinaryOp::floor_div || b->op == BinaryOp::floor_mod || b->op == BinaryOp::trunc_div ||
                b->op == BinaryOp::trunc_mod))
        total = total && const_int(b->b).value_or(0) != 0;
      total = total && !as<Let>(x) && !as<Call>(x);
      return total;
    });
    return total && iters;
  }
  void add(const Expr& e) {
    std::optional<Hash64> k = key(e);
    if (!k) return;
    auto it = std::find_if(found_.begin(), found_.end(), [&](const Candidate& c) { return c.key == *k; });
    if (it == found_.end()) {
      Candidate c{e, *k, 0, size_of(e), {}};
      for (const Var& v : vars_of(e))
        for (const Iter& iter : block_.iters)
          if (iter.var.same_as(v)) c.iters.push_back(&iter);
      it = found_.insert(found_.end(), std::move(c));
    }
    ++it->count;
  }
  const Block& block_;
  Analyzer& facts_;
  std::vector<Candidate> found_;
};

/// Occurrences of one candidate become reads of its table.
class Replace : public Rewriter {
 public:
  Replace(const Collector& collector, const Candidate& c, const Buffer& table)
      : collector_(collector), candidate_(c), table_(table) {}
  Expr operator()(const Expr& e) override {
    if (collector_.key(e) != candidate_.key) return Rewriter::operator()(e);
    std::vector<Expr> at;
    for (const Iter* iter : candidate_.iters) at.push_back(place_of(*iter, iter->var));
    return load(table_, at);
  }
  Stmt operator()(const Stmt& s) override { return as<Block>(s) ? s : Rewriter::operator()(s); }

 private:
  const Collector& collector_;
  const Candidate& candidate_;
  const Buffer& table_;
};

/// `index_<n>` under copies of the loops that its iters are bound to; null if these depend on others.
Stmt table_nest(const std::vector<const For*>& above, const Candidate& c, const Buffer& table, const std::string& name,
                BlockId* id) {
  auto block = std::make_unique<Block>();
  block->name = name;
  VarMap loops, iters;
  std::vector<const For*> used;
  for (const Iter* iter : c.iters)
    for (const For* l : above)
      if (uses_var(iter->binding, l->var.get()) && !loops.count(l->var.get())) {
        loops[l->var.get()] = make_var(fmt::format("ax{}", used.size()), l->var->dtype);
        used.push_back(l);
      }
  Analyzer facts;
  for (const For* l : used) {
    for (const For* other : above)
      if (uses_var(l->min, other->var.get()) || uses_var(l->extent, other->var.get())) return nullptr;
    facts.bind(Var(static_cast<const VarNode*>(loops[l->var.get()].get())), range_of(*l));
  }
  std::vector<Expr> at;
  for (const Iter* iter : c.iters) {
    Var v = make_var(fmt::format("v{}", at.size()), iter->var->dtype);
    iters[iter->var.get()] = v;
    at.push_back(place_of(*iter, v));
    Expr binding = substitute(iter->binding, loops);
    for (const Expr& test : {less_equal(iter->dom.min, binding), less(binding, end_of(iter->dom))})
      if (!facts.can_prove(test)) block->predicate = and_of(block->predicate, facts.simplify(test));
    block->iters.push_back({v, iter->dom, IterType::spatial, binding});
  }
  block->writes = {point_region(table, at)};
  block->body = make_stmt<Store>(table, at, substitute(c.value, iters));
  *id = block->id;
  Stmt s = finish(std::move(block));
  for (size_t i = used.size(); i-- > 0;)
    s = make_stmt<For>(Var(static_cast<const VarNode*>(loops[used[i]->var.get()].get())), used[i]->min, used[i]->extent,
                       used[i]->step, ForKind::serial, std::string(), AttrDict(), s);
  return s;
}

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  const std::string& storage = c.text("storage_scope");
  TW_TRY_VOID(check_inner(c, block));
  TW_TRY_VOID(check_scope_name(c, storage));
  const int64_t threshold = c.integer("cse_thresh");
  if (threshold < 0)
    return c.refuse(threshold_negative, fmt::format("expected a threshold of at least 0, found {}", threshold), block);
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*block), scope = tree.enclosing_block(place);
  const std::vector<const For*> above = tree.loop_nodes_above(place);
  Analyzer facts;
  facts.bind(domains_of(*block));
  Collector collector(*block, facts);
  auto changed = edit(*block);
  std::vector<Stmt> nests;
  std::vector<Buffer> tables;
  for (const Candidate& candidate : collector.collect()) {
    if (candidate.count < threshold) continue;
    const std::string number = fmt::format("{}", tables.size());
    std::vector<Expr> shape, at;
    for (const Iter* iter : candidate.iters) {
      shape.push_back(simplify(iter->dom.extent));
      at.push_back(place_of(*iter, iter->var));
    }
    Buffer table = make_buffer("index_var_" + number, candidate.value->dtype, shape, storage);
    Stmt body = Replace(collector, candidate, table)(changed->body);
    if (body.same_as(changed->body)) continue;  // all occurrences were inside of larger ones
    BlockId id{};
    Stmt nest = table_nest(above, candidate, table, "index_" + number, &id);
    if (!nest) continue;
    changed->body = body;
    changed->reads.push_back(point_region(table, at));
    nests.push_back(nest);
    tables.push_back(table);
    c.give(id);
  }
  if (tables.empty()) return {};
  const Stmt top = tree.ref(child_containing(tree, scope, place));
  nests.push_back(replace_stmt(top, block, finish(std::move(changed))));
  Stmt s = replace_stmt(tree.ref(scope), top.get(), make_seq(std::move(nests)));
  for (const Buffer& table : tables) s = add_allocation(*as<Block>(s), table);
  c.state.replace(tree.stmt(scope), s);
  return {};
}

const RegisterPrimitive entry{
    "cache_index",
    "what a block computes from its iters alone is computed once into tables",
    {.kind = "CacheIndex",
     .inputs = {{"block", ArgType::block, {}, "the block"}},
     .attrs = {{"storage_scope", ArgType::text, {}, "memory of the tables"},
               {"cse_thresh", ArgType::integer, 0, "how often an expression must occur to get a table"}},
     .outputs = OutputShape::blocks,
     .output_kind = SymbolKind::block,
     .refusals = {labels::inner, labels::scope, threshold_negative},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
