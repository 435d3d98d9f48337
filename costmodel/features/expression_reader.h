// Reads expressions of a program while it is walked: index expressions become forms, stored values become operation
// counts and a list of loads. Variables are looked up in the environment that the walk keeps.
#pragma once

#include <optional>
#include <unordered_map>

#include "costmodel/features/place.h"

namespace tilewright {

class ExpressionReader {
 public:
  /// `memory_of` numbers buffers and maps an alias (with its indices) to its source.
  struct Buffers {
    virtual ~Buffers() = default;
    virtual AccessRecord access(const BufferNode& buffer, std::vector<IndexForm> index) = 0;
    /// The buffer is named without indices (a pointer): nothing is known about what is accessed.
    virtual void escape(const BufferNode& buffer) = 0;
  };
  ExpressionReader(FormArena& forms, Buffers& buffers) : forms_(forms), buffers_(buffers) {}

  void bind(const Var& var, IndexForm value) { environment_[var->id] = std::move(value); }

  /// Loads inside are appended to `loads`.
  IndexForm form(const Expr&, std::vector<AccessRecord>& loads);
  AccessRecord access(const Buffer&, const std::vector<Expr>& indices, std::vector<AccessRecord>& loads);
  /// Adds the operations of a value, without those of load indices, and appends its loads.
  void count(const Expr&, OpCounts&, std::vector<AccessRecord>& loads);
  /// The condition's value, where ranges decide it.
  std::optional<bool> decide(const Expr& condition);
  /// Whether the value is a constant after simplification.
  bool is_constant(const Expr&);

 private:
  IndexForm binary_form(const Binary&, std::vector<AccessRecord>& loads);
  IndexForm opaque_form(const Expr&, std::vector<AccessRecord>& loads);
  void count_binary(const Binary&, OpCounts&, std::vector<AccessRecord>& loads);
  void count_call(const Call&, OpCounts&, std::vector<AccessRecord>& loads);

  FormArena& forms_;
  Buffers& buffers_;
  std::unordered_map<uint64_t, IndexForm> environment_;  // looked up only
};

}  // namespace tilewright
