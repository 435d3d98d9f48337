// tensorize: a block (or the subtree of a loop, blockized first) is what a tensor intrinsic computes, and becomes the
// intrinsic's body. Operands are matched by position in the intrinsic's description: the last dimensions of a buffer
// stand for those of the operand, from an offset that no loop inside moves.
#include <fmt/format.h>

#include <unordered_set>

#include "ir/print.h"

#include "schedule/intrinsics/intrinsic.h"
#include "schedule/primitive.h"
#include "schedule/primitives/blockize.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(intrinsic_unknown, "intrinsic-unknown", "no tensor intrinsic has that name");
TW_REFUSAL_CODE(intrinsic_structure_differs, "intrinsic-structure-differs",
                "the block computes something else than the intrinsic");
TW_REFUSAL_CODE(intrinsic_extent_differs, "intrinsic-extent-differs",
                "a loop or iter has another extent than in the intrinsic");
TW_REFUSAL_CODE(intrinsic_iter_type_differs, "intrinsic-iter-type-differs",
                "an iter has another type than in the intrinsic");
TW_REFUSAL_CODE(intrinsic_dtype_differs, "intrinsic-dtype-differs", "an operand has another element type");
TW_REFUSAL_CODE(intrinsic_scope_differs, "intrinsic-scope-differs", "an operand lies in another storage scope");
TW_REFUSAL_CODE(intrinsic_stride_differs, "intrinsic-stride-differs",
                "the elements of an operand do not lie as the intrinsic wants them");
TW_REFUSAL_CODE(intrinsic_offset_misaligned, "intrinsic-offset-misaligned",
                "an operand begins at an offset that its factor does not divide");
TW_REFUSAL_CODE(intrinsic_not_on_target, "intrinsic-not-on-target",
                "the function's target lacks what the intrinsic needs");
TW_REFUSAL_CODE(annotation_conflicts, "annotation-conflicts",
                "block and intrinsic have an annotation with different values");

struct Operand {
  Buffer buffer;
  std::vector<Expr> leading, offset;  ///< indices before the operand's dimensions; where it begins in those
};

struct Mismatch {
  const RefusalCode* code = nullptr;
  std::string message;
};

/// Compares a description with a block; a difference is kept in `why`, the deepest first one.
class Matcher {
 public:
  explicit Matcher(Analyzer& facts) : facts_(facts) {}
  Mismatch why;
  std::unordered_map<const BufferNode*, Operand> operands;

  bool stmt(const Stmt& d, const Stmt& t) {
    if (const For* loop = as<For>(t); loop && is_const(loop->extent, 1)) {  // units say nothing
      vars_inside_.insert(loop->var.get());
      units_[loop->var.get()] = loop->min;
      return stmt(d, loop->body);
    }
    if (d->kind != t->kind) return differs(intrinsic_structure_differs, "another kind of statement");
    if (const For* want = as<For>(d)) return loop(*want, *as<For>(t));
    if (const Block* want = as<Block>(d)) return block(*want, *as<Block>(t));
    if (const Seq* want = as<Seq>(d)) {
      const Seq* found = as<Seq>(t);
      if (want->stmts.size() != found->stmts.size())
        return differs(intrinsic_structure_differs, "another number of statements");
      for (size_t i = 0; i < want->stmts.size(); ++i)
        if (!stmt(want->stmts[i], found->stmts[i])) return false;
      return true;
    }
    if (const Store* want = as<Store>(d)) {
      const Store* found = as<Store>(t);
      return access(want->buffer, want->indices, found->buffer, found->indices) && expr(want->value, found->value);
    }
    return differs(intrinsic_structure_differs, "a statement that descriptions do not have");
  }

 private:
  bool differs(const RefusalCode& code, std::string message) {
    if (!why.code) why = {&code, std::move(message)};
    return false;
  }

