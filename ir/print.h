// Program → text (schedule-language.md §1.9). `parse(print(x))` equals x, and printing is a fixed point.
#pragma once

#include "ir/program.h"
#include "ir/source.h"
#include "support/result.h"

namespace tilewright {

enum class Dialect : uint8_t {
  current,  ///< T.sblock, T.sblock_alloc_buffer, s_tir=True
  classic,  ///< T.block, T.alloc_buffer, `tir`
};

struct PrintOptions {
  Dialect dialect = Dialect::current;
  bool header = true;  ///< the two import comment lines and the module class
};

/// With Dialect::classic, what has no older form is printed in the current one; print_as refuses instead.
std::string print(const Program&, PrintOptions = {});
std::string print(const Function&, PrintOptions = {});
/// Parts of programs; free variables and buffers keep their names. A statement ends with a newline.
std::string print(const Stmt&, PrintOptions = {});
std::string print(const Expr&);
std::string print(const BufferRegion&);
std::string print(const Attr&);

/// Refuses `not-expressible-in-dialect` where the older text has no form.
Result<std::string> print_as(const Program&, Dialect);

/// A printed program with the places of its nodes: statements (the header line of loops and blocks), buffers, loads,
/// functions.
struct PrintedProgram {
  std::string text;
  SourceMap spans;
};
PrintedProgram print_with_places(const Program&, PrintOptions = {}, const std::string& file = "program");

/// Where a node (statement, buffer, load, function) stands in the printed program, so that a refusal can underline it.
Span locate(const Program&, const void* node);

}  // namespace tilewright
