// transform_layout: a buffer is stored under other indices; every access, region and the allocation (or parameter)
// follows.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/rewrite_blocks.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(buffer_is_an_alias, "buffer-is-an-alias", "the buffer is a match_buffer of another one");
TW_REFUSAL_CODE(pad_map_arity, "pad-map-arity",
                "the pad value takes another number of indices than the new buffer has dimensions");
TW_REFUSAL_CODE(pad_dtype_differs, "pad-dtype-differs", "the pad value has another element type than the buffer");
TW_REFUSAL_CODE(transform_needs_padding, "transform-needs-padding",
                "the new shape has more elements than the old one, and no pad value is given");

struct Layout {
  Buffer from, to;
  IndexMapRef map;
  Expr padding;  ///< over new_indices: this place is padding; null: none
  std::vector<Var> new_indices;
};

Result<Layout> plan_layout(Context& c, const Block* block, const Buffer& buffer) {
  Layout out{buffer, nullptr, c.index_map("index_map"), nullptr, {}};
  if (static_cast<int>(out.map->inputs.size()) != buffer->rank())
    return c.refuse(codes::index_map_arity,
                    fmt::format("the index map takes {} indices, buffer {} has {}", out.map->inputs.size(),
                                buffer->name, buffer->rank()),
                    block);
  Analyzer facts;
  std::vector<VarRange> domains;
  for (int i = 0; i < buffer->rank(); ++i) {
    domains.push_back({out.map->inputs[i], {int_imm(0, out.map->inputs[i]->dtype), buffer->shape[i]}});
    facts.bind(domains.back().var, domains.back().range);
  }
  IterMap detected = detect_iter_map(out.map->outputs, domains, nullptr, IterMapCheck::bijective, facts);
  bool injective = static_cast<bool>(detected), exact = injective;
  std::vector<Expr> shape;
  for (const Expr& e : out.map->outputs) {
    SymbolicInterval bounds = bounds_over(e, domains, nullptr, facts);
    if (!bounds.bounded()) return c.refuse(codes::index_map_not_injective, "an index of the map has no bound", block);
    if (!facts.can_prove_not_negative(bounds.min))
      return c.refuse(codes::index_map_negative, fmt::format("index {} of the map may be below 0", shape.size()),
                      block);
    shape.push_back(facts.simplify(bounds.max + 1));
    out.new_indices.push_back(make_var(fmt::format("i{}", out.new_indices.size()), e->dtype));
  }
  if (exact) {  // a bijection onto its digits is one onto the box only if it starts at 0
    Expr elements = int_imm(1), box = int_imm(1);
    for (const Expr& e : buffer->shape) elements = elements * e;
    for (const Expr& e : shape) box = box * e;
    exact = facts.can_prove_equal(elements, box);
  }
  if (!exact) {
    detected = detect_iter_map(out.map->outputs, domains, nullptr, IterMapCheck::none, facts);
    std::vector<Expr> given(out.new_indices.begin(), out.new_indices.end());
    std::optional<std::vector<Expr>> inverse;
    if (detected) inverse = inverse_map(detected, domains, given, facts);
    injective = inverse.has_value();
    if (injective) {  // a place is padding unless the map leads back to it from a legal old index
      std::vector<Expr> back = apply_index_map(*out.map, *inverse);
      Expr inside;
      for (size_t i = 0; i < inverse->size(); ++i) {
        inside = and_of(inside, and_of(less_equal(int_imm(0), (*inverse)[i]), less((*inverse)[i], buffer->shape[i])));
      }
      for (size_t i = 0; i < back.size(); ++i) inside = and_of(inside, equal(back[i], out.new_indices[i]));
      out.padding = inside ? not_of(inside) : Expr();
    }
  }
  const bool assumed = c.boolean("assume_injective_transform");
  if (!injective && !assumed)
    return c.refuse(codes::index_map_not_injective,
                    fmt::format("the map does not tell elements of {} apart", buffer->name), block);
  if (!exact && !assumed && c.value("pad_value").is_none())
    return c.refuse(
        transform_needs_padding,
        fmt::format("the new shape of {} has more elements than the old one, and no pad value is given", buffer->name),
        block);
  out.to = derive_buffer(buffer, [&](BufferNode& b) {
    b.shape = shape;
    b.strides.clear();
    b.elem_offset = nullptr;
  });
  return out;
}

