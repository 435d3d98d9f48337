#include "tools/funnel.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/board.h"

namespace tilewright::tools {

namespace {

/// Stages of measuring, in order, and the statuses that end a candidate there.
const std::vector<std::pair<std::string, std::vector<TrialStatus>>>& measured_stages() {
  using enum TrialStatus;
  static const std::vector<std::pair<std::string, std::vector<TrialStatus>>> stages{
      {"dispatched", {device_lost, worker_lost, agent_lost, rejected, cancelled, internal_error}},
      {"lowered", {replay_refused, lower_refused}},
      {"built", {build_error, build_timeout, build_memory, build_crash}},
      {"loaded", {load_error}},
      {"ran", {launch_error, out_of_memory, host_memory, run_timeout, run_crash}},
      {"correct", {wrong_result, nondeterministic}},
      {"timed", {implausible, throttled, noisy}}};
  return stages;
}

std::string first_line_of(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

void Funnel::apply(const CandidatesRefused& e) {
  auto stage = std::find_if(search_.begin(), search_.end(), [&](const FunnelStage& s) { return s.name == e.stage; });
  if (stage == search_.end()) stage = search_.insert(search_.end(), FunnelStage{e.stage, 0, 0, {}, {}});
  stage->kept += e.kept;
  stage->lost += e.lost;
  for (const auto& [code, n] : e.reasons) stage->reasons[code] += n;
  for (const auto& [code, text] : e.examples) stage->examples.emplace(code, first_line_of(text));
}

void Funnel::apply(const JobResult& r, bool baseline) {
  if (!r.settled) return;
  const std::string status(to_string(r.status));
  if (baseline) {
    if (r.status != TrialStatus::ok) baseline_failure_ = status;
    return;
  }
  ++settled_;
  if (r.status == TrialStatus::ok) return;
  ++failed_;
  ++statuses_[status];
  if (!r.detail.empty()) examples_.emplace(status, first_line_of(r.detail));
}

std::vector<FunnelStage> Funnel::stages() const {
  std::vector<FunnelStage> out = search_;
  int64_t left = settled_;
  for (const auto& [name, ends] : measured_stages()) {
    FunnelStage stage{name, 0, 0, {}, {}};
    for (TrialStatus status : ends) {
      const std::string word(to_string(status));
      auto it = statuses_.find(word);
      if (it == statuses_.end()) continue;
      stage.lost += it->second;
      stage.reasons[word] = it->second;
      if (auto example = examples_.find(word); example != examples_.end()) stage.examples.insert(*example);
    }
    left -= stage.lost;
    stage.kept = left;
    out.push_back(std::move(stage));
  }
  return out;
}

std::string Funnel::diagnosis(std::string& help) const {
  if (!baseline_failure_.empty()) {
    help = "run `tilewright doctor`; if it finds nothing, the program itself does not build or run here";
    return fmt::format("the untuned program ends as {} too: this is the machine or the program, not the candidates",
                       baseline_failure_);
  }
  for (const FunnelStage& s : search_)
    if (s.kept == 0 && s.lost > 0 && s.reasons.size() == 1) {
      help = "tilewright explain " + s.reasons.begin()->first;
      return fmt::format("{} refuses every candidate before anything is built", s.reasons.begin()->first);
    }
  if (settled_ == 0 || statuses_.size() != 1 || timed() > 0) return "";
  const std::string& status = statuses_.begin()->first;
  help = "tilewright explain " + status;
  if (status == "wrong_result")
    help = "check the unscheduled program first: a reference or a tolerance that is off makes all results wrong";
  if (status == "run_timeout" || status == "noisy")
    help = "run `tilewright doctor`: it tells what takes this machine's time";
  auto example = examples_.find(status);
  return fmt::format("every measured candidate ends as {}{}", status,
                     example == examples_.end() ? "" : ": " + example->second);
}

std::string funnel_text(const std::string& task, const Funnel& funnel) {
  std::string out = fmt::format("{:<44} {:>9} {:>9}  reasons\n", "funnel: " + task, "kept", "lost");
  for (const FunnelStage& s : funnel.stages()) {
    std::string reasons = counts_text(s.reasons);
    if (s.reasons.size() == 1 && !s.examples.empty()) reasons += " (first: " + s.examples.begin()->second + ")";
    const bool choice = s.name == "selected";  // what is not chosen is not lost
    if (choice) reasons = fmt::format("chosen from {}", grouped(s.kept + s.lost));
    out += fmt::format("  {:<42} {:>9} {:>9}  {}\n", s.name, grouped(s.kept), choice ? "" : grouped(s.lost), reasons);
  }
  std::string help, why = funnel.diagnosis(help);
  if (!why.empty()) out += fmt::format("because: {}\n", why);
  if (!help.empty()) out += fmt::format("help: {}\n", help);
  return out;
}

}  // namespace tilewright::tools
