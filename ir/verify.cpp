#include "ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ir/analysis/regions.h"
#include "ir/build.h"
#include "ir/print.h"
#include "ir/text_codes.h"
#include "ir/verify_points.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

class Verifier {
 public:
  Verifier(const Program& program, const SourceMap* spans) : program_(program), spans_(spans) {}

  std::vector<Diagnostic> run() {
    if (program_.functions.empty()) report(text_code::no_function, nullptr, "expected a function, found none");
    for (const FunctionRef& f : program_.functions) function(*f);
    return std::move(out_);
  }

 private:
  // --- reporting

  Span place(const void* node) {
    if (!node) return {};
    if (spans_) return spans_->find(node);
    if (!printed_) printed_ = print_with_places(program_).spans;
    return printed_->find(node);
  }
  Diagnostic* report(const RefusalCode& code, const void* node, std::string message) {
    if (out_.size() >= ErrorList::kLimit) return &scratch_;
    Diagnostic& d = out_.emplace_back();
    d.code = code.text;
    d.message = std::move(message);
    d.span = place(node);
    if (d.span.line == 0) d.span = place(statement_);
    return &d;
  }

  // --- scopes

  void function(const Function& f) {
    defined_.clear();
    around_ = {};
    scopes_.clear();
    for (const Param& p : f.params) {
      if (p.var) defined_.insert(p.var.get());
      if (p.buffer) declare(p.buffer);
    }
    for (const Var& v : f.symbolic) defined_.insert(v.get());
    root_ = f.root();
    statement_ = nullptr;
    stmt(f.body);
  }

  /// A buffer becomes visible; extents and strides that are bare unknown variables are bound by it.
  void declare(const Buffer& b) {
    defined_.insert(b.get());
    if (b->data) defined_.insert(b->data.get());
    auto bind = [&](const Expr& e) {
      if (e)
        for (const Var& v : vars_of(e)) defined_.insert(v.get());
    };
    std::ranges::for_each(b->shape, bind);
    std::ranges::for_each(b->strides, bind);
    bind(b->elem_offset);
  }
  void use(const VarNode* v, const void* node) {
    if (!defined_.contains(v) && reported_.insert(v).second)
      report(text_code::variable_out_of_scope, node, fmt::format("variable `{}` is used outside its scope", v->name));
  }
  void use(const Buffer& b, const void* node) {
    if (!defined_.contains(b.get()) && reported_.insert(b.get()).second)
      report(text_code::variable_out_of_scope, node, fmt::format("buffer `{}` is used outside its scope", b->name));
  }
  /// Runs f with a variable that is visible in it.
  template <class F>
  void within(const VarNode* v, Surroundings::Variable entry, F&& f) {
    bool fresh = defined_.insert(v).second;
    around_.variables.push_back(std::move(entry));
    f();
    around_.variables.pop_back();
    if (fresh) defined_.erase(v);
  }
  template <class F>
  void under(const Expr& condition, F&& f) {
    around_.conditions.push_back(condition);
    f();
    around_.conditions.pop_back();
  }

  // --- statements

  void stmt(const Stmt& s) {
    const StmtNode* outer = std::exchange(statement_, s.get());
    visit(s);
    statement_ = outer;
  }

  void visit(const Stmt& s) {
    if (const For* loop = as<For>(s)) return this->loop(*loop);
    if (const Block* b = as<Block>(s)) return block(*b);
    if (const Store* store = as<Store>(s)) return this->store(*store);
    if (const Seq* seq = as<Seq>(s)) return sequence(*seq);
    if (const If* c = as<If>(s)) {
      condition(c->condition, s.get());
      under(c->condition, [&] { stmt(c->then_body); });
      if (c->else_body) under(not_of(c->condition), [&] { stmt(c->else_body); });
      return;
    }
    if (const While* w = as<While>(s)) {
      condition(w->condition, s.get());
      return under(w->condition, [&] { stmt(w->body); });
    }
    if (const Bind* b = as<Bind>(s)) {
      expr(b->value);
      if (b->value->dtype != b->var->dtype)
        mismatch(s.get(), b->var->dtype, b->value->dtype, fmt::format("as value of `{}`", b->var->name));
      return within(b->var.get(), {b->var.get(), nullptr, nullptr, nullptr, b->value}, [&] { stmt(b->body); });
    }
    if (const Assert* a = as<Assert>(s)) return condition(a->condition, s.get());
    if (const Evaluate* e = as<Evaluate>(s)) return expr(e->value);
    if (const Return* r = as<Return>(s)) return r->value ? expr(r->value) : void();
    if (const Allocate* a = as<Allocate>(s)) return scoped_buffer(a->buffer, a->body);
    if (const DeclBuffer* d = as<DeclBuffer>(s)) {
      use(d->buffer->data.get(), s.get());
      return scoped_buffer(d->buffer, d->body);
    }
    if (const AttrStmt* a = as<AttrStmt>(s)) {
      expr(a->value);
      return stmt(a->body);
    }
  }