  bool loop(const For& d, const For& t) {
    if (d.loop_kind != t.loop_kind || !t.annotations.empty() || t.step)
      return differs(intrinsic_structure_differs, fmt::format("loop {} is not a plain serial loop", t.var->name));
    if (!is_const(t.min, 0) || !same_int(d.extent, t.extent))
      return differs(intrinsic_extent_differs, fmt::format("loop {} has extent {}, the intrinsic {}", t.var->name,
                                                           text(t.extent), text(d.extent)));
    vars_[d.var.get()] = t.var;
    vars_inside_.insert(t.var.get());
    return stmt(d.body, t.body);
  }

  bool block(const Block& d, const Block& t) {
    if (!is_true(t.predicate))
      return differs(codes::predicate_not_trivial, fmt::format("block \"{}\" has a predicate", t.name));
    if (t.init || !t.allocs.empty() || !t.matches.empty())
      return differs(intrinsic_structure_differs,
                     fmt::format("block \"{}\" has an init, an allocation or an alias", t.name));
    std::vector<const Iter*> iters;
    for (const Iter& iter : t.iters) {
      vars_inside_.insert(iter.var.get());
      if (is_const(iter.dom.extent, 1))
        units_[iter.var.get()] = iter.dom.min;
      else
        iters.push_back(&iter);
    }
    if (iters.size() != d.iters.size())
      return differs(intrinsic_structure_differs,
                     fmt::format("block \"{}\" has {} iters, the intrinsic {}", t.name, iters.size(), d.iters.size()));
    for (size_t i = 0; i < iters.size(); ++i) {
      const Iter &want = d.iters[i], &found = *iters[i];
      if (want.type != found.type)
        return differs(intrinsic_iter_type_differs, fmt::format("iter {} has another type", found.var->name));
      if (!is_const(found.dom.min, 0) || !same_int(want.dom.extent, found.dom.extent))
        return differs(intrinsic_extent_differs, fmt::format("iter {} has extent {}, the intrinsic {}", found.var->name,
                                                             text(found.dom.extent), text(want.dom.extent)));
      if (!expr(want.binding, found.binding)) return false;
      vars_[want.var.get()] = found.var;
      facts_.bind(found.var, found.dom);
    }
    return stmt(d.body, t.body);
  }

  bool access(const Buffer& d, const std::vector<Expr>& want, const Buffer& t, const std::vector<Expr>& found) {
    if (d->dtype != t->dtype)
      return differs(intrinsic_dtype_differs, fmt::format("buffer {} is {}, the intrinsic's {} is {}", t->name,
                                                          t->dtype.str(), d->name, d->dtype.str()));
    if (d->scope != t->scope)
      return differs(intrinsic_scope_differs, fmt::format("buffer {} is in scope {}, the intrinsic's {} in {}", t->name,
                                                          t->scope, d->name, d->scope));
    if (found.size() < want.size())
      return differs(intrinsic_structure_differs,
                     fmt::format("buffer {} has fewer dimensions than the intrinsic's {}", t->name, d->name));
    Operand o{t, {}, {}};
    const size_t lead = found.size() - want.size();
    for (size_t i = 0; i < found.size(); ++i) {
      Expr index = substitute(found[i], units_);
      Expr base = facts_.simplify(i < lead ? index : index - substitute(want[i - lead], vars_));
      if (uses_any(base, [&](const VarNode* v) { return vars_inside_.contains(v); }))
        return differs(
            intrinsic_stride_differs,
            fmt::format("index {} of buffer {} moves otherwise than in the intrinsic's {}", i, t->name, d->name));
      (i < lead ? o.leading : o.offset).push_back(base);
    }
    auto [it, fresh] = operands.try_emplace(d.get(), o);
    if (fresh) return true;
    const Operand& before = it->second;
    auto equal = [&](const std::vector<Expr>& a, const std::vector<Expr>& b) {
      return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](const Expr& x, const Expr& y) {
               return facts_.can_prove_equal(x, y);
             });
    };
    if (before.buffer.same_as(t) && equal(before.leading, o.leading) && equal(before.offset, o.offset)) return true;
    return differs(intrinsic_structure_differs,
                   fmt::format("the intrinsic's {} would be two places of {}", d->name, t->name));
  }

  bool expr(const Expr& d, const Expr& t) {
    if (const VarNode* v = as<VarNode>(d)) {
      auto it = vars_.find(v);
      if (it != vars_.end() && facts_.can_prove_equal(it->second, substitute(t, units_))) return true;
      return differs(intrinsic_structure_differs,
                     fmt::format("{} stands where the intrinsic has {}", text(t), v->name));
    }
    if (const Load *want = as<Load>(d), *found = as<Load>(t); want && found)
      return access(want->buffer, want->indices, found->buffer, found->indices);
    if (d->kind != t->kind || d->dtype != t->dtype)
      return differs(d->dtype != t->dtype ? intrinsic_dtype_differs : intrinsic_structure_differs,
                     fmt::format("{} stands where the intrinsic has {}", text(t), text(d)));
    if (const Binary* want = as<Binary>(d)) {
      const Binary* found = as<Binary>(t);
      if (want->op == found->op) {
        const auto saved = operands;
        const Mismatch why_saved = why;
        if (expr(want->a, found->a) && expr(want->b, found->b)) return true;
        const bool commutes = want->op == BinaryOp::add || want->op == BinaryOp::mul || want->op == BinaryOp::min ||
                              want->op == BinaryOp::max;
        if (!commutes) return false;
        const Mismatch first = why;
        operands = saved;
        why = why_saved;
        if (expr(want->a, found->b) && expr(want->b, found->a)) return true;
        why = first;
        return false;
      }
    } else if (const Cast* converted = as<Cast>(d)) {
      return expr(converted->value, as<Cast>(t)->value);
    } else if (same(d, t)) {
      return true;
    }
    return differs(intrinsic_structure_differs, fmt::format("{} stands where the intrinsic has {}", text(t), text(d)));
  }

  static bool same_int(const Expr& a, const Expr& b) { return const_int(a) && const_int(a) == const_int(b); }
  static std::string text(const Expr& e) { return print(e); }

  Analyzer& facts_;
  VarMap vars_, units_;  ///< of the description; loops and iters of one value
  std::unordered_set<const VarNode*> vars_inside_;
};

