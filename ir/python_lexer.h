// Tokens of Python text, one at a time. Private to ir/python_syntax.cpp: everybody else reads the tree
// (python_syntax.h).
#pragma once

#include <vector>

#include "ir/source.h"

namespace tilewright::py {

enum class Tok : uint8_t {
  end,
  newline,
  indent,
  dedent,
  error,
  name,
  integer,
  floating,
  string,
  // keywords
  kw_and,
  kw_as,
  kw_assert,
  kw_break,
  kw_class,
  kw_continue,
  kw_def,
  kw_elif,
  kw_else,
  kw_false,
  kw_for,
  kw_from,
  kw_if,
  kw_import,
  kw_in,
  kw_is,
  kw_lambda,
  kw_none,
  kw_not,
  kw_or,
  kw_pass,
  kw_return,
  kw_true,
  kw_while,
  kw_with,
  kw_other,  ///< a keyword of Python that is not read (try, async, …)
  // punctuation
  lparen,
  rparen,
  lbracket,
  rbracket,
  lbrace,
  rbrace,
  comma,
  colon,
  semicolon,
  dot,
  arrow,
  at,
  equal,
  ellipsis,
  colon_equal,
  plus,
  minus,
  star,
  star_star,
  slash,
  slash_slash,
  percent,
  amp,
  bar,
  caret,
  tilde,
  shl,
  shr,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  // augmented assignment: the operator's token is kept in Token::op
  augmented,
};

struct Token {
  Tok kind = Tok::end;
  Tok op = Tok::end;  ///< of augmented: plus for `+=`, …
  TextRange range;
};

class Lexer {
 public:
  Lexer(SourceRef source, ErrorList& errors);
  /// The next token. `indent` and `dedent` come between lines as in Python; inside brackets line ends do not count.
  /// An `error` token was already reported.
  Token next();
  /// Goes to the first line after `offset` (or at it, when a line starts there) that is not indented deeper than
  /// `column` spaces and does not start with a closing bracket; brackets are forgotten. next() gives newline, then
  /// dedents as needed.
  void recover(uint32_t offset, uint32_t column);
  /// Indentation of the line that holds the offset.
  uint32_t indentation_at(uint32_t offset) const;
  bool first_on_line(uint32_t offset) const;
  /// Where the innermost open bracket is; an empty range outside brackets.
  TextRange open_bracket() const;

 private:
  Token make(Tok kind, uint32_t begin) const { return {kind, Tok::end, {begin, pos_}}; }
  Token fail(const RefusalCode&, TextRange, std::string message);
  char peek(uint32_t ahead = 0) const { return pos_ + ahead < text_.size() ? text_[pos_ + ahead] : '\0'; }
  bool start_line(Token& out);  ///< measures the indentation of a new logical line; true: `out` is the token to return
  Token word();
  Token number();
  Token string(uint32_t begin);
  Token punctuation();

  SourceRef source_;
  std::string_view text_;
  ErrorList& errors_;
  uint32_t pos_ = 0;
  bool line_start_ = true;  ///< the next token is the first of a logical line
  bool line_used_ = false;  ///< the current line had a token
  bool pending_newline_ = false;
  bool tab_reported_ = false;
  uint32_t pending_dedents_ = 0;
  std::vector<uint32_t> indents_{0};
  std::vector<uint32_t> brackets_;  ///< offsets of open brackets
};

}  // namespace tilewright::py
