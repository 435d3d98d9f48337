// Reading traces and schedule files in Python form: a straight line of primitive calls (schedule-language.md §4.3). One
// reader serves both uses: a printed trace is recorded without a program, a hand-written schedule is run as it is read.
#include <fmt/format.h>

#include <map>

#include "ir/build.h"
#include "ir/python_syntax.h"
#include "schedule/primitive.h"
#include "schedule/schedule.h"

namespace tilewright {

namespace {

/// Thrown inside the reader after the error has been recorded; never leaves this file.
struct Failed {};

class Reader {
 public:
  /// schedule null: record only.
  Reader(const SourceRef& source, Schedule* schedule) : errors_(source), schedule_(schedule) {}

  void run(py::Stmts body) {
    for (const py::Stmt* s : body) {
      try {
        statement(s);
      } catch (const Failed&) {
        if (schedule_) return;  // later statements would only report what follows from this one
      }
    }
  }
  ErrorList& errors() { return errors_; }
  Trace take() { return std::move(trace_); }

  /// A lambda, or the call that adds its inverse; nothing for another expression.
  std::optional<IndexMapRef> index_map(const py::Expr* e) {
    if (auto* l = py::as<py::Lambda>(e)) return lambda(l);
    auto* c = py::as<py::Call>(e);
    if (!c || !makes_index_map(c)) return std::nullopt;
    return *map_with_inverse(c).get<IndexMapRef>();
  }

  IndexMapRef lambda(const py::Lambda* e) {
    auto map = std::make_unique<IndexMap>();
    std::map<std::string_view, Expr> env;
    for (const py::Parameter& p : e->params) {
      if (p.starred) fail(wrong_argument_type, p.range, "an index map takes a fixed number of indices");
      Var v = make_var(std::string(p.name));
      map->inputs.push_back(v);
      env[p.name] = v;
    }
    py::Exprs items{&e->body, 1};
    if (auto* tuple = py::as<py::Tuple>(e->body)) items = tuple->items;
    if (auto* list = py::as<py::List>(e->body)) items = list->items;
    for (const py::Expr* item : items) {
      auto* pair = py::as<py::Tuple>(item);
      if (pair && pair->items.size() == 2) {
        Expr begin = index(pair->items[0], env), end = index(pair->items[1], env);
        map->ranges.push_back({begin, end - begin});
      } else {
        map->outputs.push_back(index(item, env));
      }
    }
    return IndexMapRef(map.release());
  }

 private:
  [[noreturn]] void fail(const RefusalCode& code, TextRange where, std::string message, std::string help = "") {
    errors_.add(code, where, std::move(message)).help = std::move(help);
    throw Failed{};
  }

  // --- statements
  void statement(const py::Stmt* s) {
    switch (s->kind) {
      case py::StmtKind::kPass:
      case py::StmtKind::kImport:
      case py::StmtKind::kInvalid:
        return;
      case py::StmtKind::kExprStmt: {
        const py::Expr* value = py::as<py::ExprStmt>(s)->value;
        if (value->kind == py::ExprKind::kString) return;
        evaluate(value, 0);
        return;
      }
      case py::StmtKind::kAssign: {
        auto* assign = py::as<py::Assign>(s);
        if (assign->targets.size() != 1) break;
        return bind(assign->targets[0], assign->value);
      }
      case py::StmtKind::kReturn:
        return;
      default:
        break;
    }
    fail(trace_statement_not_supported, s->range, "expected a primitive call or an assignment of one");
  }

  void bind(const py::Expr* target, const py::Expr* value) {
    py::Exprs names{&target, 1};
    bool unpack = false;
    if (auto* tuple = py::as<py::Tuple>(target)) names = tuple->items, unpack = true;
    if (auto* list = py::as<py::List>(target)) names = list->items, unpack = true;
    int starred = -1;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i]->kind == py::ExprKind::kStarred) starred = static_cast<int>(i);
    expected_outputs_ = unpack && starred < 0 ? static_cast<int>(names.size()) : -1;
    if (!schedule_ && starred >= 0)
      fail(trace_statement_not_supported, target->range, "a starred name needs the program that the schedule works on");
    target_names_ = names;
    TraceValue result = evaluate(value, unpack ? static_cast<int>(names.size()) : 1);
    if (!unpack) return set(target, result);
    auto* list = result.get<TraceList>();
    if (!list) fail(wrong_argument_type, value->range, "expected a list to unpack, found one value");
    size_t fixed = names.size() - (starred >= 0 ? 1 : 0);
    if (starred >= 0 ? list->size() < fixed : list->size() != fixed)
      fail(output_count_differs, target->range, fmt::format("expected {} values, found {}", fixed, list->size()));
    size_t at = 0, extra = list->size() - fixed;
    for (size_t i = 0; i < names.size(); ++i) {
      if (static_cast<int>(i) == starred) {
        TraceList rest(list->begin() + at, list->begin() + at + extra);
        set(py::as<py::Starred>(names[i])->value, TraceValue(std::move(rest)));
        at += extra;
      } else {
        set(names[i], (*list)[at++]);
      }
    }
  }

