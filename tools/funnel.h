// Funnel: where the candidates of a task were lost, stage by stage, with reasons; and what one reason explains it all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/events.h"

namespace tilewright::tools {

struct FunnelStage {
  std::string name;
  int64_t kept = 0, lost = 0;
  std::map<std::string, int64_t> reasons;       ///< lost, by refusal code or status
  std::map<std::string, std::string> examples;  ///< the first message of each
};

class Funnel {
 public:
  /// Takes in candidates.refused and job.result of its task.
  void apply(const CandidatesRefused&);
  void apply(const JobResult&, bool baseline);

  /// What the search dropped, then what measuring lost; kept + lost of a measured stage is what the stage before kept.
  std::vector<FunnelStage> stages() const;
  /// Trials that settled, and those of them with a time.
  int64_t settled() const { return settled_; }
  int64_t timed() const { return settled_ - failed_; }
  /// Fewer than a fifth of what was measured got a time: the funnel is worth printing unasked.
  bool narrow() const { return settled_ > 0 && 5 * timed() < settled_; }
  /// One line on why, or empty; `help` gets a command to paste.
  std::string diagnosis(std::string& help) const;

 private:
  std::vector<FunnelStage> search_;  ///< in order of first appearance
  std::map<std::string, int64_t> statuses_;
  std::map<std::string, std::string> examples_;
  std::string baseline_failure_;
  int64_t settled_ = 0, failed_ = 0;
};

/// "funnel: TASK   kept lost reasons", a line a stage, and the diagnosis.
std::string funnel_text(const std::string& task, const Funnel&);

}  // namespace tilewright::tools
