// SiteTable: what the features of one program are computed from, in plain numbers. collect.h fills it from a scheduled
// program; the closed-form evaluator fills the same table from decisions, so that feature groups exist once.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/stmt.h"

namespace tilewright {

/// Arithmetic of one evaluation of a stored value, in slot order of the arithmetic group.
enum class OpClass : uint8_t {
  float_mad,
  float_add,
  float_mul,
  float_div,
  float_compare,
  float_pure_call,
  float_other_call,
  int_mad,
  int_add,
  int_mul,
  int_div,
  int_compare,
  int_pure_call,
  int_other_call,
  logical,
  select,
};
inline constexpr int op_classes = 16;
struct OpCounts {
  std::array<int32_t, op_classes> n{};
  int32_t& operator[](OpClass c) { return n[static_cast<size_t>(c)]; }
  int32_t operator[](OpClass c) const { return n[static_cast<size_t>(c)]; }
  OpCounts& operator+=(const OpCounts& o) {
    for (size_t i = 0; i < n.size(); ++i) n[i] += o.n[i];
    return *this;
  }
  double float_ops() const {
    double sum = 0;
    for (int i = 0; i <= static_cast<int>(OpClass::float_other_call); ++i) sum += n[static_cast<size_t>(i)];
    return sum;
  }
};

enum class ThreadAxis : uint8_t { none, block_x, block_y, block_z, thread_x, thread_y, thread_z, vthread, cluster };
ThreadAxis thread_axis(const std::string& tag);  ///< "threadIdx.x", "vthread.y", …

struct SiteLoop {
  double extent = 1;  ///< 1 if it is not constant
  ForKind kind = ForKind::serial;
  ThreadAxis axis = ThreadAxis::none;
  int64_t auto_unroll = 0;  ///< pragma_auto_unroll_max_step; 0: none
};

struct SiteMemory {
  std::string name;
  int bytes = 4;              ///< of one element
  std::vector<double> shape;  ///< after compaction
  bool placed = false;        ///< allocated in the program, or a parameter: the next field means something
  double outer_product = 1;   ///< product of the loops around its allocation
  double numel() const {
    double n = 1;
    for (double e : shape) n *= e;
    return n;
  }
};

inline constexpr int max_site_loops = 256;
using LoopSet = std::bitset<max_site_loops>;

/// One buffer of one store. Loop positions count from the outermost loop of the site, 0.
struct SiteAccess {
  int memory = 0;  ///< into SiteTable::memories
  enum class Kind : uint8_t { read, write, both } kind = Kind::read;
  std::vector<double>
      touched;                ///< touched[i]: elements touched when loops i… run and outer ones stand at their minimum
  std::vector<double> shape;  ///< extents of the box touched by all loops
  LoopSet moves;              ///< loops whose variable occurs in an index
  int stride_loop = -1;       ///< innermost loop that moves the buffer, -1: none
  double stride = 0;          ///< its smallest stride in elements

  /// Why a value may still be near when it is needed again (finish_sites).
  enum class Reuse : uint8_t { loop, serial, none } reuse = Reuse::none;
  double reuse_count = 0, reuse_iterations = 0, reuse_bytes = 0;
};

struct Site {
  int memory = 0;          ///< the stored buffer
  std::vector<int> loops;  ///< into SiteTable::loops, outermost first
  OpCounts ops;
  std::vector<SiteAccess> accesses;  ///< one for each buffer, in order of first occurrence (the stored one first)

  double product = 1;                 ///< of all extents (finish_sites)
  std::vector<double> bytes_touched;  ///< by loop: Σ over buffers of touched bytes (finish_sites)
};

struct SiteTable {
  bool gpu = false;
  std::vector<SiteLoop> loops;
  std::vector<SiteMemory> memories;
  /// In program order, every store of a value that is not constant: a later one sees what earlier ones touched.
  std::vector<Site> sites;

  const SiteLoop& loop(const Site& site, size_t position) const {
    return loops[static_cast<size_t>(site.loops[position])];
  }
};

/// Fills what follows from the rest: products, touched bytes, reuse.
void finish_sites(SiteTable&);

}  // namespace tilewright