  void set(const py::Expr* target, TraceValue value) {
    auto* name = py::as<py::Name>(target);
    if (!name) fail(trace_statement_not_supported, target->range, "expected a name");
    names_[std::string(name->id)] = std::move(value);
  }

  // --- expressions. `wanted`: number of values that the statement unpacks (0: none, 1: one value or a list).
  TraceValue evaluate(const py::Expr* e, int wanted = 1) {
    switch (e->kind) {
      case py::ExprKind::kName: {
        std::string id(py::as<py::Name>(e)->id);
        auto it = names_.find(id);
        if (it != names_.end()) return it->second;
        std::vector<std::string> known;
        for (const auto& [name, value] : names_) known.push_back(name);
        std::string hint = did_you_mean(id, known);
        fail(trace_name_undefined, e->range, fmt::format("name \"{}\" is not defined", id),
             hint.empty() ? "" : fmt::format("did you mean \"{}\"?", hint));
      }
      case py::ExprKind::kInteger:
        return static_cast<int64_t>(py::as<py::Integer>(e)->value);
      case py::ExprKind::kFloating:
        return py::as<py::Floating>(e)->value;
      case py::ExprKind::kString:
        return std::string(py::as<py::String>(e)->value);
      case py::ExprKind::kConstant: {
        auto value = py::as<py::Constant>(e)->value;
        if (value == py::ConstantKind::none) return nullptr;
        if (value == py::ConstantKind::ellipsis) break;
        return value == py::ConstantKind::true_;
      }
      case py::ExprKind::kUnary: {
        auto* unary = py::as<py::Unary>(e);
        TraceValue v = evaluate(unary->operand);
        if (unary->op == py::Op::negative && v.get<int64_t>()) return -*v.get<int64_t>();
        if (unary->op == py::Op::negative && v.get<double>()) return -*v.get<double>();
        if (unary->op == py::Op::logical_not && v.get<bool>()) return !*v.get<bool>();
        break;
      }
      case py::ExprKind::kBinary:
        return arithmetic(py::as<py::Binary>(e));
      case py::ExprKind::kTuple:
        return items(py::as<py::Tuple>(e)->items);
      case py::ExprKind::kList:
        return items(py::as<py::List>(e)->items);
      case py::ExprKind::kDict: {
        auto* dict = py::as<py::Dict>(e);
        TraceDict out;
        for (size_t i = 0; i < dict->keys.size(); ++i) {
          TraceValue key = evaluate(dict->keys[i]);
          if (!key.get<std::string>()) fail(wrong_argument_type, dict->keys[i]->range, "expected a string as key");
          out[*key.get<std::string>()] = evaluate(dict->values[i]);
        }
        return out;
      }
      case py::ExprKind::kSubscript:
        return subscript(py::as<py::Subscript>(e));
      case py::ExprKind::kLambda:
        return lambda(py::as<py::Lambda>(e));
      case py::ExprKind::kCall:
        return call(py::as<py::Call>(e), wanted);
      default:
        break;
    }
    fail(trace_statement_not_supported, e->range, fmt::format("{} is not read here", py::describe(e)));
  }

  TraceValue items(py::Exprs list) {
    TraceList out;
    for (const py::Expr* item : list) {
      if (auto* star = py::as<py::Starred>(item)) {
        TraceValue inner = evaluate(star->value);
        if (!inner.get<TraceList>()) fail(wrong_argument_type, item->range, "expected a list after *");
        for (const TraceValue& v : *inner.get<TraceList>()) out.push_back(v);
      } else {
        out.push_back(evaluate(item));
      }
    }
    return out;
  }

