// pad_einsum: iters of a contraction are rounded up to multiples; inputs are copied with zeros around, the output is
// cropped.
//   C[i, j] += A[i, k] * B[k, j], i < 127   →   A_pad[128, …] = A or 0;  C_pad[128, …] += …;  C[i, j] = C_pad[i, j]
#include <fmt/format.h>

#include <algorithm>

#include "ir/analysis/reducers.h"
#include "ir/print.h"
#include "schedule/primitive.h"
#include "schedule/primitives/cache.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(padding_arity, "padding-arity", "there is not one padding for each iter");
TW_REFUSAL_CODE(padding_not_positive, "padding-not-positive", "a padding is below 1");
TW_REFUSAL_CODE(access_not_trivial, "access-not-trivial", "the block must index its buffers by bare iters");
TW_REFUSAL_CODE(buffer_read_and_written, "buffer-read-and-written", "a padded buffer is read and written by the block");
TW_REFUSAL_CODE(padding_changes_the_value, "padding-changes-the-value",
                "a zero operand does not leave the reduction unchanged");

struct Plan {
  const Block* block;
  std::vector<const For*> loops;                         ///< above the block
  std::unordered_map<const VarNode*, Expr> new_extent;   ///< by iter, only those that grow
  std::unordered_map<const VarNode*, Expr> loop_extent;  ///< by loop variable
};

bool is_zero(const Expr& e, const std::function<bool(const Load*)>& padded) {
  if (const Load* node = as<Load>(e)) return padded(node);
  if (const IntImm* c = as<IntImm>(e)) return c->value == 0;
  if (const FloatImm* c = as<FloatImm>(e)) return c->value == 0;
  if (const Cast* cast_node = as<Cast>(e)) return is_zero(cast_node->value, padded);
  if (const Binary* b = as<Binary>(e)) {
    if (b->op == BinaryOp::mul) return is_zero(b->a, padded) || is_zero(b->b, padded);
    if (b->op == BinaryOp::add || b->op == BinaryOp::sub) return is_zero(b->a, padded) && is_zero(b->b, padded);
  }
  return false;
}

/// What is cropped must have been written, and padding must not be what an integer is divided by.
Status check_body(const Context& c, const Plan& p) {
  const Place place = c.state.place(*p.block), scope = c.state.tree().enclosing_block(place);
  for (const auto* list : {&p.block->reads, &p.block->writes})
    for (const BufferRegion& r : *list) TW_TRY_VOID(check_not_opaque(c, place, r.buffer));
  for (const BufferRegion& w : p.block->writes)
    if (!written_box(c.state, scope, place, w))
      return c.refuse(region_has_gaps,
                      fmt::format("block \"{}\" may leave elements of {} unwritten, which would be cropped",
                                  p.block->name, w.buffer->name),
                      p.block);
  bool divides = false;
  walk(
      Stmt(p.block),
      [&](const Expr& e) {
        const Binary* b = as<Binary>(e);
        const bool division = b && b->dtype.is_integer_like() &&
                              (b->op == BinaryOp::floor_div || b->op == BinaryOp::floor_mod ||
                               b->op == BinaryOp::trunc_div || b->op == BinaryOp::trunc_mod);
        divides = divides || (division && reads_memory(b->b));
        return true;
      },
      [](const Stmt&) { return true; });
  if (divides)
    return c.refuse(padding_changes_the_value,
                    fmt::format("block \"{}\" would divide by a zero of the padding", p.block->name), p.block);
  return {};
}

