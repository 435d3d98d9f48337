// Statements of program text outside block signatures: stores, loops, conditions, bindings, launches
// (schedule-language.md §1.3, §1.4).
#include <fmt/format.h>

#include <algorithm>

#include "ir/parse_reader.h"

namespace tilewright::text {

namespace {

// Every binding encloses the rest of its sequence; passes recurse over them.
constexpr size_t kOpeningLimit = 4000;

constexpr std::string_view kBufferSignature =
    "shape dtype? data? strides? elem_offset? scope? align? offset_factor? annotations? buffer_type? axis_separators? "
    "byte_offset?";

}  // namespace

Stmt Body::finish() {
  Stmt out = make_seq(std::move(parts_.back().stmts));
  for (size_t i = parts_.size() - 1; i-- > 0;) {
    parts_[i].stmts.push_back(parts_[i].open(std::move(out)));
    out = make_seq(std::move(parts_[i].stmts));
  }
  return out;
}

Stmt Reader::sequence(py::Stmts stmts) {
  Body body;
  for (const py::Stmt* s : stmts) {
    if (errors_.full()) break;
    statement(s, body);
    if (body.openings() > kOpeningLimit) {
      error(text_code::nesting_too_deep, s->range,
            fmt::format("expected at most {} bindings in one sequence, found more", kOpeningLimit));
      break;
    }
  }
  return body.finish();
}

void Reader::statement(const py::Stmt* s, Body& body) {
  switch (s->kind) {
    case py::StmtKind::kExprStmt: {
      const py::Expr* e = py::as<py::ExprStmt>(s)->value;
      if (const py::Call* call = py::as<py::Call>(e)) return call_statement(*call, s->range, body);
      if (e->kind == py::ExprKind::kString || e->kind == py::ExprKind::kConstant) return;  // doc string, `...`
      error(text_code::construct_not_supported, e->range,
            fmt::format("expected a statement, found {}", py::describe(e)));
      return;
    }
    case py::StmtKind::kAssign: {
      const py::Assign* a = py::as<py::Assign>(s);
      assign(*a, body);
      for (const py::Expr* target : a->targets) poison(target);
      return;
    }
    case py::StmtKind::kAugmentedAssign:
      return augmented(*py::as<py::AugmentedAssign>(s), body);
    case py::StmtKind::kAnnotatedAssign: {
      annotated(*py::as<py::AnnotatedAssign>(s), body);
      return poison(py::as<py::AnnotatedAssign>(s)->target);
    }
    case py::StmtKind::kFor:
      return for_loop(*py::as<py::For>(s), body);
    case py::StmtKind::kIf:
      return if_statement(*py::as<py::If>(s), body);
    case py::StmtKind::kWith:
      return with(*py::as<py::With>(s), body);
    case py::StmtKind::kWhile: {
      const py::While* w = py::as<py::While>(s);
      Expr condition = boolean(w->condition);
      Stmt inner = scoped(w->body);
      if (condition) add(body, make_stmt<While>(condition, inner), s->range);
      return;
    }
    case py::StmtKind::kReturn: {
      const py::Expr* v = py::as<py::Return>(s)->value;
      Expr e = v ? value(v) : Expr();
      if (e || !v) add(body, make_stmt<Return>(e), s->range);
      return;
    }
    case py::StmtKind::kAssertStmt: {
      const py::AssertStmt* a = py::as<py::AssertStmt>(s);
      Expr condition = boolean(a->condition);
      std::optional<std::string> message = a->message ? text_value(a->message, "the message") : std::string();
      if (condition && message) add(body, make_stmt<Assert>(condition, *message), s->range);
      return;
    }
    case py::StmtKind::kBreak:
      return add(body, make_stmt<Break>(), s->range);
    case py::StmtKind::kContinue:
      return add(body, make_stmt<Continue>(), s->range);
    case py::StmtKind::kPass:
      return;
    case py::StmtKind::kImport:
      return imports(*py::as<py::Import>(s));
    case py::StmtKind::kInvalid:
      for (std::string_view name : py::as<py::Invalid>(s)->names)
        if (!find(name)) define(name, Poison{}, s->range);
      return;
    case py::StmtKind::kFunctionDef:
    case py::StmtKind::kClassDef:
      error(text_code::construct_not_supported, s->range, "definitions inside functions are not read");
      return;
  }
}

void Reader::call_statement(const py::Call& call, TextRange where, Body& body) {
  std::string name(t_name(call.function));
  OnOpen open = [&](Body::Open f) { body.open(std::move(f)); };
  if (name.empty()) {
    if (const py::Attribute* method = py::as<py::Attribute>(call.function))
      return method_statement(call, *method, where, body);
  } else if (name == "func_attr") {
    std::optional<Args> args = arguments(call, "T.func_attr", "attrs");
    std::optional<AttrDict> dict = args ? attr_dict((*args)[0]) : std::nullopt;
    if (!dict) return;
    for (auto& [key, v] : *dict) {
      bool older = key == "tir.noalias";
      function_->attrs[older ? "tirx.noalias" : key] = v;
    }
    return;
  } else if (block_statement(call, name)) {
    return;
  } else if (name == "evaluate") {
    std::optional<Args> args = arguments(call, "T.evaluate", "value");
    Expr e = args ? value((*args)[0]) : Expr();
    if (e) add(body, make_stmt<Evaluate>(e), where);
    return;
  } else if (name == "attr") {
    return attribute_statement(call, open);
  } else if (name == "hint") {
    return hint(call, open);
  } else if (name == "launch_thread") {
    return launch_thread(call, nullptr, open);
  } else if (name == "Assert") {
    std::optional<Args> args = arguments(call, "T.Assert", "condition message kind?");
    Expr condition = args ? boolean((*args)[0]) : Expr();
    std::optional<std::string> message = condition ? text_value((*args)[1], "the message") : std::nullopt;
    if (message) add(body, make_stmt<Assert>(condition, *message), where);
    return;
  } else if (name == "break_loop") {
    return add(body, make_stmt<Break>(), where);
  } else if (name == "continue_loop") {
    return add(body, make_stmt<Continue>(), where);
  } else if (name == "thread_return") {
    return add(body, make_stmt<Return>(Expr()), where);
  } else if (name.starts_with("axis.") || name == "match_buffer" || name.ends_with("alloc_buffer")) {
    error(text_code::wrong_argument_type, call.range, fmt::format("expected a name for the result of `T.{}`", name))
        .help = fmt::format("write `name = {}`", source_of(&call));
    return;
  }
  Operand v = this->call(call);
  if (v) add(body, make_stmt<Evaluate>(concrete(v, &call)), where);
}

void Reader::method_statement(const py::Call& call, const py::Attribute& method, TextRange where, Body& body) {
  Buffer b = buffer(method.value, false);
  if (b && method.name == "vstore") {
    std::optional<Args> args = arguments(call, "vstore", "begin value");
    std::vector<Expr> index;
    if (!args || !indices(b, (*args)[0], call.range, index)) return;
    Operand v = operand((*args)[1]);
    if (!v) return;
    if (v.e->dtype.lanes > 1 && !index.empty())
      index.back() = ramp(index.back(), int_imm(1, index.back()->dtype), v.e->dtype.lanes);
    return store(b, std::move(index), v, (*args)[1], where, body);
  }
  Operand v = method_call(call, method);
  if (v) add(body, make_stmt<Evaluate>(concrete(v, &call)), where);
}

// --- assignment

void Reader::store(const Buffer& b, std::vector<Expr> index, const Operand& v, const py::Expr* from, TextRange where,
                   Body& body) {
  int lanes = index.empty() ? 1 : index.back()->dtype.lanes;
  DType want = b->dtype.with_lanes(b->dtype.lanes * lanes);
  Expr e = typed(v, want, from->range);
  if (!e) return;
  if (e->dtype.lanes == 1 && want.lanes > 1) e = broadcast(e, want.lanes);
  DType have = e->dtype;
  // As TVM: a value is converted to the buffer's type, except where a float would silently lose its fraction.
  bool converts = have.lanes == want.lanes && !have.is_handle() && !want.is_handle() && !have.is_void() &&
                  (want.is_float() || !have.is_float()) && (!want.is_bool() || have.is_bool());
  if (have != want && !converts) {
    Diagnostic& d =
        error(text_code::dtype_mismatch, from->range,
              fmt::format("expected a value of type {} for `{}`, found {}", want.str(), b->name, have.str()));
    if (have.lanes == want.lanes && !want.is_bool() && have.is_float())
      d.help = fmt::format("write `T.Cast(\"{}\", {})`", want.str(), source_of(from));
    return;
  }
  add(body, make_stmt<Store>(b, std::move(index), cast(want, e)), where);
}

void Reader::augmented(const py::AugmentedAssign& s, Body& body) {
  const py::Subscript* target = py::as<py::Subscript>(s.target);
  if (const py::Name* n = py::as<py::Name>(s.target)) {
    const Binding* b = resolve(*n);
    if (!b || std::holds_alternative<Poison>(b->meaning)) return;
    if (const Cell* cell = std::get_if<Cell>(&b->meaning)) {
      Buffer buffer = cell->buffer;
      Operand v = arithmetic(s.op, name(*n), operand(s.value), s.range);
      if (v) store(buffer, {int_imm(0)}, v, s.value, s.range, body);
      return;
    }
    error(text_code::wrong_argument_type, s.target->range,
          fmt::format("expected an element of a buffer, found `{}`, which cannot be assigned again", n->id));
    return;
  }
  if (!target) {
    error(text_code::wrong_argument_type, s.target->range,
          fmt::format("expected an element of a buffer, found {}", py::describe(s.target)));
    return;
  }
  Buffer b = buffer(target->value);
  std::vector<Expr> index;
  if (!b || !indices(b, target->index, target->range, index)) return;
  Expr old = tilewright::load(b, index);
  spans_.add(old.get(), target->range);
  Operand v = arithmetic(s.op, {old}, operand(s.value), s.range);
  if (v) store(b, std::move(index), v, s.value, s.range, body);
}

void Reader::assign(const py::Assign& s, Body& body) {
  if (s.targets.size() != 1) {
    error(text_code::construct_not_supported, s.range, "chained assignment is not read");
    return;
  }
  const py::Expr* target = s.targets[0];
  if (const py::Subscript* element = py::as<py::Subscript>(target)) {
    Buffer b = buffer(element->value);
    std::vector<Expr> index;
    if (!b || !indices(b, element->index, element->range, index)) return;
    Operand v = operand(s.value);
    if (v) store(b, std::move(index), v, s.value, s.range, body);
    return;
  }
  const py::Call* call = py::as<py::Call>(s.value);
  std::string callee(call ? t_name(call->function) : std::string_view{});
  if (callee == "axis.remap") return remap(*call, target);
  if (callee.starts_with("axis.")) return axis(*call, std::string_view(callee).substr(5), target);
  if (const py::Name* n = py::as<py::Name>(target)) {
    if (call && assign_call(*call, callee, *n, s.range, body)) return;
    const Binding* old = find(n->id);
    if (const Cell* cell = old ? std::get_if<Cell>(&old->meaning) : nullptr) {
      Buffer b = cell->buffer;
      Operand v = operand(s.value);
      if (v) store(b, {int_imm(0)}, v, s.value, s.range, body);
      return;
    }
    if (Buffer alias = buffer(s.value, false)) return define_new(n->id, alias, n->range);
    if (py::as<py::String>(s.value) || py::as<py::Tuple>(s.value) || py::as<py::List>(s.value))
      return define_new(n->id, s.value, n->range);
    Expr v = value(s.value);
    if (v) bind_value(*n, v, s.range, body);
    return;
  }
  std::vector<const py::Expr*> targets, values;
  items_of(target, targets);
  if (!items_of(s.value, values) || targets.size() != values.size()) {
    error(text_code::wrong_argument_type, s.range,
          fmt::format("expected {} values to assign, found {}", targets.size(), py::describe(s.value)));
    return;
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    const py::Expr* one[1] = {targets[i]};
    assign(py::Assign{{py::StmtKind::kAssign, s.range}, one, values[i]}, body);
  }
}

bool Reader::assign_call(const py::Call& call, std::string_view callee, const py::Name& target, TextRange where,
                         Body& body) {
  OnOpen open = [&](Body::Open f) { body.open(std::move(f)); };
  if (callee.empty()) {
    const py::Name* f = py::as<py::Name>(call.function);
    return f && f->id == "TypeVar" && !find("TypeVar");
  }
  if (callee == "match_buffer") {
    match_buffer(call, target);
  } else if (callee == "sblock_alloc_buffer" || (callee == "alloc_buffer" && classic_allocs_)) {
    block_alloc(call, callee, target);
  } else if (callee == "alloc_buffer" || callee == "decl_buffer" || callee == "buffer_decl" || callee == "Buffer" ||
             callee == "allocate") {
    flat_buffer(call, callee, target, open);
  } else if (callee == "env_thread") {
    std::optional<Args> args = arguments(call, "T.env_thread", "thread_tag dtype?");
    std::optional<std::string> axis_name = args ? thread_axis((*args)[0]) : std::nullopt;
    if (axis_name) define_new(target.id, EnvThread{*axis_name, kInt32}, target.range);
  } else if (callee == "launch_thread") {
    launch_thread(call, &target, open);
  } else if (callee == "meta_var") {
    std::optional<Args> args = arguments(call, "T.meta_var", "value");
    if (!args) return true;
    if (Buffer b = buffer((*args)[0], false)) {
      define_new(target.id, b, target.range);
    } else if (Expr v = value((*args)[0])) {
      define_new(target.id, v, target.range);
    }
  } else if (callee == "bind") {
    std::optional<Args> args = arguments(call, "T.bind", "value");
    Expr v = args ? value((*args)[0]) : Expr();
    if (v) bind_value(target, v, where, body);
  } else if (callee == "var") {
    std::optional<Args> args = arguments(call, "T.var", "dtype");
    std::optional<DType> d = args ? dtype_value((*args)[0]) : std::nullopt;
    if (d) symbolic(target, *d);
  } else if (call.args.empty() && call.keywords.empty() && DType::parse(callee)) {
    symbolic(target, *DType::parse(callee));
  } else {
    return false;
  }
  return true;
}

void Reader::symbolic(const py::Name& n, DType d) {
  if (const Binding* old = find(n.id)) {  // declared by a string extent before
    const Expr* e = std::get_if<Expr>(&old->meaning);
    for (const Var& v : function_->symbolic)
      if (e && e->get() == v.get() && v->dtype == d) return;
  }
  if (const py::Expr* value = fixed(n.id)) return define_new(n.id, value, n.range);
  Var v = make_var(std::string(n.id), d);
  function_->symbolic.push_back(v);
  spans_.add(v.get(), n.range);
  define_new(n.id, Expr(v), n.range);
}

void Reader::bind_value(const py::Name& n, Expr v, TextRange where, Body& body) {
  Var var = make_var(std::string(n.id), v->dtype);
  spans_.add(var.get(), n.range);
  define_new(n.id, Expr(var), n.range);
  body.open([this, var, v, where](Stmt rest) {
    Stmt s = make_stmt<Bind>(var, v, std::move(rest));
    spans_.add(s.get(), where);
    return s;
  });
}

void Reader::annotated(const py::AnnotatedAssign& s, Body& body) {
  const py::Name* n = py::as<py::Name>(s.target);
  if (!n || !s.value) {
    error(text_code::construct_not_supported, s.range,
          n ? "a declaration without a value is not read" : "only names are declared with a type");
    return;
  }
  // T.let[T.int32] and T.let are bindings; T.int32 may be a variable that is assigned again.
  const py::Subscript* generic = py::as<py::Subscript>(s.annotation);
  bool is_let = t_name(s.annotation) == "let" || (generic && t_name(generic->value) == "let");
  std::optional<DType> d;
  if (generic || !is_let) {
    const py::Expr* type = generic ? generic->index : s.annotation;
    if (const py::Call* c = py::as<py::Call>(type)) type = c->function;  // T.handle("float32")
    if (!(d = dtype_value(type))) return;
  }
  Operand v = operand(s.value);
  Expr e = !v ? Expr() : d ? typed(v, *d, s.value->range) : concrete(v, s.value);
  if (!e) return;
  if (d && e->dtype != *d) {
    if (e->dtype.lanes != d->lanes || e->dtype.is_handle() || d->is_handle() ||
        (e->dtype.is_float() && !d->is_float())) {
      error(text_code::dtype_mismatch, s.value->range,
            fmt::format("expected a value of type {} for `{}`, found {}", d->str(), n->id, e->dtype.str()));
      return;
    }
    e = cast(*d, e);
  }
  if (is_let || !d || d->is_handle() || (function_->schedulable && !facts_.reassigned.contains(n->id)))
    return bind_value(*n, e, s.range, body);
  BufferSpec spec;
  spec.dtype = *d;
  spec.shape = {int_imm(1)};
  spec.scope = "local";
  Buffer cell = make(n->id, spec, n->range);
  define_new(n->id, Cell{cell}, n->range);
  if (function_->schedulable)
    block_->node->allocs.push_back(cell);
  else
    body.open([cell](Stmt rest) { return make_stmt<Allocate>(cell, AttrDict(), std::move(rest)); });
  store(cell, {int_imm(0)}, {e}, s.value, s.range, body);
}

void Reader::flat_buffer(const py::Call& call, std::string_view name, const py::Name& target, const OnOpen& open) {
  bool allocate = name == "allocate";  // T.allocate(extents, dtype, scope, condition, annotations)
  std::optional<Args> args = arguments(call, fmt::format("T.{}", name),
                                       allocate ? "extents dtype scope? condition? annotations?" : kBufferSignature);
  if (!args) return;
  if (allocate) {
    Args moved;
    moved.slot[0] = (*args)[0];
    moved.slot[1] = (*args)[1];
    moved.slot[5] = (*args)[2];
    moved.slot[8] = (*args)[4];
    args = moved;
  }
  if ((*args)[10]) {
    error(text_code::construct_not_supported, (*args)[10]->range, "axis separators are not read");
    return;
  }
  std::optional<BufferSpec> spec = buffer_spec(*args, 0);
  if (!spec) return;
  if (const py::Expr* bytes = (*args)[11]) {
    std::optional<int64_t> offset = int_value(bytes, "byte_offset");
    if (!offset) return;
    if (*offset % spec->dtype.element_bytes() != 0) {
      error(text_code::wrong_argument_type, bytes->range,
            fmt::format("expected a byte offset that is a multiple of {}, found {}", spec->dtype.element_bytes(),
                        *offset));
      return;
    }
    spec->elem_offset = int_imm(*offset / spec->dtype.element_bytes());
  }
  bool view = spec->data && name != "alloc_buffer";
  Buffer b = make(target.id, *spec, target.range);
  define_new(target.id, b, target.range);
  TextRange where = call.range;
  open([this, b, view, annotations = spec->annotations, where](Stmt rest) {
    Stmt s = view ? Stmt(make_stmt<DeclBuffer>(b, std::move(rest)))
                  : Stmt(make_stmt<Allocate>(b, annotations, std::move(rest)));
    spans_.add(s.get(), where);
    return s;
  });
}

// --- loops and launches

std::optional<std::string> Reader::thread_axis(const py::Expr* e) {
  std::optional<std::string> axis_name = text_value(e, "the thread axis");
  if (!axis_name) return std::nullopt;
  static const std::vector<std::string> known{"blockIdx.x",   "blockIdx.y",      "blockIdx.z",      "threadIdx.x",
                                              "threadIdx.y",  "threadIdx.z",     "vthread",         "vthread.x",
                                              "vthread.y",    "vthread.z",       "clusterIdx.x",    "clusterIdx.y",
                                              "clusterIdx.z", "clusterCtaIdx.x", "clusterCtaIdx.y", "clusterCtaIdx.z"};
  if (std::ranges::find(known, *axis_name) != known.end()) return axis_name;
  Diagnostic& d = error(text_code::unknown_construct, e->range, fmt::format("\"{}\" is not a thread axis", *axis_name));
  if (std::string best = did_you_mean(*axis_name, known); !best.empty())
    d.help = fmt::format("did you mean \"{}\"?", best);
  return std::nullopt;
}

bool Reader::loop_bounds(const py::Expr* first, const py::Expr* second, const py::Expr* step, LoopHeader& out) {
  Operand a = second ? operand(first) : Operand{int_imm(0, kInt64), true};
  Operand b = operand(second ? second : first);
  if (!a || !b || !unify(a, b, first->range)) return false;
  if ((!a.e->dtype.is_int() && !a.e->dtype.is_uint()) || a.e->dtype.is_vector()) {
    error(text_code::dtype_mismatch, first->range,
          fmt::format("expected integer loop bounds, found {}", a.e->dtype.str()));
    return false;
  }
  Range range = range_between(a.e, b.e);
  out.min = range.min;
  out.extent = range.extent;
  if (!positive(out.extent, "a loop", {first->range.begin, (second ? second : first)->range.end})) return false;
  if (!step || (py::as<py::Constant>(step) && py::as<py::Constant>(step)->value == py::ConstantKind::none)) return true;
  Operand s = operand(step);
  out.step = s ? typed(s, out.min->dtype, step->range) : Expr();
  if (!out.step) return false;
  if (std::optional<int64_t> n = const_int(out.step); n && *n < 1) {
    error(text_code::loop_step_not_positive, step->range,
          fmt::format("expected a loop step of at least 1, found {}", *n));
    return false;
  }
  if (is_const(out.step, 1)) out.step = nullptr;
  return true;
}

bool Reader::grid(const py::Call& call, std::vector<LoopHeader>& out) {
  if (!call.keywords.empty()) {
    error(text_code::wrong_argument_count, call.keywords[0].name_range, "`T.grid` has no keyword arguments");
    return false;
  }
  for (const py::Expr* e : call.args) {
    std::vector<const py::Expr*> pair;
    LoopHeader h;
    if (items_of(e, pair)) {
      if (pair.size() != 2) {
        error(text_code::wrong_argument_count, e->range, "expected an extent or a pair (start, extent)");
        return false;
      }
      Operand start = operand(pair[0]), size = operand(pair[1]);
      if (!start || !size || !unify(start, size, e->range)) return false;
      h.min = start.e;
      h.extent = size.e;
      if (!positive(h.extent, "a loop", pair[1]->range)) return false;
    } else if (!loop_bounds(e, nullptr, nullptr, h)) {
      return false;
    }
    out.push_back(std::move(h));
  }
  if (!out.empty()) return true;
  error(text_code::wrong_argument_count, call.range, "expected at least 1 argument of `T.grid`, found 0");
  return false;
}

bool Reader::loop_headers(const py::Expr* iterable, std::vector<LoopHeader>& out) {
  const py::Call* call = py::as<py::Call>(iterable);
  const py::Name* builtin = call ? py::as<py::Name>(call->function) : nullptr;
  std::string name(call ? t_name(call->function) : std::string_view{});
  if (builtin && builtin->id == "range" && !find("range")) {
    std::optional<Args> args = arguments(*call, "range", "start stop? step?");
    return args && loop_bounds((*args)[0], (*args)[1], (*args)[2], out.emplace_back());
  }
  if (name == "grid") return grid(*call, out);
  LoopHeader h;
  if (name == "serial" || name == "range")
    h.kind = ForKind::serial;
  else if (name == "parallel")
    h.kind = ForKind::parallel;
  else if (name == "vectorized")
    h.kind = ForKind::vectorized;
  else if (name == "unroll")
    h.kind = ForKind::unrolled;
  else if (name == "thread_binding")
    h.kind = ForKind::thread_binding;
  else if (!name.empty())
    return unknown_name(call->function->range, name), false;
  else {
    error(text_code::wrong_argument_type, iterable->range,
          fmt::format("expected a loop such as `range(n)` or `T.grid(n, m)`, found {}", py::describe(iterable)));
    return false;
  }
  bool thread = h.kind == ForKind::thread_binding;
  std::optional<Args> args =
      arguments(*call, fmt::format("T.{}", name),
                thread ? "start stop? thread? annotations?" : "start stop? annotations? step? unroll?");
  if (!args) return false;
  const py::Expr* stop = (*args)[1];
  if (thread) {
    const py::Expr* tag = (*args)[2];
    if (!tag && stop && constant(stop)->kind == py::ExprKind::kString)
      std::swap(tag, stop);  // T.thread_binding(4, "threadIdx.x")
    if (!tag) {
      error(text_code::wrong_argument_count, call->range,
            "expected an argument `thread` of `T.thread_binding`, found none");
      return false;
    }
    std::optional<std::string> axis_name = thread_axis(tag);
    if (!axis_name) return false;
    h.thread = *axis_name;
  }
  if (const py::Expr* a = (*args)[thread ? 3 : 2]; a && !py::as<py::Constant>(a)) {
    std::optional<AttrDict> dict = attr_dict(a);
    if (!dict) return false;
    h.annotations = std::move(*dict);
  }
  if (const py::Expr* u = thread ? nullptr : (*args)[4]) {
    std::optional<bool> on = bool_value(u, "unroll");
    if (!on) return false;
    h.annotations[*on ? "pragma_unroll" : "disable_unroll"] = Attr(1);
  }
  if (stop && py::as<py::Constant>(stop)) stop = nullptr;
  if (!loop_bounds((*args)[0], stop, thread ? nullptr : (*args)[3], h)) return false;
  out.push_back(std::move(h));
  return true;
}

Stmt Reader::loop(const Var& var, LoopHeader h, Stmt body, TextRange where) {
  Stmt s = make_stmt<For>(var, h.min, h.extent, h.step, h.kind, h.thread, std::move(h.annotations), std::move(body));
  spans_.add(s.get(), where);
  return s;
}

void Reader::for_loop(const py::For& s, Body& body) {
  std::vector<const py::Expr*> targets;
  items_of(s.target, targets);
  std::vector<LoopHeader> headers;
  bool ok = loop_headers(s.iterable, headers);
  Scope scope(*this);
  if (ok && headers.size() != targets.size()) {
    error(text_code::wrong_argument_count, s.range,
          fmt::format("expected {} loop variable{}, found {}", headers.size(), headers.size() == 1 ? "" : "s",
                      targets.size()));
    ok = false;
  }
  std::vector<Var> vars;
  for (size_t i = 0; i < targets.size(); ++i) {
    const py::Name* n = py::as<py::Name>(targets[i]);
    if (!n) {
      error(text_code::wrong_argument_type, targets[i]->range,
            fmt::format("expected a loop variable, found {}", py::describe(targets[i])));
      ok = false;
    } else if (!ok) {
      define(n->id, Poison{}, n->range);
    } else {
      Var v = vars.emplace_back(make_var(std::string(n->id), headers[i].extent->dtype));
      loops_[v.get()] = {headers[i].min, headers[i].extent};
      spans_.add(v.get(), n->range);
      define_new(n->id, Expr(v), n->range);
    }
  }
  Stmt inner = scoped(s.body);
  if (!ok) return;
  for (size_t i = vars.size(); i-- > 0;) inner = loop(vars[i], std::move(headers[i]), inner, s.range);
  body.add(inner);
}

void Reader::launch_thread(const py::Call& call, const py::Expr* target, const OnOpen& open) {
  std::optional<Args> args = arguments(call, "T.launch_thread", "thread extent");
  if (!args) return;
  const py::Expr* first = (*args)[0];
  const py::Name* n = py::as<py::Name>(first);
  const Binding* b = n ? find(n->id) : nullptr;
  EnvThread thread;
  if (const EnvThread* declared = b ? std::get_if<EnvThread>(&b->meaning) : nullptr) {
    thread = *declared;
  } else {
    std::optional<std::string> axis_name = thread_axis(first);
    if (!axis_name) return;
    thread.axis = *axis_name;
  }
  LoopHeader h;
  h.kind = ForKind::thread_binding;
  h.thread = thread.axis;
  if (!loop_bounds((*args)[1], nullptr, nullptr, h)) return;
  const py::Name* name = target ? py::as<py::Name>(target) : n;
  Var v = make_var(name ? std::string(name->id) : "t", h.extent->dtype);
  loops_[v.get()] = {h.min, h.extent};
  spans_.add(v.get(), name ? name->range : call.range);
  if (name) define(name->id, Expr(v), name->range);
  TextRange where = call.range;
  open([this, v, h, where](Stmt rest) { return loop(v, h, std::move(rest), where); });
}

void Reader::if_statement(const py::If& s, Body& body) {
  Expr condition = boolean(s.condition);
  Stmt then_body = scoped(s.body);
  Stmt else_body = s.orelse.empty() ? Stmt() : scoped(s.orelse);
  if (condition) add(body, make_stmt<If>(condition, then_body, else_body), s.range);
}

// --- with

void Reader::with(const py::With& s, Body& body) {
  std::string_view first = callee(s.items[0].context);
  if (first == "sblock" || first == "block") return block(s, *py::as<py::Call>(s.items[0].context), body);
  if (first == "init") return init(s, body);
  Scope scope(*this);
  std::vector<Body::Open> opens;
  for (const py::WithItem& item : s.items)
    if (!with_item(item, [&](Body::Open f) { opens.push_back(std::move(f)); }) && item.target) poison(item.target);
  Stmt inner = sequence(s.body);
  for (size_t i = opens.size(); i-- > 0;) inner = opens[i](std::move(inner));
  body.add(inner);
}

bool Reader::with_item(const py::WithItem& item, const OnOpen& open) {
  const py::Call* call = py::as<py::Call>(item.context);
  std::string name(callee(item.context));
  if (name == "attr") {
    attribute_statement(*call, open);
  } else if (name == "hint") {
    hint(*call, open);
  } else if (name == "launch_thread") {
    launch_thread(*call, item.target, open);
  } else if ((name == "allocate" || name == "decl_buffer") && py::as<py::Name>(item.target)) {
    flat_buffer(*call, name, *py::as<py::Name>(item.target), open);
  } else if (name == "LetStmt" || name == "let") {
    std::optional<Args> args = arguments(*call, fmt::format("T.{}", name), name == "let" ? "var value" : "value var?");
    if (!args) return false;
    const py::Name* n = py::as<py::Name>(name == "let" ? (*args)[0] : (*args)[1] ? (*args)[1] : item.target);
    Expr v = value((*args)[name == "let" ? 1 : 0]);
    if (!n || !v) {
      if (!n) error(text_code::wrong_argument_type, call->range, "expected a name for the bound variable");
      return false;
    }
    // A variable declared before (`x = T.int32()`) is the one that is bound.
    const Binding* old = find(n->id);
    const Expr* declared = old ? std::get_if<Expr>(&old->meaning) : nullptr;
    Var var;
    if (declared && as<VarNode>(*declared) && (*declared)->dtype == v->dtype &&
        std::erase_if(function_->symbolic, [&](const Var& x) { return x.get() == declared->get(); }) > 0)
      var = Var(as<VarNode>(*declared));
    else
      var = make_var(std::string(n->id), v->dtype);
    define(n->id, Expr(var), n->range);
    TextRange where = call->range;
    open([this, var, v, where](Stmt rest) {
      Stmt s = make_stmt<Bind>(var, v, std::move(rest));
      spans_.add(s.get(), where);
      return s;
    });
  } else if (name.empty()) {
    error(text_code::wrong_argument_type, item.context->range,
          fmt::format("expected a construct such as `T.sblock(\"name\")`, found {}", py::describe(item.context)));
    return false;
  } else {
    unknown_name(call->function->range, name);
    return false;
  }
  return true;
}

void Reader::attribute_statement(const py::Call& call, const OnOpen& open) {
  TextRange where = call.range;
  auto push = [&](Expr node, std::string key, Expr v) {
    open([this, node, key, v, where](Stmt rest) {
      Stmt s = make_stmt<AttrStmt>(node, key, v, std::move(rest));
      spans_.add(s.get(), where);
      return s;
    });
  };
  auto attr_operand = [&](const py::Expr* e) -> Expr {
    const py::Expr* x = constant(e);
    if (const py::String* s = py::as<py::String>(x)) return tilewright::make<StringImm>(kHandle, std::string(s->value));
    if (Buffer b = buffer(e, false)) return Expr(b->data);
    return value(e);
  };
  if (call.args.size() == 1 && call.keywords.empty()) {
    const py::Dict* dict = py::as<py::Dict>(constant(call.args[0]));
    if (!dict) {
      error(text_code::wrong_argument_count, where, "expected `T.attr(node, key, value)` or a dict");
      return;
    }
    for (size_t i = 0; i < dict->keys.size(); ++i) {
      std::optional<std::string> key = text_value(dict->keys[i], "a key");
      Expr v = key ? attr_operand(dict->values[i]) : Expr();
      if (v) push(nullptr, *key, v);
    }
    return;
  }
  std::optional<Args> args = arguments(call, "T.attr", "node attr_key value");
  std::optional<std::string> key = args ? text_value((*args)[1], "the key") : std::nullopt;
  if (!key) return;
  const py::Name* n = py::as<py::Name>((*args)[0]);
  const Binding* b = n ? find(n->id) : nullptr;
  if (b && std::holds_alternative<EnvThread>(b->meaning) && (*key == "thread_extent" || *key == "virtual_thread")) {
    const py::Expr* pair[2] = {(*args)[0], (*args)[2]};
    return launch_thread(py::Call{{py::ExprKind::kCall, where}, call.function, pair, {}}, nullptr, open);
  }
  const py::Expr* node = constant((*args)[0]);
  bool absent = py::as<py::Constant>(node) || py::as<py::Integer>(node);
  Expr target = absent ? Expr() : attr_operand((*args)[0]);
  Expr v = attr_operand((*args)[2]);
  if (!v || (!target && !absent)) return;
  if (target && !as<VarNode>(target) && !as<StringImm>(target)) {
    error(text_code::wrong_argument_type, (*args)[0]->range,
          "expected a variable, a string or None as node of `T.attr`");
    return;
  }
  push(target, *key, v);
}

// T.hint("text", k=v): kept as attributes of that text, without meaning.
void Reader::hint(const py::Call& call, const OnOpen& open) {
  std::optional<std::string> text = call.args.size() == 1 ? text_value(call.args[0], "the hint") : std::nullopt;
  if (!text) {
    if (call.args.size() != 1)
      error(text_code::wrong_argument_count, call.range,
            fmt::format("expected 1 argument of `T.hint`, found {}", call.args.size()));
    return;
  }
  Expr node = tilewright::make<StringImm>(kHandle, *text);
  auto push = [&](std::string key, Expr v) {
    open([node, key, v](Stmt rest) { return make_stmt<AttrStmt>(node, key, v, std::move(rest)); });
  };
  if (call.keywords.empty()) push("hint", int_imm(0));
  for (const py::Keyword& k : call.keywords) {
    const py::Expr* x = constant(k.value);
    Expr v = x->kind == py::ExprKind::kString
                 ? Expr(tilewright::make<StringImm>(kHandle, std::string(py::as<py::String>(x)->value)))
                 : value(k.value);
    if (v) push(fmt::format("hint.{}", k.name), v);
  }
}

}  // namespace tilewright::text
