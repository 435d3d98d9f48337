// Functions and programs (modules). A program is what is parsed, scheduled, lowered and stored.
#pragma once

#include "ir/stmt.h"

namespace tilewright {

/// A parameter: a buffer (passed as a pointer), a scalar, or an opaque pointer (handle without buffer).
struct Param {
  Var var;                 ///< the scalar, or the handle
  Buffer buffer;           ///< null for scalars and opaque pointers
  bool by_handle = false;  ///< written as `a: T.handle` + `T.match_buffer(a, …)`
  TW_FIELDS(var, buffer, by_handle)
};

/// A function. `schedulable`: marked s_tir or contains blocks; its body is then one root Block without iters.
struct Function : RefCounted {
  std::string name;
  std::vector<Param> params;
  AttrDict attrs;
  DType return_type = kVoid;
  bool schedulable = true;
  bool is_private = false;
  std::vector<Var> symbolic;  ///< free symbolic extents, in order of declaration
  Stmt body;

  const Block* root() const { return as<Block>(body); }
};
using FunctionRef = Ref<Function>;

struct Program : RefCounted {
  std::string name = "Module";
  std::vector<FunctionRef> functions;  ///< in source order; names are unique
  AttrDict attrs;

  const Function* find(std::string_view function) const;
  /// The function named `main`, else the only schedulable one, else null.
  const Function* main() const;
};
using ProgramRef = Ref<Program>;

/// Copies with one part replaced.
FunctionRef with_body(const Function&, Stmt body);
FunctionRef with_attr(const Function&, const std::string& key, Attr value);
ProgramRef with_function(const Program&, FunctionRef);  ///< replaces the function of that name, or appends
ProgramRef make_program(std::vector<FunctionRef>, std::string name = "Module");

}  // namespace tilewright
