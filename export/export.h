// Export: the best trace of a task as files that a production build uses: traces, a C header with object and shared
// library, and a program that checks and times the kernel. Deterministic: same program, trace, target and toolchain
// give the same bytes.
#pragma once

#include <map>

#include "ir/program.h"
#include "schedule/target.h"
#include "schedule/trace.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(export_name_invalid, "export-name-invalid", "the name of an export must be a C identifier");
TW_REFUSAL_CODE(export_form_unknown, "export-form-unknown", "no export form has that name");
TW_REFUSAL_CODE(trace_does_not_apply, "trace-does-not-apply", "the trace to export does not apply to its program");
TW_REFUSAL_CODE(runtime_missing, "runtime-missing", "the runtime of exported kernels is not beside the library");
TW_REFUSAL_CODE(file_not_writable, "file-not-writable", "a file of the export cannot be written");

struct ExportRequest {
  std::string name;    ///< C identifier, e.g. gemm_512x512x512_float32
  std::string title;   ///< operator and shapes, for the header comment
  ProgramRef program;  ///< unscheduled
  std::string trace;   ///< JSON; empty: the unscheduled program
  Target target;
  std::map<std::string, std::string> lower;  ///< options of lowering, as it was measured with
  std::string record;                        ///< id, or empty
  std::string measured;                      ///< device and time as measured, in words; empty: not said
};

struct ExportFile {
  std::string name;  ///< relative to the export directory
  std::string bytes;
};

/// Forms: "trace" (.json .py), "program" (scheduled program text), "cpu" (header, object, shared library, runtime,
/// main.c, CMakeLists.txt).
Result<std::vector<ExportFile>> export_files(const std::vector<ExportRequest>&, const std::string& form);

/// Writes the files (each under a temporary name, then renamed). The directory is made.
Status write_files(const std::string& directory, const std::vector<ExportFile>&);

// export_text.cpp
std::string export_header(const ExportRequest&, const Function&, int64_t workspace_bytes, int64_t slice_bytes);
std::string export_main(const std::vector<ExportRequest>&);
std::string export_cmake(const std::vector<ExportRequest>&);

}  // namespace tilewright
