#include "ir/python_syntax.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "ir/python_lexer.h"
#include "ir/text_codes.h"

namespace tilewright::py {

namespace {

// Left-associative chains (a + b + c …) are long trees without being nested text; passes recurse over them.
constexpr int kChainLimit = 1000;

struct Operator {
  Op op;
  int precedence;  // 0: not a binary operator
};
Operator binary_operator(Tok t) {
  switch (t) {
    case Tok::bar:
      return {Op::bit_or, 1};
    case Tok::caret:
      return {Op::bit_xor, 2};
    case Tok::amp:
      return {Op::bit_and, 3};
    case Tok::shl:
      return {Op::shift_left, 4};
    case Tok::shr:
      return {Op::shift_right, 4};
    case Tok::plus:
      return {Op::add, 5};
    case Tok::minus:
      return {Op::sub, 5};
    case Tok::star:
      return {Op::mul, 6};
    case Tok::slash:
      return {Op::div, 6};
    case Tok::slash_slash:
      return {Op::floor_div, 6};
    case Tok::percent:
      return {Op::mod, 6};
    case Tok::at:
      return {Op::mat_mul, 6};
    default:
      return {Op::add, 0};
  }
}

bool comparison(Tok t, Op& op) {
  switch (t) {
    case Tok::lt:
      op = Op::lt;
      return true;
    case Tok::le:
      op = Op::le;
      return true;
    case Tok::gt:
      op = Op::gt;
      return true;
    case Tok::ge:
      op = Op::ge;
      return true;
    case Tok::eq:
      op = Op::eq;
      return true;
    case Tok::ne:
      op = Op::ne;
      return true;
    case Tok::kw_in:
      op = Op::in;
      return true;
    case Tok::kw_is:
      op = Op::is;
      return true;
    default:
      return false;
  }
}

// A recursive-descent parser with one token of look-ahead. A function that met an error returns null after reporting
// it; the statement loop then goes on at the next line of the same indentation.
class Parser {
 public:
  Parser(SourceRef source, std::pmr::memory_resource* arena) : arena_(arena), errors_(source), lexer_(source, errors_) {
    advance();
  }

  Stmts module() {
    std::vector<const Stmt*> out;
    while (token_.kind != Tok::end && !errors_.full()) statement(out, 0);
    return keep(out);
  }

  const Expr* whole_expression() {
    if (token_.kind == Tok::indent) advance();
    const Expr* e = expression_list();
    if (e && token_.kind == Tok::newline) advance();
    while (e && token_.kind == Tok::dedent) advance();
    if (e && token_.kind != Tok::end) return unexpected("the end of the expression");
    return errors_.empty() ? e : nullptr;
  }

  std::vector<Diagnostic> errors() const { return errors_.sorted(); }

 private:
  // --- tokens
  // ---------------------------------------------------------------------------------------------------------

  void advance() {
    last_end_ = token_.range.end;
    token_ = lexer_.next();
  }
  bool accept(Tok t) {
    if (token_.kind != t) return false;
    advance();
    return true;
  }
  bool expect(Tok t, const char* what) {
    if (accept(t)) return true;
    unexpected(what);
    return false;
  }
  std::string_view text() const { return errors_.source().slice(token_.range); }

  std::nullptr_t unexpected(std::string_view expected) {
    if (token_.kind == Tok::error) return nullptr;  // the lexer told
    std::string found = token_.kind == Tok::end       ? "the end of the text"
                        : token_.kind == Tok::newline ? "the end of the line"
                        : token_.kind == Tok::indent  ? "an indented line"
                        : token_.kind == Tok::dedent  ? "the end of the block"
                                                      : fmt::format("`{}`", text());
    TextRange open = lexer_.open_bracket();
    Diagnostic& d =
        errors_.add(text_code::unexpected_token, token_.range, fmt::format("expected {}, found {}", expected, found));
    if (open.end != 0 && errors_.source().line(open.begin) != errors_.source().line(token_.range.begin))
      d.notes.push_back(errors_.note(fmt::format("this `{}` is still open", errors_.source().slice(open)), open));
    return nullptr;
  }
  std::nullptr_t not_supported(TextRange where, std::string message, std::string help = "") {
    errors_.add(text_code::construct_not_supported, where, std::move(message)).help = std::move(help);
    return nullptr;
  }

