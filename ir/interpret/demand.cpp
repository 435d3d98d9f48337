// Demand mode: single elements of an output, and of the intermediates only what they need. Each block becomes a piece
// of code that computes one element of its buffer from the values of its spatial iters; reading another block's buffer
// runs that block's piece (once for each element: results are kept).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "ir/build.h"
#include "ir/interpret/access_compiler.h"
#include "ir/visit.h"

namespace tilewright::interpreter {

namespace {

/// The block that computes one buffer.
struct Stage {
  Buffer buffer;
  size_t entry = 0;          ///< of its code
  std::vector<int> indices;  ///< per dimension: the register of its iter, -1: the index is a constant
  std::vector<int64_t> extents;
  int result = -1;
};

tl::unexpected<Refusal> not_possible(const std::string& why) {
  return refuse(not_demand_evaluable, fmt::format("elements cannot be computed on demand: {}", why));
}

class DemandCompiler : public AccessCompiler {
 public:
  using AccessCompiler::AccessCompiler;

  Status function(const Function& f) {
    declare_parameters(f);
    const Block* root = f.root();
    if (!root || !root->iters.empty()) return not_possible("the function has no root block");
    for (const Buffer& b : root->allocs) {
      add_memory(*b, -1);
      declare(*b);
    }
    for (const Stmt& s : seq_items(root->body)) TW_TRY_VOID(stage(s));
    return {};
  }

  std::vector<Stage> stages;

 private:
  static Status refuse_block(const Block& b, const char* why) {
    return not_possible(fmt::format("block \"{}\" {}", b.name, why));
  }

