// packed_tiling: float contractions on CPUs as hand-written libraries do them. The operand that the innermost output
// axis indexes is packed in panels as wide as the register tile; the reduction is cut into blocks; partial sums
// of one block live in registers; rows and columns are tiled for the caches.
//
//   for io, jo:  for k0:  for i1, j1:  acc[mr, nr] = Σ_k1 A[i, k] · panel[j // nr, k, j % nr];   C[i, j] += acc
//
// One sketch for each width of the register tile in vectors; its height, kc, the outer tiles and the unrolling are
// sampled. Tiles divide what they tile; where no good tile does, the contraction is padded to one first (pad_einsum),
// if that adds no more than a quarter.
//
// Where the target has a dot product of the operands' types (schedule/intrinsics/), it computes the tile: `depth`
// values of the reduction at once for each lane, which stand together in the panel:
//
//   acc[mr, nr] = Σ_k1 dot(A[i, k1·depth …], panel[j // nr, k1, j % nr, …])
#include <algorithm>

#include "ir/analysis/reducers.h"
#include "ir/visit.h"
#include "schedule/intrinsics/intrinsic.h"
#include "search/rules/block_queries.h"
#include "search/rules/rule.h"

namespace tilewright {

namespace {

TW_REFUSAL_CODE(handle_missing, "packed-copy-unexpected", "the packed copy has another shape than the rule expects");

constexpr const char* kMark = "meta_schedule.tiling_structure";

/// A dot product that accumulates vectors of `lanes`, each over `depth` values of the reduction.
struct Dot {
  const char* intrinsic;
  DType rows, wide, sum;
  int lanes, depth;
};
const Dot kDots[] = {
    // the first on a target is taken
    {"dot_16x4_vnni", kUInt8, kInt8, kInt32, 16, 4},
    {"dot_8x4_avxvnni", kUInt8, kInt8, kInt32, 8, 4},
    {"dot_16x4_avx512", kUInt8, kInt8, kInt32, 16, 4},
    {"dot_8x4_avx2", kUInt8, kInt8, kInt32, 8, 4},
    {"dot_16x2_avx512bf16", kBFloat16, kBFloat16, kFloat32, 16, 2},
};

const Dot* dot_of(const Buffer& rows, const Buffer& wide, const Buffer& sum, const Target& target) {
  for (const Dot& d : kDots) {
    const TensorIntrinsic* intrinsic = Registry<TensorIntrinsic>::instance().find(d.intrinsic);
    TW_CHECK(intrinsic, "intrinsic {} is not registered", d.intrinsic);
    if (rows->dtype == d.rows && wide->dtype == d.wide && sum->dtype == d.sum && intrinsic->on(target)) return &d;
  }
  return nullptr;
}

/// The one load of the block that the innermost output iter indexes, with its region's place among the reads.
struct Operands {
  int wide = -1;               ///< read region indexed by the innermost output iter
  size_t row = 0, column = 0;  ///< iters of the register tile: the last two spatial iters
  std::vector<size_t> others;  ///< spatial iters outside the tile (batch)
  std::vector<size_t> reduction;
  size_t blocked = 0;  ///< of the reduction's iters, the one cut into blocks
  size_t loops = 0;    ///< reduction iters of more than one value
  int lanes = 0;
  const Dot* dot = nullptr;  ///< null: multiplications and additions
};

std::optional<Operands> analyse(const Block& b, const Target& target) {
  if (b.writes.size() != 1 || !b.init) return std::nullopt;
  std::optional<MatchedReducer> reducer = match_reducer(b);
  if (!reducer || reducer->reducer->name != "sum") return std::nullopt;
  Operands o;
  std::vector<size_t> spatial;
  for (size_t i = 0; i < b.iters.size(); ++i) {
    if (b.iters[i].type == IterType::spatial)
      spatial.push_back(i);
    else
      o.reduction.push_back(i);
  }
  if (spatial.size() < 2 || o.reduction.empty()) return std::nullopt;
  // The column is the iter of the output's innermost index; the row the nearest other spatial iter of non-unit extent.
  const VarNode* column = as<VarNode>(b.writes[0].region.back().min);
  std::optional<size_t> col, row;
  for (size_t i : spatial)
    if (b.iters[i].var.get() == column) col = i;
  if (!col) return std::nullopt;
  for (size_t i : spatial)
    if (i != *col && !is_const(b.iters[i].dom.extent, 1)) row = i;
  if (!row) return std::nullopt;
  o.row = *row;
  o.column = *col;
  for (size_t i : spatial)
    if (i != o.row && i != o.column) o.others.push_back(i);
  Buffer rows;
  for (size_t r = 0; r < b.reads.size(); ++r) {
    bool uses_column = false, uses_row = false, point = true;
    for (const Range& range : b.reads[r].region) {
      uses_column = uses_column || uses_var(range.min, column);
      uses_row = uses_row || uses_var(range.min, b.iters[o.row].var.get());
      point = point && is_const(range.extent, 1);
    }
    if (!point) return std::nullopt;
    if (uses_column && uses_row) return std::nullopt;
    if (uses_column) {
      if (o.wide >= 0) return std::nullopt;
      o.wide = static_cast<int>(r);
    } else if (uses_row) {
      rows = b.reads[r].buffer;
    }
  }
  if (o.wide < 0) return std::nullopt;
  if (rows && b.reads.size() == 2) o.dot = dot_of(rows, b.reads[o.wide].buffer, b.writes[0].buffer, target);
  if (!o.dot && !b.writes[0].buffer->dtype.is_float()) return std::nullopt;
  o.lanes = o.dot ? o.dot->lanes : target.lanes(b.writes[0].buffer->dtype.bits);
  std::optional<int64_t> n = const_int(b.iters[o.column].dom.extent), m = const_int(b.iters[o.row].dom.extent);
  if (!n || !m || *n < o.lanes || *m < 2) return std::nullopt;
  for (size_t r = 0; r < o.reduction.size(); ++r) {
    std::optional<int64_t> extent = const_int(b.iters[o.reduction[r]].dom.extent);
    if (!extent) return std::nullopt;
    if (*extent > 1 && o.loops++ == 0) o.blocked = r;
  }
  if (o.loops == 0) return std::nullopt;
  // Units behind the only loop would be taken for it.
  if (o.loops == 1 && o.blocked + 1 != o.reduction.size()) return std::nullopt;
  return o;
}

/// Index map of the packed operand: iters that it uses, the column cut into (panel, lane), lane innermost; for a dot
/// product what it sums up comes last.
IndexMapRef panel_map(const Block& b, const Operands& o, int64_t width) {
  auto map = std::make_unique<IndexMap>();
  for (const Iter& iter : b.iters) map->inputs.push_back(make_var(iter.var->name));
  auto used = [&](size_t i) {
    return std::any_of(b.reads[o.wide].region.begin(), b.reads[o.wide].region.end(),
                       [&](const Range& r) { return uses_var(r.min, b.iters[i].var.get()); });
  };
  for (size_t i : o.others)
    if (used(i)) map->outputs.push_back(map->inputs[i]);
  map->outputs.push_back(floor_div(Expr(map->inputs[o.column]), width));
  const size_t summed = o.reduction.back();
  for (size_t i : o.reduction)
    if (used(i))
      map->outputs.push_back(o.dot && i == summed ? floor_div(Expr(map->inputs[i]), o.dot->depth)
                                                  : Expr(map->inputs[i]));
  map->outputs.push_back(floor_mod(Expr(map->inputs[o.column]), width));
  if (o.dot) map->outputs.push_back(floor_mod(Expr(map->inputs[summed]), o.dot->depth));
  return IndexMapRef(map.release());
}

constexpr int64_t kMaxHeight = 16;

bool fits_registers(int64_t height, int vectors, const Target& target) {
  return (height + 1) * vectors + 1 <= target.vector_registers;
}
/// Enough independent sums to hide the latency of the units.
bool hides_latency(int64_t height, int vectors, const Target& target) {
  return height * vectors >= int64_t{target.fma_pipes} * target.fma_latency;
}

/// Heights of a register tile that fit the registers (accumulators, one row of the panel, one broadcast) and divide the
/// rows, so that no tile is covered in part. Small ones are left out while a larger one exists: they do more loads for
/// each multiplication, and have too few independent sums to hide the latency.
std::vector<int64_t> tile_heights(int vectors, int64_t rows, const Target& target) {
  std::vector<int64_t> fitting, out;
  for (int64_t mr = 1; mr <= std::min(kMaxHeight, rows); ++mr)
    if (fits_registers(mr, vectors, target) && rows % mr == 0) fitting.push_back(mr);
  for (int64_t mr : fitting)
    if (hides_latency(mr, vectors, target)) out.push_back(mr);
  if (out.empty() && !fitting.empty()) out.push_back(fitting.back());
  return out;
}

/// Depths of a block of the reduction: divisors, since a cut block would leave sums that are not covered.
std::vector<int64_t> block_depths(int64_t depth) {
  std::vector<int64_t> out;
  for (int64_t d = 64; d <= 1024 && d < depth; ++d)
    if (depth % d == 0) out.push_back(d);
  if (depth <= 4096 || out.empty()) out.push_back(depth);
  return out;
}

std::vector<double> even(size_t n) { return std::vector<double>(n, 1.0 / static_cast<double>(n)); }

/// Cuts a loop into {outer tile, register tiles inside it, register tile}.
template <class Inner>
Result<std::vector<LoopRV>> tile_for_caches(Schedule& s, LoopRV loop, Inner inner) {
  TW_TRY(std::vector<LoopRV> halves, s.split(loop, TraceList{nullptr, inner}));
  TW_TRY(std::vector<IntRV> factors, s.sample_perfect_tile(halves[0], 2, 64));
  TW_TRY(std::vector<LoopRV> outer, s.split(halves[0], TraceList{factors[0], factors[1]}));
  return std::vector<LoopRV>{outer[0], outer[1], halves[1]};
}

enum class Packing : uint8_t { none, wide, both };

/// Copies with zeros around, which pad_einsum made for `copy`'s block, are made on the way.
void inline_padding(Schedule& s, BlockRV copy) {
  auto producers = s.get_producers(copy);
  if (!producers) return;
  for (BlockRV producer : *producers) {
    const Schedule before = s;
    if (!s.compute_inline(producer)) s = before;
  }
}

Result<Schedule> build(Schedule s, BlockRV rv, const Operands& o, int vectors, Packing packing, bool padded,
                       const Target& target) {
  TW_TRY(const Block* block, s.block(rv));
  const int64_t nr = int64_t{vectors} * o.lanes;
  const std::vector<int64_t> heights = tile_heights(vectors, *const_int(block->iters[o.row].dom.extent), target);
  const int64_t depth = *const_int(block->iters[o.reduction[o.blocked]].dom.extent),
                innermost = *const_int(block->iters[o.reduction.back()].dom.extent);
  TW_TRY_VOID(s.annotate(rv, kMark, "packed"));
  const std::string output = block->writes[0].buffer->name;
  if (packing != Packing::none) {
    TW_TRY(BlockRV packed, s.reindex_cache_read(rv, o.wide, "global", panel_map(*block, o, nr)));
    if (padded) inline_padding(s, packed);
    TW_TRY(std::vector<LoopRV> loops, s.get_loops(packed));
    // Panels outermost, the lane innermost: rows of a panel are written as whole vectors.
    TW_TRY(const Block* copy, s.block(packed));
    std::optional<size_t> column_loop;
    for (size_t i = 0; i < copy->iters.size(); ++i)
      if (copy->iters[i].var->name == block->iters[o.column].var->name) column_loop = i;
    if (!column_loop) return refuse(handle_missing, "the packed copy has no column");
    const VarNode* bound = as<VarNode>(copy->iters[*column_loop].binding);
    std::optional<size_t> at;
    for (size_t i = 0; i < loops.size(); ++i) {
      TW_TRY(const For* loop, s.loop(loops[i]));
      if (loop->var.get() == bound) at = i;
    }
    if (!at) return refuse(handle_missing, "the column is not a loop");
    TW_TRY(std::vector<LoopRV> halves, s.split(loops[*at], TraceList{nullptr, nr}));
    std::vector<LoopRV> order{halves[0]};
    for (size_t i = 0; i < loops.size(); ++i)
      if (i != *at) order.push_back(loops[i]);
    order.push_back(halves[1]);
    if (o.dot) {  // the values of one dot product are read from as many rows and stored side by side
      LoopRV summed = order[order.size() - 2];
      TW_TRY(std::vector<LoopRV> pieces, s.split(summed, TraceList{nullptr, o.dot->depth}));
      order[order.size() - 2] = pieces[0];
      order.push_back(pieces[1]);
      TW_TRY_VOID(s.reorder(order));
      TW_TRY_VOID(s.unroll(pieces[1]));
    } else {
      TW_TRY_VOID(s.reorder(order));
      TW_TRY_VOID(s.vectorize(halves[1]));
    }
    if (!on_one_core(s)) TW_TRY_VOID(s.parallel(halves[0]));
  }
  TW_TRY(std::vector<LoopRV> loops, s.get_loops(rv));
  std::vector<LoopRV> others, reduction, order;
  for (size_t i : o.others) others.push_back(loops[i]);
  for (size_t i : o.reduction) reduction.push_back(loops[i]);
  order = others;
  order.push_back(loops[o.row]);
  order.push_back(loops[o.column]);
  order.insert(order.end(), reduction.begin(), reduction.end());
  TW_TRY_VOID(s.reorder(order));
  // The loop over blocks of the reduction: of one loop its upper part, of several (a convolution's window and channels)
  // the first.
  LoopRV blocks = reduction[o.blocked];
  if (o.loops == 1) {
    std::vector<int64_t> kcs = block_depths(depth);
    TW_TRY(IntRV kc, s.sample_categorical(kcs, even(kcs.size())));
    TW_TRY(std::vector<LoopRV> ks, s.split(blocks, TraceList{nullptr, kc}));
    blocks = ks[0];
  }
  TW_TRY(IntRV mr, s.sample_categorical(heights, even(heights.size())));
  std::vector<int64_t> unrolls{1, 2, 4, 8};
  const int64_t step = o.dot ? o.dot->depth : 1;
  std::erase_if(unrolls, [&](int64_t u) { return innermost % (u * step) != 0; });
  TW_TRY(IntRV unroll, s.sample_categorical(unrolls, even(unrolls.size())));

  TW_TRY(BlockRV partial, s.rfactor(blocks, 0));
  // The sum over blocks: tiled for the caches, k blocks inside the outer tile, one register tile innermost.
  TW_TRY(std::vector<LoopRV> sum_loops, s.get_loops(rv));
  const size_t outer = others.size();
  TW_TRY(std::vector<LoopRV> is, tile_for_caches(s, sum_loops[outer], mr));
  TW_TRY(std::vector<LoopRV> js, tile_for_caches(s, sum_loops[outer + 1], nr));
  std::vector<LoopRV> nest(sum_loops.begin(), sum_loops.begin() + static_cast<std::ptrdiff_t>(outer));
  for (LoopRV l : {is[0], js[0], sum_loops[outer + 2], js[1], is[1], is[2], js[2]}) nest.push_back(l);
  TW_TRY_VOID(s.reorder(nest));
  TW_TRY_VOID(s.compute_at(partial, is[1], true));
  TW_TRY_VOID(s.unroll(is[2]));
  TW_TRY_VOID(s.vectorize(js[2]));
  // The tile of the output is asked for while its partial sums are computed: without it every tile waits for memory
  // once.
  TW_TRY_VOID(s.annotate(is[1], "prefetch", TraceList{TraceList{output, 0, 3}}));
  if (packing ==
      Packing::both) {  // rows of the other operand, copied block by block: unit stride, no conflicts of large strides
    TW_TRY(const Block* tile_block, s.block(partial));
    int other = -1;
    for (size_t r = 0; r < tile_block->reads.size(); ++r) {
      bool uses_row =
          std::any_of(tile_block->reads[r].region.begin(), tile_block->reads[r].region.end(),
                      [&](const Range& range) { return uses_var(range.min, tile_block->iters[1 + o.row].var.get()); });
      if (uses_row) other = static_cast<int>(r);
    }
    if (other < 0) return refuse(handle_missing, "no operand is indexed by the row");
    TW_TRY(BlockRV rows_copy, s.cache_read(partial, other, "global"));
    if (padded) inline_padding(s, rows_copy);
    TW_TRY_VOID(s.compute_at(rows_copy, sum_loops[outer + 2], true));
    TW_TRY(std::vector<LoopRV> copy_loops, s.get_loops(rows_copy));
    TW_TRY_VOID(s.vectorize(copy_loops.back()));
  }
  // Partial sums: the reduction outside of the tile.
  TW_TRY(std::vector<LoopRV> tile, s.get_loops(partial));
  const size_t inner = o.loops == 1 ? reduction.size() : reduction.size() - 1, n = tile.size();
  LoopRV tile_row = tile[n - inner - 2], tile_column = tile[n - inner - 1];
  std::vector<LoopRV> tile_order(tile.end() - static_cast<std::ptrdiff_t>(inner), tile.end() - 1);
  if (o.dot) {
    TW_TRY(std::vector<LoopRV> steps, s.split(tile[n - 1], TraceList{nullptr, unroll, step}));
    TW_TRY(std::vector<LoopRV> columns, s.split(tile_column, TraceList{nullptr, o.lanes}));
    for (LoopRV l : {steps[0], steps[1], tile_row, columns[0], columns[1], steps[2]}) tile_order.push_back(l);
    TW_TRY_VOID(s.reorder(tile_order));
    for (LoopRV l : {steps[1], tile_row, columns[0]}) TW_TRY_VOID(s.unroll(l));
    TW_TRY(BlockRV dot, s.blockize(columns[1]));
    Schedule probe = s;  // the types agree; does the rest?
    TW_TRY_VOID(probe.tensorize(dot, o.dot->intrinsic));
    TW_TRY_VOID(s.annotate(dot, "meta_schedule.auto_tensorize", o.dot->intrinsic));
  } else {
    TW_TRY(std::vector<LoopRV> steps, s.split(tile[n - 1], TraceList{nullptr, unroll}));
    for (LoopRV l : {steps[0], steps[1], tile_row, tile_column}) tile_order.push_back(l);
    TW_TRY_VOID(s.reorder(tile_order));
    TW_TRY_VOID(s.unroll(steps[1]));
    TW_TRY_VOID(s.unroll(tile_row));
    TW_TRY_VOID(s.vectorize(tile_column));
  }
  if (on_one_core(s)) return s;
  // Outer tiles in parallel. The inits are split off by rewrite_reduction_block.
  std::vector<LoopRV> parallel(nest.begin(), nest.begin() + static_cast<std::ptrdiff_t>(outer + 2));
  TW_TRY(LoopRV fused, s.fuse(parallel));
  TW_TRY_VOID(s.parallel(fused));
  return s;
}

int64_t extent_of(const Block& b, size_t iter) { return *const_int(b.iters[iter].dom.extent); }

/// What one packing of the block gives, for each way to pack.
void build_all(const Schedule& s, BlockRV rv, const Operands& o, int vectors, bool padded, const Target& target,
               std::vector<Schedule>& out) {
  const int64_t columns = extent_of(**s.block(rv), o.column);
  for (Packing packing : {Packing::wide, Packing::both, Packing::none}) {
    // The last panel of an uneven width would be covered in part only.
    if (packing != Packing::none && columns % (int64_t{vectors} * o.lanes) != 0) continue;
    // A dot product reads panels, and so does what was padded.
    if (packing == Packing::none && (o.dot || padded)) continue;
    // Rows of a window overlap: a copy of them for each block would be made several times.
    if (packing == Packing::both && o.loops > 1) continue;
    auto built = build(s, rv, o, vectors, packing, padded, target);
    if (built) out.push_back(std::move(*built));
  }
}

struct Tile {
  int vectors = 0;
  int64_t height = 0;
};

/// The register tile for which the least is added, the larger one of equals. Nothing: more than a quarter is added.
std::optional<Tile> tile_to_pad_for(const Block& b, const Operands& o, const Target& target) {
  const int64_t rows = extent_of(b, o.row), columns = extent_of(b, o.column);
  auto up = [](int64_t n, int64_t to) { return (n + to - 1) / to * to; };
  std::optional<Tile> best;
  double least = 1.25 * static_cast<double>(rows) * static_cast<double>(columns);
  for (int vectors : {2, 3, 4}) {
    for (int64_t height = 1; height <= kMaxHeight; ++height) {
      if (!fits_registers(height, vectors, target) || !hides_latency(height, vectors, target)) continue;
      const double area = static_cast<double>(up(rows, height)) * static_cast<double>(up(columns, vectors * o.lanes));
      if (area > least || (area == least && best && best->height * best->vectors >= height * vectors)) continue;
      least = area;
      best = Tile{vectors, height};
    }
  }
  return best;
}

std::vector<Schedule> apply(Schedule s, BlockRV rv, const RuleContext& context) {
  auto block = s.block(rv);
  const Target& target = context.target;
  if (!block || !target.is_cpu() || !needs_tiling(s, **block)) return {s};
  std::optional<Operands> operands = analyse(**block, target);
  if (!operands) return {s};
  std::vector<Schedule> out;
  const int64_t rows = extent_of(**block, operands->row), columns = extent_of(**block, operands->column),
                depth = operands->dot ? operands->dot->depth : 1;
  const bool whole_depth = extent_of(**block, operands->reduction.back()) % depth == 0;
  // Two to four vectors wide: a narrower tile loads more than it computes, and is built only where no other fits.
  bool good = false;
  for (int vectors : {2, 3, 4}) {
    if (!whole_depth || columns % (int64_t{vectors} * operands->lanes) != 0) continue;
    std::vector<int64_t> heights = tile_heights(vectors, rows, target);
    good = good || (!heights.empty() && hides_latency(heights.back(), vectors, target));
    build_all(s, rv, *operands, vectors, false, target, out);
  }
  if (!good) {
    std::optional<Tile> tile = tile_to_pad_for(**block, *operands, target);
    std::vector<int64_t> padding((*block)->iters.size(), 1);
    if (tile)
      padding[operands->row] = tile->height, padding[operands->column] = int64_t{tile->vectors} * operands->lanes;
    padding[operands->reduction.back()] = depth;
    Schedule padded = s;
    if (tile && padded.pad_einsum(rv, padding))
      if (std::optional<Operands> now = analyse(**padded.block(rv), target))
        build_all(padded, rv, *now, tile->vectors, true, target, out);
  }
  if (out.empty() && whole_depth) build_all(s, rv, *operands, 1, false, target, out);
  out.push_back(s);
  return out;
}

const Register<ScheduleRule> entry{
    "packed_tiling", "packs an operand of float contractions in panels and tiles for registers and caches", {apply}};

}  // namespace

}  // namespace tilewright
