// The recursive-descent parser of Python text: tokens, nodes and expressions; ir/python_syntax.cpp adds statements.
// Private to ir/python_*.cpp.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "ir/python_lexer.h"
#include "ir/python_syntax.h"
#include "ir/text_codes.h"

namespace tilewright::py {

// Left-associative chains (a + b + c …) are long trees without being nested text; passes recurse over them.
inline constexpr int kChainLimit = 1000;

struct Operator {
  Op op;
  int precedence;  ///< 0: not a binary operator
};
Operator binary_operator(Tok);

// A function that met an error returns null after reporting it; the statement loop then goes on at the next line of the
// same indentation.
class ExprParser {
 public:
  ExprParser(SourceRef source, std::pmr::memory_resource* arena)
      : arena_(arena), errors_(source), lexer_(source, errors_) {
    advance();
  }

  const Expr* whole_expression();
  std::vector<Diagnostic> errors() const { return errors_.sorted(); }

 protected:
  // --- tokens

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

  /// `a, b, …` without parentheses (a Tuple), or one expression. Items may be starred.
  const Expr* expression_list();
  bool ends_expression() const;
  const Expr* item();
  const Expr* expression();
  const Expr* lambda();
  const Expr* disjunction();
  const Expr* conjunction();
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
  bool chain_too_long(int length);
  const Expr* negation();
  const Expr* compare();
  const Expr* arithmetic(int precedence);
  const Expr* unary();
  const Expr* power();
  const Expr* postfix();
  const Expr* call(const Expr* function, uint32_t begin);
  const Expr* subscript();
  const Expr* slice();
  const Expr* atom();
  const Expr* integer();
  const Expr* floating();
  const Expr* string();
  bool decode(TextRange range, std::string& out);
  static bool append_code_point(std::string_view digits, size_t expected, std::string& out);
  static void append_utf8(uint32_t c, std::string& out);
  const Expr* parenthesised();
  const Expr* list();
  const Expr* dict();

  std::pmr::memory_resource* arena_;
  ErrorList errors_;
  Lexer lexer_;
  Token token_;
  uint32_t last_end_ = 0;
  int depth_ = 0;
  bool too_deep_reported_ = false;
};

}  // namespace tilewright::py
