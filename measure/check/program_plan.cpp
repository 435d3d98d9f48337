#include "measure/check/program_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "ir/operation.h"
#include "ir/visit.h"
#include "measure/check/compare.h"

namespace tilewright::measure {

namespace {

/// What is known of the values of one buffer or expression.
struct Values {
  double rms = 1;        ///< on the exact set, where inputs are −4 … 4
  bool exact = true;     ///< on the exact set: integers, whatever the order of summation
  double reduction = 1;  ///< terms summed on the longest path so far
  double u_acc = 0;      ///< coarsest roundoff on the path
  double e_fn = 0;       ///< relative error of functions and elementwise arithmetic on the path
};

const double exact_input_rms = std::sqrt(20.0 / 3);
constexpr double function_ulps =
    4;  // the math table stays below 3 ulp, libm below 1; one more for the operand's rounding

Values merge(const Values& a, const Values& b) {
  return {std::max(a.rms, b.rms), a.exact && b.exact, std::max(a.reduction, b.reduction), std::max(a.u_acc, b.u_acc),
          a.e_fn + b.e_fn};
}

/// Significand bits in which integers of a type are exact.
int significand_bits(DType t) {
  if (t.is_integer_like()) return 1 << 20;  // they wrap alike in every order
  double u = unit_roundoff(t.element());
  return u > 0 ? static_cast<int>(std::lround(-std::log2(u))) : 0;
}

class Analysis {
 public:
  explicit Analysis(const Function& function) : function_(function) {}

  Result<CheckPlan> run() {
    for (const Param& p : function_.params) {
      if (!p.buffer)
        return refuse(not_checkable, "a program with scalar parameters cannot be measured: bind them first");
      parameters_[p.buffer.get()] = plan_.buffers.size();
      BufferPlan b;
      b.name = p.buffer->name;
      b.dtype = p.buffer->dtype;
      if (b.dtype.is_handle() || b.dtype.is_vector())
        return refuse(not_checkable, fmt::format("parameter {} has elements of type {}", b.name, b.dtype.str()));
      for (const Expr& extent : p.buffer->shape) {
        auto* constant = as<IntImm>(extent);
        if (!constant)
          return refuse(not_checkable, fmt::format("parameter {} has an extent that is not constant", b.name));
        b.shape.push_back(constant->value);
      }
      values_[p.buffer.get()] = {exact_input_rms, true, 1, 0, 0};
      plan_.buffers.push_back(std::move(b));
    }
    visit(function_.body);
    plan_.exact = true;
    bool any_output = false;
    for (const Param& p : function_.params) {
      BufferPlan& b = plan_.buffers[parameters_[p.buffer.get()]];
      bool written = written_.count(p.buffer.get()) > 0;
      b.role = !written ? Role::input : read_first_.count(p.buffer.get()) ? Role::inout : Role::output;
      if (!written) continue;
      any_output = true;
      const Values& v = values_[p.buffer.get()];
      b.reduction = v.reduction;
      b.u_acc = v.u_acc;
      b.e_fn = v.e_fn;
      plan_.exact &= v.exact;
    }
    if (!any_output) return refuse(not_checkable, "the program writes none of its parameters");
    return plan_;
  }

 private:
  void visit(const Stmt& root) {
    walk(
        root, [](const Expr&) { return false; },
        [&](const Stmt& s) {
          if (auto* block = as<Block>(s)) {
            blocks_.push_back(block);
            if (block->init) visit(block->init);
            visit(block->body);
            blocks_.pop_back();
            return false;
          }
          if (auto* bind = as<Bind>(s)) bindings_[bind->var.get()] = evaluate(bind->value);
          if (auto* branch = as<If>(s)) evaluate(branch->condition);
          if (auto* evaluated = as<Evaluate>(s)) evaluate(evaluated->value);
          if (auto* store = as<Store>(s)) visit_store(*store);
          return true;
        });
  }

  void visit_store(const Store& store) {
    const BufferNode* buffer = store.buffer.get();
    for (const Expr& index : store.indices) evaluate(index);
    updating_ = buffer;
    updates_ = false;
    Values v = evaluate(store.value);
    updating_ = nullptr;
    DType computed = store.value->dtype;
    if (auto* cast = as<Cast>(store.value); cast && parameters_.count(buffer) && !updates_)
      computed = cast->value->dtype;  // the last rounding of an exact value is the same in every order
    double terms = 1;
    if (updates_)
      for (const Block* block : blocks_)
        for (const Iter& iter : block->iters)
          if (iter.type == IterType::reduction) terms *= extent_of(iter.dom);
    v.reduction += terms - 1;
    if (updates_) v.rms *= std::sqrt(terms);
    if (computed.is_float()) v.u_acc = std::max(v.u_acc, unit_roundoff(computed.element()));
    v.exact &= 8 * v.rms <= std::ldexp(1.0, std::min(significand_bits(computed), 1000));
    auto [it, fresh] = values_.try_emplace(buffer, v);
    bool first = written_.insert(buffer).second;
    if (!fresh)
      it->second = first && parameters_.count(buffer) && !read_first_.count(buffer) ? v : merge(it->second, v);
  }

  static double extent_of(const Range& range) {
    auto* constant = as<IntImm>(range.extent);
    return constant ? static_cast<double>(constant->value) : 1e6;
  }