  /// Whether control may leave what follows the statement: return, or break and continue of a loop around it.
  static bool leaves(const Stmt& s, bool in_loop = false) {
    bool found = false;
    walk_stmts(s, [&](const Stmt& x) {
      if (found) return false;
      if (x->kind == StmtKind::kReturn) found = true;
      if (!in_loop && (x->kind == StmtKind::kBreak || x->kind == StmtKind::kContinue)) found = true;
      const For* l = as<For>(x);
      const While* w = as<While>(x);
      if (!l && !w) return !found;
      found = found || leaves(l ? l->body : w->body, true);
      return false;
    });
    return found;
  }

  void sequence(const Seq& seq) {
    size_t conditions = around_.conditions.size();
    for (const Stmt& s : seq.stmts) {
      stmt(s);
      if (!leaves(s)) continue;
      // `if c: return` leaves `not c` behind; otherwise nothing is known of when the rest runs.
      const If* c = as<If>(s);
      StmtKind last = c ? c->then_body->kind : StmtKind::kSeq;
      bool guard =
          c && !c->else_body && (last == StmtKind::kReturn || last == StmtKind::kBreak || last == StmtKind::kContinue);
      around_.conditions.push_back(guard ? not_of(c->condition) : unknown_);
    }
    around_.conditions.resize(conditions);
  }

  void scoped_buffer(const Buffer& b, const Stmt& body) {
    std::vector<const void*> fresh = declare_new(b);
    stmt(body);
    for (const void* x : fresh) defined_.erase(x);
  }
  std::vector<const void*> declare_new(const Buffer& b) {
    std::unordered_set<const void*> before = defined_;
    declare(b);
    std::vector<const void*> fresh;
    for (const void* x : {static_cast<const void*>(b.get()), static_cast<const void*>(b->data.get())})
      if (!before.contains(x)) fresh.push_back(x);
    return fresh;
  }

  void mismatch(const void* node, DType expected, DType found, std::string_view where) {
    report(text_code::dtype_mismatch, node,
           fmt::format("expected a value of type {} {}, found {}", expected.str(), where, found.str()));
  }
  void condition(const Expr& e, const void* node) {
    expr(e);
    if (!e->dtype.is_bool()) mismatch(node, kBool, e->dtype, "as condition");
  }

  void loop(const For& l) {
    expr(l.min);
    expr(l.extent);
    if (l.step) expr(l.step);
    if (std::optional<int64_t> n = l.step ? const_int(l.step) : std::nullopt; n && *n < 1)
      report(text_code::loop_step_not_positive, &l,
             fmt::format("expected a step of at least 1 of loop `{}`, found {}", l.var->name, *n));
    if (std::optional<int64_t> n = const_int(l.extent); n && *n < 1)
      report(text_code::extent_not_positive, &l,
             fmt::format("expected an extent of at least 1 of loop `{}`, found {}", l.var->name, *n));
    if (l.min->dtype != l.var->dtype || l.extent->dtype != l.var->dtype)
      mismatch(&l, l.var->dtype, l.min->dtype != l.var->dtype ? l.min->dtype : l.extent->dtype,
               fmt::format("as bound of loop `{}`", l.var->name));
    bool launches = l.loop_kind == ForKind::thread_binding && !l.thread.starts_with("vthread");
    bool outermost = launches && launch_depth_ == 0;
    if (outermost) launched_.clear();
    if (launches) {
      ++launch_depth_;
      auto [it, fresh] = launched_.emplace(l.thread, &l);
      std::optional<int64_t> a = const_int(it->second->extent), b = const_int(l.extent);
      if (!fresh && a && b && *a != *b)
        report(
            text_code::launch_extents_disagree, &l,
            fmt::format("expected an extent of {} of \"{}\" as in the same kernel before, found {}", *a, l.thread, *b))
            ->notes.push_back({"the other launch is here", place(it->second)});
    }
    // A loop that may be left early does not reach all its iterations.
    bool early = false;
    walk_stmts(l.body, [&](const Stmt& x) {
      early |= x->kind == StmtKind::kReturn || x->kind == StmtKind::kBreak;
      return !early;
    });
    within(l.var.get(), {l.var.get(), l.min, l.extent, l.step, nullptr}, [&] {
      if (early)
        under(unknown_, [&] { stmt(l.body); });
      else
        stmt(l.body);
    });
    if (launches) --launch_depth_;
  }

