// Buffers of program text: declarations, element access, regions, pointers (schedule-language.md §1.2).
#include <fmt/format.h>

#include <algorithm>

#include "ir/parse_reader.h"

namespace tilewright::text {

namespace {

bool known_scope(std::string_view scope) {
  static constexpr std::array<std::string_view, 19> kScopes{"global",
                                                            "shared",
                                                            "shared.dyn",
                                                            "warp",
                                                            "local",
                                                            "wmma.matrix_a",
                                                            "wmma.matrix_b",
                                                            "wmma.accumulator",
                                                            "m16n8k8.matrixA",
                                                            "m16n8k8.matrixB",
                                                            "m16n8k8.matrixC",
                                                            "texture",
                                                            "mma.matrix_a",
                                                            "mma.matrix_b",
                                                            "mma.accumulator",
                                                            "wgmma.matrix_a",
                                                            "wgmma.accumulator",
                                                            "shared.tmem",
                                                            "constant"};
  return std::ranges::any_of(kScopes, [&](std::string_view s) {
    return scope == s || (scope.starts_with(s) && scope.size() > s.size() && scope[s.size()] == '.');
  });
}

std::string indices_text(size_t n) { return fmt::format("{} {}", n, n == 1 ? "index" : "indices"); }

}  // namespace

Buffer Reader::buffer(const py::Expr* e, bool report) {
  const py::Name* n = py::as<py::Name>(e);
  if (!n) {
    if (report)
      error(text_code::wrong_argument_type, e->range, fmt::format("expected a buffer, found {}", py::describe(e)));
    return nullptr;
  }
  const Binding* b = report ? resolve(*n) : find(n->id);
  if (!b) return nullptr;
  if (const Buffer* out = std::get_if<Buffer>(&b->meaning)) return *out;
  if (report && !std::holds_alternative<Poison>(b->meaning))
    error(text_code::wrong_argument_type, e->range,
          fmt::format("expected a buffer, found `{}`, which is not one", n->id));
  return nullptr;
}

Expr Reader::extent(const py::Expr* e) {
  e = constant(e);
  const py::String* s = py::as<py::String>(e);
  if (!s) return integer(e);
  // A string is an expression over names that may not be bound yet: unbound ones become int32 extents.
  py::Tree& tree = subtrees_.emplace_back(py::parse_expression(std::string(s->value), tree_.source->file()));
  if (!tree.expression) {
    error(text_code::unexpected_token, e->range,
          fmt::format("expected an expression in quotes: {}", tree.errors.at(0).message));
    return nullptr;
  }
  std::function<void(const py::Expr*)> declare = [&](const py::Expr* x) {
    if (const py::Name* n = py::as<py::Name>(x); n && !find(n->id) && !is_module_alias(n->id, false)) {
      if (const py::Expr* value = fixed(n->id)) return define(n->id, value, e->range);
      Var v = make_var(std::string(n->id));
      if (function_) function_->symbolic.push_back(v);
      spans_.add(v.get(), e->range);
      define(n->id, Expr(v), e->range);
    }
    if (const py::Binary* b = py::as<py::Binary>(x)) declare(b->a), declare(b->b);
    if (const py::Unary* u = py::as<py::Unary>(x)) declare(u->operand);
    if (const py::Call* c = py::as<py::Call>(x))
      for (const py::Expr* a : c->args) declare(a);
  };
  declare(tree.expression);
  std::optional<TextRange> outer = std::exchange(place_, place_ ? place_ : e->range);
  Expr out = integer(tree.expression);
  place_ = outer;
  return out;
}

bool Reader::positive(const Expr& extent, const char* of, TextRange where) {
  std::optional<int64_t> n = const_int(extent);
  if (!n || *n > 0) return true;
  if (extent->dtype.is_uint() && *n < 0) {  // the pattern of an unsigned number of 64 bits
    error(text_code::literal_out_of_range, where,
          fmt::format("expected an extent for {} below 2**63, found {}", of, static_cast<uint64_t>(*n)));
    return false;
  }
  error(text_code::extent_not_positive, where, fmt::format("expected an extent of at least 1 for {}, found {}", of, *n))
      .help = "write an extent of 1 or more";
  return false;
}

bool Reader::addressable(const BufferSpec& spec, TextRange shape) {
  constexpr __int128 limit = static_cast<__int128>(1) << 66;  // bits
  __int128 bits = spec.dtype.is_bool() ? 8 : spec.dtype.bits * spec.dtype.lanes;
  for (const Expr& extent : spec.shape) {
    bits *= const_int(extent).value_or(1);
    if (bits < limit) continue;
    error(text_code::buffer_too_large, shape,
          fmt::format("expected a buffer of less than 2**63 bytes, found this shape of {}", spec.dtype.str()))
        .help = "write smaller extents";
    return false;
  }
  return true;
}

std::optional<Reader::BufferSpec> Reader::buffer_spec(const Args& args, size_t first) {
  BufferSpec out;
  std::vector<const py::Expr*> items;
  items_of(args[first], items);
  for (const py::Expr* e : items) {
    Expr x = extent(e);
    if (!x) return std::nullopt;
    if (!positive(x, "a buffer", e->range)) return std::nullopt;
    out.shape.push_back(std::move(x));
  }
  if (const py::Expr* e = args[first + 1]) {
    std::optional<DType> d = dtype_value(e);
    if (!d) return std::nullopt;
    out.dtype = *d;
  }
  if (!addressable(out, args[first]->range)) return std::nullopt;
  if (const py::Expr* e = args[first + 2]; e && !py::as<py::Constant>(constant(e))) {
    if (Buffer b = buffer(e, false)) {
      out.data = b->data;  // of T.allocate: its name is the pointer
    } else {
      Expr p = value(e);
      if (!p) return std::nullopt;
      if (!as<VarNode>(p) || !p->dtype.is_handle()) {
        error(text_code::wrong_argument_type, e->range, "expected a pointer variable for `data`");
        return std::nullopt;
      }
      out.data = Var(as<VarNode>(p));
    }
  }
  if (const py::Expr* e = args[first + 3]; e && !py::as<py::Constant>(constant(e))) {
    items_of(e, items);
    for (const py::Expr* item : items) {
      Expr x = extent(item);
      if (!x) return std::nullopt;
      out.strides.push_back(std::move(x));
    }
    if (!out.strides.empty() && out.strides.size() != out.shape.size()) {
      error(text_code::rank_mismatch, e->range,
            fmt::format("expected {} strides, found {}", out.shape.size(), out.strides.size()));
      return std::nullopt;
    }
  }
  if (const py::Expr* e = args[first + 4]; e && !py::as<py::Constant>(constant(e)) && !(out.elem_offset = extent(e)))
    return std::nullopt;
  if (const py::Expr* e = args[first + 5]) {
    std::optional<std::string> s = text_value(e, "scope");
    if (!s) return std::nullopt;
    if (!known_scope(*s)) {
      Diagnostic& d = error(text_code::unknown_construct, e->range, fmt::format("\"{}\" is not a memory scope", *s));
      if (std::string best =
              did_you_mean(*s, {"global", "shared", "shared.dyn", "warp", "local", "wmma.matrix_a", "wmma.matrix_b",
                                "wmma.accumulator", "mma.accumulator", "wgmma.accumulator"});
          !best.empty())
        d.help = fmt::format("did you mean \"{}\"?", best);
      return std::nullopt;
    }
    out.scope = *s;
  }
  for (auto [slot, field, what] :
       {std::tuple{first + 6, &out.align, "align"}, std::tuple{first + 7, &out.offset_factor, "offset_factor"}}) {
    const py::Expr* e = args[slot];
    if (!e) continue;
    std::optional<int64_t> v = int_value(e, what);
    if (!v) return std::nullopt;
    if (*v > 0) *field = static_cast<int>(*v);  // TVM writes -1 and 0 for "the default"
  }
  if (const py::Expr* e = args[first + 8]) {
    std::optional<AttrDict> d = attr_dict(e);
    if (!d) return std::nullopt;
    out.annotations = std::move(*d);
  }
  return out;
}

Buffer Reader::make(std::string_view name, const BufferSpec& spec, TextRange where) {
  auto node = std::make_unique<BufferNode>();
  node->name = std::string(name);
  node->id = fresh_id();
  node->data = spec.data ? spec.data : make_var(node->name, kHandle);
  node->dtype = spec.dtype;
  node->shape = spec.shape;
  node->strides = spec.strides;
  node->elem_offset = spec.elem_offset;
  node->scope = spec.scope;
  node->align = spec.align;
  node->offset_factor = spec.offset_factor;
  Buffer out(node.release());
  spans_.add(out.get(), where);
  return out;
}

bool Reader::indices(const Buffer& b, const py::Expr* index, TextRange where, std::vector<Expr>& out) {
  const py::Expr* one[1] = {index};
  py::Exprs items = one;
  if (const py::Tuple* t = py::as<py::Tuple>(index)) items = t->items;
  if (const py::List* l = py::as<py::List>(index)) items = l->items;
  if (static_cast<int>(items.size()) != b->rank()) {
    error(text_code::rank_mismatch, where,
          fmt::format("expected {} for buffer `{}` of rank {}, found {}", indices_text(b->shape.size()), b->name,
                      b->rank(), items.size()));
    return false;
  }
  for (const py::Expr* e : items) {
    Expr v;
    if (const py::Slice* s = py::as<py::Slice>(e)) {  // A[i, 0:4] as a value: a vector
      Expr lower = s->lower ? integer(s->lower) : int_imm(0);
      Expr upper = s->upper ? integer(s->upper) : b->shape[out.size()];
      std::optional<int64_t> step = s->step ? int_value(s->step, "the step of a slice") : std::optional<int64_t>(1);
      if (!lower || !upper || !step) return false;
      std::optional<int64_t> length = const_int(range_between(lower, upper).extent);
      if (!length || *length < 1 || *length > 64 || *step < 1) {
        error(text_code::wrong_argument_type, e->range, "expected a vector access of 1 to 64 elements");
        return false;
      }
      v = ramp(lower, int_imm(*step, lower->dtype), static_cast<int>((*length + *step - 1) / *step));
    } else {
      v = integer(e);
    }
    if (!v) return false;
    out.push_back(std::move(v));
  }
  return true;
}

Operand Reader::load(const py::Subscript& e) {
  // Parts that are not element access: A.shape[k], A.strides[k], a starred lambda parameter.
  if (const py::Attribute* a = py::as<py::Attribute>(e.value); a && (a->name == "shape" || a->name == "strides")) {
    Buffer b = buffer(a->value);
    std::optional<int64_t> k = b ? int_value(e.index, "the dimension") : std::nullopt;
    if (!k) return {};
    const std::vector<Expr>& list = a->name == "shape" ? b->shape : b->strides;
    if (*k < 0 || *k >= static_cast<int64_t>(list.size()))
      return fail(text_code::rank_mismatch, e.index->range,
                  fmt::format("expected a dimension below {} of `{}.{}`, found {}", list.size(), b->name, a->name, *k));
    return {list[static_cast<size_t>(*k)]};
  }
  const py::Name* n = py::as<py::Name>(e.value);
  if (const Binding* binding = n ? find(n->id) : nullptr) {
    const std::vector<Expr>* many = std::get_if<std::vector<Expr>>(&binding->meaning);
    const py::Expr* const* syntax = std::get_if<const py::Expr*>(&binding->meaning);
    if (many || syntax) {
      std::vector<const py::Expr*> items;
      if (syntax) items_of(*syntax, items);
      int64_t size = static_cast<int64_t>(many ? many->size() : items.size());
      std::optional<int64_t> k = int_value(e.index, "the index");
      if (k && *k < 0) *k += size;
      if (!k) return {};
      if (*k < 0 || *k >= size)
        return fail(text_code::rank_mismatch, e.index->range,
                    fmt::format("expected an index below {}, found {}", size, *k));
      if (many) return {(*many)[static_cast<size_t>(*k)]};
      return operand(items[static_cast<size_t>(*k)]);
    }
  }
  Buffer b = buffer(e.value);
  std::vector<Expr> index;
  if (!b || !indices(b, e.index, e.range, index)) return {};
  Expr out = tilewright::load(b, std::move(index));
  spans_.add(out.get(), e.range);
  return {out};
}

std::optional<BufferRegion> Reader::region(const py::Expr* e) {
  const py::Subscript* s = py::as<py::Subscript>(e);
  if (!s) {
    Buffer whole = buffer(e);
    if (!whole) return std::nullopt;
    BufferRegion out{whole, {}};
    for (const Expr& x : whole->shape) out.region.push_back({int_imm(0, x->dtype), x});
    return out;
  }
  Buffer b = buffer(s->value);
  if (!b) return std::nullopt;
  const py::Expr* one[1] = {s->index};
  py::Exprs items = one;
  if (const py::Tuple* t = py::as<py::Tuple>(s->index)) items = t->items;
  if (static_cast<int>(items.size()) != b->rank()) {
    error(text_code::rank_mismatch, e->range,
          fmt::format("expected {} for buffer `{}` of rank {}, found {}", indices_text(b->shape.size()), b->name,
                      b->rank(), items.size()));
    return std::nullopt;
  }
  BufferRegion out{b, {}};
  for (size_t i = 0; i < items.size(); ++i) {
    if (const py::Slice* slice = py::as<py::Slice>(items[i])) {
      if (slice->step) {
        error(text_code::construct_not_supported, slice->range, "a region has no step");
        return std::nullopt;
      }
      Operand lower = slice->lower ? operand(slice->lower) : Operand{int_imm(0), true};
      Operand upper = slice->upper ? operand(slice->upper) : Operand{b->shape[i]};
      if (!lower || !upper || !unify(lower, upper, slice->range)) return std::nullopt;
      if (!lower.e->dtype.is_int() && !lower.e->dtype.is_uint()) {
        error(text_code::dtype_mismatch, slice->range,
              fmt::format("expected integer bounds, found {}", lower.e->dtype.str()));
        return std::nullopt;
      }
      out.region.push_back(range_between(lower.e, upper.e));
    } else {
      Expr v = integer(items[i]);
      if (!v) return std::nullopt;
      if (v->dtype.is_vector()) {
        error(text_code::dtype_mismatch, items[i]->range, "expected a scalar index in a region");
        return std::nullopt;
      }
      out.region.push_back({v, int_imm(1, v->dtype)});
    }
  }
  return out;
}

Expr Reader::pointer_to(const py::Expr* base, const py::Expr* index, TextRange where) {
  Buffer b = buffer(base);
  std::vector<Expr> list;
  if (!b || !indices(b, index, where, list)) return nullptr;
  Expr element = tilewright::load(b, std::move(list));
  spans_.add(element.get(), where);
  return tilewright::call(kHandle, operation("address_of"), {element});
}

// A.access_ptr(mask, offset=, extent=): the canonical tvm_access_ptr(type, data, offset, extent, mask).
Expr Reader::access_pointer(const Buffer& b, const Args& args, size_t first) {
  const py::Expr* mask = constant(args[first]);
  int64_t bits = 0;
  if (const py::String* s = py::as<py::String>(mask)) {
    for (char c : s->value) bits |= c == 'r' ? 1 : c == 'w' ? 2 : 4;
  } else if (std::optional<int64_t> v = int_value(mask, "the access mask")) {
    bits = *v;
  } else {
    return nullptr;
  }
  if (bits < 1 || bits > 3) {
    error(text_code::wrong_argument_type, args[first]->range, "expected an access mask \"r\", \"w\" or \"rw\"");
    return nullptr;
  }
  Expr offset = args[first + 1] ? integer(args[first + 1]) : b->elem_offset ? b->elem_offset : int_imm(0);
  Expr size;
  if (args[first + 2]) {
    size = integer(args[first + 2]);
  } else {
    size = int_imm(1);
    for (const Expr& x : b->shape) size = size * x;
    if (args[first + 1] && offset) size = size - offset;
  }
  if (!offset || !size) return nullptr;
  return tilewright::call(
      kHandle, operation("tvm_access_ptr"),
      {tilewright::make<StringImm>(kHandle, b->dtype.str()), Expr(b->data), offset, size, int_imm(bits)});
}

}  // namespace tilewright::text
