// TVM's tuning records, a pair of JSON-lines files:
//   workloads: [hash text, base64 graph]                                    one line per workload, numbered from 0
//   records:   [workload number, [trace, seconds or null, target or null, args or null]]      a failed run is 1e10 s
// They come in and go out; they are never the live store. Graphs are opaque: a workload keeps its line, byte for byte,
// as its text, with ir_version 0. Times come in at stage `imported`, unverified: seeds, never exported before they are
// measured.
#pragma once

#include <cstdint>
#include <string>

#include "database/store.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(tvm_line_invalid, "tvm-line-invalid", "a line is not of TVM's tuning record format");

struct TvmImport {
  int64_t workloads = 0;  ///< lines of the workload file
  int64_t records = 0;    ///< lines of the record file that are records
  int64_t inserted = 0;   ///< of those, new in the database
  int64_t failed = 0;     ///< of those, failed runs
  int64_t rejected = 0;   ///< bad lines of both files, each with its file, number and reason in the rejects file
  bool torn = false;      ///< a last line without its newline was dropped
};

/// Reads a pair, in memory that does not grow with the record file. A bad line goes to `rejects` (JSON lines; the file
/// is made only if there is one) and does not stop the import. Importing again changes nothing.
Result<TvmImport> import_tvm(Database&, const std::string& workloads, const std::string& records,
                             const std::string& rejects);

struct TvmExport {
  int64_t workloads = 0, records = 0;
  int64_t not_expressed = 0;  ///< measurements of our own programs, whose graphs only TVM can write
};

/// Writes the lines that were imported into DIRECTORY/database_workload.json and database_tuning_record.json, in the
/// order of their import, the same bytes unless a workload's number changed. Each file replaces its predecessor at
/// once. `best_only`: of each workload only the line with the least time.
Result<TvmExport> export_tvm(Database&, const std::string& directory, bool best_only = false);

}  // namespace tilewright
