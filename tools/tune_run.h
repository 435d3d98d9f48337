// One run of the tuner as the tool does it: run directory, journal, resume, signals. commands/tune.cpp reads the
// command line and prints; this does the work.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "database/journal.h"
#include "database/replay.h"
#include "database/store.h"
#include "search/tuner.h"
#include "tools/settings.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(run_differs, "run-differs", "a run cannot go on with another workload or other settings");

struct TuneRun {
  std::string directory, id, name;
  TuneSettings settings;
  std::vector<Task> tasks;
  std::vector<std::string> command_line;
  int64_t started_us = 0;
  RunState before;  ///< what an earlier start of the run left
  bool resumed = false;
  std::unique_ptr<Database> database;  ///< null: the journal only
  int64_t saved_rows = 0;              ///< afterwards: inserted into the database
  bool saved = false;                  ///< afterwards: the database holds every result
  std::optional<Refusal> unwritten;    ///< afterwards: why the journal could not be written; the run was stopped then
};

int64_t now_us();
/// The event that opens a new run.
RunStart run_start(const TuneRun&);
/// Tasks of a run that goes on, from its journal.
Result<std::vector<Task>> tasks_of(const RunState&);

/// Runs to the end, the budget or a signal. `observers` get the run's events after the journal.
Result<RunReport> run_tuner(TuneRun&, const std::vector<Observer*>& observers);

/// Program, trace as JSON and as Python of a winner, under RUN/artifacts/; returns the folder.
Result<std::string> save_winner(const TuneRun&, const Task&, const std::string& trace_json);

}  // namespace tilewright::tools
