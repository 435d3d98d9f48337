// Statements to register code: loops in the order that the options ask for, blocks with their checks, control flow.
#include <fmt/format.h>

#include <algorithm>

#include "ir/build.h"
#include "ir/interpret/access_compiler.h"
#include "ir/visit.h"

namespace tilewright::interpreter {

namespace {

/// Statement under the loops, conditions and attributes of a nest that holds nothing else, or null if the loop `outer`
/// drives the bounds of a loop below.
const Block* only_block_below(const For& outer) {
  Stmt s = outer.body;
  while (true) {
    if (const For* loop = as<For>(s)) {
      if (uses_var(loop->min, outer.var.get()) || uses_var(loop->extent, outer.var.get())) return nullptr;
      s = loop->body;
    } else if (const If* branch = as<If>(s); branch && !branch->else_body) {
      s = branch->then_body;
    } else {
      return as<Block>(s);
    }
  }
}

/// Whether the loop only moves one block through instances that its author calls independent.
bool is_spatial(const For& loop) {
  const Block* block = only_block_below(loop);
  if (!block) return false;
  for (const Iter& iter : block->iters)
    if (iter.type != IterType::spatial && uses_var(iter.binding, loop.var.get())) return false;
  return true;
}

/// Whether a reduction iter of a block directly below the loop (no block between) depends on it.
bool drives_reduction(const For& loop) {
  bool found = false;
  walk_stmts(loop.body, [&](const Stmt& s) {
    const Block* block = as<Block>(s);
    if (!block) return true;
    for (const Iter& iter : block->iters)
      if (iter.type == IterType::reduction && uses_var(iter.binding, loop.var.get())) found = true;
    return false;
  });
  return found;
}

class FunctionCompiler : public AccessCompiler {
 public:
  using AccessCompiler::AccessCompiler;

  void function(const Function& f) {
    declare_parameters(f);
    statement(f.body);
    for (size_t jump : returns_) patch(jump);
    emit_to(Op::halt, 0);
  }

 private:
  struct Loop {
    int reg;
    bool from_minimum;  ///< starts at the least value it takes, for any values of the loops around it
    bool constant_bounds;
    int conditions;  ///< enclosing if and while statements
  };
  struct Jumps {
    std::vector<size_t> breaks, continues;
  };

  // --- statements ---------------------------------------------------------------------------

  void statement(const Stmt& s) {
    new_statement();
    switch (s->kind) {
      case StmtKind::kStore:
        return store(*as<Store>(s));
      case StmtKind::kSeq:
        for (const Stmt& item : as<Seq>(s)->stmts) statement(item);
        return;
      case StmtKind::kFor:
        return loop(*as<For>(s));
      case StmtKind::kBlock:
        return block(*as<Block>(s));
      case StmtKind::kIf:
        return branch(*as<If>(s));
      case StmtKind::kWhile:
        return while_loop(*as<While>(s));
      case StmtKind::kBind: {
        const Bind* b = as<Bind>(s);
        bind(b->var.get(), lanes(b->value));
        return statement(b->body);
      }
      case StmtKind::kEvaluate:
        if (!is_no_op(s)) lanes(as<Evaluate>(s)->value);
        return;
      case StmtKind::kAssert: {
        const Assert* a = as<Assert>(s);
        emit_to(Op::check_true, 0, scalar(a->condition));
        return fails_with(assertion_failed, a->message);
      }
      case StmtKind::kAttrStmt:
        return attribute(*as<AttrStmt>(s));
      case StmtKind::kAllocate: {
        const Allocate* a = as<Allocate>(s);
        allocate(*a->buffer);
        return statement(a->body);
      }
      case StmtKind::kDeclBuffer: {
        const DeclBuffer* d = as<DeclBuffer>(s);
        declare(*d->buffer);
        return statement(d->body);
      }
      case StmtKind::kBreak:
        return jump_out(&Jumps::breaks, "break");
      case StmtKind::kContinue:
        return jump_out(&Jumps::continues, "continue");
      case StmtKind::kReturn:
        if (as<Return>(s)->value) scalar(as<Return>(s)->value);
        returns_.push_back(emit_to(Op::jump, 0));
        return;
    }
  }