  TraceValue arithmetic(const py::Binary* e) {
    TraceValue a = evaluate(e->a), b = evaluate(e->b);
    auto *x = a.get<int64_t>(), *y = b.get<int64_t>();
    std::optional<int64_t> r;
    if (x && y) {
      switch (e->op) {
        case py::Op::add:
          r = fold_int(BinaryOp::add, *x, *y);
          break;
        case py::Op::sub:
          r = fold_int(BinaryOp::sub, *x, *y);
          break;
        case py::Op::mul:
          r = fold_int(BinaryOp::mul, *x, *y);
          break;
        case py::Op::floor_div:
          r = fold_int(BinaryOp::floor_div, *x, *y);
          break;
        case py::Op::mod:
          r = fold_int(BinaryOp::floor_mod, *x, *y);
          break;
        default:
          break;
      }
    }
    if (auto *la = a.get<TraceList>(), *lb = b.get<TraceList>(); la && lb && e->op == py::Op::add) {
      TraceList joined = *la;
      joined.insert(joined.end(), lb->begin(), lb->end());
      return joined;
    }
    if (!r) fail(wrong_argument_type, e->range, "arithmetic is read on integer constants only");
    return *r;
  }

  TraceValue subscript(const py::Subscript* e) {
    TraceValue v = evaluate(e->value);
    auto* list = v.get<TraceList>();
    if (!list) fail(wrong_argument_type, e->value->range, "expected a list before [");
    int64_t n = static_cast<int64_t>(list->size());
    auto position = [&](const py::Expr* at, int64_t fallback) {
      if (!at) return fallback;
      TraceValue p = evaluate(at);
      if (!p.get<int64_t>()) fail(wrong_argument_type, at->range, "expected an integer constant as index");
      return *p.get<int64_t>() < 0 ? *p.get<int64_t>() + n : *p.get<int64_t>();
    };
    if (auto* slice = py::as<py::Slice>(e->index)) {
      if (slice->step) fail(trace_statement_not_supported, e->index->range, "a slice with a step is not read");
      int64_t lo = std::clamp<int64_t>(position(slice->lower, 0), 0, n),
              hi = std::clamp<int64_t>(position(slice->upper, n), lo, n);
      return TraceList(list->begin() + lo, list->begin() + hi);
    }
    int64_t at = position(e->index, 0);
    if (at < 0 || at >= n)
      fail(wrong_argument_type, e->index->range, fmt::format("expected an index below {}, found {}", n, at));
    return (*list)[at];
  }

  // --- index maps
  Expr index(const py::Expr* e, const std::map<std::string_view, Expr>& env) {
    if (auto* name = py::as<py::Name>(e)) {
      auto it = env.find(name->id);
      if (it != env.end()) return it->second;
      auto known = names_.find(std::string(name->id));
      if (known != names_.end() && known->second.get<int64_t>()) return int_imm(*known->second.get<int64_t>());
      fail(trace_name_undefined, e->range, fmt::format("name \"{}\" is not an index of the map", name->id));
    }
    if (auto* integer = py::as<py::Integer>(e)) return int_imm(static_cast<int64_t>(integer->value));
    if (auto* floating = py::as<py::Floating>(e)) return float_imm(floating->value);
    if (auto* unary = py::as<py::Unary>(e); unary && unary->op == py::Op::negative)
      return int_imm(0) - index(unary->operand, env);
    if (auto* b = py::as<py::Binary>(e)) {
      Expr x = index(b->a, env), y = index(b->b, env);
      if ((b->op == py::Op::floor_div || b->op == py::Op::mod) && is_const(y, 0))
        fail(text_code::constant_division_by_zero, e->range, "expected a divisor other than zero, found 0");
      switch (b->op) {
        case py::Op::add:
          return x + y;
        case py::Op::sub:
          return x - y;
        case py::Op::mul:
          return x * y;
        case py::Op::floor_div:
          return floor_div(x, y);
        case py::Op::mod:
          return floor_mod(x, y);
        default:
          break;
      }
    }
    if (auto* c = py::as<py::Call>(e)) {  // T.float32(0), T.int32(4), T.min(a, b)
      std::string name = py::dotted_name(c->function);
      std::string last = name.substr(name.rfind('.') + 1);
      if (c->args.size() == 1)
        if (std::optional<DType> dtype = DType::parse(last)) return cast(*dtype, index(c->args[0], env));
      if (c->args.size() == 2 && last == "min") return min_of(index(c->args[0], env), index(c->args[1], env));
      if (c->args.size() == 2 && last == "max") return max_of(index(c->args[0], env), index(c->args[1], env));
    }
    fail(trace_statement_not_supported, e->range, "an index map is built from + - * // % of its indices and integers");
  }