  // --- blocks

  void block(const Block& b) {
    for (const Iter& i : b.iters) {
      expr(i.dom.min);
      expr(i.dom.extent);
      expr(i.binding);
      if (i.binding->dtype != i.var->dtype)
        report(text_code::axis_binding_mismatch, &b,
               fmt::format("expected a binding of type {} for axis `{}` of block \"{}\", found {}", i.var->dtype.str(),
                           i.var->name, b.name, i.binding->dtype.str()));
    }
    size_t variables = around_.variables.size(), conditions = around_.conditions.size();
    if (b.predicate) {
      condition(b.predicate, &b);
      around_.conditions.push_back(b.predicate);
    }
    domains(b);
    for (const Iter& i : b.iters) {
      defined_.insert(i.var.get());
      around_.variables.push_back({i.var.get(), nullptr, nullptr, nullptr, i.binding});
    }
    std::vector<const void*> fresh;
    auto add = [&](const Buffer& x) {
      for (const void* y : declare_new(x)) fresh.push_back(y);
    };
    for (const MatchBuffer& m : b.matches) {
      region(m.source, &b);
      add(m.buffer);
    }
    for (const Buffer& x : b.allocs) add(x);
    for (const BufferRegion& r : b.reads) region(r, &b);
    for (const BufferRegion& r : b.writes) region(r, &b);
    scopes_.push_back(&b);
    if (b.init) {
      init_first(b);
      stmt(b.init);
    }
    stmt(b.body);
    scopes_.pop_back();
    around_.variables.resize(variables);
    around_.conditions.resize(conditions);
    for (const Iter& i : b.iters) defined_.erase(i.var.get());
    for (const void* x : fresh) defined_.erase(x);
  }

  void domains(const Block& b) {
    for (const Iter& i : b.iters) {
      for (bool largest : {false, true}) {
        std::optional<VarValues> p = extreme_point(around_, i.binding, largest);
        if (!p) continue;
        std::optional<int64_t> v = value_at(i.binding, *p), min = value_at(i.dom.min, *p),
                               extent = value_at(i.dom.extent, *p);
        if (!v || !min || !extent || (*v >= *min && *v < *min + *extent)) continue;
        report(text_code::axis_value_outside_domain, &b,
               fmt::format("expected values in [{}, {}) of axis `{}` of block \"{}\", found {} at {}", *min,
                           *min + *extent, i.var->name, b.name, *v, describe(around_, i.binding, *p)));
        break;
      }
    }
  }

  /// The first instance that runs must be the one that initialises.
  void init_first(const Block& b) {
    if (std::ranges::none_of(b.iters, [](const Iter& i) { return i.type == IterType::reduction; }))
      report(text_code::init_without_reduction, &b,
             fmt::format("expected a reduction axis of block \"{}\", which has an init, found none", b.name))
          ->help =
          "declare the axis that is reduced with `T.axis.reduce(…)`, or write the first value as a plain statement";
    std::optional<VarValues> p = first_point(around_);
    if (!p) return;
    for (const Iter& i : b.iters) {
      if (i.type != IterType::reduction) continue;
      std::optional<int64_t> v = value_at(i.binding, *p), min = value_at(i.dom.min, *p);
      if (v && min && *v != *min) {
        report(text_code::first_reduction_instance_not_first, &b,
               fmt::format(
                   "expected the first instance of block \"{}\" to have `{}` = {}, so that it initialises, found {}",
                   b.name, i.var->name, *min, *v));
        return;
      }
    }
  }

  void region(const BufferRegion& r, const void* node) {
    use(r.buffer, node);
    if (static_cast<int>(r.region.size()) != r.buffer->rank())
      report(text_code::rank_mismatch, node,
             fmt::format("expected {} ranges of buffer `{}`, found {}", r.buffer->rank(), r.buffer->name,
                         r.region.size()));
    for (const Range& x : r.region) {
      expr(x.min);
      expr(x.extent);
    }
  }

  // --- accesses

