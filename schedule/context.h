// Context: what one application of a primitive sees: its arguments (resolved and type-checked), the state to change,
// random numbers, and the ways to end: give() outputs and return {}, or return c.refuse(code, message).
#pragma once

#include "ir/build.h"
#include "schedule/codes.h"
#include "schedule/schedule.h"

namespace tilewright {

class Context {
 public:
  Context(Schedule& s, const Instruction& instruction) : schedule(s), state(s.state()), instruction_(instruction) {}

  Schedule& schedule;
  State& state;

  // --- arguments, by name. Types were checked before apply() is called; live handles are checked here.
  Result<const Block*> block(std::string_view name) const;
  Result<const For*> loop(std::string_view name) const;
  Result<std::vector<const For*>> loops(std::string_view name) const;
  Result<std::vector<const Block*>> blocks(std::string_view name) const;
  /// Exactly one of the two is set.
  struct BlockOrLoop {
    const Block* block = nullptr;
    const For* loop = nullptr;
    const StmtNode* stmt() const { return block ? static_cast<const StmtNode*>(block) : loop; }
  };
  Result<BlockOrLoop> block_or_loop(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  /// Split factors: nothing = None (inferred).
  std::vector<std::optional<int64_t>> factors(std::string_view name) const;
  IndexMapRef index_map(std::string_view name) const;
  const TraceValue& value(std::string_view name) const;
  /// `value` with handles replaced by their integers.
  Attr attr(std::string_view name) const;

  const std::optional<TraceValue>& decision() const { return instruction_.decision; }

  // --- results
  void give(const Block* block) { outputs_.push_back({SymbolKind::block, true, static_cast<uint64_t>(block->id), 0}); }
  void give(BlockId id) { outputs_.push_back({SymbolKind::block, true, static_cast<uint64_t>(id), 0}); }
  void give(LoopId id) { outputs_.push_back({SymbolKind::loop, true, static_cast<uint64_t>(id), 0}); }
  void give(int64_t integer) { outputs_.push_back({SymbolKind::integer, true, 0, integer}); }
  /// A symbolic tile factor: the output "_".
  void give_symbolic() { outputs_.push_back({SymbolKind::integer, false, 0, -1}); }
  void decide(TraceValue decision) { decided_ = std::move(decision); }
  /// Says that the recorded decision does not fit and what is taken instead; refused where repair is off.
  Status repair(const std::string& from, const std::string& to, const StmtNode* place) const;
  const std::vector<SymbolValue>& outputs() const { return outputs_; }
  const std::optional<TraceValue>& decided() const { return decided_; }

  // --- refusals. `place` is underlined in the printed program when the text is read.
  tl::unexpected<Refusal> refuse(const RefusalCode&, std::string message, const StmtNode* place = nullptr) const;

 private:
  const TraceValue& argument(std::string_view name) const;
  template <class Node>
  Result<const Node*> schedulable(Result<const Node*>) const;
  Attr to_attr(const TraceValue&) const;
  const Instruction& instruction_;
  std::vector<SymbolValue> outputs_;
  std::optional<TraceValue> decided_;
};

}  // namespace tilewright
