// Blocks of program text: axes, predicates, signatures, init, allocations, aliases (schedule-language.md §1.4).
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ir/analysis/regions.h"
#include "ir/parse_reader.h"

namespace tilewright::text {

void Reader::block(const py::With& s, const py::Call& call, Body& body) {
  std::optional<Args> args = arguments(call, "T.sblock", "name? no_realize?");
  std::optional<std::string> name = args && (*args)[0] ? text_value((*args)[0], "the block's name") : std::string();
  if (s.items.size() > 1) error(text_code::construct_not_supported, s.range, "a block is the only item of its `with`");
  if (s.items[0].target)
    error(text_code::construct_not_supported, s.items[0].target->range, "`with T.sblock(…) as …` is the form of 2021")
        .help = "write `vi, vj = T.axis.remap(\"SS\", [i, j])` inside the block";
  if (!function_->schedulable)
    error(text_code::construct_not_supported, s.range, "a block inside a function without blocks");
  Scope scope(*this);
  bool is_root = &s == root_statement_;
  BlockFrame own;
  BlockFrame& frame = is_root ? *block_ : own;
  frame.node->name = name.value_or("");
  frame.where = s.range;
  frame.level = level_;
  BlockFrame* outer = std::exchange(block_, &frame);
  Stmt inner = sequence(s.body);
  block_ = outer;
  if (is_root) return body.add(inner);
  own.node->body = std::move(inner);
  Stmt out = finish_block(own);
  if (out) add(body, out, s.range);
}

Stmt Reader::finish_block(BlockFrame& frame) {
  Block& node = *frame.node;
  if (frame.has_reads && frame.has_writes) return finish(std::move(frame.node));
  if (!errors_.empty()) return finish(std::move(frame.node));  // a body with holes: nothing to derive
  Signature derived = derive_signature(node);
  if (derived.opaque) {
    Diagnostic& d = error(
        text_code::signature_missing, frame.where,
        fmt::format("expected the signature of block \"{}\", which uses pointers or calls with effects, found none",
                    node.name));
    d.help = "write `T.reads(…)` and `T.writes(…)` at the start of the block";
    return nullptr;
  }
  if (!frame.has_reads) node.reads = std::move(derived.reads);
  if (!frame.has_writes) node.writes = std::move(derived.writes);
  return finish(std::move(frame.node));
}

bool Reader::block_statement(const py::Call& call, std::string_view callee) {
  bool is_attr = callee == "sblock_attr" || callee == "block_attr";
  if (callee != "where" && callee != "reads" && callee != "writes" && !is_attr) return false;
  if (!block_) {
    error(text_code::construct_not_supported, call.range, fmt::format("`T.{}` outside a block", callee));
  } else if (callee == "where") {
    std::optional<Args> args = arguments(call, "T.where", "predicate");
    Expr c = args ? boolean((*args)[0]) : Expr();
    if (c)
      block_->node->predicate = block_->node->predicate
                                    ? tilewright::make<Binary>(kBool, BinaryOp::logical_and, block_->node->predicate, c)
                                    : c;
  } else if (is_attr) {
    std::optional<Args> args = arguments(call, fmt::format("T.{}", callee), "attrs");
    std::optional<AttrDict> dict = args ? attr_dict((*args)[0]) : std::nullopt;
    if (!dict) return true;
    for (auto& [key, v] : *dict) block_->node->annotations[key] = std::move(v);
  } else {
    regions(call, callee == "reads");
  }
  return true;
}

void Reader::regions(const py::Call& call, bool reads) {
  (reads ? block_->has_reads : block_->has_writes) = true;
  if (!call.keywords.empty()) {
    error(text_code::wrong_argument_count, call.keywords[0].name_range, "expected regions, found a keyword argument");
    return;
  }
  std::vector<const py::Expr*> items(call.args.begin(), call.args.end());
  if (items.size() == 1) {
    const py::Expr* only = items[0];
    if (only->kind == py::ExprKind::kList || only->kind == py::ExprKind::kTuple) items_of(only, items);
  }
  for (const py::Expr* e : items)
    if (std::optional<BufferRegion> r = region(e))
      (reads ? block_->node->reads : block_->node->writes).push_back(std::move(*r));
}

// --- axes

void Reader::add_iter(const py::Name& n, Range dom, IterType type, Expr binding) {
  Var v = make_var(std::string(n.id), binding->dtype);
  spans_.add(v.get(), n.range);
  block_->node->iters.push_back({v, std::move(dom), type, std::move(binding)});
  define_new(n.id, Expr(v), n.range);
}

void Reader::axis(const py::Call& call, std::string_view kind, const py::Expr* target) {
  static constexpr std::array<std::pair<std::string_view, IterType>, 8> kKinds{{{"spatial", IterType::spatial},
                                                                                {"S", IterType::spatial},
                                                                                {"reduce", IterType::reduction},
                                                                                {"R", IterType::reduction},
                                                                                {"scan", IterType::scan},
                                                                                {"opaque", IterType::opaque},
                                                                                {"C", IterType::scan},
                                                                                {"O", IterType::opaque}}};
  auto row = std::ranges::find(kKinds, kind, [](const auto& k) { return k.first; });
  std::string full = fmt::format("T.axis.{}", kind);
  if (row == kKinds.end()) {
    unknown_name(call.function->range, fmt::format("axis.{}", kind));
    return;
  }
  const py::Name* n = py::as<py::Name>(target);
  if (!n || !block_) {
    error(text_code::wrong_argument_type, target->range,
          n ? fmt::format("`{}` outside a block", full) : "expected a name for the axis");
    return;
  }
  std::optional<Args> args = arguments(call, full, "dom value dtype?");
  if (!args) return;
  std::vector<const py::Expr*> ends;
  bool pair = items_of((*args)[0], ends);
  if (pair && ends.size() != 2) {
    error(text_code::wrong_argument_count, (*args)[0]->range, "expected an extent or a pair (begin, end) as domain");
    return;
  }
  Operand begin = pair ? operand(ends[0]) : Operand{int_imm(0, kInt64), true};
  Operand end = operand(pair ? ends[1] : ends[0]), binding = operand((*args)[1]);
  if (!begin || !end || !binding) return;
  if (!unify(end, binding, call.range) || !unify(begin, end, call.range)) return;
  if (!binding.e->dtype.is_int() || binding.e->dtype.is_vector()) {
    error(text_code::dtype_mismatch, call.range,
          fmt::format("expected an integer domain and binding, found {}", binding.e->dtype.str()));
    return;
  }
  Range domain = range_between(begin.e, end.e);
  if (positive(domain.extent, "an axis", (*args)[0]->range)) add_iter(*n, std::move(domain), row->second, binding.e);
}

void Reader::remap(const py::Call& call, const py::Expr* target) {
  std::optional<Args> args = arguments(call, "T.axis.remap", "kinds bindings dtype?");
  std::optional<std::string> kinds = args ? text_value((*args)[0], "the kinds of the axes") : std::nullopt;
  if (!kinds) return;
  std::vector<const py::Expr*> names, bindings;
  items_of(target, names);
  items_of((*args)[1], bindings);
  if (!block_) {
    error(text_code::construct_not_supported, call.range, "`T.axis.remap` outside a block");
    return;
  }
  if (kinds->size() != bindings.size() || names.size() != bindings.size()) {
    error(text_code::axis_binding_mismatch, call.range,
          fmt::format("expected as many axes as kinds and bindings, found {} names, {} kinds and {} bindings",
                      names.size(), kinds->size(), bindings.size()));
    return;
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const py::Name* n = py::as<py::Name>(names[i]);
    static constexpr std::string_view kLetters = "SRCO";
    size_t letter = kLetters.find((*kinds)[i]);
    if (!n || letter == std::string_view::npos) {
      error(text_code::wrong_argument_type, n ? (*args)[0]->range : names[i]->range,
            n ? fmt::format("expected kinds \"S\", \"R\", \"C\" (scan) or \"O\" (opaque), found \"{}\"", (*kinds)[i])
              : std::string("expected a name for the axis"));
      return;
    }
    Expr v = value(bindings[i]);
    if (!v) return;
    auto it = as<VarNode>(v) ? loops_.find(as<VarNode>(v)) : loops_.end();
    if (it == loops_.end()) {
      error(text_code::axis_binding_mismatch, bindings[i]->range,
            "expected a loop variable as binding of `T.axis.remap`, found another value")
          .help = fmt::format("write `{} = T.axis.{}(extent, …)`", n->id,
                              letter == 0   ? "spatial"
                              : letter == 1 ? "reduce"
                              : letter == 2 ? "scan"
                                            : "opaque");
      return;
    }
    constexpr std::array<IterType, 4> kTypes{IterType::spatial, IterType::reduction, IterType::scan, IterType::opaque};
    add_iter(*n, it->second, kTypes[letter], v);
  }
}

// --- init, allocations, aliases

void Reader::init(const py::With& s, Body& body) {
  (void)body;
  if (!block_ || block_->level != level_) {
    error(text_code::construct_not_supported, s.range, "`T.init` must stand directly in a block");
  } else if (block_->node->init) {
    error(text_code::duplicate_name, s.range, "a block has at most one `T.init`, found another");
  } else {
    block_->node->init = scoped(s.body);
    return;
  }
  scoped(s.body);
}

void Reader::block_alloc(const py::Call& call, std::string_view name, const py::Name& target) {
  std::optional<Args> args = arguments(call, fmt::format("T.{}", name),
                                       "shape dtype? data? strides? elem_offset? scope? align? offset_factor? "
                                       "annotations? buffer_type? axis_separators?");
  std::optional<BufferSpec> spec = args ? buffer_spec(*args, 0) : std::nullopt;
  if (!spec) return;
  if (!block_) {
    error(text_code::construct_not_supported, call.range, fmt::format("`T.{}` in a function without blocks", name))
        .help = "write `T.alloc_buffer(…)`";
    return;
  }
  Buffer b = make(target.id, *spec, target.range);
  block_->node->allocs.push_back(b);
  define_new(target.id, b, target.range);
}

void Reader::match_buffer(const py::Call& call, const py::Name& target) {
  std::optional<Args> args = arguments(call, "T.match_buffer",
                                       "param shape? dtype? data? strides? elem_offset? scope? align? offset_factor? "
                                       "annotations? buffer_type? axis_separators?");
  if (!args) return;
  const py::Expr* source = (*args)[0];
  const py::Name* n = py::as<py::Name>(source);
  const Binding* b = n ? resolve(*n) : nullptr;
  if (n && !b) return;
  const Expr* pointer = b ? std::get_if<Expr>(&b->meaning) : nullptr;
  auto spec_of = [&]() -> std::optional<BufferSpec> {
    if ((*args)[1]) return buffer_spec(*args, 1);
    error(text_code::wrong_argument_count, call.range, "expected an argument `shape` of `T.match_buffer`, found none");
    return std::nullopt;
  };
  if (pointer && (*pointer)->dtype.is_handle()) {
    for (Param& p : function_->params) {
      if (p.var.get() != pointer->get()) continue;
      std::optional<BufferSpec> spec = spec_of();
      if (!spec) return;
      if (p.buffer) {
        error(text_code::duplicate_name, source->range,
              fmt::format("parameter `{}` already has a buffer", p.var->name));
        return;
      }
      p.buffer = make(target.id, *spec, target.range);
      p.by_handle = true;
      return define_new(target.id, p.buffer, target.range);
    }
  }
  if (b && std::holds_alternative<Poison>(b->meaning)) return;
  if (pointer || !block_) {
    error(text_code::wrong_argument_type, source->range,
          "expected a pointer parameter, or a region of a buffer inside a block");
    return;
  }
  std::optional<BufferRegion> from = region(source);
  if (!from) return;
  std::optional<BufferSpec> spec;
  if ((*args)[1]) {
    if (!(*args)[2]) {  // the element type of the source, not float32
      (*args).slot[2] = nullptr;
    }
    spec = spec_of();
    if (!spec) return;
    if (!(*args)[2]) spec->dtype = from->buffer->dtype;
    if (!(*args)[6]) spec->scope = from->buffer->scope;
  } else {
    spec.emplace();
    for (const Range& r : from->region) spec->shape.push_back(r.extent);
    spec->dtype = from->buffer->dtype;
    spec->scope = from->buffer->scope;
  }
  if (spec->shape.size() > from->region.size()) {
    error(text_code::rank_mismatch, call.range,
          fmt::format("expected an alias of rank at most {}, found {}", from->region.size(), spec->shape.size()));
    return;
  }
  if (spec->dtype != from->buffer->dtype) {
    error(text_code::dtype_mismatch, call.range,
          fmt::format("expected an alias of type {}, found {}", from->buffer->dtype.str(), spec->dtype.str()));
    return;
  }
  Buffer alias = make(target.id, *spec, target.range);
  block_->node->matches.push_back({alias, std::move(*from)});
  define_new(target.id, alias, target.range);
}

}  // namespace tilewright::text
