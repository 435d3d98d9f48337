// What commands read: files, programs, traces, schedules.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "ir/parse.h"
#include "lowering/options.h"
#include "schedule/schedule.h"
#include "tools/tool.h"

namespace tilewright::tools {

/// Whether a word means an operator, and no file: "gemm:m=8,n=8,k=8", and what looks like it under a name that none
/// has, so that make_workload says which was meant.
bool names_operator(const std::string& word);
/// The bytes of a file; "-" is standard input.
Result<std::string> read_file(const std::string& path);

enum class Verified : bool { no, yes };
/// A program file, parsed and (unless told otherwise) checked by ir/verify. On failure everything has been reported and
/// `exit` is set: 2 for text that is no program, 1 for a program that is not well-formed.
std::optional<ParsedProgram> read_program(Tool&, const std::string& path, int& exit, Verified = Verified::yes,
                                          const Extents& extents = {});
/// --arg NAME=N, possibly repeated; on failure it was reported.
std::optional<Extents> read_extents(Tool&, const std::vector<std::string>& arguments);

/// What came of a trace or schedule text on a program.
struct Applied {
  Schedule schedule;
  std::vector<Diagnostic> errors;    ///< empty: applied to the end
  std::optional<size_t> refused_at;  ///< the instruction at which it stopped
};

/// Applies a trace (JSON or Python) or plain schedule calls; says which decisions were repaired.
Applied apply_trace_text(Tool&, const std::string& text, const std::string& file, const ProgramRef&, uint64_t seed,
                         const ScheduleOptions&);

/// --target, where it was given, decides which intrinsics a schedule may use; false: it was reported (exit 2).
bool use_target(Tool&, ScheduleOptions&);

/// An instruction as its line of the Python form.
std::string trace_line(const Trace&, size_t instruction);

/// --set lower.KEY=VALUE, over `given`.
Result<lowering::LowerOptions> lower_options(const Globals&, std::map<std::string, std::string> given = {});

/// A non-negative integer; reports and returns nothing otherwise.
std::optional<uint64_t> read_number(Tool&, const std::string& option, const std::string& text);

}  // namespace tilewright::tools
