#include "costmodel/features/collect.h"

#include <algorithm>

#include "costmodel/features/expression_reader.h"
#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

constexpr const char* unroll_pragma = "pragma_auto_unroll_max_step";
constexpr const char* layout_rewrite = "meta_schedule.layout_rewrite_preproc";

int64_t auto_unroll_of(const For& loop) {
  auto it = loop.annotations.find(unroll_pragma);
  if (it == loop.annotations.end()) return 0;
  if (const int64_t* value = it->second.get<int64_t>()) return std::max<int64_t>(0, *value);
  if (const Expr* value = it->second.get<Expr>()) return std::max<int64_t>(0, const_int(*value).value_or(0));
  return 0;
}

class Collector final : private ExpressionReader::Buffers {
 public:
  Collector(const Function& function, SiteTable& table) : table_(table), reader_(program_.forms, *this) {
    for (const Param& param : function.params) {
      if (!param.buffer) continue;
      SiteMemory& memory = table_.memories[static_cast<size_t>(memory_of(*param.buffer))];
      memory.placed = true;
    }
    visit(function.body);
    place_and_compact(program_, table_);
    for (const StoreRecord& store : program_.stores)
      if (!store.constant) table_.sites.push_back(site_of(store));
  }

 private:
  // Buffers
  // ----------------------------------------------------------------------------------------------------------------
  struct Alias {
    AccessRecord source;       // its region's minimum
    std::vector<size_t> dims;  // of the source, for each dimension of the alias
  };

  int memory_of(const BufferNode& buffer) {
    auto [it, fresh] = memory_by_buffer_.emplace(buffer.id, static_cast<int>(table_.memories.size()));
    if (!fresh) return it->second;
    SiteMemory memory;
    memory.name = buffer.name;
    memory.bytes = std::max(1, buffer.dtype.element_bytes());
    std::vector<AccessRecord> none;
    for (const Expr& extent : buffer.shape) {
      IndexRange r = program_.forms.full_range(reader_.form(extent, none));
      memory.shape.push_back(r.known ? static_cast<double>(std::max<int64_t>(1, r.hi)) : 1);
    }
    table_.memories.push_back(std::move(memory));
    program_.memories.push_back({buffer.scope, false, false, -1});
    buffer_by_pointer_.emplace(buffer.data ? buffer.data->id : 0, &buffer);
    return it->second;
  }

  void reach(int memory) {
    int& ancestor = program_.memories[static_cast<size_t>(memory)].ancestor;
    ancestor = ancestor < 0 ? scope_ : program_.common_ancestor(ancestor, scope_);
  }

  AccessRecord access(const BufferNode& buffer, std::vector<IndexForm> index) override {
    if (auto it = aliases_.find(buffer.id); it != aliases_.end()) {
      AccessRecord source = it->second.source;
      for (size_t d = 0; d < index.size(); ++d) {
        IndexForm& at = source.index[it->second.dims[d]];
        at = program_.forms.add(at, index[d]);
      }
      reach(source.memory);
      return source;
    }
    AccessRecord record{memory_of(buffer), std::move(index)};
    reach(record.memory);
    return record;
  }

  void escape(const BufferNode& buffer) override {
    auto it = aliases_.find(buffer.id);
    int memory = it != aliases_.end() ? it->second.source.memory : memory_of(buffer);
    reach(memory);
    program_.memories[static_cast<size_t>(memory)].whole = true;
  }

  void bind_alias(const MatchBuffer& match) {
    std::vector<AccessRecord> loads;
    std::vector<IndexForm> least;
    for (const Range& range : match.source.region) least.push_back(reader_.form(range.min, loads));
    Alias alias{access(*match.source.buffer, std::move(least)), {}};
    // Unit dimensions of the region may be dropped: what is left pairs from the last dimension backwards.
    size_t rank = match.source.region.size();
    size_t to_drop = rank - std::min(rank, match.buffer->shape.size());
    for (size_t d = 0; d < rank; ++d) {
      if (to_drop > 0 && is_const(match.source.region[d].extent, 1))
        --to_drop;
      else
        alias.dims.push_back(d);
    }
    alias.dims.resize(match.buffer->shape.size(), rank - 1);
    aliases_.insert_or_assign(match.buffer->id, std::move(alias));
  }