  static bool reads(const Expr& e, const BufferNode& buffer) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const Load* l = as<Load>(x);
      found = found || (l && l->buffer.get() == &buffer);
      return !found;
    });
    return found;
  }

  Status stage(const Stmt& nest) {
    std::vector<const For*> loops;
    Stmt s = nest;
    while (const For* loop = as<For>(s)) {
      loops.push_back(loop);
      s = loop->body;
    }
    const Block* b = as<Block>(s);
    if (!b) return not_possible("a loop nest holds other statements than one block");
    const Store* update = as<Store>(b->body);
    const Store* init = as<Store>(b->init);
    if (!update || (b->init && !init)) return refuse_block(*b, "is not one store");
    if (!is_true(b->predicate) || !b->allocs.empty() || !b->matches.empty())
      return refuse_block(*b, "has a predicate, allocations or aliases");
    if (index_of(update->buffer.get()) >= 0) return refuse_block(*b, "writes a buffer that another block writes");
    if (init && init->buffer.get() != update->buffer.get()) return refuse_block(*b, "initialises another buffer");
    if (!init && reads(update->value, *update->buffer)) return refuse_block(*b, "updates its buffer in place");

    Context before = enter_block(b->name);
    new_statement();
    Stage out;
    out.buffer = update->buffer;
    out.entry = code_.code.size();
    TW_TRY_VOID(bind_iters(*b, loops, *update, out));
    TW_TRY_VOID(body(*b, loops, *update, init, out));
    emit_to(Op::halt, 0);
    leave(std::move(before));
    stages.push_back(std::move(out));
    return {};
  }

  /// Every iter is a bare loop over its whole domain; every index of the output is a spatial iter of its own, or
  /// constant.
  Status bind_iters(const Block& b, const std::vector<const For*>& loops, const Store& update, Stage& out) {
    for (const Iter& iter : b.iters) {
      const VarNode* var = as<VarNode>(iter.binding);
      const For* loop = nullptr;
      for (const For* l : loops)
        if (l->var.get() == var) loop = l;
      const std::optional<int64_t> min = const_int(iter.dom.min), extent = const_int(iter.dom.extent);
      if (!min || !extent) return refuse_block(b, "has an iter whose domain is not constant");
      const bool unit = extent == 1 && const_int(iter.binding) == min;
      if (!unit && (!loop || const_int(loop->min) != min || const_int(loop->extent) != extent || loop->step))
        return refuse_block(b, "has an iter that is not a loop over its domain");
      if (iter.type != IterType::spatial && iter.type != IterType::reduction)
        return refuse_block(b, "has iters that promise nothing");
      bind(iter.var.get(), {fresh({*min, *min + *extent - 1})});
    }
    std::vector<const VarNode*> used;
    for (size_t d = 0; d < update.indices.size(); ++d) {
      const Iter* iter = nullptr;
      for (const Iter& i : b.iters)
        if (i.var.get() == as<VarNode>(update.indices[d]) && i.type == IterType::spatial) iter = &i;
      const bool repeated = iter && std::find(used.begin(), used.end(), iter->var.get()) != used.end();
      if (!iter && !is_const(update.indices[d], 0))
        return refuse_block(b, "writes at an index that is not a spatial iter");
      if (repeated || !const_int(update.buffer->shape[d]))
        return refuse_block(b, "writes along a diagonal or a symbolic extent");
      const bool whole =
          iter ? is_const(iter->dom.min, 0) && const_int(iter->dom.extent) == const_int(update.buffer->shape[d])
               : is_const(update.buffer->shape[d], 1);
      if (!whole) return refuse_block(b, "writes a part of its buffer");
      if (iter) used.push_back(iter->var.get());
      out.indices.push_back(iter ? env_.at(iter->var.get())[0] : -1);
      out.extents.push_back(*const_int(update.buffer->shape[d]));
    }
    for (const Iter& iter : b.iters)
      if (iter.type == IterType::spatial && !is_const(iter.dom.extent, 1) &&
          std::find(used.begin(), used.end(), iter.var.get()) == used.end())
        return refuse_block(b, "writes an element in several instances");
    return {};
  }

  Status body(const Block& b, const std::vector<const For*>& loops, const Store& update, const Store* init,
              Stage& out) {
    out.result = fresh();
    result_ = out.result;
    current_ = &update;
    if (init) {
      const int value = scalar(init->value);
      emit_to(Op::mov, out.result, value);
    }
    struct Open {
      size_t start;
      int reg, end;
    };
    std::vector<Open> open;
    for (const For* loop : loops) {  // reduction iters in the order of their loops
      for (const Iter& iter : b.iters) {
        if (iter.type != IterType::reduction || as<VarNode>(iter.binding) != loop->var.get()) continue;
        const int reg = env_.at(iter.var.get())[0], min = constant(*const_int(iter.dom.min));
        const int end = constant(*const_int(iter.dom.min) + *const_int(iter.dom.extent));
        emit_to(Op::mov, reg, min);
        open.push_back({code_.code.size(), reg, end});
      }
    }
    if (!init && !open.empty()) return refuse_block(b, "reduces without an init");
    for (const Iter& iter : b.iters)  // no element's index sets a unit iter
      if (is_const(iter.dom.extent, 1))
        emit_to(Op::mov, env_.at(iter.var.get())[0], constant(*const_int(iter.dom.min)));
    new_statement();
    const int value = scalar(update.value);
    emit_to(Op::mov, out.result, value);
    for (size_t i = open.size(); i-- > 0;) {
      emit_to(Op::loop_next, static_cast<int>(open[i].start), open[i].reg, open[i].end, constant(1));
      fails_with(step_limit_reached, "a reduction");
    }
    current_ = nullptr;
    return {};
  }

  int index_of(const BufferNode* b) const {
    for (size_t i = 0; i < stages.size(); ++i)
      if (stages[i].buffer.get() == b) return static_cast<int>(i);
    return -1;
  }

  int load_lane(const Load& e, int lane) override {
    if (e.dtype.is_vector()) not_supported("vectors, on demand");
    if (current_ && e.buffer.get() == current_->buffer.get()) {
      for (size_t d = 0; d < e.indices.size(); ++d)
        if (e.indices[d]->hash != current_->indices[d]->hash)
          not_supported("a block that reads other elements of its output, on demand");
      // A copy: the running value changes before other uses of it in the same statement are over.
      return emit(Op::mov, result_);
    }
    const int producer = index_of(e.buffer.get());
    if (producer < 0) return AccessCompiler::load_lane(e, lane);
    const int at = address(*e.buffer, view_of(*e.buffer), e.indices, 0, "read");
    const int d = emit(Op::demand, at, producer, 0, 0, interval_of(e.buffer->dtype));
    fails_with(not_demand_evaluable, e.buffer->name);
    return d;
  }

  int result_ = -1;
  const Store* current_ = nullptr;
};