  // --- memory
  // ---------------------------------------------------------------------------------------------------------

  template <class Node>
  const Node* make(Node node) {
    node.kind = Node::kKind;
    return new (arena_->allocate(sizeof(Node), alignof(Node))) Node(node);
  }
  template <class T>
  std::span<const T> keep(const std::vector<T>& items) {
    if (items.empty()) return {};
    T* out = static_cast<T*>(arena_->allocate(items.size() * sizeof(T), alignof(T)));
    std::uninitialized_copy(items.begin(), items.end(), out);
    return {out, items.size()};
  }
  std::string_view keep(std::string_view text) {
    char* out = static_cast<char*>(arena_->allocate(text.size() + 1, 1));
    std::copy(text.begin(), text.end(), out);
    return {out, text.size()};
  }

  /// Counts one level of nesting for its lifetime.
  struct Level {
    explicit Level(int& depth) : depth_(depth) { ++depth_; }
    ~Level() { --depth_; }
    int& depth_;
  };
  bool too_deep() {
    if (depth_ <= kNestingLimit) return false;
    if (!std::exchange(too_deep_reported_, true))
      errors_.add(text_code::nesting_too_deep, token_.range,
                  fmt::format("expected at most {} levels of nesting, found more", kNestingLimit));
    return true;
  }

  // --- expressions
  // ------------------------------------------------------------------------------------------------------

  /// `a, b, …` without parentheses (a Tuple), or one expression. Items may be starred.
  const Expr* expression_list() {
    uint32_t begin = token_.range.begin;
    const Expr* first = item();
    if (!first || token_.kind != Tok::comma) return first;
    std::vector<const Expr*> items{first};
    while (accept(Tok::comma)) {
      if (ends_expression()) break;
      const Expr* next = item();
      if (!next) return nullptr;
      items.push_back(next);
    }
    return make(Tuple{{ExprKind::kTuple, {begin, last_end_}}, keep(items)});
  }
  bool ends_expression() const {
    switch (token_.kind) {
      case Tok::newline:
      case Tok::end:
      case Tok::rparen:
      case Tok::rbracket:
      case Tok::rbrace:
      case Tok::equal:
      case Tok::colon:
      case Tok::semicolon:
      case Tok::augmented:
        return true;
      default:
        return false;
    }
  }
  const Expr* item() {
    uint32_t begin = token_.range.begin;
    if (!accept(Tok::star)) return expression();
    const Expr* value = expression();
    if (!value) return nullptr;
    return make(Starred{{ExprKind::kStarred, {begin, last_end_}}, value});
  }

  const Expr* expression() {
    Level level(depth_);
    if (too_deep()) return nullptr;
    if (token_.kind == Tok::kw_lambda) return lambda();
    uint32_t begin = token_.range.begin;
    const Expr* value = disjunction();
    if (!value || token_.kind != Tok::kw_if) {
      if (value && token_.kind == Tok::kw_for && lexer_.open_bracket().end != 0)
        return not_supported(token_.range, "comprehensions are not read");
      if (value && token_.kind == Tok::colon_equal) return not_supported(token_.range, "`:=` is not read");
      return value;
    }
    advance();
    const Expr* condition = disjunction();
    if (!condition || !expect(Tok::kw_else, "`else`")) return nullptr;
    const Expr* other = expression();
    if (!other) return nullptr;
    return make(Conditional{{ExprKind::kConditional, {begin, last_end_}}, condition, value, other});
  }