  Values evaluate(const Expr& e) {
    if (!e) return {};
    if (auto* x = as<IntImm>(e)) return {std::fabs(static_cast<double>(x->value)), true, 1, 0, 0};
    if (auto* x = as<FloatImm>(e))
      return {std::fabs(x->value), x->value == std::round(x->value) || std::isinf(x->value), 1, 0, 0};
    if (auto* x = as<VarNode>(e)) {
      auto it = bindings_.find(x);
      return it == bindings_.end() ? Values{} : it->second;
    }
    if (auto* x = as<Cast>(e)) return evaluate(x->value);
    if (auto* x = as<Not>(e)) return evaluate(x->a);
    if (auto* x = as<Ramp>(e)) return evaluate(x->base);
    if (auto* x = as<Broadcast>(e)) return evaluate(x->value);
    if (auto* x = as<Load>(e)) return evaluate_load(*x);
    if (auto* x = as<Select>(e)) {
      evaluate(x->condition);
      return merge(evaluate(x->then_value), evaluate(x->else_value));
    }
    if (auto* x = as<Let>(e)) {
      bindings_[x->var.get()] = evaluate(x->value);
      return evaluate(x->body);
    }
    if (auto* x = as<Binary>(e)) return evaluate_binary(*x);
    if (auto* x = as<Call>(e)) return evaluate_call(*x);
    if (auto* x = as<Shuffle>(e)) {
      Values v = evaluate(x->vectors.front());
      for (const Expr& part : x->vectors) v = merge(v, evaluate(part));
      return v;
    }
    return {};
  }

  Values evaluate_load(const Load& load) {
    const BufferNode* buffer = load.buffer.get();
    for (size_t d = 0; d < load.indices.size(); ++d) {
      note_index_tensor(load.indices[d], buffer->shape[d]);
      evaluate(load.indices[d]);
    }
    // Reading what the same statement writes is a step of a reduction, or of a recurrence.
    if (buffer == updating_) updates_ = true;
    bool written = written_.count(buffer) > 0;
    if (parameters_.count(buffer) && !written) read_first_.insert(buffer);
    if (buffer == updating_ && written) {
      Values accumulator{0, true, 1, 0, 0};
      return accumulator;
    }
    auto it = values_.find(buffer);
    return it == values_.end() ? Values{} : it->second;
  }

  Values evaluate_binary(const Binary& x) {
    Values a = evaluate(x.a), b = evaluate(x.b), v = merge(a, b);
    double u = x.dtype.is_float() ? unit_roundoff(x.dtype.element()) : 0;
    switch (x.op) {
      case BinaryOp::add:
      case BinaryOp::sub:
        v.rms = std::hypot(a.rms, b.rms);
        break;
      case BinaryOp::mul:
        v.rms = a.rms * b.rms;
        break;
      case BinaryOp::div:
        note_positive(x.b);
        v.exact = false;
        break;
      case BinaryOp::trunc_div:
      case BinaryOp::floor_div:
      case BinaryOp::trunc_mod:
      case BinaryOp::floor_mod:
        note_positive(x.b);
        return v;
      default:
        return v;  // min, max, comparisons: no rounding
    }
    v.e_fn += 2 * u;
    return v;
  }

  Values evaluate_call(const Call& call) {
    Values v{1, true, 1, 0, 0};
    for (const Expr& arg : call.args) v = merge(v, evaluate(arg));
    const std::string& name = call.op->name;
    if (name == "if_then_else" || name == "max" || name == "min" || name == "abs" || name == "fabs") return v;
    if (name == "log" || name == "log2" || name == "log10" || name == "log1p" || name == "sqrt" || name == "rsqrt" ||
        name == "pow")
      for (const Expr& arg : call.args) note_positive(arg);
    v.exact = false;
    if (call.dtype.is_float()) v.e_fn += function_ulps * 2 * unit_roundoff(call.dtype.element());
    return v;
  }

  const Load* parameter_load(Expr e) {
    while (auto* cast = as<Cast>(e)) e = cast->value;
    auto* load = as<Load>(e);
    return load && parameters_.count(load->buffer.get()) ? load : nullptr;
  }
  void note_positive(const Expr& e) {
    if (const Load* load = parameter_load(e)) plan_.buffers[parameters_[load->buffer.get()]].fill = Fill::positive;
  }
  /// An input that is used as an index of another buffer must stay inside it.
  void note_index_tensor(const Expr& index, const Expr& extent) {
    walk(index, [&](const Expr& e) {
      auto* load = as<Load>(e);
      if (!load || !parameters_.count(load->buffer.get())) return true;
      BufferPlan& b = plan_.buffers[parameters_[load->buffer.get()]];
      auto* constant = as<IntImm>(extent);
      bool plain = parameter_load(index) == load && constant;
      int64_t high = plain ? constant->value : 1;  // arithmetic on it: only 0 is known to be safe
      b.high = b.fill == Fill::index ? std::min(b.high, high) : high;
      b.fill = Fill::index;
      return true;
    });
  }

  const Function& function_;
  CheckPlan plan_;
  std::map<const BufferNode*, size_t> parameters_;
  std::map<const BufferNode*, Values> values_;
  std::map<const VarNode*, Values> bindings_;
  std::set<const BufferNode*> written_, read_first_;
  std::vector<const Block*> blocks_;
  const BufferNode* updating_ = nullptr;
  bool updates_ = false;
};

}  // namespace

Result<CheckPlan> plan_checks(const Function& function) { return Analysis(function).run(); }

}  // namespace tilewright::measure
