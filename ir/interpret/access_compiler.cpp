#include "ir/interpret/access_compiler.h"

#include <fmt/format.h>

#include "ir/analysis/regions.h"
#include "ir/build.h"

namespace tilewright::interpreter {

void AccessCompiler::parameter(const Param& p) {
  ParameterBinding binding;
  binding.name = p.buffer ? p.buffer->name : p.var->name;
  binding.dtype = p.buffer ? p.buffer->dtype : p.var->dtype;
  binding.is_buffer = static_cast<bool>(p.buffer);
  binding.is_handle = !p.buffer && p.var->dtype.is_handle();
  const int index = static_cast<int>(code_.parameters.size());
  if (p.buffer) {
    binding.memory = add_memory(*p.buffer, index);
    for (const Expr& e : p.buffer->shape) {
      const std::optional<int64_t> extent = const_int(e);
      binding.extents.push_back(extent.value_or(-1));
      binding.extent_regs.push_back(extent ? constant(*extent) : fresh({0, int64_t{1} << 31}));
    }
  } else if (binding.is_handle) {
    BufferNode pointer;
    pointer.name = p.var->name;
    pointer.data = p.var;
    pointer.dtype = kUInt8;
    binding.memory = add_memory(pointer, index);
  } else {
    binding.value_reg = fresh(interval_of(p.var->dtype));
    bind(p.var.get(), {binding.value_reg});
  }
  code_.parameters.push_back(std::move(binding));
}

/// Extents that are variables take the value of the first buffer that uses them; all others must agree.
void AccessCompiler::declare_parameters(const Function& f) {
  for (const Param& p : f.params) parameter(p);
  for (size_t i = 0; i < f.params.size(); ++i) {
    const BufferNode* b = f.params[i].buffer.get();
    if (!b) continue;
    for (size_t d = 0; d < b->shape.size(); ++d)
      if (const VarNode* v = as<VarNode>(b->shape[d]); v && !env_.contains(v))
        bind(v, {code_.parameters[i].extent_regs[d]});
  }
  for (size_t i = 0; i < f.params.size(); ++i) {
    const BufferNode* b = f.params[i].buffer.get();
    if (!b) continue;
    const std::vector<int> regs = code_.parameters[i].extent_regs;
    for (size_t d = 0; d < b->shape.size(); ++d) {
      const int expected = scalar(b->shape[d]);
      if (expected == regs[d] || const_int(b->shape[d])) continue;
      emit_to(Op::check_equal, 0, expected, regs[d]);
      fails_with(argument_mismatch, fmt::format("extent {} of {}", d, b->name));
    }
    declare(*b, regs, constant(0));
  }
}

int AccessCompiler::add_memory(const BufferNode& b, int parameter) {
  code_.memory.push_back({b.name, b.dtype, parameter});
  const int slot = static_cast<int>(code_.memory.size()) - 1;
  memory_of_[b.data.get()] = slot;
  return slot;
}

/// Binds an unbound variable; returns false when `e` has a value already.
bool AccessCompiler::bind_if_free(const Expr& e, int reg) {
  const VarNode* v = as<VarNode>(e);
  if (!v || env_.contains(v)) return false;
  bind(v, {reg});
  return true;
}

Linear AccessCompiler::multiply(const Linear& v, int factor_reg) {
  const Interval k = interval(factor_reg);
  if (k.lo == k.hi && k.known()) return scaled(v, k.lo);
  if (v.terms.empty() && v.constant == 0) return {};
  return {0, {{emit(Op::mul_i, materialize(v), factor_reg), 1}}};
}

BufferView& AccessCompiler::declare(const BufferNode& b, std::vector<int> extents, int offset) {
  auto memory = memory_of_.find(b.data.get());
  if (memory == memory_of_.end()) not_supported(fmt::format("buffer {}, which is not declared", b.name));
  BufferView view{memory->second, std::move(extents), std::vector<int>(b.shape.size()), offset};
  Linear compact{1, {}};
  for (size_t d = b.shape.size(); d-- > 0;) {
    const int stride = materialize(compact);
    const Expr given = b.strides.empty() ? Expr() : b.strides[d];
    view.strides[d] = !given || bind_if_free(given, stride) ? stride : scalar(given);
    compact = multiply(compact, view.extents[d]);
  }
  if (b.elem_offset && !bind_if_free(b.elem_offset, offset)) view.offset = scalar(b.elem_offset);
  return views_[&b] = std::move(view);
}

BufferView& AccessCompiler::declare(const BufferNode& b) {
  std::vector<int> extents;
  for (const Expr& e : b.shape) extents.push_back(scalar(e));
  return declare(b, std::move(extents), constant(0));
}

BufferView AccessCompiler::view_of(const BufferNode& b) {
  auto it = views_.find(&b);
  if (it != views_.end()) return it->second;
  // A view that was never declared (flat programs use the pointer at once). Not kept: what it computes here need not
  // have been computed at the next use.
  BufferView view = declare(b);
  views_.erase(&b);
  return view;
}

void AccessCompiler::allocate(const BufferNode& b) {
  const int memory = memory_of_.contains(b.data.get()) ? memory_of_[b.data.get()] : add_memory(b, -1);
  const BufferView view = declare(b);
  // One element beyond the last address: offset + Σ (extent - 1) · stride + 1, times the lanes.
  Linear last = sum(linear_of(view.offset), Linear{1, {}});
  for (size_t d = 0; d < view.extents.size(); ++d)
    last = sum(last, multiply(sum(linear_of(view.extents[d]), Linear{-1, {}}), view.strides[d]));
  const int count = materialize(scaled(last, b.dtype.lanes));
  emit_to(Op::allocate, 0, count, memory, 0, type_key(b.dtype));
}

void AccessCompiler::alias(const MatchBuffer& match) {
  const BufferNode& source = *match.source.buffer;
  const BufferNode& target = *match.buffer;
  const BufferView from = view_of(source);
  const auto& region = match.source.region;
  Linear offset = linear_of(from.offset);
  std::vector<int> extents(target.shape.size()), strides(target.shape.size());
  size_t left = target.shape.size();  // dimensions of the target still to be matched, from the right
  for (size_t d = region.size(); d-- > 0;) {
    const int min = scalar(region[d].min), extent = scalar(region[d].extent);
    const Interval lo = interval(min), size = interval(extent), whole = interval(from.extents[d]);
    if (!(lo.known() && lo.lo >= 0 && size.known() && whole.known() && lo.hi + size.hi <= whole.lo)) {
      const int limit = emit(Op::add_i, emit(Op::sub_i, from.extents[d], extent), constant(1));
      emit_to(Op::check_range, 0, min, constant(0), limit);
      fails_with(access_out_of_bounds,
                 fmt::format("dimension {} of the region of {} that {} stands for", d, source.name, target.name));
    }
    offset = sum(offset, multiply(linear_of(min), from.strides[d]));
    const bool unit = is_const(region[d].extent, 1);
    const bool dropped = unit && (left == 0 || (d + 1 > left && !is_const(target.shape[left - 1], 1)));
    if (dropped) continue;
    if (left == 0) not_supported(fmt::format("an alias {} with fewer dimensions than its region", target.name));
    --left;
    if (!bind_if_free(target.shape[left], extent) && region[d].extent->hash != target.shape[left]->hash) {
      emit_to(Op::check_equal, 0, scalar(target.shape[left]), extent);
      fails_with(argument_mismatch, fmt::format("extent {} of alias {}", left, target.name));
    }
    extents[left] = extent;
    strides[left] = from.strides[d];
  }
  if (left) not_supported(fmt::format("an alias {} with more dimensions than its region", target.name));
  for (size_t d = 0; d < target.strides.size(); ++d) {
    if (bind_if_free(target.strides[d], strides[d])) continue;
    emit_to(Op::check_equal, 0, scalar(target.strides[d]), strides[d]);
    fails_with(argument_mismatch, fmt::format("stride {} of alias {}", d, target.name));
  }
  const int start = materialize(offset);
  if (target.elem_offset) bind_if_free(target.elem_offset, start);
  memory_of_[target.data.get()] = from.memory;
  views_[&target] = {from.memory, std::move(extents), std::move(strides), start};
}

int AccessCompiler::address(const BufferNode& b, const BufferView& view, const std::vector<Expr>& indices,
                            int index_lane, const char* verb) {
  if (indices.size() != view.extents.size())
    not_supported(fmt::format("{} indices of buffer {} of rank {}", indices.size(), b.name, view.extents.size()));
  Linear at = linear_of(view.offset);
  const std::vector<int> rows = whole_rows(b, indices);
  int lanes_inside = 1;  // of the dimensions after d
  for (int n : rows) lanes_inside *= n;
  for (size_t d = 0; d < indices.size(); ++d) {
    Linear index;
    if (rows.empty()) {
      index = linear(indices[d], indices[d]->dtype.is_vector() ? index_lane : 0);
    } else {
      lanes_inside /= rows[d];
      index = sum(linear(indices[d], 0), Linear{index_lane / lanes_inside % rows[d], {}});
    }
    const Interval range = interval(index), extent = interval(view.extents[d]);
    if (!(range.known() && range.lo >= 0 && range.hi < extent.lo)) {
      emit_to(Op::check_range, 0, materialize(index), constant(0), view.extents[d]);
      fails_with(access_out_of_bounds, fmt::format("index {} of {} ({})", d, b.name, verb));
    }
    at = sum(at, multiply(index, view.strides[d]));
  }
  return materialize(at);
}

namespace {

/// The place of lane `lane` of a vector access: which index lane, and which lane of the element.
struct LanePlace {
  int index_lane, element_lane;
};
LanePlace place_of(const BufferNode& b, int lane) { return {lane / b.dtype.lanes, lane % b.dtype.lanes}; }

}  // namespace

int AccessCompiler::load_lane(const Load& e, int lane) {
  const BufferNode& b = *e.buffer;
  const BufferView view = view_of(b);
  const LanePlace place = place_of(b, lane);
  int at = address(b, view, e.indices, place.index_lane, "read");
  if (b.dtype.is_vector()) at = materialize(sum(scaled(linear_of(at), b.dtype.lanes), Linear{place.element_lane, {}}));
  const int d = fresh(interval_of(b.dtype.element()));
  emit_load(b.dtype.element(), d, at, view.memory);
  fails_with(read_before_write, b.name);
  return d;
}

void AccessCompiler::store(const Store& s) {
  const BufferNode& b = *s.buffer;
  const BufferView view = view_of(b);
  const std::vector<int> values = lanes(s.value);  // all lanes are read before any is written
  for (size_t lane = 0; lane < values.size(); ++lane) {
    const LanePlace place = place_of(b, static_cast<int>(lane));
    int at = address(b, view, s.indices, place.index_lane, "write");
    if (b.dtype.is_vector())
      at = materialize(sum(scaled(linear_of(at), b.dtype.lanes), Linear{place.element_lane, {}}));
    emit_store(b.dtype.element(), values[lane], at, view.memory);
    fails_with(access_out_of_bounds, b.name);
  }
}

void AccessCompiler::emit_load(DType t, int d, int at, int memory) {
  auto load = [&](Op op) { emit_to(op, d, at, memory, 0, type_key(t)); };
  if (t.is_handle()) not_supported("a buffer of pointers");
  if (t.is_bool()) return load(Op::load_u8);
  if (t.bits < 8) return load(Op::load_packed);
  if (t.is_integer_like()) {
    switch (t.bits) {
      case 8:
        return load(t.is_int() ? Op::load_i8 : Op::load_u8);
      case 16:
        return load(t.is_int() ? Op::load_i16 : Op::load_u16);
      case 32:
        return load(t.is_int() ? Op::load_i32 : Op::load_u32);
      default:
        return load(Op::load_64);
    }
  }
  if (t.code == TypeCode::bfloat) return load(Op::load_bf16);
  if (t.bits == 8) return load(Op::load_small);
  return load(t.bits == 64 ? Op::load_64 : t.bits == 32 ? Op::load_f32 : Op::load_f16);
}

void AccessCompiler::emit_store(DType t, int value, int at, int memory) {
  auto put = [&](Op op) { emit_to(op, value, at, memory, 0, type_key(t)); };
  if (t.is_handle()) not_supported("a buffer of pointers");
  if (t.is_bool()) return put(Op::store_8);
  if (t.bits < 8) return put(Op::store_packed);
  if (t.code == TypeCode::bfloat) return put(Op::store_bf16);
  if (t.is_float() && t.bits == 8) return put(Op::store_small);
  if (t.is_float() && t.bits == 16) return put(Op::store_f16);
  put(t.bits == 64 ? Op::store_64 : t.bits == 32 ? Op::store_32 : t.bits == 16 ? Op::store_16 : Op::store_8);
}

}  // namespace tilewright::interpreter