  void store(const Store& s) {
    access(s.buffer, s.indices, &s, true);
    expr(s.value);
    int lanes = s.indices.empty() ? 1 : s.indices.back()->dtype.lanes;
    DType want = s.buffer->dtype.with_lanes(s.buffer->dtype.lanes * lanes);
    if (s.value->dtype != want) mismatch(&s, want, s.value->dtype, fmt::format("for buffer `{}`", s.buffer->name));
  }

  void access(const Buffer& b, const std::vector<Expr>& indices, const void* node, bool writes) {
    use(b, node);
    for (const Expr& i : indices) expr(i);
    if (static_cast<int>(indices.size()) != b->rank()) {
      report(text_code::rank_mismatch, node,
             fmt::format("expected {} indices of buffer `{}`, found {}", b->rank(), b->name, indices.size()));
      return;
    }
    // Whole rows are looked at dimension by dimension.
    std::vector<Expr> each = indices;
    if (std::vector<int> rows = whole_rows(*b, indices); !rows.empty())
      for (size_t d = 0; d < rows.size(); ++d) {
        const Expr first = first_lane(indices[d]);
        each[d] = rows[d] > 1 ? ramp(first, int_imm(1, first->dtype), rows[d]) : first;
      }
    bool inside = true;
    for (size_t d = 0; d < each.size() && inside; ++d) inside = in_buffer(b, d, each[d], node);
    if (inside) covered(b, each, node, writes);
  }

  static Expr last_lane(const Expr& i) {
    const Ramp* r = as<Ramp>(i);
    return r ? binary(BinaryOp::add, r->base, binary(BinaryOp::mul, r->stride, int_imm(r->lanes - 1, r->stride->dtype)))
             : i;
  }
  static Expr first_lane(const Expr& i) {
    if (const Ramp* r = as<Ramp>(i)) return r->base;
    return as<Broadcast>(i) ? as<Broadcast>(i)->value : i;
  }

  bool in_buffer(const Buffer& b, size_t d, const Expr& index, const void* node) {
    for (bool largest : {false, true}) {
      Expr e = largest && as<Ramp>(index) ? last_lane(index) : first_lane(index);
      std::optional<VarValues> p = extreme_point(around_, e, largest);
      std::optional<int64_t> v = p ? value_at(e, *p) : std::nullopt,
                             extent = p ? value_at(b->shape[d], *p) : std::nullopt;
      if (!v || !extent || (*v >= 0 && *v < *extent)) continue;
      std::string at = describe(around_, e, *p);
      report(text_code::access_outside_buffer, node,
             fmt::format("expected an index in [0, {}) in dimension {} of buffer `{}`, found {}{}{}", *extent, d,
                         b->name, *v, at.empty() ? "" : " at ", at));
      return false;
    }
    return true;
  }

  /// Every block around the access, up to the one that owns the buffer, must name the element.
  void covered(const Buffer& buffer, const std::vector<Expr>& indices, const void* node, bool writes) {
    Buffer b = buffer;
    for (size_t k = scopes_.size(); k-- > 0;) {
      const Block& block = *scopes_[k];
      if (&block == root_) return;
      auto owns = [&](const Buffer& x) { return x.same_as(b); };
      if (std::ranges::any_of(block.allocs, owns)) return;
      if (std::ranges::any_of(block.matches, [&](const MatchBuffer& m) { return m.buffer.same_as(b); }))
        return;  // checked as a region
      const std::vector<BufferRegion>& list = writes ? block.writes : block.reads;
      // The update of a block with an init reads what it writes without saying so.
      if (!writes && block.init &&
          std::ranges::any_of(block.writes, [&](const BufferRegion& r) { return r.buffer.same_as(b); }))
        return;  // nor do blocks around it: the init has written it before
      bool named = false;
      for (const BufferRegion& r : list) named = named || r.buffer.same_as(b);
      if (!named) {
        if (local_below(block, b)) return;
        report(text_code::signature_does_not_cover_body, node,
               fmt::format("block \"{}\" {} buffer `{}`, which its signature does not name", block.name,
                           writes ? "writes" : "reads", b->name));
        return;
      }
      for (size_t d = 0; d < indices.size(); ++d)
        if (!covered_dimension(block, list, b, d, indices, node, writes)) return;
    }
  }