  void jump_out(std::vector<size_t> Jumps::* list, const char* name) {
    if (jumps_.empty()) not_supported(fmt::format("{} outside a loop", name));
    (jumps_.back().*list).push_back(emit_to(Op::jump, 0));
  }

  void branch(const If& s) {
    const size_t to_else = emit_to(Op::jump_zero, 0, scalar(s.condition));
    ++conditions_;
    statement(s.then_body);
    if (s.else_body) {
      const size_t to_end = emit_to(Op::jump, 0);
      patch(to_else);
      statement(s.else_body);
      patch(to_end);
    } else {
      patch(to_else);
    }
    --conditions_;
    new_statement();
  }

  void while_loop(const While& s) {
    const size_t start = code_.code.size();
    const size_t out = emit_to(Op::jump_zero, 0, scalar(s.condition));
    jumps_.emplace_back();
    ++conditions_;
    statement(s.body);
    --conditions_;
    for (size_t jump : jumps_.back().continues) patch(jump);
    const int forever = constant(0);  // 0 + 0 < 1: loop_next counts the step and jumps back
    emit_to(Op::loop_next, static_cast<int>(start), fresh(), constant(1), forever);
    fails_with(step_limit_reached, "a while loop");
    patch(out);
    for (size_t jump : jumps_.back().breaks) patch(jump);
    jumps_.pop_back();
    new_statement();
  }

  void attribute(const AttrStmt& s) {
    const VarNode* thread = as<VarNode>(s.node);
    if (s.key != "thread_extent" || !thread || env_.contains(thread)) return statement(s.body);
    // A launch axis: its threads run one after another (programs that synchronise are refused where they do).
    run_loop(thread, Linear{}, scalar(s.value), 1, code_.options.order, s.body);
    env_.erase(thread);
  }

  // --- loops ---------------------------------------------------------------------------

  Order order_of(const For& s) const {
    if (code_.options.order == Order::forward) return Order::forward;
    const bool unordered = s.loop_kind == ForKind::parallel || s.loop_kind == ForKind::vectorized ||
                           s.loop_kind == ForKind::thread_binding;
    // A reduction may be spread over threads; which of them initialises is fixed all the same.
    if (s.loop_kind == ForKind::thread_binding && drives_reduction(s)) return Order::forward;
    return unordered || is_spatial(s) ? code_.options.order : Order::forward;
  }

  void loop(const For& s) {
    const Linear min = linear(s.min);
    int64_t step = 1;
    int count = scalar(s.extent);
    if (s.step) {
      const std::optional<int64_t> given = const_int(s.step);
      if (!given || *given < 1) not_supported("a loop step that is not a positive constant");
      step = *given;
      if (step != 1) count = scalar(floor_div(s.extent + (step - 1), int_imm(step, s.extent->dtype)));
    }
    run_loop(s.var.get(), min, count, step, order_of(s), s.body);
  }

