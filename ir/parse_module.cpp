// Modules, functions and parameters of program text (schedule-language.md §1.1).
#include <fmt/format.h>

#include <algorithm>

#include "ir/parse_reader.h"

namespace tilewright::text {

namespace {

bool is_literal(const py::Expr* e) {
  switch (e->kind) {
    case py::ExprKind::kInteger:
    case py::ExprKind::kFloating:
    case py::ExprKind::kString:
    case py::ExprKind::kConstant:
    case py::ExprKind::kName:
      return true;
    case py::ExprKind::kTuple:
      return std::ranges::all_of(py::as<py::Tuple>(e)->items, is_literal);
    case py::ExprKind::kList:
      return std::ranges::all_of(py::as<py::List>(e)->items, is_literal);
    case py::ExprKind::kUnary:
      return is_literal(py::as<py::Unary>(e)->operand);
    case py::ExprKind::kBinary:
      return is_literal(py::as<py::Binary>(e)->a) && is_literal(py::as<py::Binary>(e)->b);
    default:
      return false;
  }
}

}  // namespace

ProgramRef Reader::program() {
  auto program = std::make_unique<Program>();
  for (const py::Stmt* s : tree_.body) {
    if (errors_.full()) break;
    top_level(s, *program, false);
  }
  if (program->functions.empty() && errors_.empty() && tree_.errors.empty())
    error(text_code::no_function, {0, 0}, "expected a function marked `@T.prim_func`, found none");
  return ProgramRef(program.release());
}

void Reader::imports(const py::Import& s) {
  for (const py::ImportedName& n : s.names) {
    std::string_view last = n.name.empty() ? n.module.substr(n.module.rfind('.') + 1) : n.name;
    std::string_view alias = n.alias.empty() ? last : n.alias;
    if (n.name.empty() && n.alias.empty()) continue;  // `import tvm`: used by its full name
    if (last == "tir" || last == "tirx" || last == "s_tir") language_aliases_.insert(alias);
    if (last == "ir") module_aliases_.insert(alias);
  }
}

void Reader::top_level(const py::Stmt* s, Program& program, bool in_class) {
  switch (s->kind) {
    case py::StmtKind::kImport:
      return imports(*py::as<py::Import>(s));
    case py::StmtKind::kFunctionDef:
      return function(*py::as<py::FunctionDef>(s), program);
    case py::StmtKind::kPass:
      return;
    case py::StmtKind::kInvalid:
      for (std::string_view name : py::as<py::Invalid>(s)->names) define(name, Poison{}, s->range);
      return;
    case py::StmtKind::kClassDef:
      if (!in_class) return module_class(*py::as<py::ClassDef>(s), program);
      break;
    case py::StmtKind::kAssign: {
      const py::Assign* a = py::as<py::Assign>(s);
      const py::Name* n = a->targets.size() == 1 ? py::as<py::Name>(a->targets[0]) : nullptr;
      const py::Call* call = py::as<py::Call>(a->value);
      const py::Name* f = call ? py::as<py::Name>(call->function) : nullptr;
      if (n && f && f->id == "TypeVar") return;
      if (n && is_literal(a->value)) return define(n->id, a->value, n->range);
      break;
    }
    case py::StmtKind::kExprStmt: {
      const py::Expr* e = py::as<py::ExprStmt>(s)->value;
      if (e->kind == py::ExprKind::kString || e->kind == py::ExprKind::kConstant) return;
      if (const py::Call* call = py::as<py::Call>(e); call && in_class) return module_call(*call, program);
      break;
    }
    default:
      break;
  }
  error(text_code::construct_not_supported, s->range,
        "expected functions, constants and imports at this level, found another statement");
}

void Reader::module_call(const py::Call& call, Program& program) {
  std::string name = py::dotted_name(call.function);
  size_t dot = name.find('.');
  if (dot != std::string::npos && is_module_alias(std::string_view(name).substr(0, dot), true)) {
    if (std::string_view(name).substr(dot + 1) == "module_attrs") {
      std::optional<Args> args = arguments(call, "I.module_attrs", "attrs");
      std::optional<AttrDict> dict = args ? attr_dict((*args)[0]) : std::nullopt;
      if (dict)
        for (auto& [key, v] : *dict) program.attrs[key] = std::move(v);
      return;
    }
    Diagnostic d;
    d.warning = true;
    d.code = text_code::construct_not_supported.text;
    d.message = fmt::format("`{}` is ignored", name);
    d.span = tree_.source->span(call.range);
    warnings_.push_back(std::move(d));
    return;
  }
  error(text_code::construct_not_supported, call.range,
        "expected functions and module attributes in a module, found a call");
}

void Reader::module_class(const py::ClassDef& s, Program& program) {
  bool marked = s.decorators.empty();
  bool outer = default_s_tir_;
  for (const py::Expr* d : s.decorators) {
    const py::Call* call = py::as<py::Call>(d);
    std::string name = py::dotted_name(call ? call->function : d);
    std::string_view last = std::string_view(name).substr(name.rfind('.') + 1);
    if (last == "ir_module") {
      marked = true;
      if (!call) continue;
      for (const py::Keyword& k : call->keywords)
        if (k.name == "s_tir") default_s_tir_ = bool_value(k.value, "s_tir").value_or(false);
    }
  }
  if (!marked)
    error(text_code::construct_not_supported, s.name_range,
          fmt::format("expected class `{}` to be marked `@I.ir_module`", s.name));
  program.name = std::string(s.name);
  Scope scope(*this);
  for (const py::Stmt* inner : s.body) {
    if (errors_.full()) break;
    top_level(inner, program, true);
  }
  default_s_tir_ = outer;
}

// --- functions

std::optional<bool> Reader::marked_function(const py::FunctionDef& s, Function& f) {
  for (const py::Expr* d : s.decorators) {
    const py::Call* call = py::as<py::Call>(d);
    const py::Expr* function = call ? call->function : d;
    const py::Name* bare = py::as<py::Name>(function);
    if (t_name(function) != "prim_func" && !(bare && bare->id == "prim_func")) continue;
    bool s_tir = default_s_tir_;
    if (!call) return s_tir;
    for (const py::Keyword& k : call->keywords) {
      std::optional<bool> on = bool_value(k.value, "an argument of `T.prim_func`");
      if (!on) continue;
      if (k.name == "private")
        f.is_private = *on;
      else if (k.name == "s_tir")
        s_tir = *on;
      else if (k.name == "persistent") {
        if (*on) f.attrs["persistent"] = Attr(true);
      } else if (k.name != "check_well_formed")
        error(text_code::wrong_argument_count, k.name_range, fmt::format("`T.prim_func` has no argument `{}`", k.name));
    }
    return s_tir;
  }
  Diagnostic& d = error(text_code::construct_not_supported, s.name_range,
                        fmt::format("expected function `{}` to be marked `@T.prim_func`", s.name));
  if (!s.decorators.empty()) d.notes.push_back(note("this decorator is not read", s.decorators[0]->range));
  return std::nullopt;
}

void Reader::scan(py::Stmts stmts, Facts& facts) {
  for (const py::Stmt* s : stmts) {
    switch (s->kind) {
      case py::StmtKind::kWith: {
        const py::With* w = py::as<py::With>(s);
        std::string_view first = callee(w->items[0].context);
        facts.blocks |= first == "sblock" || first == "block";
        scan(w->body, facts);
        break;
      }
      case py::StmtKind::kFor:
        scan(py::as<py::For>(s)->body, facts);
        break;
      case py::StmtKind::kWhile:
        scan(py::as<py::While>(s)->body, facts);
        break;
      case py::StmtKind::kIf:
        scan(py::as<py::If>(s)->body, facts);
        scan(py::as<py::If>(s)->orelse, facts);
        break;
      case py::StmtKind::kAssign:
        facts.block_allocs |= callee(py::as<py::Assign>(s)->value) == "sblock_alloc_buffer";
        for (const py::Expr* t : py::as<py::Assign>(s)->targets)
          if (const py::Name* n = py::as<py::Name>(t)) facts.reassigned.insert(n->id);
        break;
      case py::StmtKind::kAugmentedAssign:
        if (const py::Name* n = py::as<py::Name>(py::as<py::AugmentedAssign>(s)->target))
          facts.reassigned.insert(n->id);
        break;
      default:
        break;
    }
  }
}

/// The function's only statement when it is a block without axes: that block is the root.
const py::With* Reader::root_statement(py::Stmts body) {
  const py::With* only = nullptr;
  for (const py::Stmt* s : body) {
    if (const py::ExprStmt* e = py::as<py::ExprStmt>(s)) {
      if (e->value->kind == py::ExprKind::kString || callee(e->value) == "func_attr") continue;
    } else if (const py::Assign* a = py::as<py::Assign>(s)) {
      std::string_view name = callee(a->value);
      const py::Call* call = py::as<py::Call>(a->value);
      const py::Tuple* tuple = py::as<py::Tuple>(a->value);
      if (name == "match_buffer" || name == "var" || (call && call->args.empty() && DType::parse(name))) continue;
      if (tuple &&
          std::ranges::all_of(tuple->items, [&](const py::Expr* x) { return DType::parse(callee(x)).has_value(); }))
        continue;
    } else if (s->kind == py::StmtKind::kPass || s->kind == py::StmtKind::kImport) {
      continue;
    }
    const py::With* w = py::as<py::With>(s);
    std::string_view first = w ? callee(w->items[0].context) : std::string_view{};
    if (only || (first != "sblock" && first != "block")) return nullptr;
    only = w;
  }
  if (only)
    for (const py::Stmt* s : only->body)
      if (const py::Assign* a = py::as<py::Assign>(s); a && callee(a->value).starts_with("axis.")) return nullptr;
  return only;
}

void Reader::scalar_parameter(const py::Parameter& p, Function& f) {
  Param& out = f.params.emplace_back();
  if (!p.annotation) {
    error(text_code::wrong_argument_type, p.range,
          fmt::format("expected a type for parameter `{}`, as in `{}: T.handle`", p.name, p.name));
    return define(p.name, Poison{}, p.range);
  }
  const py::Call* call = py::as<py::Call>(p.annotation);
  const py::Subscript* subscript = py::as<py::Subscript>(p.annotation);
  const py::Expr* head = call ? call->function : subscript ? subscript->value : p.annotation;
  std::string_view name = t_name(head);
  if (name == "Buffer") return define(p.name, Poison{}, p.range);  // buffer_parameter fills it in
  std::optional<DType> d = name == "Ptr" ? std::optional(kHandle) : DType::parse(name);
  if (!d || d->is_void()) {
    Diagnostic& e =
        error(text_code::unknown_construct, p.annotation->range,
              fmt::format("expected a type such as `T.Buffer(…)`, `T.handle` or `T.int32` for parameter `{}`", p.name));
    if (std::string best = did_you_mean(name, {"Buffer", "handle", "int32", "int64", "float32", "float16", "bool"});
        !name.empty() && !best.empty())
      e.help = fmt::format("did you mean `T.{}`?", best);
    return define(p.name, Poison{}, p.range);
  }
  out.var = make_var(std::string(p.name), *d);
  spans_.add(out.var.get(), p.range);
  define(p.name, Expr(out.var), p.range);
}

void Reader::buffer_parameter(const py::Parameter& p, Param& out) {
  if (out.var || !p.annotation) return;
  const py::Call* call = py::as<py::Call>(p.annotation);
  const py::Subscript* subscript = py::as<py::Subscript>(p.annotation);
  out.var = make_var(fmt::format("{}_handle", p.name), kHandle);
  if (t_name(call ? call->function : subscript ? subscript->value : p.annotation) != "Buffer") return;
  std::optional<Args> args;
  if (call) {
    args = arguments(*call, "T.Buffer",
                     "shape dtype? data? strides? elem_offset? scope? align? offset_factor? annotations? buffer_type? "
                     "axis_separators?");
  } else if (subscript) {  // T.Buffer[(16, 16), "float32"]
    const py::Tuple* t = py::as<py::Tuple>(subscript->index);
    const py::Expr* last = t && t->items.size() == 2 ? constant(t->items[1]) : nullptr;
    args.emplace();
    bool typed_form = last && last->kind == py::ExprKind::kString;
    args->slot[0] = typed_form ? t->items[0] : subscript->index;
    if (typed_form) args->slot[1] = t->items[1];
  } else {
    error(text_code::wrong_argument_count, p.annotation->range,
          "expected an argument `shape` of `T.Buffer`, found none");
  }
  std::optional<BufferSpec> spec = args ? buffer_spec(*args, 0) : std::nullopt;
  if (!spec) return;
  out.buffer = make(p.name, *spec, p.range);
  define(p.name, out.buffer, p.range);
}

void Reader::function(const py::FunctionDef& s, Program& program) {
  auto f = std::make_unique<Function>();
  std::optional<bool> s_tir = marked_function(s, *f);
  if (!s_tir) return;
  f->name = std::string(s.name);
  if (program.find(f->name))
    error(text_code::duplicate_name, s.name_range, fmt::format("function `{}` is defined twice", f->name));
  facts_ = {};
  scan(s.body, facts_);
  f->schedulable = *s_tir || facts_.blocks;
  classic_allocs_ = facts_.blocks && !*s_tir && !facts_.block_allocs;
  Scope scope(*this);
  function_ = f.get();
  loops_.clear();
  for (const py::Parameter& p : s.type_params) {
    if (const py::Expr* value = fixed(p.name)) {
      define_new(p.name, value, p.range);
      continue;
    }
    Var v = f->symbolic.emplace_back(make_var(std::string(p.name), kInt64));
    define_new(p.name, Expr(v), p.range);
  }
  // Scalars first: extents of buffers may name parameters that come later.
  for (size_t i = 0; i < s.params.size(); ++i) {
    const py::Parameter* twice =
        std::ranges::find(s.params.data(), s.params.data() + i, s.params[i].name, &py::Parameter::name);
    if (twice != s.params.data() + i)
      error(text_code::duplicate_name, s.params[i].range,
            fmt::format("parameter `{}` is defined twice", s.params[i].name))
          .notes.push_back(note("first defined here", twice->range));
    scalar_parameter(s.params[i], *f);
  }
  for (size_t i = 0; i < s.params.size(); ++i) buffer_parameter(s.params[i], f->params[i]);
  if (s.returns && !py::as<py::Constant>(s.returns)) {
    std::optional<DType> d = dtype_value(s.returns);
    if (d) f->return_type = *d;
  }
  BlockFrame root;
  root.node->name = "root";
  root.is_root = root.has_reads = root.has_writes = true;  // the root's signature is empty by convention
  root.level = level_;
  root.where = s.range;
  if (f->schedulable) block_ = &root;
  root_statement_ = f->schedulable ? root_statement(s.body) : nullptr;
  Stmt body = sequence(s.body);
  if (f->schedulable) {
    root.node->body = std::move(body);
    body = finish_block(root);
    spans_.add(body.get(), root.where);
  }
  f->body = std::move(body);
  block_ = nullptr;
  function_ = nullptr;
  FunctionRef done(f.release());
  spans_.add(done.get(), s.range);
  program.functions.push_back(std::move(done));
}

const py::Expr* Reader::fixed(std::string_view name) {
  declared_extents_.emplace_back(name);
  auto it = extents_.find(name);
  if (it == extents_.end()) return nullptr;
  return subtrees_.emplace_back(py::parse_expression(fmt::format("{}", it->second), tree_.source->file())).expression;
}

Diagnostics Reader::unused_extents() const {
  Diagnostics out;
  for (const auto& [name, value] : extents_) {
    if (std::ranges::find(declared_extents_, name) != declared_extents_.end()) continue;
    std::string near = did_you_mean(name, declared_extents_);
    out.push_back({std::string(text_code::extent_unknown.text),
                   fmt::format("the program has no symbolic extent \"{}\"", name),
                   {},
                   {},
                   near.empty() ? "" : fmt::format("did you mean \"{}\"?", near)});
  }
  return out;
}

}  // namespace tilewright::text

namespace tilewright {

tl::expected<ParsedProgram, Diagnostics> parse_program(std::string_view text, std::string file_name,
                                                       const Extents& extents) {
  py::Tree tree = py::parse_module(std::string(text), std::move(file_name));
  ErrorList errors(tree.source);
  text::Reader reader(tree, errors);
  reader.fix(extents);
  ProgramRef program = reader.program();
  if (errors.empty() && tree.errors.empty())
    if (Diagnostics unused = reader.unused_extents(); !unused.empty()) return tl::unexpected(std::move(unused));
  if (!errors.empty() || !tree.errors.empty()) {
    errors.append(tree.errors);
    return tl::unexpected(errors.sorted());
  }
  return ParsedProgram{std::move(program), reader.take_spans(), reader.take_warnings()};
}

}  // namespace tilewright
