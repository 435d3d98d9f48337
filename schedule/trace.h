// Traces: the record of a schedule as a program of instructions (schedule-language.md §4). A trace is plain data; it is
// applied by Schedule (schedule.h). JSON and Python forms are read and written here.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <functional>

#include "ir/text_codes.h"
#include "schedule/handles.h"
#include "support/result.h"

namespace tilewright {

struct Primitive;  // primitive.h

struct Instruction {
  const Primitive* kind = nullptr;
  std::vector<TraceValue> inputs;  ///< one per input of the primitive's signature (a variadic input is a list)
  std::vector<TraceValue> attrs;   ///< one per attribute
  std::vector<Symbol> outputs;
  std::optional<TraceValue> decision;  ///< sampling instructions only
};

class Trace {
 public:
  std::vector<Instruction> instructions;

  /// Position of EnterPostproc, or the number of instructions.
  size_t postproc_position() const;
  int symbol_count() const;  ///< one more than the largest number used
};
bool operator==(const Trace& a, const Trace& b);

TW_REFUSAL_CODE(trace_malformed, "trace-malformed",
                "the text is not a trace: wrong shape of the JSON or of an instruction");
TW_REFUSAL_CODE(trace_empty, "trace-empty", "the text holds neither instructions nor an explicitly empty trace");
TW_REFUSAL_CODE(instruction_unknown, "instruction-unknown", "no primitive of that name is registered");
TW_REFUSAL_CODE(instruction_retired, "instruction-retired", "the instruction existed once and has no meaning any more");
TW_REFUSAL_CODE(trace_name_undefined, "trace-name-undefined", "an instruction uses a name that no earlier one defines");
TW_REFUSAL_CODE(decision_index_invalid, "decision-index-invalid",
                "a decision names an instruction that does not exist or takes none");
TW_REFUSAL_CODE(trace_statement_not_supported, "trace-statement-not-supported",
                "the Python form is a straight line of primitive calls");
using text_code::wrong_argument_count;
using text_code::wrong_argument_type;

/// An instruction from arguments by name; absent ones take their defaults. Refusals: wrong-argument-count.
Result<Instruction> bind_arguments(const Primitive&, std::vector<std::pair<std::string, TraceValue>> arguments);
struct SymbolValue;
/// Types of all arguments, and that the integers they use are defined.
Status check_arguments(const Instruction&, const std::vector<SymbolValue>& symbols);

/// "[[instructions],[decisions]]" without white space outside strings.
std::string trace_to_json(const Trace&);
/// The same as TVM reads it: index maps are graphs of its objects. Refusals: not-expressible-in-dialect.
Result<std::string> trace_to_tvm_json(const Trace&);
Result<Trace> trace_from_json(std::string_view text);
Result<Trace> trace_from_json(const nlohmann::ordered_json&);

/// `def apply_trace(sch: s_tir.Schedule) -> None:`, one line per instruction.
std::string trace_to_python(const Trace&, std::string_view function_name = "apply_trace");
/// `lambda i, j: (i // 16, j % 16,)`
std::string index_map_to_python(const IndexMap&);
Result<IndexMapRef> index_map_from_python(std::string_view text);
/// JSON graph of TVM's objects (tvm_graph.cpp): both generations are read, the newer is written.
Result<std::string> index_map_to_graph(const IndexMap&);
Result<IndexMapRef> index_map_from_graph(std::string_view text);

/// One function of a trace or schedule file, or its bare calls.
struct NamedTrace {
  std::string name;
  Trace trace;
};
/// Traces as they are printed: every output has a name, so no program is needed.
tl::expected<std::vector<NamedTrace>, std::vector<Diagnostic>> traces_from_python(std::string_view text,
                                                                                  std::string file);

class Schedule;
/// The straight-line subset that people write by hand (variables, literals, lists, subscripts, nested calls, block
/// names for handles, lambdas for index maps), run on `schedule` as it is read: outputs may be lists of any length.
tl::expected<void, std::vector<Diagnostic>> run_schedule_text(std::string_view text, std::string file,
                                                              Schedule& schedule, std::string_view function = "");
/// Names of the functions in a schedule file ("" stands for bare calls).
tl::expected<std::vector<std::string>, std::vector<Diagnostic>> schedule_functions(std::string_view text,
                                                                                   std::string file);

/// Either form, told apart by the first character.
tl::expected<Trace, std::vector<Diagnostic>> parse_trace(std::string_view text, std::string file);

/// Removes pure instructions whose outputs are not used; renumbers nothing (names keep their numbers). Idempotent.
Trace simplify(const Trace&);
/// The same without decisions; equal skeletons are one sketch.
Trace without_decisions(const Trace&);
/// Renumbers all outputs in order of appearance.
Trace renumber(const Trace&);

/// Calls f(symbol) for every use, nested lists and dicts included.
void for_each_symbol(const TraceValue&, const std::function<void(const Symbol&)>& f);

}  // namespace tilewright
