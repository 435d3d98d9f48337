#include "database/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "database/journal.h"

namespace tilewright {

namespace {

template <class... Args>
Status contradiction(fmt::format_string<Args...> format, Args&&... args) {
  return refuse(journal_inconsistent, fmt::format(format, std::forward<Args>(args)...));
}

/// Withdraws every verdict of the device since its last good canary: those trials are unsettled again.
void withdraw(RunState& run, const DeviceQuarantined& q) {
  for (auto& [number, trial] : run.trials) {
    std::erase_if(trial.results,
                  [&](const JobResult& r) { return r.device == q.device && r.finished_us >= q.since_us; });
    if (!trial.settled || trial.settled->device != q.device || trial.settled->finished_us < q.since_us) continue;
    --run.tasks[trial.task].settled_by_status[to_string(trial.settled->status)];
    trial.settled.reset();
  }
  for (auto& [number, task] : run.tasks)
    std::erase_if(task.settled_by_status, [](const auto& entry) { return entry.second == 0; });
}

/// The best trial from scratch: results may come late, and be withdrawn.
void find_best(RunState& run, TaskState& task) {
  task.best_trial.reset();
  std::tuple<int, double, int64_t> best;
  for (int64_t number : task.trials) {
    const auto& settled = run.trials.at(number).settled;
    if (!settled || settled->status != TrialStatus::ok || !settled->verified || settled->stage > Stage::final) continue;
    std::tuple rank{-static_cast<int>(settled->stage), settled->median_ns, number};
    if (!task.best_trial || rank < best) {
      best = rank;
      task.best_trial = number;
    }
  }
}

struct Apply {
  RunState& run;

  Status operator()(const RunStart& e) {
    if (run.start) return contradiction("a second run.start");
    run.start = e;
    run.incarnation = e.incarnation;
    return {};
  }
  Status operator()(const RunResumed& e) {
    if (e.incarnation <= run.incarnation)
      return contradiction("expected an incarnation above {}, found {}", run.incarnation, e.incarnation);
    run.incarnation = e.incarnation;
    run.end.reset();
    return {};
  }
  Status operator()(const TaskStart& e) {
    auto [it, fresh] = run.tasks.try_emplace(e.task);
    if (!fresh) return contradiction("a second task.start of task {}", e.task);
    it->second.start = e;
    return {};
  }
  Status operator()(const TaskDone& e) {
    auto it = run.tasks.find(e.task);
    if (it == run.tasks.end()) return contradiction("task {} was never started", e.task);
    it->second.done = e;
    return {};
  }
  Status operator()(const RoundStart& e) {
    auto it = run.tasks.find(e.task);
    if (it == run.tasks.end()) return contradiction("task {} was never started", e.task);
    ++it->second.rounds;
    it->second.done.reset();  // a task goes on when its budget is extended
    run.rounds.push_back(e);
    return {};
  }
  Status operator()(const CandidatesRefused& e) { return run.refused.push_back(e), Status{}; }
  Status operator()(const ModelFit& e) { return run.fits.push_back(e), Status{}; }
  Status operator()(const JobDispatched& e) {
    auto task = run.tasks.find(e.task);
    if (task == run.tasks.end()) return contradiction("task {} was never started", e.task);
    auto [it, fresh] = run.trials.try_emplace(e.trial);
    TrialState& trial = it->second;
    if (fresh) {
      trial.task = e.task;
      trial.trace_key = e.trace_key;
      task->second.trials.push_back(e.trial);
    }
    if (trial.task != e.task || trial.trace_key != e.trace_key)
      return contradiction("trial {} was dispatched before with another task or trace", e.trial);
    if (e.attempt < trial.next_attempt)
      return contradiction("attempt {} of trial {} was used before", e.attempt, e.trial);
    if (!e.trace.empty()) trial.trace = e.trace;
    trial.stage = e.stage;
    trial.origin = e.origin;
    trial.predicted_ns = e.predicted_ns;
    trial.next_attempt = e.attempt + 1;
    trial.in_flight = true;
    return {};
  }
  Status operator()(const JobResult& e) {
    auto it = run.trials.find(e.trial);
    if (it == run.trials.end()) return contradiction("a result of trial {}, which was never dispatched", e.trial);
    TrialState& trial = it->second;
    if (trial.trace_key != e.trace_key) return contradiction("the result of trial {} is of another trace", e.trial);
    if (e.attempt >= trial.next_attempt)
      return contradiction("a result of attempt {} of trial {}, which was never dispatched", e.attempt, e.trial);
    if (e.settled && trial.settled) return contradiction("a second settled result of trial {}", e.trial);
    trial.results.push_back(e);
    if (e.attempt + 1 == trial.next_attempt) trial.in_flight = false;
    if (!e.settled) return {};
    trial.settled = e;
    TaskState& task = run.tasks[trial.task];
    ++task.settled_by_status[to_string(e.status)];
    find_best_after(task, e.trial);
    return {};
  }
  Status operator()(const DeviceQuarantined& e) {
    run.quarantined[e.device] = e;
    withdraw(run, e);
    for (auto& [number, task] : run.tasks) find_best(run, task);
    return {};
  }
  Status operator()(const DbCommitted& e) {
    run.committed_through = std::max(run.committed_through, e.through);
    return {};
  }
  Status operator()(const RunEnd& e) { return run.end = e, Status{}; }
  Status operator()(const Checkpoint& e) { return run.checkpoint = e, Status{}; }
  Status operator()(const RunSeeded& e) { return run.seeds.push_back(e), Status{}; }
  Status operator()(const Best& e) { return run.bests.push_back(e), Status{}; }
  template <class Other>
  Status operator()(const Other&) {
    return {};
  }