  // --- calls
  TraceValue call(const py::Call* e, int wanted) {
    std::string name = py::dotted_name(e->function);
    if (makes_index_map(e)) return map_with_inverse(e);
    size_t dot = name.rfind('.');
    if (dot == std::string::npos) {
      if ((name == "list" || name == "tuple") && e->args.size() == 1) return evaluate(e->args[0]);
      fail(trace_statement_not_supported, e->range, "expected a primitive call such as sch.split(…)");
    }
    std::string method = name.substr(dot + 1);
    if (method == "work_on" || method == "remove_rv" || method == "show") return nullptr;
    const Primitive* p = find_primitive(method);
    if (!p) {
      std::string hint = suggest_primitive(method);
      fail(instruction_unknown, e->function->range, fmt::format("no primitive is called {}", method),
           hint.empty() ? "" : fmt::format("did you mean \"{}\"?", hint));
    }
    return apply(*p, e, wanted);
  }

  static bool makes_index_map(const py::Call* e) {
    return py::dotted_name(e->function).ends_with("IndexMap.from_func");
  }
  TraceValue map_with_inverse(const py::Call* e) {
    TraceValue forward = e->args.empty() ? TraceValue() : evaluate(e->args[0]);
    if (!forward.get<IndexMapRef>()) fail(wrong_argument_type, e->range, "expected a lambda");
    auto map = std::make_unique<IndexMap>(**forward.get<IndexMapRef>());
    for (const py::Keyword& k : e->keywords)
      if (k.name == "inverse_index_map") {
        TraceValue inverse = evaluate(k.value);
        if (auto* m = inverse.get<IndexMapRef>()) map->inverse = *m;
      }
    return IndexMapRef(map.release());
  }

  std::vector<std::string> python_names(const Primitive& p) {
    if (!p.python_order.empty()) return p.python_order;
    std::vector<std::string> out;
    for (const ArgSpec& spec : p.inputs) out.push_back(spec.name);
    for (const ArgSpec& spec : p.attrs) out.push_back(spec.name);
    return out;
  }

  TraceValue apply(const Primitive& p, const py::Call* e, int wanted) {
    const int expected = std::exchange(expected_outputs_, -1);
    const py::Exprs targets = std::exchange(target_names_, {});
    std::vector<std::string> order = python_names(p);
    std::vector<std::pair<std::string, TraceValue>> arguments;
    std::optional<TraceValue> decision;
    auto give = [&](const std::string& name, const py::Expr* value) {
      const ArgSpec* spec = p.find(name);
      arguments.emplace_back(name, coerce(*spec, evaluate(value), value->range));
    };
    size_t at = 0;
    bool variadic = !order.empty() && p.find(order[0])->type == ArgType::loops;
    if (variadic && !(e->args.size() == 1 && e->args[0]->kind == py::ExprKind::kList)) {
      TraceValue list = items(e->args);
      // reorder(loops): one list argument is the list itself
      if (auto* l = list.get<TraceList>(); l->size() == 1 && (*l)[0].get<TraceList>()) list = TraceValue((*l)[0]);
      arguments.emplace_back(order[0], std::move(list));
      at = 1;
    } else {
      for (const py::Expr* arg : e->args) {
        if (at >= order.size())
          fail(wrong_argument_count, arg->range,
               fmt::format("{} takes {} arguments, found {}", p.name, order.size(), e->args.size()));
        give(order[at++], arg);
      }
    }
    for (const py::Keyword& k : e->keywords) {
      std::string name(k.name);
      if (name == "decision" && p.samples) {
        decision = evaluate(k.value);
        if (decision->is_none()) decision.reset();
        continue;
      }
      if (name == "block" && !p.find("block") && p.find("scope_block")) name = "scope_block";
      if (!p.find(name)) {
        std::string hint = did_you_mean(name, order);
        fail(wrong_argument_count, k.name_range,
             fmt::format("{} has no argument {}; it takes {}", p.name, name, fmt::join(order, ", ")),
             hint.empty() ? "" : fmt::format("did you mean \"{}\"?", hint));
      }
      give(name, k.value);
    }
    if (p.name == "get_sblock" && schedule_) {  // the function worked on is recorded by name
      bool named = false;
      for (const auto& [name, value] : arguments) named = named || (name == "func_name" && !value.is_none());
      if (!named) arguments.emplace_back("func_name", schedule_->function().name);
    }
    auto bound = bind_arguments(p, std::move(arguments));
    if (!bound) refused(bound.error(), e->range);
    bound->decision = std::move(decision);
    return finish(std::move(*bound), e->range, wanted, expected, targets);
  }

