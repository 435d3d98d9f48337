#include "costmodel/features/place.h"

#include <algorithm>

namespace tilewright {

int ProgramRecord::common_ancestor(int a, int b) const {
  auto scope = [&](int i) -> const ScopeRecord& { return scopes[static_cast<size_t>(i)]; };
  while (a != b) {
    if (scope(a).depth >= scope(b).depth)
      a = scope(a).parent;
    else
      b = scope(b).parent;
  }
  return a;
}

namespace {

class Placer {
 public:
  Placer(ProgramRecord& program, SiteTable& table) : program_(program), table_(table) {}

  void place(int memory) {
    memory_ = memory;
    const MemoryRecord& record = program_.memories[static_cast<size_t>(memory)];
    int scope = record.ancestor;
    if (scope < 0) return;
    // Device code cannot allocate global memory: above the kernel.
    if (record.storage.starts_with("global"))
      while (at(scope).kernel >= 0 && at(scope).parent >= 0) scope = at(scope).parent;
    SiteMemory& site_memory = table_.memories[static_cast<size_t>(memory)];
    site_memory.placed = true;
    site_memory.outer_product = 1;
    if (at(scope).kernel >= 0)
      for (int loop : program_.kernels[static_cast<size_t>(at(scope).kernel)])
        site_memory.outer_product *= table_.loops[static_cast<size_t>(loop)].extent;
    for (int s = scope; s >= 0; s = at(s).parent)
      if (at(s).serial_loop >= 0)
        site_memory.outer_product *= table_.loops[static_cast<size_t>(at(s).serial_loop)].extent;
    if (record.whole) return;
    mark_fixed(scope, record.storage);
    for (size_t dim = 0; dim < site_memory.shape.size(); ++dim) compact(dim, site_memory.shape[dim]);
  }

 private:
  const ScopeRecord& at(int scope) const { return program_.scopes[static_cast<size_t>(scope)]; }

  /// Loops around the allocation stand still in a region of the buffer, unless their threads share it.
  void mark_fixed(int scope, const std::string& storage) {
    fixed_.assign(program_.loop_of_atom.size(), false);
    for (int s = scope; s >= 0; s = at(s).parent) {
      if (at(s).loop_atom < 0) continue;
      ThreadAxis axis =
          table_.loops[static_cast<size_t>(program_.loop_of_atom[static_cast<size_t>(at(s).loop_atom)])].axis;
      bool thread = axis >= ThreadAxis::thread_x && axis <= ThreadAxis::vthread;
      bool shares = (storage.starts_with("shared") && thread) ||
                    (storage.starts_with("warp") && axis == ThreadAxis::thread_x) ||
                    (storage.starts_with("global") && axis != ThreadAxis::none);
      if (!shares) fixed_[static_cast<size_t>(at(s).loop_atom)] = true;
    }
  }

  /// The part of a form whose loops all stand still.
  IndexForm fixed_part(const IndexForm& form) const {
    IndexForm out;
    for (const IndexTerm& term : form.terms) {
      bool still = true;
      program_.forms.for_each_loop({0, {term}}, [&](int atom) { still = still && fixed_[static_cast<size_t>(atom)]; });
      if (still && program_.forms.full_range({0, {term}}).known) out.terms.push_back(term);
    }
    return out;
  }

  template <class F>
  void for_each_access(F f) {
    for (StoreRecord& store : program_.stores) {
      if (store.store.memory == memory_) f(store.store);
      for (AccessRecord& load : store.loads)
        if (load.memory == memory_) f(load);
    }
  }

  void compact(size_t dim, double& extent) {
    bool first = true, same = true;
    IndexForm base;
    int64_t lo = 0, hi = 0;
    for_each_access([&](const AccessRecord& access) {
      IndexForm still = fixed_part(access.index[dim]);
      IndexRange r = program_.forms.full_range(program_.forms.add(access.index[dim], still, -1));
      same = same && r.known && (first || still == base);
      lo = first ? r.lo : std::min(lo, r.lo);
      hi = first ? r.hi : std::max(hi, r.hi);
      if (first) base = std::move(still);
      first = false;
    });
    if (!same) return;
    if (base.is_constant()) {
      lo = std::max<int64_t>(lo, 0);
      hi = std::min<int64_t>(hi, static_cast<int64_t>(extent) - 1);
    }
    if (static_cast<double>(hi - lo + 1) > extent || hi < lo) return;
    extent = static_cast<double>(hi - lo + 1);
    base.constant = lo;
    for_each_access([&](AccessRecord& access) { access.index[dim] = program_.forms.add(access.index[dim], base, -1); });
  }

  ProgramRecord& program_;
  SiteTable& table_;
  int memory_ = 0;
  std::vector<bool> fixed_;
};

}  // namespace

void place_and_compact(ProgramRecord& program, SiteTable& table) {
  Placer placer(program, table);
  for (size_t memory = 0; memory < program.memories.size(); ++memory)
    if (program.memories[memory].allocated) placer.place(static_cast<int>(memory));
}

}  // namespace tilewright
