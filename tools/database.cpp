#include "tools/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "tools/tool.h"

namespace tilewright::tools {

namespace {

constexpr size_t rows_per_commit = 200;
constexpr auto oldest_uncommitted = std::chrono::seconds(1);

SpaceKey space_of(const TaskStart& task) { return {task.workload_key, task.target_key, task.mode}; }

/// The verdict that blocks a record, by the failures it counts.
TrialStatus blocking_status(const Record& record) {
  for (const auto& [name, n] : record.failures)
    if (auto status = parse_name<TrialStatus>(name); status && info(*status).blocks) return *status;
  return TrialStatus::wrong_result;
}

}  // namespace

std::string database_url(const std::string& given) {
  if (!given.empty()) {
    // A scheme is letters before a colon; anything else is a path.
    size_t colon = given.find(':');
    bool scheme = colon != std::string::npos && given.find('/') > colon;
    return scheme ? given : "sqlite:" + given;
  }
  const char *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  std::filesystem::path folder =
      data && *data ? std::filesystem::path(data) : std::filesystem::path(home && *home ? home : ".") / ".local/share";
  return "sqlite:" + (folder / "tilewright" / "tuning.db").string();
}

int exit_of_database(const Refusal& refusal) {
  return refusal.is(database_url_invalid) ? exit_usage : exit_environment;
}

std::optional<JobResult> result_of(const Record& record) {
  JobResult r;
  r.trial = -1;
  r.trace_key = record.trace_key;
  r.status = record.blocked ? blocking_status(record) : record.status;
  r.settled = true;
  r.record = record.id();
  r.toolchain = record.toolchain;
  r.artifact = record.artifact;
  r.plugins = record.plugins;
  r.finished_us = record.updated_us;
  if (record.settled == 0) return std::nullopt;
  if (r.status != TrialStatus::ok) return info(r.status).owner == Owner::candidate ? std::optional(r) : std::nullopt;
  if (!record.verified || !record.rank_ns || record.stage < Stage::screen) return std::nullopt;
  r.stage = record.stage;
  r.verified = true;
  r.median_ns = *record.rank_ns;
  r.ci_lo_ns = record.ci_lo_ns.value_or(r.median_ns);
  r.ci_hi_ns = record.ci_hi_ns.value_or(r.median_ns);
  r.n = record.n;
  return r;
}

Result<std::vector<Recorded>> recorded_results(Database& database, const std::vector<TaskStart>& tasks, int64_t most) {
  std::vector<Recorded> out;
  for (const TaskStart& task : tasks) {
    std::vector<Recorded> found;
    TW_TRY_VOID(database.for_each_record(space_of(task), [&](const Record& record) -> Status {
      auto result = record.trace.empty() ? std::nullopt : result_of(record);
      if (result) found.push_back({static_cast<size_t>(task.task), record.trace, std::move(*result)});
      return {};
    }));
    std::sort(found.begin(), found.end(), [](const Recorded& a, const Recorded& b) {
      auto order = [](const JobResult& r) {
        return std::tuple(r.status != TrialStatus::ok, -static_cast<int>(r.stage), r.median_ns, r.trace_key);
      };
      return order(a.result) < order(b.result);
    });
    // The rest could only matter if most of these were of another design space.
    if (found.size() > 2 * static_cast<size_t>(most)) found.resize(2 * static_cast<size_t>(most));
    std::move(found.begin(), found.end(), std::back_inserter(out));
  }
  return out;
}

Result<std::vector<RunSeeded>> seeds_from_database(Database& database, const std::vector<TaskStart>& tasks, int most) {
  std::vector<RunSeeded> seeds;
  for (const TaskStart& task : tasks) {
    auto add = [&](const std::vector<Record>& records, const char* origin) {
      for (const Record& record : records) {
        if (record.trace.empty() || result_of(record)) continue;
        RunSeeded seed;
        seed.task = task.task;
        seed.trace_key = record.trace_key;
        seed.trace = record.trace;
        seed.origin = origin;
        seed.record = record.id();
        seed.median_ns = record.rank_ns;
        seeds.push_back(std::move(seed));
      }
    };
    TopQuery query{{task.workload_key, task.target_class, task.mode}, true, false, most};
    TW_TRY(std::vector<Record> elsewhere, database.top(query));
    std::erase_if(elsewhere, [&](const Record& r) { return r.target == task.target_key; });
    for (Record& r : elsewhere) r.settled = 0;  // a time of another target is none of ours
    add(elsewhere, "class");
    query = {space_of(task), false, true, most};
    TW_TRY(std::vector<Record> imported, database.top(query));
    std::erase_if(imported, [](const Record& r) { return r.stage != Stage::imported; });
    add(imported, "imported");
  }
  return seeds;
}

std::vector<RunSeeded> seeds_from_run(const RunState& run, const std::vector<TaskStart>& tasks, int most) {
  std::vector<RunSeeded> seeds;
  for (const TaskStart& task : tasks) {
    std::vector<const TrialState*> good;
    for (const auto& [number, trial] : run.trials)
      if (trial.settled && trial.settled->status == TrialStatus::ok && trial.settled->verified &&
          run.tasks.at(trial.task).start.workload_key == task.workload_key)
        good.push_back(&trial);
    std::stable_sort(good.begin(), good.end(), [](const TrialState* a, const TrialState* b) {
      return a->settled->median_ns < b->settled->median_ns;
    });
    if (good.size() > static_cast<size_t>(most)) good.resize(static_cast<size_t>(most));
    for (const TrialState* trial : good) {
      RunSeeded seed;
      seed.task = task.task;
      seed.trace_key = trial->trace_key;
      seed.trace = trial->trace;
      seed.origin = "run";
      seed.median_ns = trial->settled->median_ns;
      seeds.push_back(std::move(seed));
    }
  }
  return seeds;
}

void Saving::take(const Event& event) {
  if (failed_) return;
  size_t before = ingest_.pending();
  if (Status taken = ingest_.apply(event); !taken) {
    trouble_ = give_up(taken.error());
    return;
  }
  if (before == 0 && ingest_.pending() > 0) oldest_ = std::chrono::steady_clock::now();
  news_ = true;
}

bool Saving::due() const {
  if (trouble_) return true;
  if (ingest_.pending() == 0) return false;
  return ingest_.pending() >= rows_per_commit || std::chrono::steady_clock::now() - oldest_ >= oldest_uncommitted;
}

std::optional<EventBody> Saving::commit() {
  if (trouble_) return std::exchange(trouble_, std::nullopt);
  if (failed_ || !news_) return std::nullopt;
  auto start = std::chrono::steady_clock::now();
  auto done = ingest_.flush(database_);
  if (!done) return give_up(done.error());
  news_ = false;
  rows_ += done->rows;
  done->elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return *done;
}

Warning Saving::give_up(const Refusal& refusal) {
  failed_ = true;
  Diagnostic d = refusal.diagnostic();
  Warning w;
  w.code = d.code;
  w.message = fmt::format(
      "{}; nothing is lost: from here on results are kept in the run's journal only, later: tilewright db import-run "
      "{}",
      d.message, directory_);
  w.help = fmt::format("tilewright db import-run {}", directory_);
  return w;
}

}  // namespace tilewright::tools
