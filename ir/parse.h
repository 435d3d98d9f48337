// Program text → program (schedule-language.md §1). Errors are values: up to 20 diagnostics in source order.
//   auto parsed = parse_program(text, "matmul.py");
//   if (!parsed) for (const Diagnostic& d : parsed.error()) …render_text(d)…
// Also: expressions and index-map lambdas over given variables, which traces and schedule files hold.
#pragma once

#include <map>

#include "ir/program.h"
#include "ir/python_syntax.h"
#include "support/result.h"

namespace tilewright {

using Diagnostics = std::vector<Diagnostic>;

struct ParsedProgram {
  ProgramRef program;
  SourceMap spans;  ///< statements, loads, buffers, variables and functions of the program → their place in the text
  Diagnostics warnings;
};

/// Values for symbolic extents, by name: the program is read as if the text had the constant in that place.
using Extents = std::map<std::string, int64_t, std::less<>>;

/// The program is well-formed as text; ir/verify.h checks its structure. A value that no extent takes is an error.
tl::expected<ParsedProgram, Diagnostics> parse_program(std::string_view text, std::string file_name,
                                                       const Extents& extents = {});

/// An expression over the given variables (by name), as `print(Expr)` writes it.
tl::expected<Expr, Diagnostics> parse_expr(std::string_view text, const std::vector<Var>& variables = {},
                                           std::string file_name = "expression");
/// The same from a part of a syntax tree (a trace, a schedule file).
tl::expected<Expr, Diagnostics> read_expr(const py::Tree& tree, const py::Expr* e,
                                          const std::vector<Var>& variables = {});

/// `lambda i, j: (i // 16, j % 16)`. A result is one expression, or two: the range [begin, end) written `(begin, end)`
/// in a list.
struct ParsedLambda {
  std::vector<Var> params;
  std::vector<std::vector<Expr>> results;
};
/// A starred parameter (`lambda *i: …`) stands for `arity` variables less the others. Free names: `variables`.
tl::expected<ParsedLambda, Diagnostics> parse_lambda(std::string_view text, int arity,
                                                     const std::vector<Var>& variables = {},
                                                     std::string file_name = "lambda");
tl::expected<ParsedLambda, Diagnostics> read_lambda(const py::Tree& tree, const py::Lambda& lambda, int arity,
                                                    const std::vector<Var>& variables = {});

}  // namespace tilewright