/// The operand's place as a region, if its rows lie as `param` wants them.
Result<BufferRegion> region_of_operand(const Context& c, const Operand& o, const Buffer& param, Analyzer& facts,
                                       const Block* block) {
  BufferRegion region{o.buffer, {}};
  for (const Expr& e : o.leading) region.region.push_back({e, int_imm(1, e->dtype)});
  for (size_t d = 0; d < o.offset.size(); ++d) region.region.push_back({o.offset[d], param->shape[d]});
  if (param->strides.empty()) {
    // Rows follow each other: every dimension behind the first longer one is taken whole.
    bool longer = false, compact = o.buffer->strides.empty();
    for (size_t d = 0; d < o.offset.size(); ++d) {
      const Expr& whole = o.buffer->shape[o.leading.size() + d];
      if (longer) compact = compact && is_const(o.offset[d], 0) && facts.can_prove_equal(whole, param->shape[d]);
      longer = longer || !is_const(param->shape[d], 1);
    }
    if (!compact)
      return c.refuse(intrinsic_stride_differs,
                      fmt::format("rows of buffer {} are apart; the intrinsic's {} has them one after the other",
                                  o.buffer->name, param->name),
                      block);
  }
  if (param->offset_factor > 1) {
    Expr at = int_imm(0);
    for (size_t d = 0; d < region.region.size(); ++d) at = at * o.buffer->shape[d] + region.region[d].min;
    if (!facts.can_prove_divisible(facts.simplify(at), int_imm(param->offset_factor, at->dtype)))
      return c.refuse(intrinsic_offset_misaligned,
                      fmt::format("buffer {} begins at element {}, which {} need not divide", o.buffer->name, print(at),
                                  param->offset_factor),
                      block);
  }
  return region;
}

Status check_target(const Context& c, const std::string& name, const TensorIntrinsic& intrinsic) {
  std::string text = c.schedule.options().target;
  if (auto attr = c.state.function().attrs.find("target"); text.empty() && attr != c.state.function().attrs.end())
    if (auto* given = std::get_if<std::string>(&attr->second.value)) text = *given;
  if (text.empty()) return {};
  auto target = parse_target(text);
  if (!target || intrinsic.on(*target)) return {};
  return c.refuse(intrinsic_not_on_target,
                  fmt::format("target {} cannot execute {}, which needs {}", text, name, intrinsic.needs()));
}

