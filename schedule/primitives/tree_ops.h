// What several primitives do with trees: facts about loop variables, re-simplified bindings, nests, labels of §3.1 as
// checks.
#pragma once

#include "ir/equal.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "schedule/context.h"

namespace tilewright {

/// Binds the iters of the enclosing block and the loops between it and place `p`. With keep_units, loops of extent 1
/// stay unknown, so that simplification keeps their variables.
void bind_loops_above(Analyzer&, const State&, Place p, bool keep_units = false);

/// Labels of schedule-language.md §3.1, in the order tested.
Status check_zero(const Context&, const For*);
Status check_plain(const Context&, const For*);
Status check_inner(const Context&, const Block*);
Status check_pipeline(const Context&, const Block*);
Status check_complete(const Context&, const Block*);
Status check_reduction(const Context&, const Block*);
Status check_either(const Context&, const Block*);
Status check_temp(const Context&, const Block*);
Status check_removable(const Context&, const Block*);
Status check_affine(const Context&, const Block*);
Status check_trivial(const Context&, const Block*);
Status check_scope_name(const Context&, const std::string& storage_scope);
/// The loop drives no reduction, scan or opaque iter (with bind's exemptions for its thread axis).
Status check_parallel_legal(const Context&, const For*, const std::string& thread);
/// The checks of parallel, vectorize and bind (compact dataflow, no driven reduction), then the loop's new kind.
Status set_parallel_kind(Context&, const For*, ForKind, const std::string& thread);
/// Re-check of every parallel, vectorized or bound loop above `block` after a move.
Status check_moved_under_parallel(const Context&, BlockId block);
/// A violation found by the analyses, as a refusal.
tl::unexpected<Refusal> refuse_violation(const Context&, const Violation&);

/// Rewrites the blocks directly below `s` (not nested ones): bindings and predicates are substituted by `map` and
/// simplified under `facts` and the loops on the way; `extra` (may be null) is and-ed to each predicate.
Stmt rebind_blocks(const Stmt& s, const VarMap& map, Analyzer& facts, const Expr& extra, bool keep_units);

/// A copy of `loop` with another body (same id).
Stmt with_loop_body(const For& loop, Stmt body);
/// Loops, outermost first, wrapped around `body` (headers copied, ids kept).
Stmt nest(const std::vector<const For*>& loops, Stmt body);
/// A serial loop from 0 with a given id.
Stmt serial_loop(const Var& var, const Expr& extent, Stmt body, LoopId id = fresh_loop_id());

/// Nearest statement whose parent is a Seq or that is the whole body of its parent's scope: where siblings can be put.
/// Inserts `s` directly before / after the statement at place p (p's outermost loop or block), building a Seq when
/// needed.
void insert_before(State&, Place p, const Stmt& s);
void insert_after(State&, Place p, const Stmt& s);

/// Removes a block with the loops above it that hold nothing else (never the scope's whole body: check_removable
/// first). Returns the statement that goes.
const StmtNode* removable_nest(const State&, Place block);

/// Read or write region `index` of a block; `buffer-index-out-of-range`.
Result<BufferRegion> region_of(const Context&, const Block*, int64_t index, bool write);

/// The block that allocates the buffer, searching upwards from `from`; kNoPlace for parameters.
Place allocating_block(const State&, Place from, const Buffer&);

}  // namespace tilewright
