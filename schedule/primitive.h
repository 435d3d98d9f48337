// Primitive: one instruction kind. Each is one file in schedule/primitives/ that registers one record; the parser, the
// printer, replay, the documentation and the fuzzer follow from the record. Read split.cpp first.
#pragma once

#include "schedule/context.h"
#include "schedule/trace.h"
#include "support/registry.h"

namespace tilewright {

enum class ArgType : uint8_t {
  block,               ///< a block handle
  loop,                ///< a loop handle
  block_or_loop,       ///< either
  loops,               ///< variadic: the rest of the inputs are loop handles
  blocks,              ///< a list of block handles
  block_list_or_loop,  ///< blockize: a loop or a list of blocks
  factors,             ///< variadic: ints, int handles or None
  integer,             ///< an int or an int handle
  int_list,
  float_list,
  boolean,
  text,
  text_or_none,
  index_map,
  index_map_or_none,
  value,   ///< any value (annotations)
  buffer,  ///< attribute pair (index, side): ("read", 0)
  side,    ///< "read" or "write", in JSON 0 or 1
};

struct ArgSpec {
  std::string name;
  ArgType type;
  std::optional<TraceValue> fallback;  ///< default; absent = required
  std::string doc;
};

enum class OutputShape : uint8_t { none, one_block, two_blocks, blocks, one_loop, loops, one_int, ints, blocks_or_one };

struct Domain;  // what a sampling primitive can return (sampling.h)

struct Primitive {
  static constexpr const char* registry_name = "primitive";

  std::string kind;             ///< trace keyword: "ComputeAt"
  std::vector<ArgSpec> inputs;  ///< in JSON order
  std::vector<ArgSpec> attrs;
  OutputShape outputs = OutputShape::none;
  SymbolKind output_kind = SymbolKind::block;
  bool pure = false;                      ///< removed by simplification when nothing uses its outputs
  bool samples = false;                   ///< takes a decision
  bool positional = false;                ///< Python form prints the handles positionally (fuse, reorder, …)
  bool unsafe = false;                    ///< values are kept only if the caller's promise holds: never drawn
  std::vector<std::string> python_order;  ///< argument names; empty = inputs then attrs
  std::string example;                    ///< before/after program for the reference page, may be empty
  RefusalList refusals;                   ///< every code that apply can give, beside argument_refusals
  Status (*apply)(Context&) = nullptr;

  std::string name;  ///< snake case; filled at registration from the registry's name
  const ArgSpec* find(std::string_view argument) const;
};

/// What any primitive can give for its arguments alone: of a wrong type, handles of the wrong kind, expired, or inside
/// an init.
const RefusalList& argument_refusals();
/// The code is one of its refusals or of argument_refusals.
bool declares(const Primitive&, std::string_view code);

/// By snake name ("compute_at") or by trace keyword ("ComputeAt"); older names (get_block, GetBlock) are known.
const Primitive* find_primitive(std::string_view name_or_kind);
std::vector<const Primitive*> all_primitives();  ///< sorted by name
std::string suggest_primitive(std::string_view name);

/// Registers a primitive under its snake name.
struct RegisterPrimitive {
  RegisterPrimitive(std::string name, std::string doc, Primitive p,
                    const std::source_location& where = std::source_location::current());
};

}  // namespace tilewright