/// Runs the pieces. No block's piece runs inside itself, so all share one set of registers.
class Host final : public DemandHost {
 public:
  Host(const InterpreterCode& code, const std::vector<Stage>& stages, std::span<Reg> registers,
       std::span<Memory> memory)
      : code_(code), stages_(stages), registers_(registers), memory_(memory), values_(stages.size()) {}

  bool value(int stage, int64_t index, Reg& out) override {
    auto& known = values_[static_cast<size_t>(stage)];
    if (auto it = known.find(index); it != known.end()) {
      out = it->second;
      return true;
    }
    const Stage& s = stages_[static_cast<size_t>(stage)];
    int64_t rest = index;
    for (size_t d = s.extents.size(); d-- > 0; rest /= s.extents[d])
      if (s.indices[d] >= 0) registers_[static_cast<size_t>(s.indices[d])].i = rest % s.extents[d];
    Status status = run_code(code_, s.entry, registers_, memory_, steps_, this);
    if (!status) {
      if (!refusal_) refusal_ = status.error();
      return false;
    }
    out = registers_[static_cast<size_t>(s.result)];
    known.emplace(index, out);
    return true;
  }
  const Refusal& refusal() const { return *refusal_; }

 private:
  const InterpreterCode& code_;
  const std::vector<Stage>& stages_;
  std::span<Reg> registers_;
  std::span<Memory> memory_;
  std::vector<std::unordered_map<int64_t, Reg>> values_;
  std::optional<Refusal> refusal_;
  int64_t steps_ = 0;
};

double as_double(Reg v, DType t) {
  if (!t.is_float()) return static_cast<double>(v.i);
  return t.bits == 64 ? v.d : v.f;
}

}  // namespace

}  // namespace tilewright::interpreter

namespace tilewright {

using namespace interpreter;

Result<std::vector<double>> interpret_elements(const Function& f, std::span<const Tensor> args, int parameter,
                                               std::span<const int64_t> indices, const InterpretOptions& options) {
  InterpreterCode code;
  code.function = f.name;
  code.options = options;
  DemandCompiler compiler(code);
  try {
    TW_TRY_VOID(compiler.function(f));
  } catch (CompileFailure& failure) {
    return refuse(std::move(failure.refusal));
  }
  const BufferNode* wanted = f.params.at(static_cast<size_t>(parameter)).buffer.get();
  int stage = -1;
  for (size_t i = 0; i < compiler.stages.size(); ++i)
    if (compiler.stages[i].buffer.get() == wanted) stage = static_cast<int>(i);
  if (stage < 0) return not_possible(fmt::format("no block writes parameter {}", parameter));

  std::vector<Reg> registers = code.registers;
  std::vector<Memory> memory(code.memory.size());
  // Arguments are only read: no code of this mode stores.
  TW_TRY_VOID(bind_arguments(code, {const_cast<Tensor*>(args.data()), args.size()}, registers, memory));
  Host host(code, compiler.stages, registers, memory);
  int64_t size = 1;
  for (int64_t extent : compiler.stages[static_cast<size_t>(stage)].extents) size *= extent;
  std::vector<double> out;
  for (int64_t index : indices) {
    TW_CHECK(index >= 0 && index < size, "element {} of a tensor of {} elements", index, size);
    Reg value{};
    if (!host.value(stage, index, value)) return refuse(host.refusal());
    out.push_back(as_double(value, wanted->dtype));
  }
  return out;
}

}  // namespace tilewright