  const Expr* lambda() {
    uint32_t begin = token_.range.begin;
    advance();
    std::vector<Parameter> params;
    while (token_.kind != Tok::colon) {
      Parameter p{};
      p.starred = accept(Tok::star);
      p.name = text();
      p.range = token_.range;
      if (!expect(Tok::name, "a parameter name")) return nullptr;
      if (accept(Tok::equal) && !(p.default_value = expression())) return nullptr;
      params.push_back(p);
      if (!accept(Tok::comma)) break;
    }
    if (!expect(Tok::colon, "`:`")) return nullptr;
    const Expr* body = expression();
    if (!body) return nullptr;
    return make(Lambda{{ExprKind::kLambda, {begin, last_end_}}, keep(params), body});
  }

  const Expr* disjunction() {
    return logical_chain(Tok::kw_or, Op::logical_or, [this] { return conjunction(); });
  }
  const Expr* conjunction() {
    return logical_chain(Tok::kw_and, Op::logical_and, [this] { return negation(); });
  }

  template <class Operand>
  const Expr* logical_chain(Tok tok, Op op, Operand&& operand) {
    uint32_t begin = token_.range.begin;
    const Expr* a = operand();
    for (int length = 0; a && token_.kind == tok; ++length) {
      if (chain_too_long(length)) return nullptr;
      advance();
      const Expr* b = operand();
      if (!b) return nullptr;
      a = make(Binary{{ExprKind::kBinary, {begin, last_end_}}, op, a, b});
    }
    return a;
  }
  bool chain_too_long(int length) {
    if (length < kChainLimit) return false;
    errors_.add(text_code::nesting_too_deep, token_.range,
                fmt::format("expected at most {} operators in a row, found more", kChainLimit));
    return true;
  }

  const Expr* negation() {
    if (token_.kind != Tok::kw_not) return compare();
    Level level(depth_);
    if (too_deep()) return nullptr;
    uint32_t begin = token_.range.begin;
    advance();
    const Expr* operand = negation();
    if (!operand) return nullptr;
    return make(Unary{{ExprKind::kUnary, {begin, last_end_}}, Op::logical_not, operand});
  }

  const Expr* compare() {
    uint32_t begin = token_.range.begin;
    const Expr* first = arithmetic(1);
    Op op{};
    bool negated = token_.kind == Tok::kw_not;  // only `not in` can follow an operand
    if (!first || (!negated && !comparison(token_.kind, op))) return first;
    std::vector<const Expr*> items{first};
    std::vector<Op> ops;
    while (token_.kind == Tok::kw_not || comparison(token_.kind, op)) {
      if (accept(Tok::kw_not)) {
        if (!expect(Tok::kw_in, "`in`")) return nullptr;
        op = Op::not_in;
      } else {
        advance();
        if (op == Op::is && accept(Tok::kw_not)) op = Op::is_not;
      }
      const Expr* next = arithmetic(1);
      if (!next) return nullptr;
      ops.push_back(op);
      items.push_back(next);
      if (chain_too_long(static_cast<int>(ops.size()))) return nullptr;
    }
    return make(Compare{{ExprKind::kCompare, {begin, last_end_}}, keep(items), keep(ops)});
  }

  const Expr* arithmetic(int precedence) {
    uint32_t begin = token_.range.begin;
    const Expr* a = unary();
    for (int length = 0; a; ++length) {
      Operator next = binary_operator(token_.kind);
      if (next.precedence < precedence || next.precedence == 0) return a;
      if (chain_too_long(length)) return nullptr;
      advance();
      const Expr* b = arithmetic(next.precedence + 1);
      if (!b) return nullptr;
      a = make(Binary{{ExprKind::kBinary, {begin, last_end_}}, next.op, a, b});
    }
    return nullptr;
  }

  const Expr* unary() {
    Op op = token_.kind == Tok::minus ? Op::negative : token_.kind == Tok::plus ? Op::positive : Op::invert;
    if (token_.kind != Tok::minus && token_.kind != Tok::plus && token_.kind != Tok::tilde) return power();
    Level level(depth_);
    if (too_deep()) return nullptr;
    uint32_t begin = token_.range.begin;
    advance();
    const Expr* operand = unary();
    if (!operand) return nullptr;
    return make(Unary{{ExprKind::kUnary, {begin, last_end_}}, op, operand});
  }

