// Schedule: a program, the trace that produced it, and the symbols of that trace. A primitive either applies or
// refuses; a refusal leaves program, trace and symbols untouched. Copying a schedule is cheap (the program is shared).
//
//   Schedule s(program, seed);
//   TW_TRY(BlockRV c, s.get_sblock("C"));
//   TW_TRY(std::vector<LoopRV> loops, s.get_loops(c));
//   TW_TRY(std::vector<IntRV> tile, s.sample_perfect_tile(loops[0], 4, 64));
//   TW_TRY(std::vector<LoopRV> split, s.split(loops[0], tile));
#pragma once

#include "schedule/state.h"
#include "schedule/trace.h"
#include "support/rng.h"

namespace tilewright {

/// What a symbol stands for now. Ids whose block or loop has been consumed make later uses `handle-expired`.
struct SymbolValue {
  SymbolKind kind = SymbolKind::integer;
  bool defined = false;
  uint64_t id = 0;  ///< BlockId or LoopId
  int64_t integer = 0;
};

enum class RepairMode : uint8_t {
  repair,  ///< a tile decision that no longer fits is repaired (schedule-language.md §4.4) and reported
  refuse,  ///< … is refused
  tvm,     ///< … is repaired as the compatible system does
};

TW_REFUSAL_CODE(decision_does_not_fit, "decision-does-not-fit",
                "a recorded decision is none that could be drawn here, and repair is off");

struct ScheduleOptions {
  std::string function;   ///< empty: the program's main function
  bool tvm_mode = false;  ///< annotation-exists becomes "no change"
  RepairMode repair = RepairMode::repair;
  std::string target;  ///< whose intrinsics may be used, as text; empty: that of the function's attributes, else any
};

class Schedule {
 public:
  /// The program must have a schedulable function (else InternalError: check with schedulable_function first).
  explicit Schedule(ProgramRef program, uint64_t seed = 0, ScheduleOptions options = {});

  const ProgramRef& program() const { return state_.program(); }
  const Function& function() const { return state_.function(); }
  State& state() { return state_; }
  const State& state() const { return state_; }
  const Trace& trace() const { return trace_; }
  Rng& rng() { return rng_; }
  void reseed(Rng rng) { rng_ = rng; }
  const ScheduleOptions& options() const { return options_; }
  const std::vector<SymbolValue>& symbols() const { return symbols_; }
  /// The trace with only those decisions that the caller gave (not those that were drawn).
  Trace trace_with_given_decisions() const;
  /// Decisions that had to change: "instruction 3 (sample_perfect_tile): decision [8, 16] was repaired to [8, 12]".
  const std::vector<std::string>& repairs() const { return repairs_; }
  void note_repair(std::string text) { repairs_.push_back(std::move(text)); }

  /// Applies one instruction; its outputs get the next numbers, or those of `instruction.outputs` when given (replay).
  Result<std::vector<Symbol>> apply(Instruction instruction, bool keep_outputs = false);
  /// By name, with arguments by name; absent ones take their defaults.
  Result<std::vector<Symbol>> call(std::string_view primitive,
                                   std::vector<std::pair<std::string, TraceValue>> arguments,
                                   std::optional<TraceValue> decision = std::nullopt);

  /// The block or loop of a handle; `handle-expired` when it is gone, `handle-of-wrong-kind` otherwise.
  Result<const Block*> block(Symbol) const;
  Result<const For*> loop(Symbol) const;
  int64_t integer(Symbol) const;

