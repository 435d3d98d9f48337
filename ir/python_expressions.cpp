#include <charconv>
#include <string>

#include "ir/python_parser.h"

namespace tilewright::py {

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

namespace {

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

}  // namespace

const Expr* ExprParser::whole_expression() {
  if (token_.kind == Tok::indent) advance();
  const Expr* e = expression_list();
  if (e && token_.kind == Tok::newline) advance();
  while (e && token_.kind == Tok::dedent) advance();
  if (e && token_.kind != Tok::end) return unexpected("the end of the expression");
  return errors_.empty() ? e : nullptr;
}

const Expr* ExprParser::expression_list() {
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

bool ExprParser::ends_expression() const {
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

const Expr* ExprParser::item() {
  uint32_t begin = token_.range.begin;
  if (!accept(Tok::star)) return expression();
  const Expr* value = expression();
  if (!value) return nullptr;
  return make(Starred{{ExprKind::kStarred, {begin, last_end_}}, value});
}

const Expr* ExprParser::expression() {
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

const Expr* ExprParser::lambda() {
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

const Expr* ExprParser::disjunction() {
  return logical_chain(Tok::kw_or, Op::logical_or, [this] { return conjunction(); });
}

const Expr* ExprParser::conjunction() {
  return logical_chain(Tok::kw_and, Op::logical_and, [this] { return negation(); });
}

bool ExprParser::chain_too_long(int length) {
  if (length < kChainLimit) return false;
  errors_.add(text_code::nesting_too_deep, token_.range,
              fmt::format("expected at most {} operators in a row, found more", kChainLimit));
  return true;
}

const Expr* ExprParser::negation() {
  if (token_.kind != Tok::kw_not) return compare();
  Level level(depth_);
  if (too_deep()) return nullptr;
  uint32_t begin = token_.range.begin;
  advance();
  const Expr* operand = negation();
  if (!operand) return nullptr;
  return make(Unary{{ExprKind::kUnary, {begin, last_end_}}, Op::logical_not, operand});
}

const Expr* ExprParser::compare() {
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

const Expr* ExprParser::arithmetic(int precedence) {
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

const Expr* ExprParser::unary() {
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

const Expr* ExprParser::power() {
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

const Expr* ExprParser::postfix() {
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

const Expr* ExprParser::call(const Expr* function, uint32_t begin) {
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

const Expr* ExprParser::subscript() {
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

const Expr* ExprParser::slice() {
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

const Expr* ExprParser::atom() {
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

const Expr* ExprParser::integer() {
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
    errors_.add(text_code::literal_out_of_range, at, fmt::format("expected an integer below 2**64, found {}", digits));
    return nullptr;
  }
  if (error != std::errc{} || end != digits.data() + digits.size()) return unexpected("a number");
  advance();
  return make(Integer{{ExprKind::kInteger, at}, value});
}

const Expr* ExprParser::floating() {
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

const Expr* ExprParser::string() {
  uint32_t begin = token_.range.begin;
  std::string value;
  while (token_.kind == Tok::string) {
    if (!decode(token_.range, value)) return nullptr;
    advance();
  }
  return make(String{{ExprKind::kString, {begin, last_end_}}, keep(std::string_view(value))});
}

bool ExprParser::decode(TextRange range, std::string& out) {
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

bool ExprParser::append_code_point(std::string_view digits, size_t expected, std::string& out) {
  uint32_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.size() != expected || error != std::errc{} || end != digits.data() + digits.size() || value > 0x10FFFF)
    return false;
  append_utf8(value, out);
  return true;
}

void ExprParser::append_utf8(uint32_t c, std::string& out) {
  auto byte = [&](uint32_t b) { out += static_cast<char>(b); };
  if (c < 0x80) return byte(c);
  if (c < 0x800) return byte(0xC0 | (c >> 6)), byte(0x80 | (c & 0x3F));
  if (c < 0x10000) return byte(0xE0 | (c >> 12)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
  byte(0xF0 | (c >> 18)), byte(0x80 | ((c >> 12) & 0x3F)), byte(0x80 | ((c >> 6) & 0x3F)), byte(0x80 | (c & 0x3F));
}

const Expr* ExprParser::parenthesised() {
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

const Expr* ExprParser::list() {
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

const Expr* ExprParser::dict() {
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

}  // namespace tilewright::py