  void run_loop(const VarNode* var, const Linear& min, int count, int64_t step, Order order, const Stmt& body) {
    const Interval n = interval(count);
    if (n.hi <= 0) return;
    jumps_.emplace_back();
    if (n.lo == 1 && n.hi == 1) {
      once(var, materialize(min), body);
    } else {
      const Linear last = sum(min, scaled(sum(linear_of(count), Linear{-1, {}}), step));
      const Interval low = interval(min), high = interval(last);
      const Interval range = low.known() && high.known() ? Interval{low.lo, std::max(low.lo, high.hi)} : Interval{};
      const bool constant_bounds = n.lo == n.hi && min.terms.empty();
      const bool forward = order == Order::forward;
      const int index = fresh(forward ? range : n.known() ? Interval{0, n.hi - 1} : Interval{});
      const int end = forward ? materialize(sum(min, scaled(linear_of(count), step))) : count;
      if (order == Order::random) emit_to(Op::shuffle, 0, count, code_.permutations);
      emit_to(Op::mov, index, forward ? materialize(min) : constant(0));
      const size_t enter = emit_to(Op::loop_enter, 0, index, end);
      const size_t start = code_.code.size();
      new_statement();
      loops_.push_back({index, forward && min.terms.empty(), constant_bounds, conditions_});
      once(var, forward ? index : permuted(index, count, min, step, order, range), body);
      loops_.pop_back();
      for (size_t jump : jumps_.back().continues) patch(jump);
      emit_to(Op::loop_next, static_cast<int>(start), index, end, constant(forward ? step : 1));
      fails_with(step_limit_reached, fmt::format("loop {}", var->name));
      patch(enter);
    }
    for (size_t jump : jumps_.back().breaks) patch(jump);
    if (n.lo == 1 && n.hi == 1)
      for (size_t jump : jumps_.back().continues) patch(jump);
    jumps_.pop_back();
    new_statement();
  }

  /// The loop variable's value at position `index` of the order.
  int permuted(int index, int count, const Linear& min, int64_t step, Order order, Interval range) {
    Linear position;
    if (order == Order::reverse) {
      position = sum(sum(linear_of(count), Linear{-1, {}}), Linear{0, {{index, -1}}});
    } else {
      position.terms = {{emit(Op::permute, index, code_.permutations++, 0, 0, interval(index)), 1}};
    }
    const int value = fresh(range);
    emit_to(Op::mov, value, materialize(sum(min, scaled(position, step))));
    return value;
  }

  void once(const VarNode* var, int reg, const Stmt& body) {
    bind(var, {reg});
    Context before = enter(var->name, reg);
    statement(body);
    leave(std::move(before));
  }

  // --- blocks ---------------------------------------------------------------------------

  void block(const Block& s) {
    Context before = enter_block(s.name);
    std::vector<int> bound;
    for (const Iter& iter : s.iters) bound.push_back(materialize(linear(iter.binding)));
    for (size_t i = 0; i < s.iters.size(); ++i) bind(s.iters[i].var.get(), {bound[i]});
    std::vector<size_t> skips;
    if (!is_true(s.predicate)) skips.push_back(emit_to(Op::jump_zero, 0, scalar(s.predicate)));
    for (size_t i = 0; i < s.iters.size(); ++i) {
      const Iter& iter = s.iters[i];
      enter(iter.var->name, bound[i]);
      bound[i] = inside_domain(iter, bound[i]);
      bind(iter.var.get(), {bound[i]});
    }
    for (const Buffer& b : s.allocs) allocate(*b);
    for (const MatchBuffer& m : s.matches) alias(m);
    if (s.init) initialise(s, bound);
    statement(s.body);
    for (size_t jump : skips) patch(jump);
    leave(std::move(before));
    new_statement();
  }

  /// The iter's value, checked against its domain unless that is proved; the register's interval is then the domain.
  int inside_domain(const Iter& iter, int value) {
    const int min = scalar(iter.dom.min);
    const int end = materialize(sum(linear_of(min), linear(iter.dom.extent)));
    const Interval v = interval(value), low = interval(min), high = interval(end);
    if (v.known() && low.known() && high.known() && v.lo >= low.hi && v.hi < high.lo) return value;
    emit_to(Op::check_range, 0, value, min, end);
    fails_with(axis_value_outside_domain, fmt::format("iter {}", iter.var->name));
    if (!low.known() || !high.known()) return value;
    const int checked = fresh({std::max(v.lo, low.lo), std::min(v.hi, high.hi - 1)});
    emit_to(Op::mov, checked, value);
    return checked;
  }