Status check(Context& c, Plan& p) {
  TW_TRY(p.block, c.block("block"));
  TW_TRY_VOID(check_inner(c, p.block));
  TW_TRY_VOID(check_pipeline(c, p.block));
  TW_TRY_VOID(check_either(c, p.block));
  TW_TRY_VOID(check_trivial(c, p.block));
  if (!is_true(p.block->predicate))  // what it does not write would be cropped
    return c.refuse(codes::predicate_not_trivial, fmt::format("block \"{}\" has a predicate", p.block->name), p.block);
  std::vector<int64_t> padding = c.integers("padding");
  if (padding.size() != p.block->iters.size())
    return c.refuse(padding_arity, fmt::format("expected {} paddings, found {}", p.block->iters.size(), padding.size()),
                    p.block);
  p.loops = c.state.tree().loop_nodes_above(c.state.place(*p.block));
  if (!p.loops.empty()) {
    std::vector<Place> below = c.state.tree().child_blocks(c.state.place(*p.loops.front()));
    if (below.size() > 1)
      return c.refuse(codes::subtree_has_not_one_block,
                      fmt::format("loop {} has {} blocks below", p.loops.front()->var->name, below.size()),
                      p.loops.front());
  }
  std::vector<const VarNode*> padded_reductions;
  for (size_t i = 0; i < padding.size(); ++i) {
    const Iter& iter = p.block->iters[i];
    if (padding[i] < 1)
      return c.refuse(padding_not_positive, fmt::format("expected positive paddings, found {}", padding[i]), p.block);
    if (!is_const(iter.dom.min, 0))
      return c.refuse(access_not_trivial, fmt::format("iter {} does not start at 0", iter.var->name), p.block);
    std::optional<int64_t> extent = const_int(iter.dom.extent);
    if (!extent) {
      if (padding[i] == 1) continue;
      return c.refuse(codes::extent_not_constant,
                      fmt::format("the extent of iter {} is not a constant", iter.var->name), p.block);
    }
    int64_t rounded = (*extent + padding[i] - 1) / padding[i] * padding[i];
    if (rounded == *extent) continue;
    p.new_extent[iter.var.get()] = int_imm(rounded, iter.dom.extent->dtype);
    p.loop_extent[as<VarNode>(iter.binding)] = int_imm(rounded, iter.dom.extent->dtype);
    if (iter.type == IterType::reduction) padded_reductions.push_back(iter.var.get());
  }
  auto own_iter = [&](const Expr& e) {
    return std::any_of(p.block->iters.begin(), p.block->iters.end(),
                       [&](const Iter& iter) { return iter.var.get() == as<VarNode>(e); });
  };
  for (const auto* list : {&p.block->reads, &p.block->writes})
    for (const BufferRegion& r : *list)
      for (size_t d = 0; d < r.region.size(); ++d) {
        const Range& range = r.region[d];
        // What is written along a diagonal cannot be cropped as a box.
        const bool twice =
            list == &p.block->writes && std::any_of(r.region.begin(), r.region.begin() + static_cast<std::ptrdiff_t>(d),
                                                    [&](const Range& x) { return same(x.min, range.min); });
        if (!own_iter(range.min) || !is_const(range.extent, 1) || twice)
          return c.refuse(access_not_trivial,
                          fmt::format("block \"{}\" indexes dimension {} of {} by {}", p.block->name, d, r.buffer->name,
                                      twice ? "an iter that indexes another one" : print(range.min)),
                          p.block);
      }
  for (const BufferRegion& r : p.block->reads)
    for (const BufferRegion& w : p.block->writes)
      if (r.buffer.same_as(w.buffer))
        return c.refuse(buffer_read_and_written, fmt::format("{} is read and written", r.buffer->name), p.block);
  TW_TRY_VOID(check_body(c, p));
  if (padded_reductions.empty()) return {};
  std::optional<MatchedReducer> reducer = match_reducer(*p.block);
  // Beyond the domain of each padded iter by itself there must be a zero.
  bool unchanged = reducer && reducer->reducer->name == "sum";
  for (const VarNode* iter : padded_reductions) {
    auto padded = [&](const Load* node) {
      return std::any_of(node->indices.begin(), node->indices.end(),
                         [&](const Expr& e) { return as<VarNode>(e) == iter; });
    };
    unchanged = unchanged && is_zero(reducer->values[0], padded);
  }
  if (!unchanged)
    return c.refuse(padding_changes_the_value,
                    fmt::format("zeros would change the result of block \"{}\"", p.block->name), p.block);
  return {};
}

/// Of the iter that an index is.
const Expr& extent_of(const Plan& p, const Expr& iter_var) {
  for (const Iter& iter : p.block->iters)
    if (iter.var.get() == as<VarNode>(iter_var)) return iter.dom.extent;
  TW_UNREACHABLE("{} is no iter of block {}", print(iter_var), p.block->name);
}

/// Shape of the buffer when the iters that index it are rounded up; empty if none is.
std::vector<Expr> padded_shape(const Plan& p, const BufferRegion& r) {
  std::vector<Expr> shape;
  bool grows = false;
  for (const Range& range : r.region) {
    auto it = p.new_extent.find(as<VarNode>(range.min));
    shape.push_back(it == p.new_extent.end() ? extent_of(p, range.min) : it->second);
    grows = grows || it != p.new_extent.end();
  }
  return grows ? shape : std::vector<Expr>{};
}

