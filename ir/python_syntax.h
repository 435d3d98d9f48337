// Python's syntax as far as programs, traces, schedule files and index maps use it: text → syntax tree with ranges. No
// meaning is attached here: program text is read from the tree by ir/parse.cpp, traces and schedule files by schedule/.
//
//   py::Tree tree = py::parse_module(text, "file.py");
//   for (const py::Stmt* s : tree.body) if (auto* a = py::as<py::Assign>(s)) …
//
// Not read: comprehensions, formatted strings, `:=`, `async`, `yield`, `try`, `match`, sets, `del`, `global`.
#pragma once

#include <memory_resource>
#include <span>

#include "ir/source.h"

namespace tilewright::py {

enum class Op : uint8_t {
  add,
  sub,
  mul,
  div,
  floor_div,
  mod,
  pow,
  mat_mul,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
  lt,
  le,
  gt,
  ge,
  eq,
  ne,
  in,
  not_in,
  is,
  is_not,
  logical_and,
  logical_or,
  negative,
  positive,
  invert,
  logical_not,
};
std::string_view spelling(Op);

enum class ExprKind : uint8_t {
  kName,
  kInteger,
  kFloating,
  kString,
  kConstant,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kTuple,
  kList,
  kDict,
  kLambda,
  kUnary,
  kBinary,
  kCompare,
  kConditional,
  kStarred,
};

/// Nodes live in the tree's arena and are never changed; a parenthesised expression has the range without the
/// parentheses.
struct Expr {
  ExprKind kind;
  TextRange range;
};
using Exprs = std::span<const Expr* const>;

#define TW_PY_EXPR(Node) static constexpr ExprKind kKind = ExprKind::k##Node
struct Name : Expr {
  TW_PY_EXPR(Name);
  std::string_view id;
};
struct Integer : Expr {
  TW_PY_EXPR(Integer);
  uint64_t value;
};
struct Floating : Expr {
  TW_PY_EXPR(Floating);
  double value;
};
/// The value after escapes; adjacent strings are joined.
struct String : Expr {
  TW_PY_EXPR(String);
  std::string_view value;
};
enum class ConstantKind : uint8_t { none, true_, false_, ellipsis };
struct Constant : Expr {
  TW_PY_EXPR(Constant);
  ConstantKind value;
};
struct Attribute : Expr {
  TW_PY_EXPR(Attribute);
  const Expr* value;
  std::string_view name;
  TextRange name_range;
};
/// `index` is a Tuple for `a[i, j]`; its items may be Slices.
struct Subscript : Expr {
  TW_PY_EXPR(Subscript);
  const Expr *value, *index;
};
/// Absent parts are null.
struct Slice : Expr {
  TW_PY_EXPR(Slice);
  const Expr *lower, *upper, *step;
};
struct Keyword {
  std::string_view name;  ///< empty for `**value`
  TextRange name_range;
  const Expr* value;
};
struct Call : Expr {
  TW_PY_EXPR(Call);
  const Expr* function;
  Exprs args;  ///< items may be Starred
  std::span<const Keyword> keywords;
};
struct Tuple : Expr {
  TW_PY_EXPR(Tuple);
  Exprs items;
};
struct List : Expr {
  TW_PY_EXPR(List);
  Exprs items;
};
struct Dict : Expr {
  TW_PY_EXPR(Dict);
  Exprs keys, values;
};
struct Parameter {
  std::string_view name;
  TextRange range;  ///< the name
  const Expr* annotation;
  const Expr* default_value;
  bool starred;
};
struct Lambda : Expr {
  TW_PY_EXPR(Lambda);
  std::span<const Parameter> params;
  const Expr* body;
};
struct Unary : Expr {
  TW_PY_EXPR(Unary);
  Op op;
  const Expr* operand;
};
/// Arithmetic, bits, `and`, `or`.
struct Binary : Expr {
  TW_PY_EXPR(Binary);
  Op op;
  const Expr *a, *b;
};
/// items[0] ops[0] items[1] ops[1] …
struct Compare : Expr {
  TW_PY_EXPR(Compare);
  Exprs items;
  std::span<const Op> ops;
};
/// then_value if condition else else_value
struct Conditional : Expr {
  TW_PY_EXPR(Conditional);
  const Expr *condition, *then_value, *else_value;
};
struct Starred : Expr {
  TW_PY_EXPR(Starred);
  const Expr* value;
};

enum class StmtKind : uint8_t {
  kExprStmt,
  kAssign,
  kAugmentedAssign,
  kAnnotatedAssign,
  kFor,
  kWhile,
  kIf,
  kWith,
  kFunctionDef,
  kClassDef,
  kReturn,
  kAssertStmt,
  kPass,
  kBreak,
  kContinue,
  kImport,
  kInvalid,
};

struct Stmt {
  StmtKind kind;
  TextRange range;  ///< of a compound statement: its header
};
using Stmts = std::span<const Stmt* const>;

#define TW_PY_STMT(Node) static constexpr StmtKind kKind = StmtKind::k##Node
struct ExprStmt : Stmt {
  TW_PY_STMT(ExprStmt);
  const Expr* value;
};
/// targets[0] = targets[1] = … = value
struct Assign : Stmt {
  TW_PY_STMT(Assign);
  Exprs targets;
  const Expr* value;
};
struct AugmentedAssign : Stmt {
  TW_PY_STMT(AugmentedAssign);
  const Expr* target;
  Op op;
  const Expr* value;
};
/// target: annotation = value (null without `=`)
struct AnnotatedAssign : Stmt {
  TW_PY_STMT(AnnotatedAssign);
  const Expr *target, *annotation, *value;
};
struct For : Stmt {
  TW_PY_STMT(For);
  const Expr *target, *iterable;
  Stmts body;
};
struct While : Stmt {
  TW_PY_STMT(While);
  const Expr* condition;
  Stmts body;
};
/// `elif` is an If alone in orelse.
struct If : Stmt {
  TW_PY_STMT(If);
  const Expr* condition;
  Stmts body, orelse;
};
struct WithItem {
  const Expr* context;
  const Expr* target;  ///< after `as`, may be null
};
struct With : Stmt {
  TW_PY_STMT(With);
  std::span<const WithItem> items;
  Stmts body;
};
struct FunctionDef : Stmt {
  TW_PY_STMT(FunctionDef);
  std::string_view name;
  TextRange name_range;
  std::span<const Parameter> type_params, params;
  const Expr* returns;
  Exprs decorators;
  Stmts body;
};
struct ClassDef : Stmt {
  TW_PY_STMT(ClassDef);
  std::string_view name;
  TextRange name_range;
  Exprs bases, decorators;
  Stmts body;
};
struct Return : Stmt {
  TW_PY_STMT(Return);
  const Expr* value;
};
struct AssertStmt : Stmt {
  TW_PY_STMT(AssertStmt);
  const Expr *condition, *message;
};
struct Pass : Stmt {
  TW_PY_STMT(Pass);
};
struct Break : Stmt {
  TW_PY_STMT(Break);
};
struct Continue : Stmt {
  TW_PY_STMT(Continue);
};
/// `import a.b as c` (module, alias) or `from a.b import c as d` (module, name, alias).
struct ImportedName {
  std::string_view module, name, alias;
};
struct Import : Stmt {
  TW_PY_STMT(Import);
  std::span<const ImportedName> names;
};
/// A statement with a syntax error (already reported); `names` are what it may have defined.
struct Invalid : Stmt {
  TW_PY_STMT(Invalid);
  std::span<const std::string_view> names;
};

/// Owns the nodes and the text that they point into.
struct Tree {
  SourceRef source;
  std::unique_ptr<std::pmr::monotonic_buffer_resource> arena;
  Stmts body;                        ///< of parse_module
  const Expr* expression = nullptr;  ///< of parse_expression; null after an error
  std::vector<Diagnostic> errors;    ///< syntax errors in source order
};

inline constexpr int kNestingLimit = 200;

Tree parse_module(std::string text, std::string file);
/// One expression, over the whole text.
Tree parse_expression(std::string text, std::string file);

template <class Node>
const Node* as(const Expr* e) {
  return e && e->kind == Node::kKind ? static_cast<const Node*>(e) : nullptr;
}
template <class Node>
const Node* as(const Stmt* s) {
  return s && s->kind == Node::kKind ? static_cast<const Node*>(s) : nullptr;
}

/// "a.b.c" of a chain of names and attributes, else "".
std::string dotted_name(const Expr*);
/// "a call", "a string", … for messages.
std::string_view describe(const Expr*);

}  // namespace tilewright::py