  TraceValue finish(Instruction instruction, TextRange where, int wanted, int expected, py::Exprs targets) {
    const Primitive& p = *instruction.kind;
    bool list = p.outputs == OutputShape::blocks || p.outputs == OutputShape::loops || p.outputs == OutputShape::ints ||
                p.outputs == OutputShape::two_blocks || (p.outputs == OutputShape::blocks_or_one && expected >= 0);
    std::vector<Symbol> outputs;
    if (schedule_) {
      auto applied = schedule_->apply(std::move(instruction));
      if (!applied) refused(applied.error(), where);
      outputs = *applied;
    } else {
      int count = p.outputs == OutputShape::none ? 0 : list ? expected : 1;
      if (count < 0)
        fail(trace_statement_not_supported, where,
             "the number of results is not known without a program: unpack them into names");
      (void)wanted;
      for (int i = 0; i < count; ++i) {
        auto* name = i < static_cast<int>(targets.size()) ? py::as<py::Name>(targets[i]) : nullptr;
        bool nameless = name && name->id == "_" && p.outputs == OutputShape::ints;
        outputs.push_back({nameless ? -1 : next_++, p.output_kind});
      }
      instruction.outputs = outputs;
      if (Status status = check_types(instruction); !status) refused(status.error(), where);
      trace_.instructions.push_back(std::move(instruction));
    }
    if (p.outputs == OutputShape::none) return nullptr;
    if (!list) return outputs.at(0);
    TraceList out;
    for (const Symbol& s : outputs) out.emplace_back(s);
    return out;
  }

  Status check_types(const Instruction& instruction) {
    std::vector<SymbolValue> all(next_);
    for (SymbolValue& v : all) v.defined = true;
    return check_arguments(instruction, all);
  }

  [[noreturn]] void refused(const Refusal& refusal, TextRange where) {
    Diagnostic d = refusal.diagnostic();
    Diagnostic& recorded = errors_.add(*find_refusal_code(refusal.code()), where, d.message);
    recorded.notes = d.notes;
    recorded.help = d.help;
    throw Failed{};
  }

  /// Block names stand for handles, an int or a buffer name for a buffer, 0 and 1 for booleans.
  TraceValue coerce(const ArgSpec& spec, TraceValue v, TextRange where) {
    auto block_by_name = [&](const TraceValue& x) -> TraceValue {
      auto* name = x.get<std::string>();
      if (!name) return x;
      std::string function = schedule_ ? schedule_->function().name : "main";
      auto bound = bind_arguments(*find_primitive("get_sblock"), {{"name", *name}, {"func_name", function}});
      return finish(std::move(*bound), where, 1, 1, {});
    };
    auto blocks_by_name = [&](const TraceList& list) {
      TraceList out;
      for (const TraceValue& item : list) out.push_back(block_by_name(item));
      return out;
    };
    switch (spec.type) {
      case ArgType::block:
      case ArgType::block_or_loop:
        return block_by_name(v);
      case ArgType::blocks:
        if (v.is_none()) return TraceList{};
        [[fallthrough]];
      case ArgType::block_list_or_loop:
        return v.get<TraceList>() ? TraceValue(blocks_by_name(*v.get<TraceList>())) : block_by_name(v);
      case ArgType::buffer:
        if (v.get<int64_t>()) return TraceList{"read", v};
        return v;
      case ArgType::factors:
        if (v.get<TraceList>()) return v;
        return TraceList{v};
      default:
        return v;
    }
  }

  ErrorList errors_;
  Schedule* schedule_;
  Trace trace_;
  std::map<std::string, TraceValue> names_;
  int next_ = 0;
  int expected_outputs_ = -1;
  py::Exprs target_names_{};
};

py::Stmts bare_statements(const py::Tree& tree, std::vector<const py::Stmt*>& storage) {
  for (const py::Stmt* s : tree.body)
    if (s->kind != py::StmtKind::kFunctionDef) storage.push_back(s);
  return storage;
}

bool has_calls(py::Stmts body) {
  for (const py::Stmt* s : body)
    if (s->kind != py::StmtKind::kImport && s->kind != py::StmtKind::kPass) {
      auto* e = py::as<py::ExprStmt>(s);
      if (!e || e->value->kind != py::ExprKind::kString) return true;
    }
  return false;
}

