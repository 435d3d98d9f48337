#include "ir/python_syntax.h"

#include <fmt/format.h>

#include <array>

#include "ir/python_parser.h"

namespace tilewright::py {

namespace {

class Parser : public ExprParser {
 public:
  using ExprParser::ExprParser;

  Stmts module() {
    std::vector<const Stmt*> out;
    while (token_.kind != Tok::end && !errors_.full()) statement(out, 0);
    return keep(out);
  }

 private:
  /// Appends the statements of one logical line (compound statements with their blocks).
  void statement(std::vector<const Stmt*>& out, uint32_t column) {
    if (token_.kind == Tok::newline) return advance();
    if (token_.kind == Tok::indent) {
      errors_.add(text_code::bad_indentation, token_.range,
                  fmt::format("expected an indentation of {} spaces, found {}", column,
                              lexer_.indentation_at(token_.range.end)));
      uint32_t inner = lexer_.indentation_at(token_.range.end);
      advance();
      while (token_.kind != Tok::dedent && token_.kind != Tok::end && !errors_.full()) statement(out, inner);
      if (token_.kind == Tok::dedent) advance();
      return;
    }
    if (token_.kind == Tok::dedent) return advance();  // only after recovery
    uint32_t begin = token_.range.begin;
    const Stmt* s = one_statement(column);
    if (s) {
      out.push_back(s);
      return;
    }
    out.push_back(invalid(begin));
    if (token_.kind != Tok::dedent) {
      lexer_.recover(std::max(begin + 1, token_.range.begin), column);
      advance();
      if (token_.kind == Tok::newline) advance();
    }
  }

  /// A statement that could not be read: the names before its first `=` count as defined, so that uses are not
  /// reported.
  const Stmt* invalid(uint32_t begin) {
    std::string_view rest = errors_.source().text().substr(begin);
    std::string_view line = rest.substr(0, rest.find('\n'));
    size_t stop = line.find('=');
    bool binds = line.starts_with("for ") || line.starts_with("with ") || line.starts_with("def ");
    std::vector<std::string_view> names;
    auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    std::string_view head = binds ? line : stop == std::string_view::npos ? std::string_view{} : line.substr(0, stop);
    for (size_t i = 0; i < head.size();) {
      size_t end = i;
      while (end < head.size() && letter(head[end])) ++end;
      if (end > i) names.push_back(head.substr(i, end - i));
      i = end + 1;
    }
    return make(Invalid{{StmtKind::kInvalid, {begin, begin + static_cast<uint32_t>(line.size())}}, keep(names)});
  }

  const Stmt* one_statement(uint32_t column) {
    uint32_t begin = token_.range.begin;
    switch (token_.kind) {
      case Tok::kw_for:
        return for_statement(begin, column);
      case Tok::kw_while:
        return while_statement(begin, column);
      case Tok::kw_if:
        return if_statement(begin, column);
      case Tok::kw_with:
        return with_statement(begin, column);
      case Tok::kw_def:
      case Tok::kw_class:
      case Tok::at:
        return definition(column);
      case Tok::kw_other:
        return not_supported(token_.range, fmt::format("`{}` is not read", text()));
      default:
        break;
    }
    const Stmt* s = simple_statement(begin);
    if (!s) return nullptr;
    if (accept(Tok::semicolon) || accept(Tok::newline) || token_.kind == Tok::end) return s;
    return unexpected("the end of the statement");
  }

  const Stmt* simple_statement(uint32_t begin) {
    switch (token_.kind) {
      case Tok::kw_pass:
        advance();
        return make(Pass{{StmtKind::kPass, {begin, last_end_}}});
      case Tok::kw_break:
        advance();
        return make(Break{{StmtKind::kBreak, {begin, last_end_}}});
      case Tok::kw_continue:
        advance();
        return make(Continue{{StmtKind::kContinue, {begin, last_end_}}});
      case Tok::kw_return: {
        advance();
        const Expr* value = nullptr;
        if (!ends_expression() && !(value = expression_list())) return nullptr;
        return make(Return{{StmtKind::kReturn, {begin, last_end_}}, value});
      }
      case Tok::kw_assert: {
        advance();
        const Expr *condition = expression(), *message = nullptr;
        if (!condition || (accept(Tok::comma) && !(message = expression()))) return nullptr;
        return make(AssertStmt{{StmtKind::kAssertStmt, {begin, last_end_}}, condition, message});
      }
      case Tok::kw_import:
      case Tok::kw_from:
        return import_statement(begin);
      default:
        return assignment_or_expression(begin);
    }
  }

