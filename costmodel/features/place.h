// Records of a walk over one program (collect.cpp), and how allocations are placed and compacted from them.
#pragma once

#include <string>
#include <vector>

#include "costmodel/features/index_form.h"
#include "ir/expr.h"

namespace tilewright {

/// A loop or block of the program as walked; scopes[0] is the function.
struct ScopeRecord {
  int parent = -1;
  int depth = 0;
  int kernel = -1;           ///< index of the kernel around or at it; -1: none
  bool kernel_root = false;  ///< the outermost thread-bound loop
  int loop_atom = -1;        ///< atom that this loop binds; -1: a block or a vanished loop
  int serial_loop = -1;      ///< loop of the table that it adds; -1: a block, a vanished or a launch loop
};

struct AccessRecord {
  int memory = 0;
  std::vector<IndexForm> index;
};

struct StoreRecord {
  std::vector<int> loops;  ///< outermost first, launch loops of the kernel in front
  AccessRecord store;
  std::vector<AccessRecord> loads;  ///< every occurrence in the value and in indices
  OpCounts ops;                     ///< without the indices of loads
  bool constant = false;            ///< gives no site, but its accesses count for placing
};

struct MemoryRecord {
  std::string storage;  ///< scope: "global", "shared.dyn", …
  bool allocated = false;
  bool whole = false;  ///< accessed opaquely: keeps its shape
  int ancestor = -1;   ///< scope that holds all accesses; -1: no access
};

struct ProgramRecord {
  FormArena forms;
  std::vector<int> loop_of_atom;  ///< -1: atom is no loop
  std::vector<ScopeRecord> scopes{ScopeRecord{}};
  std::vector<std::vector<int>> kernels;  ///< launch loops
  std::vector<StoreRecord> stores;
  std::vector<MemoryRecord> memories;  ///< beside SiteTable::memories

  int common_ancestor(int a, int b) const;
};

/// Decides outer_product and shape of every allocated buffer, and rebases the accesses to it.
void place_and_compact(ProgramRecord&, SiteTable&);

}  // namespace tilewright
