// The tuning database as the tool uses it: where it is, what a run takes out of it, and how a run's results go in.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "database/ingest.h"
#include "database/replay.h"
#include "database/store.h"
#include "search/tuner.h"

namespace tilewright::tools {

/// "sqlite:PATH" for a plain path; empty: $XDG_DATA_HOME/tilewright/tuning.db.
std::string database_url(const std::string& given);

/// Exit 3 for a database that cannot be used.
int exit_of_database(const Refusal&);

/// A stored record as a result that needs no measuring; nothing for one that says nothing sure about its candidate:
/// never measured on this target, not checked, or lost to the environment.
std::optional<JobResult> result_of(const Record&);

/// What a database holds for the tasks of a run, best first; enough of it if `most` are wanted of each task.
Result<std::vector<Recorded>> recorded_results(Database&, const std::vector<TaskStart>& tasks, int64_t most);

/// Traces that were good elsewhere: on other targets of the same class, or in imported records. Best first.
Result<std::vector<RunSeeded>> seeds_from_database(Database&, const std::vector<TaskStart>& tasks, int most);

/// The best verified traces of a run for the same workloads.
std::vector<RunSeeded> seeds_from_run(const RunState&, const std::vector<TaskStart>& tasks, int most);

/// The results of one run on their way into the database. A failure is final for the run and costs nothing but the
/// rows: the journal has them, and `db import-run` puts them in later.
class Saving {
 public:
  /// `directory` of the run, for what is said when its results cannot be saved.
  Saving(Database& database, std::string directory) : database_(database), directory_(std::move(directory)) {}

  void take(const Event&);
  /// A batch is full, or its oldest result is a second old.
  bool due() const;
  /// Commits what was taken: db.committed, or once a warning; nothing if there is nothing to say.
  std::optional<EventBody> commit();

  int64_t rows() const { return rows_; }  ///< inserted so far
  bool failed() const { return failed_; }

 private:
  Warning give_up(const Refusal&);
  Database& database_;
  std::string directory_;
  Ingest ingest_;
  std::optional<Warning> trouble_;
  std::chrono::steady_clock::time_point oldest_;
  int64_t rows_ = 0;
  bool failed_ = false, news_ = false;
};

}  // namespace tilewright::tools