  /// As find_best, given that only `trial` is new.
  void find_best_after(TaskState& task, int64_t number) {
    const JobResult& fresh = *run.trials.at(number).settled;
    if (fresh.status != TrialStatus::ok || !fresh.verified || fresh.stage > Stage::final) return;
    if (task.best_trial) {
      const JobResult& best = *run.trials.at(*task.best_trial).settled;
      std::tuple ranks{-static_cast<int>(best.stage), best.median_ns, *task.best_trial};
      if (std::tuple{-static_cast<int>(fresh.stage), fresh.median_ns, number} >= ranks) return;
    }
    task.best_trial = number;
  }
};

}  // namespace

const JobResult* TrialState::counting() const {
  for (auto r = results.rbegin(); r != results.rend(); ++r)
    if (!r->settled && r->stage == Stage::final && r->status == TrialStatus::ok && r->n > 0) return &*r;
  return settled ? &*settled : nullptr;
}

std::optional<JobResult> TrialState::known() const {
  std::optional<JobResult> r = settled;
  if (r) r->attempt = next_attempt - 1;
  return r;
}

int64_t RunState::settled() const {
  return std::count_if(trials.begin(), trials.end(),
                       [](const auto& trial) { return trial.second.settled.has_value(); });
}

bool RunState::holds(const EventBody& body) const {
  auto any = [](const auto& list, auto same) { return std::any_of(list.begin(), list.end(), same); };
  if (auto* e = std::get_if<TaskStart>(&body)) return tasks.contains(e->task);
  if (auto* e = std::get_if<RunSeeded>(&body))
    return any(seeds, [&](const RunSeeded& b) { return b.task == e->task && b.trace_key == e->trace_key; });
  if (auto* e = std::get_if<RoundStart>(&body))
    return any(rounds, [&](const RoundStart& b) { return b.task == e->task && b.round == e->round; });
  if (auto* e = std::get_if<CandidatesRefused>(&body))
    return any(refused, [&](const CandidatesRefused& b) {
      return b.task == e->task && b.round == e->round && b.stage == e->stage;
    });
  if (auto* e = std::get_if<Best>(&body))
    return any(bests, [&](const Best& b) { return b.task == e->task && b.trial == e->trial && b.stage == e->stage; });
  if (auto* e = std::get_if<ModelFit>(&body))
    return any(fits, [&](const ModelFit& b) { return b.task == e->task && b.round == e->round; });
  return false;
}

std::vector<int64_t> RunState::in_flight() const {
  std::vector<int64_t> numbers;
  for (const auto& [number, trial] : trials)
    if (trial.in_flight && !trial.settled) numbers.push_back(number);
  return numbers;
}

Status RunState::apply(const Event& event) {
  last_seq = event.seq;
  elapsed_s = event.t;
  return std::visit(Apply{*this}, event.body);
}

Result<RunState> replay_run(const std::string& directory) {
  RunState run;
  std::string path = directory + "/events.jsonl";
  TW_TRY(JournalReading reading, read_journal(path, [&](const Event& event) { return run.apply(event); }));
  if (!reading.damage.empty()) {
    const Diagnostic& first = reading.damage.front();
    return refuse(Refusal(journal_damaged, fmt::format("line {} of {}: {}", first.span.line, path, first.message))
                      .with_note([] {
                        return Note{
                            "what can still be read goes into the database, and a new run measures only the rest", {}};
                      })
                      .with_help(fmt::format("tilewright db import-run {}", directory)));
  }
  return run;
}

}  // namespace tilewright