  const Expr* power() {
    uint32_t begin = token_.range.begin;
    const Expr* a = postfix();
    if (!a || token_.kind != Tok::star_star) return a;
    Level level(depth_);
    if (too_deep()) return nullptr;
    advance();
    const Expr* b = unary();
    if (!b) return nullptr;
    return make(Binary{{ExprKind::kBinary, {begin, last_end_}}, Op::pow, a, b});
  }

  const Expr* postfix() {
    uint32_t begin = token_.range.begin;
    const Expr* value = atom();
    for (int length = 0; value; ++length) {
      if (token_.kind != Tok::dot && token_.kind != Tok::lparen && token_.kind != Tok::lbracket) return value;
      if (length >= kNestingLimit) return chain_too_long(kChainLimit), nullptr;
      if (accept(Tok::dot)) {
        TextRange name = token_.range;
        std::string_view id = text();
        if (token_.kind < Tok::kw_and ||
            token_.kind > Tok::kw_other) {  // T.and and the like do not exist, but T.import_… may come
          if (!expect(Tok::name, "a name after `.`")) return nullptr;
        } else {
          advance();
        }
        value = make(Attribute{{ExprKind::kAttribute, {begin, last_end_}}, value, id, name});
      } else if (token_.kind == Tok::lparen) {
        value = call(value, begin);
      } else {
        advance();
        const Expr* index = subscript();
        if (!index || !expect(Tok::rbracket, "`]`")) return nullptr;
        value = make(Subscript{{ExprKind::kSubscript, {begin, last_end_}}, value, index});
      }
    }
    return nullptr;
  }

  const Expr* call(const Expr* function, uint32_t begin) {
    advance();
    std::vector<const Expr*> args;
    std::vector<Keyword> keywords;
    while (token_.kind != Tok::rparen) {
      TextRange at = token_.range;
      if (accept(Tok::star_star)) {
        const Expr* value = expression();
        if (!value) return nullptr;
        keywords.push_back({"", at, value});
      } else {
        const Expr* value = item();
        if (!value) return nullptr;
        const Name* name = as<Name>(value);
        if (name && accept(Tok::equal)) {
          value = expression();
          if (!value) return nullptr;
          keywords.push_back({name->id, name->range, value});
        } else if (!keywords.empty() && value->kind != ExprKind::kStarred) {
          errors_.add(text_code::unexpected_token, value->range,
                      "expected a keyword argument, found a positional one after keywords");
          return nullptr;
        } else {
          args.push_back(value);
        }
      }
      if (!accept(Tok::comma)) break;
    }
    if (!expect(Tok::rparen, "`,` or `)`")) return nullptr;
    return make(Call{{ExprKind::kCall, {begin, last_end_}}, function, keep(args), keep(keywords)});
  }

  const Expr* subscript() {
    uint32_t begin = token_.range.begin;
    std::vector<const Expr*> items;
    bool comma = false;
    while (token_.kind != Tok::rbracket) {
      const Expr* e = slice();
      if (!e) return nullptr;
      items.push_back(e);
      if (!(comma = accept(Tok::comma))) break;
    }
    if (items.empty()) return unexpected("an index");
    if (items.size() == 1 && !comma) return items[0];
    return make(Tuple{{ExprKind::kTuple, {begin, last_end_}}, keep(items)});
  }
  const Expr* slice() {
    uint32_t begin = token_.range.begin;
    const Expr *lower = nullptr, *upper = nullptr, *step = nullptr;
    if (token_.kind != Tok::colon && !(lower = item())) return nullptr;
    if (token_.kind != Tok::colon) return lower;
    advance();
    auto part = [this](const Expr*& out) {
      if (token_.kind == Tok::colon || token_.kind == Tok::comma || token_.kind == Tok::rbracket) return true;
      out = expression();
      return out != nullptr;
    };
    if (!part(upper)) return nullptr;
    if (accept(Tok::colon) && !part(step)) return nullptr;
    return make(Slice{{ExprKind::kSlice, {begin, last_end_}}, lower, upper, step});
  }