/// The pad value at the new indices.
Result<Expr> pad_value(Context& c, const Block* block, const Layout& layout) {
  IndexMapRef map = c.index_map("pad_value");
  if (map->inputs.size() != layout.new_indices.size() || map->outputs.size() != 1)
    return c.refuse(pad_map_arity, fmt::format("expected {} indices and one value", layout.new_indices.size()), block);
  std::vector<Expr> given(layout.new_indices.begin(), layout.new_indices.end());
  Expr value = apply_index_map(*map, given)[0];
  if (value->kind == ExprKind::kIntImm) value = cast(layout.to->dtype, value);
  if (value->kind == ExprKind::kFloatImm && layout.to->dtype.is_float())
    value = float_imm(as<FloatImm>(value)->value, layout.to->dtype);
  if (value->dtype != layout.to->dtype)
    return c.refuse(pad_dtype_differs, fmt::format("expected {}, found {}", layout.to->dtype.str(), value->dtype.str()),
                    block);
  return value;
}

/// A block that stores the pad value at the places of padding, after the writer; for an input an assumption instead.
Stmt padding_block(const Layout& layout, const Expr& value, bool assumption) {
  auto block = std::make_unique<Block>();
  block->name = fmt::format("buffer_{}_{}", layout.to->name, assumption ? "assumptions" : "padding");
  std::vector<Var> loops;
  std::vector<Expr> indices;
  VarMap iters, bindings;
  for (size_t i = 0; i < layout.new_indices.size(); ++i) {
    Var loop = make_var(fmt::format("ax{}", i)), iter = make_var(fmt::format("v{}", i));
    loops.push_back(loop);
    indices.push_back(iter);
    iters[layout.new_indices[i].get()] = iter;
    bindings[layout.new_indices[i].get()] = loop;
    block->iters.push_back({iter, {int_imm(0), layout.to->shape[i]}, IterType::spatial, loop});
  }
  if (assumption) {
    Expr holds = binary(BinaryOp::logical_or, not_of(substitute(layout.padding, iters)),
                        equal(load(layout.to, indices), substitute(value, iters)));
    block->reads = {point_region(layout.to, indices)};
    block->body = make_stmt<Evaluate>(call(kBool, operation("assume"), {holds}));
  } else {
    block->predicate = substitute(layout.padding, bindings);
    block->writes = {point_region(layout.to, indices)};
    block->body = make_stmt<Store>(layout.to, indices, substitute(value, iters));
  }
  Stmt s = finish(std::move(block));
  for (size_t i = loops.size(); i-- > 0;) s = serial_loop(loops[i], layout.to->shape[i], s);
  return s;
}