  bool dotted(std::string_view& out) {
    uint32_t begin = token_.range.begin;
    while (accept(Tok::dot) || accept(Tok::ellipsis)) {
    }
    if (token_.kind == Tok::name) {
      advance();
      while (accept(Tok::dot))
        if (!expect(Tok::name, "a module name")) return false;
    } else if (last_end_ <= begin) {
      unexpected("a module name");
      return false;
    }
    out = errors_.source().text().substr(begin, last_end_ - begin);
    return true;
  }

  const Stmt* import_statement(uint32_t begin) {
    bool from = token_.kind == Tok::kw_from;
    advance();
    std::string_view module;
    std::vector<ImportedName> names;
    if (from && (!dotted(module) || !expect(Tok::kw_import, "`import`"))) return nullptr;
    bool parenthesis = from && accept(Tok::lparen);
    do {
      ImportedName n{module, {}, {}};
      if (from && accept(Tok::star)) continue;
      if (parenthesis && token_.kind == Tok::rparen) break;
      if (!dotted(from ? n.name : n.module)) return nullptr;
      if (accept(Tok::kw_as)) {
        n.alias = text();
        if (!expect(Tok::name, "a name after `as`")) return nullptr;
      }
      names.push_back(n);
    } while (accept(Tok::comma));
    if (parenthesis && !expect(Tok::rparen, "`,` or `)`")) return nullptr;
    return make(Import{{StmtKind::kImport, {begin, last_end_}}, keep(names)});
  }

  bool is_target(const Expr* e) {
    switch (e->kind) {
      case ExprKind::kName:
      case ExprKind::kAttribute:
      case ExprKind::kSubscript:
        return true;
      case ExprKind::kStarred:
        return is_target(static_cast<const Starred*>(e)->value);
      case ExprKind::kTuple:
        for (const Expr* x : static_cast<const Tuple*>(e)->items)
          if (!is_target(x)) return false;
        return true;
      case ExprKind::kList:
        for (const Expr* x : static_cast<const List*>(e)->items)
          if (!is_target(x)) return false;
        return true;
      default:
        errors_.add(text_code::unexpected_token, e->range,
                    fmt::format("expected a name or an element to assign to, found {}", describe(e)));
        return false;
    }
  }

  const Stmt* assignment_or_expression(uint32_t begin) {
    const Expr* first = expression_list();
    if (!first) return nullptr;
    if (token_.kind == Tok::augmented) {
      Tok t = token_.op;
      Op op = t == Tok::star_star ? Op::pow : binary_operator(t).op;
      if (!is_target(first)) return nullptr;
      advance();
      const Expr* value = expression_list();
      if (!value) return nullptr;
      return make(AugmentedAssign{{StmtKind::kAugmentedAssign, {begin, last_end_}}, first, op, value});
    }
    if (accept(Tok::colon)) {
      if (!is_target(first)) return nullptr;
      const Expr *annotation = expression(), *value = nullptr;
      if (!annotation || (accept(Tok::equal) && !(value = expression_list()))) return nullptr;
      return make(AnnotatedAssign{{StmtKind::kAnnotatedAssign, {begin, last_end_}}, first, annotation, value});
    }
    if (token_.kind != Tok::equal) return make(ExprStmt{{StmtKind::kExprStmt, {begin, last_end_}}, first});
    std::vector<const Expr*> targets;
    const Expr* value = first;
    while (accept(Tok::equal)) {
      if (!is_target(value)) return nullptr;
      targets.push_back(value);
      if (!(value = expression_list())) return nullptr;
    }
    return make(Assign{{StmtKind::kAssign, {begin, last_end_}}, keep(targets), value});
  }

  /// `:` and the indented lines, or simple statements on the same line. `body` may stay empty after an error.
  bool block(Stmts& body, std::string_view header, uint32_t column) {
    if (!expect(Tok::colon, "`:`")) return false;
    std::vector<const Stmt*> out;
    if (token_.kind != Tok::newline) {
      do {
        const Stmt* s = simple_statement(token_.range.begin);
        if (!s) return false;
        out.push_back(s);
      } while (accept(Tok::semicolon) && token_.kind != Tok::newline);
      body = keep(out);
      if (accept(Tok::newline) || token_.kind == Tok::end) return true;
      unexpected("the end of the statement");
      return false;
    }
    advance();
    Level level(depth_);
    if (token_.kind != Tok::indent) {
      errors_.add(text_code::bad_indentation, token_.range,
                  fmt::format("expected an indented block after `{}`", header));
      return true;
    }
    if (too_deep()) {
      advance();
      return false;
    }
    uint32_t inner = lexer_.indentation_at(token_.range.end);
    advance();
    while (token_.kind != Tok::dedent && token_.kind != Tok::end && !errors_.full())
      statement(out, std::max(inner, column + 1));
    if (token_.kind == Tok::dedent) advance();
    body = keep(out);
    return true;
  }