/// The syntax tree of a file that holds at least one function (which may be empty: the trace of the unscheduled
/// program) or one call.
tl::expected<py::Tree, std::vector<Diagnostic>> parse_file(std::string_view text, std::string file) {
  py::Tree tree = py::parse_module(std::string(text), std::move(file));
  if (!tree.errors.empty()) return tl::unexpected(tree.errors);
  std::vector<const py::Stmt*> storage;
  py::Stmts bare = bare_statements(tree, storage);
  if (bare.size() < tree.body.size() || has_calls(bare)) return tree;
  ErrorList errors(tree.source);
  errors.add(trace_empty, {}, "expected a trace or a schedule, found no instruction").help =
      "write a call such as sch.get_sblock(\"C\"); the trace of the program as it is reads [[],[]]";
  return tl::unexpected(errors.sorted());
}

}  // namespace

Result<IndexMapRef> index_map_from_python(std::string_view text) {
  py::Tree tree = py::parse_expression(std::string(text), "index map");
  if (!tree.errors.empty() || !tree.expression)
    return refuse(trace_malformed,
                  fmt::format("expected an index map such as lambda i, j: (i // 4, j), found {}", text));
  Reader reader(tree.source, nullptr);
  try {
    if (auto map = reader.index_map(tree.expression)) return *map;
    return refuse(trace_malformed, fmt::format("expected a lambda, found {}", text));
  } catch (const Failed&) {
    return refuse(trace_malformed, reader.errors().sorted().at(0).message);
  }
}

tl::expected<std::vector<NamedTrace>, std::vector<Diagnostic>> traces_from_python(std::string_view text,
                                                                                  std::string file) {
  auto parsed = parse_file(text, std::move(file));
  if (!parsed) return tl::unexpected(parsed.error());
  const py::Tree& tree = *parsed;
  std::vector<NamedTrace> out;
  ErrorList errors(tree.source);
  auto read = [&](std::string name, py::Stmts body) {
    Reader reader(tree.source, nullptr);
    reader.run(body);
    errors.append(reader.errors().sorted());
    out.push_back({std::move(name), reader.take()});
  };
  for (const py::Stmt* s : tree.body)
    if (auto* function = py::as<py::FunctionDef>(s)) read(std::string(function->name), function->body);
  std::vector<const py::Stmt*> storage;
  py::Stmts bare = bare_statements(tree, storage);
  if (out.empty() || has_calls(bare)) read("", bare);
  if (!errors.empty()) return tl::unexpected(errors.sorted());
  return out;
}

tl::expected<Trace, std::vector<Diagnostic>> parse_trace(std::string_view text, std::string file) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '[' || text[first] == '{')) {
    auto trace = trace_from_json(text);
    if (trace) return *trace;
    Diagnostic d = trace.error().diagnostic();
    d.span.file = file;
    return tl::unexpected(std::vector<Diagnostic>{d});
  }
  auto traces = traces_from_python(text, std::move(file));
  if (!traces) return tl::unexpected(traces.error());
  return traces->at(0).trace;
}

tl::expected<void, std::vector<Diagnostic>> run_schedule_text(std::string_view text, std::string file,
                                                              Schedule& schedule, std::string_view function) {
  auto parsed = parse_file(text, std::move(file));
  if (!parsed) return tl::unexpected(parsed.error());
  const py::Tree& tree = *parsed;
  std::vector<const py::Stmt*> storage;
  py::Stmts body = bare_statements(tree, storage);
  bool bare = function.empty() && has_calls(body);
  for (const py::Stmt* s : tree.body) {
    auto* f = py::as<py::FunctionDef>(s);
    if (f && !bare && (function.empty() || f->name == function)) {
      body = f->body;
      break;
    }
  }
  Reader reader(tree.source, &schedule);
  reader.run(body);
  if (!reader.errors().empty()) return tl::unexpected(reader.errors().sorted());
  return {};
}

tl::expected<std::vector<std::string>, std::vector<Diagnostic>> schedule_functions(std::string_view text,
                                                                                   std::string file) {
  auto parsed = parse_file(text, std::move(file));
  if (!parsed) return tl::unexpected(parsed.error());
  const py::Tree& tree = *parsed;
  std::vector<std::string> out;
  for (const py::Stmt* s : tree.body)
    if (auto* f = py::as<py::FunctionDef>(s)) out.emplace_back(f->name);
  std::vector<const py::Stmt*> storage;
  if (has_calls(bare_statements(tree, storage))) out.emplace_back();
  return out;
}

}  // namespace tilewright
