// loop_partition: a loop becomes consecutive loops over pieces of its range, each in a block of its own.
//   for i in 16: C   →   C_i_common: { C_i0_partition: for i0 in range(0, 4): C_i0;  C_i1_partition: for i1 in … }
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(factors_exceed_extent, "factors-exceed-extent", "the factors leave nothing for the rest of the loop");
TW_REFUSAL_CODE(loop_drives_a_reduction_iter, "loop-drives-a-reduction-iter",
                "a reduction iter uses the loop: each piece would initialise its result again");

/// Ends of the pieces, as distances from the beginning; the last is the extent.
Result<std::vector<int64_t>> piece_ends(const Context& c, const For* loop) {
  std::optional<int64_t> extent = const_int(loop->extent);
  if (!extent || !const_int(loop->min))
    return c.refuse(codes::extent_not_constant, fmt::format("the range of loop {} is not constant", loop->var->name),
                    loop);
  std::vector<std::optional<int64_t>> factors = c.factors("factors");
  std::optional<size_t> inferred;
  int64_t sum = 0;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (!factors[i]) {
      if (inferred)
        return c.refuse(codes::several_factors_inferred, "expected at most one None among the factors", loop);
      inferred = i;
    }
  }
  for (const std::optional<int64_t>& f : factors) {
    if (f && *f < 1)
      return c.refuse(codes::factor_not_positive, fmt::format("expected positive factors, found {}", *f), loop);
    if (f && __builtin_add_overflow(sum, *f, &sum)) sum = *extent;
    sum = std::min(sum, *extent);
  }
  if (sum >= *extent)
    return c.refuse(factors_exceed_extent,
                    fmt::format("expected factors whose sum is below {}, so that a rest is left", *extent), loop);
  if (!inferred) factors.push_back(std::nullopt);
  std::vector<int64_t> ends;
  int64_t at = 0;
  for (const std::optional<int64_t>& f : factors) ends.push_back(at += f.value_or(*extent - sum));
  return ends;
}

Status check(const Context& c, const For* loop) {
  const TreeIndex& tree = c.state.tree();
  const Place place = c.state.place(*loop);
  auto exempt = [](const Block&, const Iter& iter) { return iter.type != IterType::reduction; };
  if (std::optional<Violation> v = find_non_parallel_iter(tree, place, exempt))
    return c.refuse(loop_drives_a_reduction_iter,
                    fmt::format("loop {} drives iter {} of block \"{}\"", loop->var->name, v->iter->name,
                                tree.block(v->block)->name),
                    tree.stmt(v->block));
  TW_TRY_VOID(check_plain(c, loop));
  if (loop->step && !is_const(loop->step, 1))
    return c.refuse(codes::loop_step_not_one, fmt::format("loop {} has a step other than 1", loop->var->name), loop);
  return {};
}

/// Blocks of the copy get the piece's name; an iter that is bound to the loop runs over the piece.
class Piece : public Rewriter {
 public:
  Piece(Var var, Range range, std::string suffix)
      : var_(std::move(var)), range_(std::move(range)), suffix_(std::move(suffix)) {}
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const Block* block = as<Block>(mapped);
    if (!block) return mapped;
    auto copy = edit(*block);
    copy->name += suffix_;
    for (Iter& iter : copy->iters)
      if (iter.binding.get() == var_.get()) iter.dom = range_;
    return finish(std::move(copy));
  }
  Expr operator()(const Expr& e) override { return e; }

 private:
  Var var_;
  Range range_;
  std::string suffix_;
};

