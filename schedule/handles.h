// Handles and values of traces. A handle is a number in its schedule's symbol table (b0, l1, v2 share one counter); the
// table maps it to a block id, a loop id or an integer. Nothing here points into a program.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/program.h"

namespace tilewright {

enum class SymbolKind : uint8_t { block, loop, integer };

/// A name in a trace. number < 0: the nameless output "_" (a symbolic tile factor), which reads as None.
struct Symbol {
  int number = -1;
  SymbolKind kind = SymbolKind::integer;
  bool operator==(const Symbol&) const = default;
};

/// Typed views of a symbol, for schedule functions written in C++.
struct BlockRV {
  Symbol symbol{-1, SymbolKind::block};
  operator Symbol() const { return symbol; }
};
struct LoopRV {
  Symbol symbol{-1, SymbolKind::loop};
  operator Symbol() const { return symbol; }
};
struct IntRV {
  Symbol symbol{-1, SymbolKind::integer};
  operator Symbol() const { return symbol; }
};

/// `lambda i, j: (i // 16, j % 16)`: shape-independent re-indexing. The inverse is given only where it cannot be
/// derived.
struct IndexMap : RefCounted {
  std::vector<Var> inputs;
  std::vector<Expr> outputs;
  std::vector<Range> ranges;  ///< instead of outputs: the `[(i - 1, i + 1)]` form of annotate_buffer_access
  Ref<IndexMap> inverse;
};
using IndexMapRef = Ref<IndexMap>;
/// outputs[k] with inputs replaced by `indices`.
std::vector<Expr> apply_index_map(const IndexMap&, const std::vector<Expr>& indices);
bool operator==(const IndexMap& a, const IndexMap& b);  ///< up to names of the inputs

struct TraceValue;
using TraceList = std::vector<TraceValue>;
using TraceDict = std::map<std::string, TraceValue>;

/// An argument or a decision: None, bool, int, float, str, list, dict, a handle, an index map.
struct TraceValue {
  std::variant<std::monostate, bool, int64_t, double, std::string, TraceList, TraceDict, Symbol, IndexMapRef> value;

  TraceValue() = default;
  TraceValue(std::nullptr_t) {}
  TraceValue(bool v) : value(v) {}
  TraceValue(int v) : value(static_cast<int64_t>(v)) {}
  TraceValue(int64_t v) : value(v) {}
  TraceValue(double v) : value(v) {}
  TraceValue(const char* v) : value(std::string(v)) {}
  TraceValue(std::string v) : value(std::move(v)) {}
  TraceValue(TraceList v) : value(std::move(v)) {}
  TraceValue(TraceDict v) : value(std::move(v)) {}
  TraceValue(Symbol v) : value(v) {}
  TraceValue(BlockRV v) : value(v.symbol) {}
  TraceValue(LoopRV v) : value(v.symbol) {}
  TraceValue(IntRV v) : value(v.symbol) {}
  TraceValue(IndexMapRef v) : value(std::move(v)) {}
  template <class T>
    requires std::is_constructible_v<TraceValue, T>
  TraceValue(const std::vector<T>& items) {
    TraceList list;
    for (const T& item : items) list.emplace_back(item);
    value = std::move(list);
  }

  template <class T>
  const T* get() const {
    return std::get_if<T>(&value);
  }
  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
};
bool operator==(const TraceValue& a, const TraceValue& b);

/// Annotation values: the same without handles. A symbol is replaced by its integer through `resolve`.
TraceValue to_trace_value(const Attr&);

}  // namespace tilewright