Status apply(Context& c) {
  TW_TRY(const Block* block, c.block("block"));
  const TraceList& which = *c.value("buffer").get<TraceList>();
  const bool write = *which[0].get<std::string>() == "write";
  TW_TRY(BufferRegion region, region_of(c, block, *which[1].get<int64_t>(), write));
  const Buffer buffer = region.buffer;
  const TreeIndex& tree = c.state.tree();
  for (Place p : tree.blocks())
    for (const MatchBuffer& m : tree.block(p)->matches)
      if (m.buffer.same_as(buffer))
        return c.refuse(buffer_is_an_alias, fmt::format("{} is an alias of {}", buffer->name, m.source.buffer->name),
                        block);
  if (has_opaque_use(c.state.root(), buffer))
    return c.refuse(codes::buffer_opaque_or_matched,
                    fmt::format("buffer {} is accessed through a pointer or a match_buffer", buffer->name), block);
  TW_TRY(Layout layout, plan_layout(c, block, buffer));
  Expr pad;
  if (layout.padding && !c.value("pad_value").is_none()) {
    TW_TRY(pad, pad_value(c, block, layout));
  }

  Analyzer facts;
  // Regions that are boxes: bounds of the mapped indices over the box.
  class Transform : public Rewriter {
   public:
    Transform(const Layout& l) : layout_(l) {}
    Expr operator()(const Expr& e) override {
      Expr x = Rewriter::operator()(e);
      const Load* node = as<Load>(x);
      return node && node->buffer.same_as(layout_.from) ? load(layout_.to, map(node->indices)) : x;
    }
    Stmt operator()(const Stmt& s) override {
      const Block* before = as<Block>(s);
      Analyzer* saved = facts_;
      Analyzer inner;
      if (before) {
        for (const VarRange& d : domains_of(*before)) inner.bind(d.var, d.range);
        facts_ = &inner;
      }
      Stmt x = Rewriter::operator()(s);
      if (const Store* node = as<Store>(x); node && node->buffer.same_as(layout_.from))
        x = make_stmt<Store>(layout_.to, map(node->indices), node->value);
      if (const Block* node = as<Block>(x)) {
        auto copy = edit(*node);
        bool changed = false;
        for (auto* list : {&copy->reads, &copy->writes})
          for (BufferRegion& r : *list) changed |= map_region(r);
        for (Buffer& b : copy->allocs)
          if (b.same_as(layout_.from)) b = layout_.to, changed = true;
        if (changed) x = finish(std::move(copy));
      }
      facts_ = saved;
      return x;
    }

   private:
    std::vector<Expr> map(const std::vector<Expr>& indices) {
      std::vector<Expr> out = apply_index_map(*layout_.map, indices);
      for (Expr& e : out) e = facts_ ? facts_->simplify(e) : simplify(e);
      return out;
    }
    bool map_region(BufferRegion& r) {
      if (!r.buffer.same_as(layout_.from)) return false;
      std::vector<VarRange> box;
      std::vector<Expr> at;
      Analyzer empty;
      Analyzer& facts = facts_ ? *facts_ : empty;
      auto scope = facts.scope();
      for (const Range& range : r.region) {
        if (is_const(range.extent, 1)) {
          at.push_back(range.min);
          continue;
        }
        Var v = make_var("r");
        facts.bind(v, range);
        box.push_back({v, range});
        at.push_back(v);
      }
      BufferRegion out{layout_.to, {}};
      for (const Expr& e : apply_index_map(*layout_.map, at)) {
        SymbolicInterval b = bounds_over(e, box, nullptr, facts);
        if (b.bounded())
          out.region.push_back(facts.simplify(Range{b.min, b.max - b.min + 1}));
        else
          out.region.push_back({int_imm(0), layout_.to->shape[out.region.size()]});
      }
      r = std::move(out);
      return true;
    }
    const Layout& layout_;
    Analyzer* facts_ = nullptr;
  };
  Stmt root = Transform(layout)(c.state.root());
  auto function = std::make_unique<Function>(c.state.function());
  for (Param& p : function->params)
    if (p.buffer.same_as(buffer)) p.buffer = layout.to;
  function->body = root;
  c.state.set_function(FunctionRef(function.release()));
  if (pad) {
    // In the scope that owns the buffer: for a parameter the root.
    const TreeIndex& now = c.state.tree();
    Place owner = allocating_block(c.state, c.state.place(*c.state.find(block->id)), layout.to);
    if (owner == kNoPlace) owner = now.blocks().front();
    BlockScope scope(now, owner);
    std::vector<Place> writers = scope.writers(layout.to);
    const bool input = writers.empty();
    Place at = input ? scope.readers(layout.to).front() : writers.back();
    while (now.loop(now.parent(at))) at = now.parent(at);
    Stmt extra = padding_block(layout, pad, input);
    input ? insert_before(c.state, at, extra) : insert_after(c.state, at, extra);
  }
  return {};
}

const RegisterPrimitive entry{
    "transform_layout",
    "stores a buffer under other indices",
    {.kind = "TransformLayout",
     .inputs = {{"block", ArgType::block, {}, "a block that uses the buffer"},
                {"index_map", ArgType::index_map, {}, "old indices to new ones"}},
     .attrs = {{"buffer", ArgType::buffer, {}, "(\"read\" or \"write\", index)"},
               {"pad_value", ArgType::index_map_or_none, TraceValue(), "value at places that no old index maps to"},
               {"assume_injective_transform", ArgType::boolean, false,
                "the caller promises that the map is injective"}},
     .python_order = {"block", "buffer", "index_map", "pad_value", "assume_injective_transform"},
     .refusals = {labels::index, codes::buffer_name_not_found, codes::buffer_name_ambiguous, buffer_is_an_alias,
                  codes::buffer_opaque_or_matched, codes::index_map_arity, codes::index_map_not_injective,
                  codes::index_map_negative, transform_needs_padding, pad_map_arity, pad_dtype_differs},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