Status apply(Context& c) {
  TW_TRY(Context::BlockOrLoop target, c.block_or_loop("block_or_loop"));
  const std::string& name = c.text("tensor_intrin");
  const TensorIntrinsic* intrinsic = Registry<TensorIntrinsic>::instance().find(name);
  const IntrinsicPrograms* programs = intrinsic_programs(name);
  if (!intrinsic || !programs) {
    std::string hint = Registry<TensorIntrinsic>::instance().suggestion(name);
    return c.refuse(intrinsic_unknown, fmt::format("no tensor intrinsic is called \"{}\"{}", name,
                                                   hint.empty() ? "" : fmt::format("; did you mean \"{}\"?", hint)));
  }
  TW_TRY_VOID(check_target(c, name, *intrinsic));
  const Block* block = target.block;
  if (block) {
    TW_TRY_VOID(check_inner(c, block));
  } else {
    TW_TRY(BlockId id, blockize_loop(c, target.loop, c.boolean("preserve_unit_iters")));
    block = c.state.find(id);
  }
  Analyzer facts;
  for (const VarRange& iter : domains_of(*block)) facts.bind(iter.var, iter.range);
  Matcher matcher(facts);
  const Block& wanted = *programs->desc->root();
  if (!matcher.stmt(wanted.body, block->body))
    return c.refuse(*matcher.why.code,
                    fmt::format("block \"{}\" is not what {} computes: {}\nexpected\n{}found\n{}", block->name, name,
                                matcher.why.message, print(wanted.body), print(block->body)),
                    block);
  auto copy = edit(*block);
  BufferMap buffers;
  for (size_t i = 0; i < programs->body->params.size(); ++i) {
    const Buffer& of_desc = programs->desc->params[i].buffer;
    const Buffer& param = programs->body->params[i].buffer;
    auto operand = matcher.operands.find(of_desc.get());
    TW_CHECK(operand != matcher.operands.end(), "intrinsic {} does not use {}", name, of_desc->name);
    TW_TRY(BufferRegion region, region_of_operand(c, operand->second, param, facts, block));
    Buffer alias = derive_buffer(param, [&](BufferNode& n) { n.data = make_var(n.name, kHandle); });
    buffers[param.get()] = alias;
    copy->matches.push_back({alias, std::move(region)});
  }
  const Block& root = *programs->body->root();
  for (const auto& [key, value] : root.annotations) {
    auto [it, fresh] = copy->annotations.emplace(key, value);
    if (!fresh && !(it->second == value))
      return c.refuse(annotation_conflicts,
                      fmt::format("annotation \"{}\" of block \"{}\" is not what {} has", key, block->name, name),
                      block);
  }
  copy->body = replace_buffers(refresh(root.body), buffers);
  c.state.replace(block, finish(std::move(copy)));
  return {};
}

const RegisterPrimitive entry{
    "tensorize",
    "a block, or the subtree of a loop, becomes a tensor intrinsic that computes the same",
    {.kind = "Tensorize",
     .inputs = {{"block_or_loop", ArgType::block_or_loop, {}, "what the intrinsic computes"}},
     .attrs = {{"tensor_intrin", ArgType::text, {}, "name of the intrinsic (`show intrinsics`)"},
               {"preserve_unit_iters", ArgType::boolean, true, "keep variables of unit loops in the bindings"}},
     .outputs = OutputShape::none,
     .refusals = {intrinsic_unknown, intrinsic_not_on_target, labels::inner, blockize_loop_refusals,
                  codes::predicate_not_trivial, intrinsic_structure_differs, intrinsic_extent_differs,
                  intrinsic_iter_type_differs, intrinsic_dtype_differs, intrinsic_scope_differs,
                  intrinsic_stride_differs, intrinsic_offset_misaligned, annotation_conflicts},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