  /// Flat allocations inside the block belong to it.
  bool local_below(const Block& block, const Buffer& b) {
    bool found = false;
    walk_stmts(block.body, [&](const Stmt& s) {
      if (const Allocate* a = as<Allocate>(s)) found |= a->buffer.same_as(b);
      if (const DeclBuffer* d = as<DeclBuffer>(s)) found |= d->buffer.same_as(b);
      return !found;
    });
    return found;
  }

  bool covered_dimension(const Block& block, const std::vector<BufferRegion>& list, const Buffer& b, size_t d,
                         const std::vector<Expr>& indices, const void* node, bool writes) {
    for (bool largest : {false, true}) {
      Expr e = largest && as<Ramp>(indices[d]) ? last_lane(indices[d]) : first_lane(indices[d]);
      std::optional<VarValues> p = extreme_point(around_, e, largest);
      std::optional<int64_t> v = p ? value_at(e, *p) : std::nullopt;
      if (!v) continue;
      bool inside = false;
      std::string ranges;
      for (const BufferRegion& r : list) {
        if (!r.buffer.same_as(b)) continue;
        std::optional<int64_t> min = value_at(r.region[d].min, *p), extent = value_at(r.region[d].extent, *p);
        if (!min || !extent || (*v >= *min && *v < *min + *extent)) inside = true;  // inside, or not known
        if (min && extent) ranges += fmt::format("{}[{}, {})", ranges.empty() ? "" : " or ", *min, *min + *extent);
      }
      if (inside) continue;
      std::string at = describe(around_, e, *p);
      report(text_code::signature_does_not_cover_body, node,
             fmt::format("block \"{}\" {} element {} in dimension {} of `{}`{}{}, its signature says {}", block.name,
                         writes ? "writes" : "reads", *v, d, b->name, at.empty() ? "" : " at ", at, ranges));
      return false;
    }
    return true;
  }

  // --- expressions

  void expr(const Expr& e) {
    switch (e->kind) {
      case ExprKind::kVarNode:
        return use(as<VarNode>(e), statement_);
      case ExprKind::kLoad:
        return access(as<Load>(e)->buffer, as<Load>(e)->indices, e.get(), false);
      case ExprKind::kBinary: {
        const Binary* b = as<Binary>(e);
        expr(b->a);
        if (b->op == BinaryOp::logical_and)
          under(b->a, [&] { expr(b->b); });
        else
          expr(b->b);
        if (b->a->dtype != b->b->dtype)
          report(text_code::dtype_mismatch, e.get(),
                 fmt::format("expected operands of one type, found {} and {}", b->a->dtype.str(), b->b->dtype.str()));
        return;
      }
      case ExprKind::kSelect: {
        const Select* s = as<Select>(e);
        expr(s->condition);
        expr(s->then_value);
        return expr(s->else_value);
      }
      case ExprKind::kLet: {
        const Let* let = as<Let>(e);
        expr(let->value);
        return within(let->var.get(), {let->var.get(), nullptr, nullptr, nullptr, let->value},
                      [&] { expr(let->body); });
      }
      case ExprKind::kCall: {
        const Call* c = as<Call>(e);
        if (c->op->name == "if_then_else" && c->args.size() == 3) {
          expr(c->args[0]);
          under(c->args[0], [&] { expr(c->args[1]); });
          return under(not_of(c->args[0]), [&] { expr(c->args[2]); });
        }
        if (c->op->name == "address_of") {  // no access: one past the end is a pointer too
          if (const Load* l = as<Load>(c->args[0])) {
            use(l->buffer, l);
            std::ranges::for_each(l->indices, [&](const Expr& i) { expr(i); });
          }
          return;
        }
        std::ranges::for_each(c->args, [&](const Expr& x) { expr(x); });
        return;
      }
      default:
        return for_each_child(*e, [&](const Expr& x) { expr(x); });
    }
  }

  const Program& program_;
  const SourceMap* spans_;
  std::optional<SourceMap> printed_;
  std::vector<Diagnostic> out_;
  Diagnostic scratch_;
  std::unordered_set<const void*> defined_, reported_;
  Surroundings around_;
  const Expr unknown_ = make_var("unknown", kBool);  // a condition of which nothing is known
  std::vector<const Block*> scopes_;                 // blocks around, outer first
  const Block* root_ = nullptr;
  const StmtNode* statement_ = nullptr;
  int launch_depth_ = 0;
  std::unordered_map<std::string, const For*> launched_;
};

}  // namespace

std::vector<Diagnostic> verify(const Program& program, const SourceMap* spans) {
  return Verifier(program, spans).run();
}

}  // namespace tilewright