  const Stmt* for_statement(uint32_t begin, uint32_t column) {
    advance();
    const Expr* target = for_target();
    if (!target || !is_target(target) || !expect(Tok::kw_in, "`in`")) return nullptr;
    const Expr* iterable = expression_list();
    if (!iterable) return nullptr;
    For s{{StmtKind::kFor, {begin, last_end_}}, target, iterable, {}};
    if (!block(s.body, "for", column)) return nullptr;
    return make(s);
  }
  /// Targets are parsed without comparisons: `in` ends them.
  const Expr* for_target() {
    uint32_t begin = token_.range.begin;
    const Expr* first = postfix();
    if (!first || token_.kind != Tok::comma) return first;
    std::vector<const Expr*> items{first};
    while (accept(Tok::comma)) {
      if (token_.kind == Tok::kw_in) break;
      const Expr* next = postfix();
      if (!next) return nullptr;
      items.push_back(next);
    }
    return make(Tuple{{ExprKind::kTuple, {begin, last_end_}}, keep(items)});
  }

  const Stmt* while_statement(uint32_t begin, uint32_t column) {
    advance();
    const Expr* condition = expression();
    if (!condition) return nullptr;
    While s{{StmtKind::kWhile, {begin, last_end_}}, condition, {}};
    if (!block(s.body, "while", column)) return nullptr;
    return make(s);
  }

  const Stmt* if_statement(uint32_t begin, uint32_t column) {
    Level level(depth_);
    if (too_deep()) return nullptr;
    bool is_elif = token_.kind == Tok::kw_elif;
    advance();
    const Expr* condition = expression();
    if (!condition) return nullptr;
    If s{{StmtKind::kIf, {begin, last_end_}}, condition, {}, {}};
    if (!block(s.body, is_elif ? "elif" : "if", column)) return nullptr;
    if (token_.kind == Tok::kw_elif) {
      const Stmt* rest = if_statement(token_.range.begin, column);
      if (!rest) return nullptr;
      s.orelse = keep(std::vector<const Stmt*>{rest});
    } else if (accept(Tok::kw_else)) {
      if (!block(s.orelse, "else", column)) return nullptr;
    }
    return make(s);
  }

  const Stmt* with_statement(uint32_t begin, uint32_t column) {
    advance();
    std::vector<WithItem> items;
    do {
      WithItem item{expression(), nullptr};
      if (!item.context) return nullptr;
      if (accept(Tok::kw_as)) {
        item.target = postfix();
        if (!item.target || !is_target(item.target)) return nullptr;
      }
      items.push_back(item);
    } while (accept(Tok::comma));
    With s{{StmtKind::kWith, {begin, last_end_}}, keep(items), {}};
    if (!block(s.body, "with", column)) return nullptr;
    return make(s);
  }

  const Stmt* definition(uint32_t column) {
    std::vector<const Expr*> decorators;
    while (accept(Tok::at)) {
      const Expr* e = expression();
      if (!e || !expect(Tok::newline, "the end of the line")) return nullptr;
      decorators.push_back(e);
    }
    uint32_t begin = token_.range.begin;
    if (token_.kind == Tok::kw_class) return class_definition(begin, column, keep(decorators));
    if (token_.kind == Tok::kw_def) return function_definition(begin, column, keep(decorators));
    return unexpected("`def` or `class` after the decorator");
  }

  const Stmt* class_definition(uint32_t begin, uint32_t column, Exprs decorators) {
    advance();
    ClassDef s{};
    s.decorators = decorators;
    s.name = text();
    s.name_range = token_.range;
    if (!expect(Tok::name, "a class name")) return nullptr;
    if (token_.kind == Tok::lparen) {
      const Call* bases = as<Call>(call(nullptr, token_.range.begin));
      if (!bases) return nullptr;
      s.bases = bases->args;
    }
    s.range = {begin, last_end_};
    if (!block(s.body, "class", column)) return nullptr;
    return make(s);
  }