/// pad: target = source inside, 0 outside, over the target's shape; crop: target = source inside. Inside: what the
/// block accessed before it was padded.
Stmt copy_block(const Plan& p, const BufferRegion& r, const std::string& name, const Buffer& source,
                const Buffer& target, bool pad) {
  auto block = std::make_unique<Block>();
  block->name = name;
  std::vector<Var> loops;
  std::vector<Expr> v, extents;
  Expr inside;
  for (int i = 0; i < target->rank(); ++i) {
    Var loop = make_var(fmt::format("i{}", i)), iter = make_var(fmt::format("v{}", i));
    loops.push_back(loop);
    v.push_back(iter);
    // A guarded access may go beyond the buffer.
    const Expr accessed = simplify(min_of(extent_of(p, r.region[i].min), (pad ? source : target)->shape[i]));
    extents.push_back(pad ? target->shape[i] : accessed);
    block->iters.push_back({iter, {int_imm(0), extents[i]}, IterType::spatial, loop});
    if (pad && !same(accessed, target->shape[i])) inside = and_of(inside, less(iter, accessed));
  }
  Expr value = load(source, v);
  if (pad) value = if_then_else(inside, value, zero_of(source->dtype));
  block->reads = {point_region(source, v)};
  block->writes = {point_region(target, v)};
  block->body = make_stmt<Store>(target, v, value);
  Stmt s = finish(std::move(block));
  for (int i = target->rank(); i-- > 0;) s = serial_loop(loops[i], extents[i], s);
  return s;
}

Status apply(Context& c) {
  Plan p;
  TW_TRY_VOID(check(c, p));
  if (p.new_extent.empty()) return {};
  const TreeIndex& tree = c.state.tree();
  Place scope = tree.enclosing_block(c.state.place(*p.block));
  auto block = edit(*p.block);
  for (Iter& iter : block->iters)
    if (auto it = p.new_extent.find(iter.var.get()); it != p.new_extent.end()) iter.dom.extent = it->second;
  Stmt rewritten = finish(std::move(block));
  std::vector<Stmt> before, after;
  std::vector<Buffer> made;
  auto replace = [&](const BufferRegion& r, bool write) {
    std::vector<Expr> shape = padded_shape(p, r);
    if (shape.empty()) return;
    const std::string name = r.buffer->name + "_pad";  // of the buffer and of the block that copies
    Buffer padded = buffer_like(r.buffer, name, r.buffer->scope, shape);
    made.push_back(padded);
    rewritten = redirect(rewritten, {r.buffer, padded, nullptr, true, true});
    if (write)
      after.push_back(copy_block(p, r, name, padded, r.buffer, false));
    else
      before.push_back(copy_block(p, r, name, r.buffer, padded, true));
  };
  for (const BufferRegion& r : p.block->reads) replace(r, false);
  for (const BufferRegion& r : p.block->writes) replace(r, true);
  Stmt nest_new = rewritten;
  for (size_t i = p.loops.size(); i-- > 0;) {
    auto loop = edit(*p.loops[i]);
    if (auto it = p.loop_extent.find(loop->var.get()); it != p.loop_extent.end()) loop->extent = it->second;
    loop->body =
        p.loops[i]->body.get() == (i + 1 < p.loops.size() ? static_cast<const StmtNode*>(p.loops[i + 1]) : p.block)
            ? nest_new
            : replace_stmt(p.loops[i]->body,
                           i + 1 < p.loops.size() ? static_cast<const StmtNode*>(p.loops[i + 1]) : p.block, nest_new);
    nest_new = finish(std::move(loop));
  }
  std::vector<Stmt> all = std::move(before);
  all.push_back(nest_new);
  all.insert(all.end(), after.begin(), after.end());
  const StmtNode* top = p.loops.empty() ? static_cast<const StmtNode*>(p.block) : p.loops.front();
  Stmt s = replace_stmt(tree.ref(scope), top, make_seq(std::move(all)));
  for (const Buffer& b : made) s = add_allocation(*as<Block>(s), b);
  const BlockId changed = tree.block(scope)->id;
  c.state.replace(tree.stmt(scope), s);
  refresh_signatures(c.state, changed);
  return {};
}

const RegisterPrimitive entry{
    "pad_einsum",
    "rounds iters of a contraction up to multiples; inputs are padded with zeros, the output is cropped",
    {.kind = "PadEinsum",
     .inputs = {{"block", ArgType::block, {}, "the contraction"}},
     .attrs = {{"padding", ArgType::int_list, {}, "for each iter the number that its extent becomes a multiple of"}},
     .refusals = {labels::inner, labels::pipeline, labels::either, labels::trivial, codes::predicate_not_trivial,
                  codes::subtree_has_not_one_block, padding_arity, padding_not_positive, access_not_trivial,
                  codes::extent_not_constant, buffer_read_and_written, codes::buffer_opaque_or_matched, region_has_gaps,
                  padding_changes_the_value},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