/// A block that says what its body touches. Loops outside that the body uses become iters: of a reduction that they
/// drive, the body does a part.
Stmt wrap(const std::string& name, Stmt body, const std::vector<const For*>& outside) {
  auto block = std::make_unique<Block>();
  block->name = name;
  VarMap iters;
  for (const For* l : outside) {
    unsigned driven = 0;
    bool used = false;
    walk(
        body,
        [&](const Expr& e) {
          used = used || as<VarNode>(e) == l->var.get();
          return !used;
        },
        [&](const Stmt& s) {
          if (const Block* inner = as<Block>(s)) driven |= iter_types_driven(*inner, l->var.get());
          return true;
        });
    if (!used) continue;
    constexpr unsigned kSpatial = 1u << static_cast<unsigned>(IterType::spatial),
                       kReduction = 1u << static_cast<unsigned>(IterType::reduction);
    Var v = make_var(fmt::format("v{}", block->iters.size()), l->var->dtype);
    iters[l->var.get()] = v;
    block->iters.push_back({v, range_of(*l),
                            driven == kReduction ? IterType::reduction
                            : driven == kSpatial ? IterType::spatial
                                                 : IterType::opaque,
                            l->var});
  }
  block->body = substitute(body, iters);
  Signature signature = derive_signature(block->body);
  block->reads = signature.reads;
  block->writes = signature.writes;
  auto among = [](const std::vector<BufferRegion>& regions, const Buffer& b) {
    return std::any_of(regions.begin(), regions.end(), [&](const BufferRegion& r) { return r.buffer.same_as(b); });
  };
  // Parts after the first go on from what is there.
  const bool part =
      std::any_of(block->iters.begin(), block->iters.end(), [](const Iter& i) { return i.type != IterType::spatial; });
  for (const BufferRegion& w : signature.writes)
    if (part && !among(block->reads, w.buffer)) block->reads.push_back(w);
  return finish(std::move(block));
}

Status apply(Context& c) {
  TW_TRY(const For* loop, c.loop("loop"));
  TW_TRY(std::vector<int64_t> ends, piece_ends(c, loop));
  TW_TRY_VOID(check(c, loop));
  const bool preserve = c.boolean("preserve_unit_iters");
  const TreeIndex& tree = c.state.tree();
  const std::vector<const For*> outside = tree.loop_nodes_above(c.state.place(*loop));
  std::vector<Place> below = tree.child_blocks(c.state.place(*loop));
  const std::string name = (below.empty() ? std::string() : tree.block(below[0])->name + "_") + loop->var->name;
  const DType type = loop->var->dtype;
  std::vector<Stmt> pieces;
  std::vector<LoopId> ids;
  int64_t begin = 0;
  for (int64_t end : ends) {
    const std::string number = fmt::format("{}", pieces.size());
    Range range{int_imm(*const_int(loop->min) + begin, type), int_imm(end - begin, type)};
    Var var = make_var(loop->var->name + number, type);
    Analyzer facts;
    bind_loops_above(facts, c.state, c.state.place(*loop), preserve);
    if (!preserve || end - begin > 1) facts.bind(var, range);
    Stmt body = rebind_blocks(loop->body, {{loop->var.get(), var}}, facts, nullptr, preserve);
    body = Piece(var, range, fmt::format("_{}{}", loop->var->name, number))(refresh(body));
    Stmt piece = make_stmt<For>(var, range.min, range.extent, Expr(), ForKind::serial, std::string(), AttrDict(), body);
    ids.push_back(as<For>(piece)->id);
    pieces.push_back(wrap(fmt::format("{}{}_partition", name, number), piece, {}));
    begin = end;
  }
  c.state.replace(loop, wrap(name + "_common", make_seq(std::move(pieces)), outside));
  for (LoopId id : ids) c.give(id);
  return {};
}

const RegisterPrimitive entry{
    "loop_partition",
    "cuts a loop into consecutive pieces, each in a block of its own",
    {.kind = "LoopPartition",
     .inputs = {{"loop", ArgType::loop, {}, "the loop"},
                {"factors", ArgType::factors, {}, "lengths of the pieces; what they leave is None or the last"}},
     .attrs = {{"preserve_unit_iters", ArgType::boolean, true, "keep variables of unit loops in the bindings"}},
     .outputs = OutputShape::loops,
     .output_kind = SymbolKind::loop,
     .refusals = {codes::extent_not_constant, codes::several_factors_inferred, codes::factor_not_positive,
                  factors_exceed_extent, loop_drives_a_reduction_iter, labels::plain, codes::loop_step_not_one},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
