#include "database/ingest.h"

#include <fmt/format.h>

#include "database/replay.h"

namespace tilewright {

namespace {

Status check_key(const char* what, const Key128& found, const Key128& expected) {
  if (found == expected) return {};
  return refuse(event_key_mismatch, fmt::format("{}: expected {}, found {}", what, expected.hex(), found.hex()));
}

}  // namespace

Status Ingest::apply(const Event& event) {
  TW_TRY_VOID(std::visit([&](const auto& body) { return take(body); }, event.body));
  seq_ = event.seq;
  return {};
}

Batch& Ingest::open_batch() {
  if (batches_.empty() || !batches_.back().withdrawals.empty()) batches_.emplace_back();
  return batches_.back();
}

Status Ingest::take(const RunStart& e) {
  campaign_ = {e.campaign, e.run, e.name, e.version, e.seed, e.settings, e.started_us, "running"};
  started_ = true;
  open_batch().campaigns.push_back(campaign_);
  return {};
}

Status Ingest::take(const RunEnd& e) {
  campaign_.state = e.reason;
  open_batch().campaigns.push_back(campaign_);
  return {};
}

Status Ingest::take(const TaskStart& e) {
  TW_TRY_VOID(check_key("workload_key of task.start", e.workload_key, workload_key(e.program, e.ir_version)));
  std::string target = target_text(e.target, e.environment);
  TW_TRY_VOID(check_key("target_key of task.start", e.target_key, text_key(target)));
  tasks_[e.task] = {e.workload_key, e.target_key, e.mode};
  Batch& batch = open_batch();
  batch.workloads.push_back({e.workload_key, e.anchor_key, e.program, e.ir_version, e.name, e.shape, e.flops, e.bytes});
  batch.targets.push_back({e.target_key, e.target_class, e.target_name, std::move(target)});
  return {};
}

Status Ingest::take(const JobDispatched& e) {
  if (e.trace.empty()) return {};
  TW_TRY_VOID(check_key("trace_key of job.dispatched", e.trace_key, text_key(e.trace)));
  traces_[e.trial] = e.trace;
  return {};
}

Status Ingest::take(const JobResult& e) {
  if (!e.record.empty()) return traces_.erase(e.trial), Status{};  // of the database already, under its own campaign
  auto task = tasks_.find(e.task);
  if (!started_ || task == tasks_.end())
    return refuse(journal_inconsistent, fmt::format("a result of task {}, which was never started", e.task));
  Measurement m;
  m.campaign = campaign_.id;
  m.seq = e.task << 32 | e.trial;
  m.workload = task->second.workload;
  m.target = task->second.target;
  m.mode = task->second.mode;
  m.result = e;
  if (auto trace = traces_.find(e.trial); trace != traces_.end()) {
    m.trace = trace->second;
    if (e.settled) traces_.erase(trace);
  }
  open_batch().measurements.push_back(std::move(m));
  ++pending_;
  return {};
}

Status Ingest::take(const DeviceQuarantined& e) {
  open_batch().withdrawals.push_back(e);
  return {};
}

Result<DbCommitted> Ingest::flush(Database& store) {
  DbCommitted done;
  done.through = seq_;
  while (!batches_.empty()) {
    TW_TRY(int64_t rows, store.commit(batches_.front()));
    done.rows += rows;
    pending_ -= batches_.front().measurements.size();
    batches_.pop_front();
  }
  return done;
}

Result<ImportReport> import_run(Database& store, const std::string& directory) {
  constexpr size_t rows_per_transaction = 500;
  ImportReport report;
  Ingest ingest;
  auto flush = [&]() -> Status {
    TW_TRY(DbCommitted done, ingest.flush(store));
    report.inserted += done.rows;
    return {};
  };
  TW_TRY(report.journal, read_journal(directory + "/events.jsonl", [&](const Event& event) -> Status {
           report.results += std::holds_alternative<JobResult>(event.body);
           TW_TRY_VOID(ingest.apply(event));
           return ingest.pending() < rows_per_transaction ? Status{} : flush();
         }));
  TW_TRY_VOID(flush());
  return report;
}

}  // namespace tilewright
