#include "tools/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>

#include "tools/tasks.h"

namespace tilewright::tools {

namespace fs = std::filesystem;

std::string new_run_directory(const std::string& name, uint64_t campaign) {
  std::tm now = fmt::localtime(std::time(nullptr));
  return fmt::format("runs/{:%Y%m%d-%H%M}-{}-{:04x}", now, slug(name), campaign & 0xffff);
}

std::string run_id(const std::string& directory) {
  std::string folder = fs::path(directory).filename().string();
  if (folder.empty()) folder = fs::path(directory).parent_path().filename().string();
  return folder.substr(folder.rfind('-') == std::string::npos ? 0 : folder.rfind('-') + 1);
}

bool is_run(const std::string& directory) {
  std::error_code ec;
  return fs::is_regular_file(fs::path(directory) / "events.jsonl", ec);
}

std::vector<std::string> runs_latest_first() {
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", ec))
    if (std::string path = entry.path().string(); is_run(path))
      found.emplace_back(fs::last_write_time(entry.path() / "events.jsonl", ec), path);
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> out;
  for (auto& [time, path] : found) out.push_back(std::move(path));
  return out;
}

Result<std::string> find_run(const std::string& name) {
  if (is_run(name)) return name;
  std::vector<std::string> ids, found;
  for (const std::string& path : runs_latest_first()) {
    std::string id = run_id(path), folder = fs::path(path).filename().string();
    ids.push_back(id);
    if (name == "last" || id.starts_with(name) || folder.starts_with(name)) found.push_back(path);
  }
  if (found.empty()) {
    std::string near = did_you_mean(name, ids);
    Refusal missing(run_unknown,
                    name == "last" ? "there is no run in runs/" : fmt::format("no run is called \"{}\" here", name));
    return refuse(near.empty() ? missing : missing.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  if (found.size() > 1 && name != "last")
    return refuse(run_ambiguous, fmt::format("{} runs start with \"{}\": {}, {}{}", found.size(), name, found[0],
                                             found[1], found.size() > 2 ? ", ..." : ""));
  return found.front();
}

namespace {

Result<int64_t> best_of(const RunState& run, const std::string& task) {
  for (const auto& [number, state] : run.tasks) {
    if (!task.empty() && state.start.name.find(task) == std::string::npos && std::to_string(number) != task) continue;
    if (state.done && state.done->best_trial && run.trials.contains(*state.done->best_trial))
      return *state.done->best_trial;
    if (state.best_trial) return *state.best_trial;
    if (!task.empty()) return refuse(trial_unknown, fmt::format("task {} has no valid trial", state.start.name));
  }
  return refuse(trial_unknown,
                task.empty() ? "the run has no valid trial" : fmt::format("the run has no task \"{}\"", task));
}

}  // namespace

Result<TrialName> find_trial(const std::string& name) {
  size_t colon = name.rfind(':');
  std::string run = colon == std::string::npos ? "last" : name.substr(0, colon);
  std::string which = colon == std::string::npos ? name : name.substr(colon + 1);
  TW_TRY(std::string directory, find_run(run));
  TW_TRY(RunState state, replay_run(directory));
  int64_t trial = -1;
  if (which == "best" || which.starts_with("best/")) {
    TW_TRY(trial, best_of(state, which == "best" ? "" : which.substr(5)));
  } else {
    auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), trial);
    if (error != std::errc() || end != which.data() + which.size())
      return refuse(trial_unknown, fmt::format("expected RUN:N, RUN:best or RUN:best/TASK, found \"{}\"", name));
    if (!state.trials.contains(trial))
      return refuse(trial_unknown, fmt::format("run {} has no trial {}; it has {} trials", run_id(directory), trial,
                                               state.trials.size()));
  }
  return TrialName{std::move(directory), std::move(state), trial};
}

}  // namespace tilewright::tools
