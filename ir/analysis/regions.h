// Which elements are touched: interval evaluation of indices over loop domains, unions, intersections, cover tests and
// signatures. `relax` over-approximates (what may be touched); `lower_bound` is exact or nothing (what is surely
// touched).
#pragma once

#include <optional>
#include <string_view>

#include "ir/analysis/iter_map.h"
#include "ir/simplify/analyzer.h"

namespace tilewright {

/// Symbolic bounds, both ends included; null: unbounded on that side.
struct SymbolicInterval {
  Expr min, max;
  bool bounded() const { return min && max; }
};

/// Values that `e` takes while the variables of `relaxed` run over their ranges (later ones may depend on earlier ones)
/// and `predicate` holds (null: true). Other variables stay symbolic. Bounds of non-monotone parts are
/// over-approximated.
SymbolicInterval bounds_over(const Expr& e, const std::vector<VarRange>& relaxed, const Expr& predicate,
                             Analyzer& analyzer);
/// The range as [min, min + extent): union over the relaxed variables. A side that cannot be bounded falls back to the
/// buffer's shape in relax().
std::optional<Range> relax(const Range& range, const std::vector<VarRange>& relaxed, const Expr& predicate,
                           Analyzer& analyzer);

/// Over-approximation of the union of the region over the relaxed variables, clipped to nothing but the buffer's extent
/// where it cannot be bounded.
BufferRegion relax(const BufferRegion& region, const std::vector<VarRange>& relaxed, const Expr& predicate,
                   Analyzer& analyzer);
/// The union exactly, if it is a box that the indices cover without gaps (independent dimensions, affine digits); else
/// nothing.
std::optional<BufferRegion> lower_bound(const BufferRegion& region, const std::vector<VarRange>& relaxed,
                                        const Expr& predicate, Analyzer& analyzer);

/// Rows that a vector access runs through: a ramp of stride 1 from 0 whose lanes fill the last dimensions goes on in
/// the next row, as in row-major memory. A 64-lane ramp in [0, T.Ramp(0, 1, 64)] of a buffer (16, 4) has lanes {16, 4}.
/// Empty: the access has no such ramp, and lanes stay in the last dimension.
std::vector<int> whole_rows(const BufferNode& buffer, const std::vector<Expr>& indices);

BufferRegion full_region(const Buffer& buffer);
BufferRegion point_region(const Buffer& buffer, const std::vector<Expr>& indices);
/// Smallest box that is provably around both.
BufferRegion region_union(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer);
/// Box that contains the common part; extents may be symbolic (and non-positive when empty).
BufferRegion region_intersection(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer);
/// `outer` provably contains `inner`.
bool region_covers(const BufferRegion& outer, const BufferRegion& inner, Analyzer& analyzer);
/// The boxes together provably contain `wanted`.
bool boxes_cover(std::vector<BufferRegion> boxes, const BufferRegion& wanted, Analyzer& analyzer);
/// Provably without a common element.
bool regions_disjoint(const BufferRegion& a, const BufferRegion& b, Analyzer& analyzer);
/// Clipped to the buffer's shape.
BufferRegion clip_to_shape(const BufferRegion& region, Analyzer& analyzer);

/// A region of an alias (match_buffer) as a region of its source, one level.
BufferRegion through_match(const BufferRegion& region, const MatchBuffer& match);

struct Signature {
  std::vector<BufferRegion> reads, writes;  ///< order of first access; one region for each buffer
  bool opaque = false;                      ///< pointer or opaque call: the regions are incomplete
};
/// What the block's body (and init) touches, as functions of its iters and outer variables; loops, conditions and
/// nested blocks' signatures inside are relaxed. A block with an init does not count its update's read of the element
/// written. Buffers allocated inside are left out, aliases are mapped to their source.
Signature derive_signature(const Block& block, Analyzer* outer = nullptr);
/// The same for a statement without a block around it.
Signature derive_signature(const Stmt& body, Analyzer* outer = nullptr);

/// Boxes of the buffer that every instance of the block writes whole, as functions of its iters and outer variables:
/// from its stores and the blocks inside it, those under conditions left out. (A signature says what may be written.)
std::vector<BufferRegion> surely_written(const Block& block, const Buffer& buffer, Analyzer& analyzer);

/// Whether the loop's iterations share a buffer of that scope, so that a region is relaxed over it too: thread loops
/// for memory that their threads share (schedule-language.md §2, storage span). `thread`: the loop's axis.
bool in_storage_span(std::string_view scope, std::string_view thread);

}  // namespace tilewright
