// What a task of a run came to, read from the run's journal: every view (report, explain, export, compare) takes its
// winner from here, and its words where there is none.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "database/replay.h"
#include "support/result.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(run_without_result, "run-without-result", "a run, or a task of it, has no verified result");

/// As the run's end says; of a run that goes on or was killed, the best so far. The untuned program by itself is none.
std::optional<int64_t> winner_of(const RunState&, const TaskState&);

/// Whether a candidate of the search, and not only the untuned program, has a verified time.
bool has_valid_candidate(const RunState&, const TaskState&);
/// The untuned program that times are compared with: what took part in the final comparison, else the fastest.
std::optional<int64_t> baseline_of(const RunState&, const TaskState&);

/// Why a task has no winner, in words: "the budget ended before the first trial", "none of 12 trials is valid:
/// wrong_result 12". `reason` is what ended the task.
std::string why_no_winner(const std::string& reason, int64_t trials, const std::map<std::string, int64_t>& failed);
std::string why_no_winner(const TaskState&);

/// The refusal for a run all of whose tasks lack a winner, with what to do next.
Refusal without_result(const std::string& directory, const RunState&);

}  // namespace tilewright::tools
