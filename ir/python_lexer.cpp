#include "ir/python_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "ir/text_codes.h"

namespace tilewright::py {

namespace {

using Keyword = std::pair<std::string_view, Tok>;
constexpr std::array kKeywords{
    Keyword{"False", Tok::kw_false},
    Keyword{"None", Tok::kw_none},
    Keyword{"True", Tok::kw_true},
    Keyword{"and", Tok::kw_and},
    Keyword{"as", Tok::kw_as},
    Keyword{"assert", Tok::kw_assert},
    Keyword{"async", Tok::kw_other},
    Keyword{"await", Tok::kw_other},
    Keyword{"break", Tok::kw_break},
    Keyword{"class", Tok::kw_class},
    Keyword{"continue", Tok::kw_continue},
    Keyword{"def", Tok::kw_def},
    Keyword{"del", Tok::kw_other},
    Keyword{"elif", Tok::kw_elif},
    Keyword{"else", Tok::kw_else},
    Keyword{"except", Tok::kw_other},
    Keyword{"finally", Tok::kw_other},
    Keyword{"for", Tok::kw_for},
    Keyword{"from", Tok::kw_from},
    Keyword{"global", Tok::kw_other},
    Keyword{"if", Tok::kw_if},
    Keyword{"import", Tok::kw_import},
    Keyword{"in", Tok::kw_in},
    Keyword{"is", Tok::kw_is},
    Keyword{"lambda", Tok::kw_lambda},
    Keyword{"nonlocal", Tok::kw_other},
    Keyword{"not", Tok::kw_not},
    Keyword{"or", Tok::kw_or},
    Keyword{"pass", Tok::kw_pass},
    Keyword{"raise", Tok::kw_other},
    Keyword{"return", Tok::kw_return},
    Keyword{"try", Tok::kw_other},
    Keyword{"while", Tok::kw_while},
    Keyword{"with", Tok::kw_with},
    Keyword{"yield", Tok::kw_other},
};
static_assert(std::ranges::is_sorted(kKeywords, {}, &Keyword::first));

// Longest first within one first character.
using Punctuation = std::pair<std::string_view, Tok>;
constexpr std::array kPunctuation{
    Punctuation{"...", Tok::ellipsis},   Punctuation{"**", Tok::star_star}, Punctuation{"//", Tok::slash_slash},
    Punctuation{"<<", Tok::shl},         Punctuation{">>", Tok::shr},       Punctuation{"->", Tok::arrow},
    Punctuation{":=", Tok::colon_equal}, Punctuation{"<=", Tok::le},        Punctuation{">=", Tok::ge},
    Punctuation{"==", Tok::eq},          Punctuation{"!=", Tok::ne},        Punctuation{"(", Tok::lparen},
    Punctuation{")", Tok::rparen},       Punctuation{",", Tok::comma},      Punctuation{".", Tok::dot},
    Punctuation{":", Tok::colon},        Punctuation{"=", Tok::equal},      Punctuation{"[", Tok::lbracket},
    Punctuation{"]", Tok::rbracket},     Punctuation{"+", Tok::plus},       Punctuation{"-", Tok::minus},
    Punctuation{"*", Tok::star},         Punctuation{"/", Tok::slash},      Punctuation{"%", Tok::percent},
    Punctuation{"<", Tok::lt},           Punctuation{">", Tok::gt},         Punctuation{"{", Tok::lbrace},
    Punctuation{"}", Tok::rbrace},       Punctuation{"&", Tok::amp},        Punctuation{"|", Tok::bar},
    Punctuation{"^", Tok::caret},        Punctuation{"~", Tok::tilde},      Punctuation{"@", Tok::at},
    Punctuation{";", Tok::semicolon},
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool takes_equal_sign(Tok t) { return t >= Tok::plus && t <= Tok::shr && t != Tok::tilde; }

}  // namespace

Lexer::Lexer(SourceRef source, ErrorList& errors)
    : source_(std::move(source)), text_(source_->text()), errors_(errors) {
  if (text_.starts_with("\xEF\xBB\xBF")) pos_ = 3;  // byte order mark
}

Token Lexer::fail(const RefusalCode& code, TextRange where, std::string message) {
  errors_.add(code, where, std::move(message));
  return {Tok::error, Tok::end, where};
}

TextRange Lexer::open_bracket() const {
  if (brackets_.empty()) return {};
  return {brackets_.back(), brackets_.back() + 1};
}

uint32_t Lexer::indentation_at(uint32_t offset) const {
  size_t line = offset == 0 ? 0 : text_.rfind('\n', offset - 1);
  line = line == std::string_view::npos || offset == 0 ? 0 : line + 1;
  size_t end = line;
  while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t')) ++end;
  return static_cast<uint32_t>(end - line);
}

bool Lexer::first_on_line(uint32_t offset) const {
  while (offset > 0 && (text_[offset - 1] == ' ' || text_[offset - 1] == '\t')) --offset;
  return offset == 0 || text_[offset - 1] == '\n';
}

void Lexer::recover(uint32_t offset, uint32_t column) {
  brackets_.clear();
  size_t line = offset;
  if (first_on_line(offset)) {
    line -= std::min<size_t>(indentation_at(offset), offset);
  } else {
    size_t end = text_.find('\n', offset);
    line = end == std::string_view::npos ? text_.size() : end + 1;
  }
  while (line < text_.size()) {
    size_t at = line;
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\t')) ++at;
    bool blank = at >= text_.size() || text_[at] == '\n' || text_[at] == '\r' || text_[at] == '#';
    if (!blank && at - line <= column && std::string_view(")]}").find(text_[at]) == std::string_view::npos) break;
    size_t end = text_.find('\n', at);
    line = end == std::string_view::npos ? text_.size() : end + 1;
  }
  pos_ = static_cast<uint32_t>(line);
  line_start_ = true;
  line_used_ = false;
  pending_newline_ = true;
}

bool Lexer::start_line(Token& out) {
  for (;;) {  // skip blank lines and comments
    uint32_t begin = pos_;
    bool tab = false;
    while (peek() == ' ' || peek() == '\t' || peek() == '\f') {
      tab |= peek() == '\t';
      ++pos_;
    }
    if (peek() == '#')
      while (pos_ < text_.size() && peek() != '\n') ++pos_;
    if (peek() == '\r') ++pos_;
    if (peek() == '\n') {
      ++pos_;
      continue;
    }
    line_start_ = false;
    if (pos_ >= text_.size()) {
      pending_dedents_ = static_cast<uint32_t>(indents_.size() - 1);
      indents_.resize(1);
      return false;
    }
    uint32_t width = pos_ - begin;
    if (tab && !std::exchange(tab_reported_, true))
      errors_.add(text_code::tab_in_indentation, {begin, pos_}, "expected spaces, found a tab in the indentation");
    if (width > indents_.back()) {
      indents_.push_back(width);
      out = {Tok::indent, Tok::end, {begin, pos_}};
      return true;
    }
    while (width < indents_.back()) {
      indents_.pop_back();
      ++pending_dedents_;
    }
    if (width != indents_.back()) {
      if (!tab)
        errors_.add(text_code::bad_indentation, {begin, pos_},
                    fmt::format("expected an indentation of {} spaces, found {}", indents_.back(), width));
      indents_.push_back(width);  // go on as if the line belonged to the block that it nearly reaches
      --pending_dedents_;
    }
    return false;
  }
}

Token Lexer::next() {
  if (pending_newline_) {
    pending_newline_ = false;
    return make(Tok::newline, pos_);
  }
  Token out;
  if (line_start_ && start_line(out)) return out;
  if (pending_dedents_ > 0) {
    --pending_dedents_;
    return make(Tok::dedent, pos_);
  }
  for (;;) {
    char c = peek();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++pos_;
    } else if (c == '#') {
      while (pos_ < text_.size() && peek() != '\n') ++pos_;
    } else if (c == '\\' && (peek(1) == '\n' || (peek(1) == '\r' && peek(2) == '\n'))) {
      pos_ += peek(1) == '\n' ? 2 : 3;
    } else if (c == '\n' && !brackets_.empty()) {
      ++pos_;
    } else {
      break;
    }
  }
  uint32_t begin = pos_;
  if (pos_ >= text_.size()) {
    brackets_.clear();
    // A last line without line end still ends; then start_line closes the blocks.
    if (!line_used_) return make(Tok::end, begin);
    line_used_ = false;
    line_start_ = true;
    return make(Tok::newline, begin);
  }
  char c = peek();
  if (c == '\n') {
    ++pos_;
    line_start_ = true;
    line_used_ = false;
    return {Tok::newline, Tok::end, {begin, begin + 1}};
  }
  line_used_ = true;
  if (is_letter(c) || (static_cast<unsigned char>(c) & 0x80)) return word();
  if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
  if (c == '"' || c == '\'') return string(begin);
  return punctuation();
}

Token Lexer::word() {
  uint32_t begin = pos_;
  while (is_word(peek()) || (static_cast<unsigned char>(peek()) & 0x80)) ++pos_;
  std::string_view text = text_.substr(begin, pos_ - begin);
  char quote = peek();
  if ((quote == '"' || quote == '\'') && text.size() <= 2) {
    bool known = std::ranges::all_of(
        text, [](char c) { return std::string_view("rRbBuUfF").find(c) != std::string_view::npos; });
    if (known && std::ranges::any_of(text, [](char c) { return c == 'f' || c == 'F'; })) {
      string(begin);  // skipped whole, so that its inside is not read
      return fail(text_code::construct_not_supported, {begin, pos_}, "formatted strings are not read");
    }
    if (known) return string(begin);
  }
  if (text.size() <= 8) {
    auto it = std::ranges::lower_bound(kKeywords, text, {}, &Keyword::first);
    if (it != kKeywords.end() && it->first == text) return make(it->second, begin);
  }
  return make(Tok::name, begin);
}

Token Lexer::number() {
  uint32_t begin = pos_;
  bool floating = false;
  if (peek() == '0' && std::string_view("xXbBoO").find(peek(1)) != std::string_view::npos && peek(1) != '\0') {
    pos_ += 2;
    while (is_word(peek())) ++pos_;
    return make(Tok::integer, begin);
  }
  auto digits = [&] {
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) ++pos_;
  };
  digits();
  if (peek() == '.') {
    floating = true;
    ++pos_;
    digits();
  }
  bool sign = peek(1) == '+' || peek(1) == '-';
  if ((peek() == 'e' || peek() == 'E') && is_digit(peek(sign ? 2 : 1))) {
    floating = true;
    pos_ += sign ? 2 : 1;
    digits();
  }
  if (is_letter(peek())) {
    while (is_word(peek())) ++pos_;
    return fail(text_code::unexpected_token, {begin, pos_},
                fmt::format("expected a number, found `{}`", text_.substr(begin, pos_ - begin)));
  }
  return make(floating ? Tok::floating : Tok::integer, begin);
}