  // --- typed front: thin wrappers of call(). Arguments, refusals and effects: schedule-language.md §3.
  Result<std::vector<IntRV>> sample_perfect_tile(LoopRV, int n, int max_innermost_factor = 16,
                                                 std::optional<TraceValue> decision = {});
  Result<std::vector<IntRV>> sample_partitioned_tile(LoopRV, int n, int partition_pos = 0, int innerpart_factor = 1,
                                                     std::optional<TraceValue> decision = {});
  Result<IntRV> sample_categorical(std::vector<int64_t> candidates, std::vector<double> probs,
                                   std::optional<TraceValue> decision = {});
  Result<LoopRV> sample_compute_location(BlockRV, std::optional<TraceValue> decision = {});
  Result<BlockRV> get_sblock(const std::string& name, const std::string& func_name = "");
  Result<std::vector<LoopRV>> get_loops(BlockRV);
  Result<std::vector<BlockRV>> get_child_blocks(Symbol block_or_loop);
  Result<std::vector<BlockRV>> get_producers(BlockRV);
  Result<std::vector<BlockRV>> get_consumers(BlockRV);
  Result<std::vector<BlockRV>> get_output_blocks(BlockRV scope);
  Result<LoopRV> fuse(std::vector<LoopRV>, bool preserve_unit_iters = true);
  Result<std::vector<LoopRV>> split(LoopRV, TraceList factors, bool preserve_unit_iters = true,
                                    bool disable_predication = false);
  Result<std::vector<LoopRV>> split(LoopRV loop, const std::vector<IntRV>& factors) {
    return split(loop, *TraceValue(factors).get<TraceList>());
  }
  Status reorder(std::vector<LoopRV>);
  Status reorder_block_iter_var(BlockRV, std::vector<int64_t> new_order);
  Result<LoopRV> add_unit_loop(Symbol block_or_loop);
  Status parallel(LoopRV);
  Status vectorize(LoopRV);
  Status unroll(LoopRV);
  Status bind(LoopRV, const std::string& thread_axis);
  Result<BlockRV> cache_read(BlockRV, int read_buffer_index, const std::string& scope,
                             std::vector<BlockRV> consumers = {});
  Result<BlockRV> cache_write(BlockRV, int write_buffer_index, const std::string& scope,
                              std::vector<BlockRV> consumers = {});
  Result<BlockRV> reindex_cache_read(BlockRV, int read_buffer_index, const std::string& scope, IndexMapRef);
  Result<BlockRV> reindex_cache_write(BlockRV, int write_buffer_index, const std::string& scope, IndexMapRef);
  Status compute_at(BlockRV, LoopRV, bool preserve_unit_loops = false, int index = -1);
  Status reverse_compute_at(BlockRV, LoopRV, bool preserve_unit_loops = false, int index = -1);
  Status compute_inline(BlockRV);
  Status reverse_compute_inline(BlockRV);
  Result<BlockRV> decompose_reduction(BlockRV, LoopRV);
  Result<BlockRV> rfactor(LoopRV, int factor_axis);
  Result<BlockRV> blockize(LoopRV, bool preserve_unit_iters = true);
  Status tensorize(Symbol block_or_loop, const std::string& tensor_intrin, bool preserve_unit_iters = true);
  Status storage_align(BlockRV, int buffer_index, int axis, int factor, int offset);
  Status set_scope(BlockRV, int buffer_index, const std::string& scope);
  Status annotate(Symbol block_or_loop, const std::string& key, TraceValue value);
  Status unannotate(Symbol block_or_loop, const std::string& key);
  Status transform_layout(BlockRV, const std::string& side, int buffer_index, IndexMapRef,
                          TraceValue pad_value = nullptr, bool assume_injective = false);
  Status pad_einsum(BlockRV, std::vector<int64_t> padding);
  Status enter_postproc();

 private:
  Status resolve_shorthands(Instruction&) const;
  State state_;
  Trace trace_;
  Rng rng_;
  ScheduleOptions options_;
  std::vector<SymbolValue> symbols_;
  std::vector<std::string> repairs_;
  std::vector<bool> decision_given_;  ///< by instruction of the trace
};

TW_REFUSAL_CODE(no_schedulable_function, "no-schedulable-function",
                "the program has no function with blocks, or several and none named main");
/// The function that a schedule works on.
Result<const Function*> schedulable_function(const Program&, const std::string& name = "");

struct ReplayOptions {
  ScheduleOptions schedule;
  bool skip_refusals = false;    ///< go on after a refusal, and list all
  bool upto_postproc = false;    ///< stop before EnterPostproc
  bool fresh_decisions = false;  ///< ignore recorded decisions and draw new ones
};
struct ReplayRefusal {
  size_t instruction;
  Refusal refusal;
};
struct Replayed {
  Schedule schedule;
  std::vector<ReplayRefusal> refusals;  ///< empty, or one (the last) unless skip_refusals
};
TW_REFUSAL_CODE(output_count_differs, "output-count-differs",
                "an instruction returned another number of handles than the trace records");

/// Applies a trace in order. Same trace and program give the same program hash on every host and for any thread count.
Replayed replay(const Trace&, ProgramRef, Rng rng, const ReplayOptions& = {});

}  // namespace tilewright