  void initialise(const Block& s, const std::vector<int>& bound) {
    std::vector<size_t> skips;
    for (size_t i = 0; i < s.iters.size(); ++i) {
      if (s.iters[i].type != IterType::reduction) continue;
      const int min = scalar(s.iters[i].dom.min);
      const Interval v = interval(bound[i]), m = interval(min);
      if (v.lo == v.hi && m.lo == m.hi && v.lo == m.lo) continue;
      skips.push_back(emit_to(Op::jump_ne, 0, bound[i], min));
    }
    const bool tracked = !skips.empty() && !proved_to_begin_first(s);
    const std::optional<Linear> point = tracked ? spatial_point(s, bound) : std::nullopt;
    const int tracker = static_cast<int>(code_.init_trackers.size()) - 1;
    new_statement();
    statement(s.init);
    if (point) emit_to(Op::init_mark, 0, materialize(*point), tracker);
    for (size_t jump : skips) patch(jump);
    new_statement();
    if (point) {
      emit_to(Op::init_check, 0, materialize(*point), tracker);
      fails_with(first_reduction_instance_not_first, fmt::format("block \"{}\"", s.name));
    }
  }

  /// Row-major position among the spatial iters, and a new tracker for it; nothing when the domain is not constant or
  /// large.
  std::optional<Linear> spatial_point(const Block& s, const std::vector<int>& bound) {
    constexpr int64_t most_points = int64_t{1} << 26;  // 64 MB of marks
    Linear point;
    int64_t points = 1;
    for (size_t i = s.iters.size(); i-- > 0;) {
      if (s.iters[i].type == IterType::reduction) continue;
      const std::optional<int64_t> min = const_int(s.iters[i].dom.min), extent = const_int(s.iters[i].dom.extent);
      if (!min || !extent || *extent > most_points / points) return std::nullopt;
      point = sum(point, scaled(sum(linear_of(bound[i]), Linear{-*min, {}}), points));
      points *= *extent;
    }
    code_.init_trackers.push_back(points);
    return point;
  }

  /// Loops run as a full product, each reduction binding is a positive combination of loops that start at their minimum
  /// and drive nothing else, and no condition or predicate hides an instance: then the first instance of every spatial
  /// point has all reduction iters at their minimum.
  bool proved_to_begin_first(const Block& s) {
    if (!is_true(s.predicate)) return false;
    std::vector<int> spatial;
    size_t outermost = loops_.size();
    for (const Iter& iter : s.iters) {
      const Linear v = linear(iter.binding);
      if (iter.type != IterType::reduction) {
        for (const auto& [reg, k] : v.terms) spatial.push_back(reg);
        continue;
      }
      const std::optional<int64_t> min = const_int(iter.dom.min);
      if (!min || interval(v).lo != *min) return false;
      for (const auto& [reg, k] : v.terms) {
        auto it = std::find_if(loops_.begin(), loops_.end(), [r = reg](const Loop& l) { return l.reg == r; });
        if (k <= 0 || it == loops_.end() || !it->from_minimum || it->conditions != conditions_) return false;
        outermost = std::min(outermost, static_cast<size_t>(it - loops_.begin()));
      }
    }
    for (size_t i = outermost; i < loops_.size(); ++i)
      if (!loops_[i].constant_bounds) return false;
    for (const Iter& iter : s.iters) {
      if (iter.type != IterType::reduction) continue;
      for (const auto& [reg, k] : linear(iter.binding).terms)
        if (std::find(spatial.begin(), spatial.end(), reg) != spatial.end()) return false;
    }
    return true;
  }

  std::vector<Loop> loops_;
  std::vector<Jumps> jumps_;
  std::vector<size_t> returns_;
  int conditions_ = 0;
};

}  // namespace

Result<InterpreterCode> compile_function(const Function& f, const InterpretOptions& options) {
  InterpreterCode code;
  code.function = f.name;
  code.options = options;
  FunctionCompiler compiler(code);
  try {
    compiler.function(f);
  } catch (CompileFailure& failure) {
    return refuse(std::move(failure.refusal));
  }
  return code;
}

}  // namespace tilewright::interpreter