  const Expr* atom() {
    TextRange at = token_.range;
    switch (token_.kind) {
      case Tok::name: {
        std::string_view id = text();
        advance();
        return make(Name{{ExprKind::kName, at}, id});
      }
      case Tok::integer:
        return integer();
      case Tok::floating:
        return floating();
      case Tok::string:
        return string();
      case Tok::kw_none:
        advance();
        return make(Constant{{ExprKind::kConstant, at}, ConstantKind::none});
      case Tok::kw_true:
        advance();
        return make(Constant{{ExprKind::kConstant, at}, ConstantKind::true_});
      case Tok::kw_false:
        advance();
        return make(Constant{{ExprKind::kConstant, at}, ConstantKind::false_});
      case Tok::ellipsis:
        advance();
        return make(Constant{{ExprKind::kConstant, at}, ConstantKind::ellipsis});
      case Tok::lparen:
        return parenthesised();
      case Tok::lbracket:
        return list();
      case Tok::lbrace:
        return dict();
      case Tok::kw_other:
        return not_supported(at, fmt::format("`{}` is not read", text()));
      default:
        return unexpected("an expression");
    }
  }

  const Expr* integer() {
    TextRange at = token_.range;
    std::string digits;
    for (char c : text())
      if (c != '_') digits += c;
    int base = 10;
    size_t skip = 0;
    if (digits.size() > 2 && digits[0] == '0') {
      char c = digits[1];
      base = c == 'x' || c == 'X' ? 16 : c == 'o' || c == 'O' ? 8 : c == 'b' || c == 'B' ? 2 : 10;
      skip = base == 10 ? 0 : 2;
    }
    uint64_t value = 0;
    auto [end, error] = std::from_chars(digits.data() + skip, digits.data() + digits.size(), value, base);
    if (error == std::errc::result_out_of_range) {
      errors_.add(text_code::literal_out_of_range, at,
                  fmt::format("expected an integer below 2**64, found {}", digits));
      return nullptr;
    }
    if (error != std::errc{} || end != digits.data() + digits.size()) return unexpected("a number");
    advance();
    return make(Integer{{ExprKind::kInteger, at}, value});
  }

  const Expr* floating() {
    TextRange at = token_.range;
    std::string digits;
    for (char c : text())
      if (c != '_') digits += c;
    double value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range) {
      errors_.add(text_code::literal_out_of_range, at,
                  fmt::format("expected a number in the range of float64, found {}", digits));
      return nullptr;
    }
    if (error != std::errc{} || end != digits.data() + digits.size()) return unexpected("a number");
    advance();
    return make(Floating{{ExprKind::kFloating, at}, value});
  }

  const Expr* string() {
    uint32_t begin = token_.range.begin;
    std::string value;
    while (token_.kind == Tok::string) {
      if (!decode(token_.range, value)) return nullptr;
      advance();
    }
    return make(String{{ExprKind::kString, {begin, last_end_}}, keep(std::string_view(value))});
  }