  /// An expression that is no stored value: its accesses count for placing, and as opaque.
  void touch(const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& x) {
      if (const auto* load = as<Load>(x)) escape(*load->buffer);
      if (const auto* var = as<VarNode>(x); var && var->dtype.is_handle())
        if (auto it = buffer_by_pointer_.find(var->id); it != buffer_by_pointer_.end()) escape(*it->second);
      return true;
    });
  }

  // Statements
  // -------------------------------------------------------------------------------------------------------------
  void visit(const Stmt& s) {
    if (!s) return;
    switch (s->kind) {
      case StmtKind::kStore:
        return visit_store(static_cast<const Store&>(*s));
      case StmtKind::kSeq:
        for (const Stmt& child : static_cast<const Seq&>(*s).stmts) visit(child);
        return;
      case StmtKind::kFor:
        return visit_for(static_cast<const For&>(*s));
      case StmtKind::kBlock:
        return visit_block(static_cast<const Block&>(*s));
      case StmtKind::kIf: {
        const auto& branch = static_cast<const If&>(*s);
        touch(branch.condition);
        visit(branch.then_body);
        return visit(branch.else_body);
      }
      case StmtKind::kWhile:
        touch(static_cast<const While&>(*s).condition);
        return visit(static_cast<const While&>(*s).body);
      case StmtKind::kBind: {
        const auto& bind = static_cast<const Bind&>(*s);
        std::vector<AccessRecord> loads;
        if (bind.var->dtype.is_integer_like())
          reader_.bind(bind.var, reader_.form(bind.value, loads));
        else
          touch(bind.value);
        return visit(bind.body);
      }
      case StmtKind::kEvaluate:
        return touch(static_cast<const Evaluate&>(*s).value);
      case StmtKind::kAssert:
        return touch(static_cast<const Assert&>(*s).condition);
      case StmtKind::kAttrStmt:
        return visit(static_cast<const AttrStmt&>(*s).body);
      case StmtKind::kAllocate: {
        const auto& allocate = static_cast<const Allocate&>(*s);
        int memory = memory_of(*allocate.buffer);
        program_.memories[static_cast<size_t>(memory)].allocated = true;
        return visit(allocate.body);
      }
      case StmtKind::kDeclBuffer:
        return visit(static_cast<const DeclBuffer&>(*s).body);
      case StmtKind::kBreak:
      case StmtKind::kContinue:
      case StmtKind::kReturn:
        return;
    }
  }

  /// The body under a scope of its own.
  void within(ScopeRecord scope, const Stmt& body) {
    scope.parent = scope_;
    scope.depth = program_.scopes[static_cast<size_t>(scope_)].depth + 1;
    scope.kernel = kernel_;
    program_.scopes.push_back(scope);
    int outer = std::exchange(scope_, static_cast<int>(program_.scopes.size()) - 1);
    visit(body);
    scope_ = outer;
  }

  struct Bounds {
    int64_t min = 0, extent = 1;
    bool constant = true;
  };
  Bounds bounds_of(const For& loop) {
    std::vector<AccessRecord> none;
    IndexRange least = program_.forms.full_range(reader_.form(loop.min, none));
    IndexForm extent = reader_.form(loop.extent, none);
    IndexRange r = program_.forms.full_range(extent);
    return {least.known ? least.lo : 0, r.known ? r.hi : 1, extent.is_constant()};
  }

  int add_loop(const For& loop, const Bounds& bounds) {
    SiteLoop out;
    out.extent = bounds.constant ? static_cast<double>(bounds.extent) : 1;
    out.kind = loop.loop_kind;
    if (loop.loop_kind == ForKind::thread_binding) out.axis = thread_axis(loop.thread);
    out.auto_unroll = auto_unroll_of(loop);
    table_.loops.push_back(out);
    int atom = program_.forms.add_loop(bounds.min, bounds.extent);
    program_.loop_of_atom.resize(static_cast<size_t>(atom) + 1, -1);
    program_.loop_of_atom.back() = static_cast<int>(table_.loops.size()) - 1;
    atom_of_loop_.push_back(atom);
    return static_cast<int>(table_.loops.size()) - 1;
  }

  void visit_for(const For& loop) {
    Bounds bounds = bounds_of(loop);
    if (bounds.extent <= 0) return;
    if (loop.loop_kind == ForKind::thread_binding) return visit_thread_loop(loop);
    if (loop.loop_kind == ForKind::serial && bounds.constant && bounds.extent == 1 && bounds.min == 0 &&
        loop.annotations.empty()) {
      reader_.bind(loop.var, program_.forms.constant(0));
      return within({}, loop.body);
    }
    int index = add_loop(loop, bounds);
    int atom = atom_of_loop_[static_cast<size_t>(index)];
    reader_.bind(loop.var, program_.forms.atom(atom));
    serial_.push_back(index);
    ScopeRecord scope;
    scope.loop_atom = atom;
    scope.serial_loop = index;
    within(scope, loop.body);
    serial_.pop_back();
  }

  /// Thread-bound loops of one axis are one loop; all of a kernel stand outside everything else in it.
  void visit_thread_loop(const For& loop) {
    bool root = kernel_ < 0;
    std::vector<int> outer_serial;
    if (root) {
      kernel_ = static_cast<int>(program_.kernels.size());
      program_.kernels.emplace_back();
      launch_.clear();
      walk_stmts(Stmt(&loop), [&](const Stmt& s) {
        const auto* inner = as<For>(s);
        if (inner && inner->loop_kind == ForKind::thread_binding) add_launch_loop(*inner);
        return true;
      });
      // Only the outermost loop keeps its annotations when bindings are unified.
      for (size_t i = 1; i < launch_.size(); ++i) table_.loops[static_cast<size_t>(launch_[i].loop)].auto_unroll = 0;
    }
    auto it = std::find_if(launch_.begin(), launch_.end(), [&](const Launch& l) { return l.tag == loop.thread; });
    int atom = atom_of_loop_[static_cast<size_t>(it->loop)];
    reader_.bind(loop.var, program_.forms.atom(atom));
    ScopeRecord scope;
    scope.loop_atom = atom;
    scope.kernel_root = root;
    within(scope, loop.body);
    if (root) kernel_ = -1;
  }

  void add_launch_loop(const For& loop) {
    Bounds bounds = bounds_of(loop);
    for (const Launch& launch : launch_)
      if (launch.tag == loop.thread) {
        double& extent = table_.loops[static_cast<size_t>(launch.loop)].extent;
        extent = std::max(extent, static_cast<double>(bounds.extent));
        return;
      }
    int index = add_loop(loop, bounds);
    launch_.push_back({loop.thread, index});
    program_.kernels.back().push_back(index);
  }

  std::vector<int> loops_here() const {
    std::vector<int> loops;
    if (kernel_ >= 0) loops = program_.kernels[static_cast<size_t>(kernel_)];
    loops.insert(loops.end(), serial_.begin(), serial_.end());
    TW_CHECK(loops.size() <= max_site_loops, "a store stands under {} loops", loops.size());
    return loops;
  }

  void visit_block(const Block& block) {
    if (block.annotations.count(layout_rewrite)) return skip_layout_rewrite(block);
    std::vector<AccessRecord> loads;
    for (const Iter& iter : block.iters) reader_.bind(iter.var, reader_.form(iter.binding, loads));
    touch(block.predicate);
    for (const Buffer& buffer : block.allocs)
      program_.memories[static_cast<size_t>(memory_of(*buffer))].allocated = true;
    for (const MatchBuffer& match : block.matches) bind_alias(match);
    if (lower_cross_thread_reduction(block)) return;
    ScopeRecord scope;
    within(scope, make_seq({block.init, block.body}));
  }

  /// The rewritten buffer will be an input: it counts as a parameter.
  void skip_layout_rewrite(const Block& block) {
    walk_stmts(block.body, [&](const Stmt& s) {
      if (const auto* store = as<Store>(s)) {
        size_t memory = static_cast<size_t>(memory_of(*store->buffer));
        program_.memories[memory].allocated = false;
        table_.memories[memory].placed = true;
      }
      return true;
    });
  }

  void visit_store(const Store& store) {
    StoreRecord record;
    record.loops = loops_here();
    std::vector<AccessRecord> in_index;
    record.store = reader_.access(store.buffer, store.indices, in_index);
    record.constant = reader_.is_constant(store.value);
    if (!record.constant) reader_.count(store.value, record.ops, record.loads);
    program_.stores.push_back(std::move(record));
  }

  // Cross-thread reduction
  // ---------------------------------------------------------------------------------------------------
  /// A reduction over loops of which one is bound to threadIdx, as the program will be: each thread reduces its part
  /// into a private scalar (if serial reduction loops are left), the threads combine (a call, no store), and the result
  /// is written outside the reduction loops.
  bool lower_cross_thread_reduction(const Block& block) {
    if (!block.init || kernel_ < 0) return false;
    const auto* update = as<Store>(block.body);
    if (!update) return false;
    std::vector<bool> reduces(table_.loops.size(), false);
    bool across_threads = false;
    std::vector<AccessRecord> loads;
    for (const Iter& iter : block.iters) {
      if (iter.type != IterType::reduction) continue;
      program_.forms.for_each_loop(reader_.form(iter.binding, loads), [&](int atom) {
        int loop = program_.loop_of_atom[static_cast<size_t>(atom)];
        ThreadAxis axis = table_.loops[static_cast<size_t>(loop)].axis;
        reduces[static_cast<size_t>(loop)] = true;
        across_threads = across_threads || (axis >= ThreadAxis::thread_x && axis <= ThreadAxis::thread_z);
      });
    }
    if (!across_threads) return false;
    auto first =
        std::find_if(serial_.begin(), serial_.end(), [&](int loop) { return reduces[static_cast<size_t>(loop)]; });
    auto outside = static_cast<size_t>(first - serial_.begin());
    const BufferNode& output = *update->buffer;
    std::vector<int> loops = loops_here();
    std::vector<int> outer_loops(loops.begin(), loops.end() - static_cast<std::ptrdiff_t>(serial_.size() - outside));
    StoreRecord partial;
    partial.loops = loops;
    partial.store = {scratch("in_thread_" + output.name, output, outer_loops), {IndexForm{}}};
    partial.constant = first == serial_.end();  // one value each goes straight into the combining call: no store
    reader_.count(update->value, partial.ops, partial.loads);
    int written = reader_.access(update->buffer, update->indices, loads).memory;
    for (AccessRecord& load : partial.loads)
      if (load.memory == written) load = partial.store;
    program_.stores.push_back(std::move(partial));
    StoreRecord result;
    result.loops = std::move(outer_loops);
    result.store = reader_.access(update->buffer, update->indices, loads);
    result.loads.push_back({scratch("cross_thread_" + output.name, output, result.loops), {IndexForm{}}});
    program_.stores.push_back(std::move(result));
    return true;
  }

  int scratch(std::string name, const BufferNode& like, const std::vector<int>& outer_loops) {
    SiteMemory memory;
    memory.name = std::move(name);
    memory.bytes = std::max(1, like.dtype.element_bytes());
    memory.shape = {1};
    memory.placed = true;
    for (int loop : outer_loops) memory.outer_product *= table_.loops[static_cast<size_t>(loop)].extent;
    table_.memories.push_back(std::move(memory));
    program_.memories.push_back({"local", false, false, -1});
    return static_cast<int>(table_.memories.size()) - 1;
  }

  // From records to numbers
  // --------------------------------------------------------------------------------------------------
  Site site_of(const StoreRecord& record) {
    Site site;
    site.memory = record.store.memory;
    site.loops = record.loops;
    site.ops = record.ops;
    for (const AccessRecord& load : record.loads)
      for (const IndexForm& index : load.index) program_.forms.count(index, site.ops);
    position_.assign(program_.loop_of_atom.size(), -1);
    for (size_t i = 0; i < site.loops.size(); ++i)
      position_[static_cast<size_t>(atom_of_loop_[static_cast<size_t>(site.loops[i])])] = static_cast<int>(i);
    std::vector<std::vector<const AccessRecord*>> sets{{&record.store}};
    site.accesses.emplace_back();
    site.accesses[0].memory = record.store.memory;
    site.accesses[0].kind = SiteAccess::Kind::write;
    for (const AccessRecord& load : record.loads) {
      size_t i = 0;
      while (i < site.accesses.size() && site.accesses[i].memory != load.memory) ++i;
      if (i == site.accesses.size()) {
        site.accesses.emplace_back();
        site.accesses[i].memory = load.memory;
        sets.emplace_back();
      }
      if (i == 0)
        site.accesses[0].kind = SiteAccess::Kind::both;  // its own loads do not widen what a store touches
      else
        sets[i].push_back(&load);
    }
    for (size_t i = 0; i < sets.size(); ++i) measure(sets[i], site, site.accesses[i]);
    return site;
  }

  void measure(const std::vector<const AccessRecord*>& set, const Site& site, SiteAccess& out) {
    const SiteMemory& memory = table_.memories[static_cast<size_t>(out.memory)];
    size_t rank = memory.shape.size(), depth = site.loops.size();
    out.touched.assign(depth, 1);
    out.shape.assign(rank, 1);
    for (size_t i = depth; i-- > 0;)
      for (size_t dim = 0; dim < rank; ++dim) {
        double extent = touched_extent(set, dim, i, memory.shape[dim]);
        out.touched[i] *= extent;
        if (i == 0) out.shape[dim] = extent;
      }
    for (const AccessRecord* access : set)
      for (const IndexForm& index : access->index)
        program_.forms.for_each_loop(index, [&](int atom) {
          if (int p = position_[static_cast<size_t>(atom)]; p >= 0) out.moves[static_cast<size_t>(p)] = true;
        });
    for (size_t i = depth; i-- > 0;)
      if (out.moves[i]) {
        out.stride_loop = static_cast<int>(i);
        out.stride = stride_of(set, atom_of_loop_[static_cast<size_t>(site.loops[i])], memory);
        break;
      }
  }

  double touched_extent(const std::vector<const AccessRecord*>& set, size_t dim, size_t from_loop, double whole) {
    auto running = [&](int atom) { return position_[static_cast<size_t>(atom)] >= static_cast<int>(from_loop); };
    bool first = true;
    int64_t lo = 0, hi = 0;
    for (const AccessRecord* access : set) {
      IndexRange r = program_.forms.range(access->index[dim], running, /*frozen_remainders=*/true);
      if (!r.known) return whole;
      lo = first ? r.lo : std::min(lo, r.lo);
      hi = first ? r.hi : std::max(hi, r.hi);
      first = false;
    }
    return static_cast<double>(hi - lo + 1);
  }

  double stride_of(const std::vector<const AccessRecord*>& set, int atom, const SiteMemory& memory) {
    double least = 0;
    for (const AccessRecord* access : set) {
      double dim_stride = 1;
      for (size_t dim = memory.shape.size(); dim-- > 0; dim_stride *= memory.shape[dim])
        if (int64_t c = program_.forms.coefficient(access->index[dim], atom)) {
          double stride = static_cast<double>(c) * dim_stride;
          least = least == 0 ? stride : std::min(least, stride);
          break;
        }
    }
    return least;
  }

  struct Launch {
    std::string tag;
    int loop;
  };
  SiteTable& table_;
  ProgramRecord program_;
  ExpressionReader reader_;
  std::unordered_map<uint64_t, int> memory_by_buffer_;  // looked up only, like the two below
  std::unordered_map<uint64_t, const BufferNode*> buffer_by_pointer_;
  std::unordered_map<uint64_t, Alias> aliases_;
  std::vector<int> atom_of_loop_;
  std::vector<int> serial_;  // loops around, without the kernel's launch loops
  std::vector<Launch> launch_;
  int kernel_ = -1;
  int scope_ = 0;
  std::vector<int> position_;  // by atom: position in the site's loops, -1: not there
};

}  // namespace

SiteTable collect_sites(const Function& function, bool gpu) {
  SiteTable table;
  table.gpu = gpu;
  Collector(function, table);
  finish_sites(table);
  return table;
}

}  // namespace tilewright