Token Lexer::string(uint32_t begin) {
  bool raw = text_.substr(begin, pos_ - begin).find_first_of("rR") != std::string_view::npos;
  char quote = peek();
  bool triple = peek(1) == quote && peek(2) == quote;
  uint32_t open = pos_;
  pos_ += triple ? 3 : 1;
  while (pos_ < text_.size()) {
    char c = peek();
    if (c == '\\' && pos_ + 1 < text_.size() && (triple || peek(1) != '\n' || !raw)) {
      pos_ += 2;
    } else if (c == '\n' && !triple) {
      break;
    } else if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) {
      pos_ += triple ? 3 : 1;
      return make(Tok::string, begin);
    } else {
      ++pos_;
    }
  }
  return fail(text_code::unterminated_string, {begin, pos_},
              fmt::format("this string has no closing {}", text_.substr(open, triple ? 3 : 1)));
}

Token Lexer::punctuation() {
  uint32_t begin = pos_;
  std::string_view rest = text_.substr(pos_, 4);
  for (const auto& [text, kind] : kPunctuation) {
    if (!rest.starts_with(text)) continue;
    pos_ += static_cast<uint32_t>(text.size());
    if (peek() == '=' && (takes_equal_sign(kind) || kind == Tok::at)) {
      ++pos_;
      return {Tok::augmented, kind, {begin, pos_}};
    }
    if (kind == Tok::lparen || kind == Tok::lbracket || kind == Tok::lbrace) brackets_.push_back(begin);
    if ((kind == Tok::rparen || kind == Tok::rbracket || kind == Tok::rbrace) && !brackets_.empty())
      brackets_.pop_back();
    return make(kind, begin);
  }
  ++pos_;
  while (pos_ < text_.size() && (static_cast<unsigned char>(peek()) & 0xC0) == 0x80) ++pos_;
  return fail(text_code::unexpected_token, {begin, pos_},
              fmt::format("unexpected character `{}`", text_.substr(begin, pos_ - begin)));
}

}  // namespace tilewright::py