  bool decode(TextRange range, std::string& out) {
    std::string_view s = errors_.source().slice(range);
    size_t quote = s.find_first_of("\"'");
    std::string_view prefix = s.substr(0, quote);
    bool raw = prefix.find_first_of("rR") != std::string_view::npos;
    s.remove_prefix(quote);
    size_t width = s.size() >= 6 && s[1] == s[0] && s[2] == s[0] ? 3 : 1;
    s = s.substr(width, s.size() - 2 * width);
    for (size_t i = 0; i < s.size(); ++i) {
      if (s[i] != '\\' || raw || i + 1 >= s.size()) {
        if (s[i] != '\r') out += s[i];
        continue;
      }
      char c = s[++i];
      constexpr std::string_view kEscapes = "n\nt\tr\r\\\\'\'\"\"a\ab\bf\fv\v";
      size_t known = std::string_view::npos;
      for (size_t k = 0; k < kEscapes.size(); k += 2)
        if (kEscapes[k] == c) known = k;
      if (c == '\n') continue;
      if (known != std::string_view::npos) {
        out += kEscapes[known + 1];
      } else if (c == 'x' || c == 'u' || c == 'U') {
        size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
        if (!append_code_point(s.substr(i + 1, digits), digits, out)) {
          errors_.add(text_code::unexpected_token, range,
                      fmt::format("expected {} hexadecimal digits of a character after `\\{}`", digits, c));
          return false;
        }
        i += digits;
      } else if (c >= '0' && c <= '7') {
        unsigned value = 0;
        size_t end = std::min(i + 3, s.size());
        for (; i < end && s[i] >= '0' && s[i] <= '7'; ++i) value = value * 8 + static_cast<unsigned>(s[i] - '0');
        --i;
        append_utf8(value, out);
      } else {
        (out += '\\') += c;  // as Python keeps unknown escapes
      }
    }
    return true;
  }
  static bool append_code_point(std::string_view digits, size_t expected, std::string& out) {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != expected || error != std::errc{} || end != digits.data() + digits.size() || value > 0x10FFFF)
      return false;
    append_utf8(value, out);
    return true;
  }
  static void append_utf8(uint32_t c, std::string& out) {
    auto byte = [&](uint32_t b) { out += static_cast<char>(b); };
    if (c < 0x80) return byte(c);
    if (c < 0x800) return byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F));
    if (c < 0x10000) return byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
    byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
  }

  const Expr* parenthesised() {
    uint32_t begin = token_.range.begin;
    advance();
    if (accept(Tok::rparen)) return make(Tuple{{ExprKind::kTuple, {begin, last_end_}}, {}});
    const Expr* inside = expression_list();
    if (!inside || !expect(Tok::rparen, "`,` or `)`")) return nullptr;
    if (const Tuple* tuple = as<Tuple>(inside); tuple && inside->range.begin > begin) {
      // `(a, b)`: the tuple's range covers its parentheses. A nested tuple keeps its own.
      Tuple whole = *tuple;
      whole.range = {begin, last_end_};
      return make(whole);
    }
    return inside;
  }

  const Expr* list() {
    uint32_t begin = token_.range.begin;
    advance();
    std::vector<const Expr*> items;
    while (token_.kind != Tok::rbracket) {
      const Expr* e = item();
      if (!e) return nullptr;
      items.push_back(e);
      if (!accept(Tok::comma)) break;
    }
    if (!expect(Tok::rbracket, "`,` or `]`")) return nullptr;
    return make(List{{ExprKind::kList, {begin, last_end_}}, keep(items)});
  }

  const Expr* dict() {
    uint32_t begin = token_.range.begin;
    advance();
    std::vector<const Expr*> keys, values;
    while (token_.kind != Tok::rbrace) {
      const Expr* key = expression();
      if (!key) return nullptr;
      if (!expect(Tok::colon, "`:` after the key of a dict")) return nullptr;
      const Expr* value = expression();
      if (!value) return nullptr;
      keys.push_back(key);
      values.push_back(value);
      if (!accept(Tok::comma)) break;
    }
    if (!expect(Tok::rbrace, "`,` or `}`")) return nullptr;
    return make(Dict{{ExprKind::kDict, {begin, last_end_}}, keep(keys), keep(values)});
  }

  // --- statements
  // -------------------------------------------------------------------------------------------------------

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

  std::pmr::memory_resource* arena_;
  ErrorList errors_;
  Lexer lexer_;
  Token token_;
  uint32_t last_end_ = 0;
  int depth_ = 0;
  bool too_deep_reported_ = false;
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
  if (const Name* n = as<Name>(e)) return std::string(n->id);
  const Attribute* a = as<Attribute>(e);
  if (!a) return "";
  std::string head = dotted_name(a->value);
  return head.empty() ? "" : fmt::format("{}.{}", head, a->name);
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