  bool parameter_list(Tok close, std::vector<Parameter>& out) {
    advance();
    while (token_.kind != close) {
      Parameter p{};
      p.starred = accept(Tok::star) || accept(Tok::star_star);
      if (p.starred && token_.kind == Tok::comma) {  // keyword-only marker
        advance();
        continue;
      }
      p.name = text();
      p.range = token_.range;
      if (!expect(Tok::name, "a parameter name")) return false;
      if (accept(Tok::colon) && !(p.annotation = expression())) return false;
      if (accept(Tok::equal) && !(p.default_value = expression())) return false;
      out.push_back(p);
      if (!accept(Tok::comma)) break;
    }
    return expect(close, close == Tok::rparen ? "`,` or `)`" : "`,` or `]`");
  }

  const Stmt* function_definition(uint32_t begin, uint32_t column, Exprs decorators) {
    advance();
    FunctionDef s{};
    s.decorators = decorators;
    s.name = text();
    s.name_range = token_.range;
    if (!expect(Tok::name, "a function name")) return nullptr;
    std::vector<Parameter> types, params;
    if (token_.kind == Tok::lbracket && !parameter_list(Tok::rbracket, types)) return nullptr;
    if (token_.kind != Tok::lparen) return unexpected("`(`");
    if (!parameter_list(Tok::rparen, params)) return nullptr;
    s.type_params = keep(types);
    s.params = keep(params);
    if (accept(Tok::arrow) && !(s.returns = expression())) return nullptr;
    s.range = {begin, last_end_};
    if (!block(s.body, "def", column)) return nullptr;
    return make(s);
  }
};

}  // namespace

Tree parse_module(std::string text, std::string file) {
  Tree tree;
  tree.source = std::make_shared<SourceText>(std::move(text), std::move(file));
  tree.arena = std::make_unique<std::pmr::monotonic_buffer_resource>(4 * tree.source->text().size() + 1024);
  Parser parser(tree.source, tree.arena.get());
  tree.body = parser.module();
  tree.errors = parser.errors();
  return tree;
}

Tree parse_expression(std::string text, std::string file) {
  Tree tree;
  tree.source = std::make_shared<SourceText>(std::move(text), std::move(file));
  tree.arena = std::make_unique<std::pmr::monotonic_buffer_resource>();
  Parser parser(tree.source, tree.arena.get());
  tree.expression = parser.whole_expression();
  tree.errors = parser.errors();
  return tree;
}

std::string_view spelling(Op op) {
  static constexpr std::array<std::string_view, 29> kSpellings{"+",  "-",  "*",  "/",  "//",     "%",  "**",     "@",
                                                               "&",  "|",  "^",  "<<", ">>",     "<",  "<=",     ">",
                                                               ">=", "==", "!=", "in", "not in", "is", "is not", "and",
                                                               "or", "-",  "+",  "~",  "not"};
  return kSpellings[static_cast<size_t>(op)];
}

std::string dotted_name(const Expr* e) {
  size_t size = 0;
  const Expr* root = e;
  for (const Attribute* a = as<Attribute>(root); a; a = as<Attribute>(root)) {
    size += a->name.size() + 1;
    root = a->value;
  }
  const Name* name = as<Name>(root);
  if (!name) return "";
  std::string out(name->id.size() + size, '.');
  name->id.copy(out.data(), name->id.size());
  size_t end = out.size();
  for (const Attribute* a = as<Attribute>(e); a; a = as<Attribute>(a->value)) {
    end -= a->name.size();
    a->name.copy(out.data() + end, a->name.size());
    --end;
  }
  return out;
}

std::string_view describe(const Expr* e) {
  switch (e->kind) {
    case ExprKind::kName:
      return "a name";
    case ExprKind::kInteger:
      return "an integer";
    case ExprKind::kFloating:
      return "a float";
    case ExprKind::kString:
      return "a string";
    case ExprKind::kConstant:
      return as<Constant>(e)->value == ConstantKind::none ? "None" : "a constant";
    case ExprKind::kAttribute:
      return "an attribute";
    case ExprKind::kSubscript:
      return "a subscript";
    case ExprKind::kSlice:
      return "a slice";
    case ExprKind::kCall:
      return "a call";
    case ExprKind::kTuple:
      return "a tuple";
    case ExprKind::kList:
      return "a list";
    case ExprKind::kDict:
      return "a dict";
    case ExprKind::kLambda:
      return "a lambda";
    case ExprKind::kUnary:
    case ExprKind::kBinary:
      return "an operation";
    case ExprKind::kCompare:
      return "a comparison";
    case ExprKind::kConditional:
      return "a conditional expression";
    case ExprKind::kStarred:
      return "a starred expression";
  }
  return "an expression";
}

}  // namespace tilewright::py
