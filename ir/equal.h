// Structural equality and hashing up to renaming of variables and buffers; names, ids and spans take no part.
#pragma once

#include <string>

#include "ir/program.h"

namespace tilewright {

/// Where two trees differ first, for `opt --equal`.
struct Difference {
  const void* a = nullptr;  ///< node address in the first tree (key into a SourceMap), may be null
  const void* b = nullptr;
  std::string what;
};

bool structural_equal(const Program&, const Program&, Difference* = nullptr);
bool structural_equal(const Function&, const Function&, Difference* = nullptr);
/// Free variables and buffers are equal only to themselves, unless map_free is set: then they are paired at first
/// meeting.
bool structural_equal(const Stmt&, const Stmt&, bool map_free = false, Difference* = nullptr);
bool structural_equal(const Expr&, const Expr&, bool map_free = false);

/// Equal programs have equal hashes, on every host.
Hash64 structural_hash(const Program&);
Hash64 structural_hash(const Function&);

/// Exact comparison: same content on the same variables. Cheap (hash first).
bool same(const Expr&, const Expr&);

}  // namespace tilewright
