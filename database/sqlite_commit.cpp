// Writing: one transaction per batch. A measurement that is there already changes nothing; every record that got a new
// one is summarised again from all of its measurements.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "database/schema.h"
#include "database/sqlite.h"
#include "support/check.h"
#include "support/reflect_json.h"

namespace tilewright::sqlite {

namespace {

auto place(const Measurement& m) {
  return std::tie(m.workload, m.target, m.mode, m.result.trace_key, m.campaign, m.seq, m.result.attempt);
}

template <class T>
std::string json_text(const T& x) {
  return reflect_json::write(x).dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t flags_of(const Measurement& m) {
  return (m.result.verified ? flag_verified : 0) | (m.result.settled ? flag_settled : 0) |
         (m.withdrawn ? flag_withdrawn : 0);
}

// Enough samples for zstd's trainer to find what traces share, and few enough that the first ones are still in the
// table.
constexpr int64_t training_rows = 256;
constexpr size_t dictionary_bytes = 32 << 10;

}  // namespace

Result<int64_t> SqliteDatabase::commit(const Batch& batch) {
  if (batch.empty()) return 0;
  auto result = guarded([&]() -> Result<int64_t> {
    SQLite::Transaction transaction(connection_->raw(), SQLite::TransactionBehavior::IMMEDIATE);
    load_dictionary();
    for (const WorkloadEntry& w : batch.workloads) insert_workload(w);
    for (const TargetEntry& t : batch.targets) insert_target(t);
    for (const CampaignEntry& c : batch.campaigns) upsert_campaign(c);
    std::map<RecordId, Touched> touched;
    insert_measurements(batch.measurements, touched);
    int64_t inserted = 0;
    for (const auto& [id, record] : touched) inserted += static_cast<int64_t>(record.inserted.size());
    for (const DeviceQuarantined& q : batch.withdrawals) withdraw(q, touched);
    for (const auto& [id, record] : touched) refresh(id, record);
    transaction.commit();
    return inserted;
  });
  std::scoped_lock lock(mutex_);
  if (!result) {
    workload_ids_.clear();  // they may name rows that were rolled back
    target_ids_.clear();
  } else if (!trained_) {
    // Only saves space, and the batch is in already: if it fails, the next commit tries again.
    static_cast<void>(guarded([&]() -> Status { return train(), Status{}; }));
  }
  return result;
}

void SqliteDatabase::insert_workload(const WorkloadEntry& w) {
  static const std::string sql = schema::insert_statement(schema::table("workload"), "ON CONFLICT (key) DO NOTHING");
  if (workload_ids_.count(w.key)) return;
  std::string program = frame(w.program);
  Query(kept(sql), w.key, w.anchor_key, Blob{program}, w.ir_version, w.name, w.shape, w.flops, w.bytes).run();
}

void SqliteDatabase::insert_target(const TargetEntry& t) {
  static const std::string sql = schema::insert_statement(schema::table("target"), "ON CONFLICT (key) DO NOTHING");
  if (target_ids_.count(t.key)) return;
  Query(kept(sql), t.key, t.class_key, t.name, t.text).run();
}

void SqliteDatabase::upsert_campaign(const CampaignEntry& c) {
  static const std::string sql = schema::insert_statement(
      schema::table("campaign"),
      "ON CONFLICT (id) DO UPDATE SET state = excluded.state WHERE excluded.state <> 'running'");
  Query(kept(sql), c.id.value, c.run, c.name, c.version, c.seed, json_text(c.settings), c.started_us, c.state).run();
}

std::optional<int64_t> SqliteDatabase::find_id_of(const char* table, std::map<Key128, int64_t>& cache,
                                                  const Key128& key) {
  auto it = cache.find(key);
  if (it != cache.end()) return it->second;
  Query query(kept(fmt::format("SELECT id FROM {} WHERE key = ?", table)), key);
  if (!query.step()) return std::nullopt;
  return cache[key] = query.integer();
}

int64_t SqliteDatabase::id_of(const char* table, std::map<Key128, int64_t>& cache, const Key128& key) {
  if (auto id = find_id_of(table, cache, key)) return *id;
  throw Refused{
      Refusal(database_row_unknown, fmt::format("a measurement names {} {}, which is not there", table, key.hex()))};
}

SqliteDatabase::RecordId SqliteDatabase::record_of(const Measurement& m, std::map<RecordId, Touched>& touched) {
  int64_t workload = id_of("workload", workload_ids_, m.workload), target = id_of("target", target_ids_, m.target);
  Query find(
      kept("SELECT id, trace_z IS NULL FROM record WHERE workload = ? AND target = ? AND mode = ? AND trace_key = ?"),
      workload, target, m.mode, m.result.trace_key);
  if (find.step()) {
    RecordId id = find.integer();
    if (find.integer() && !m.trace.empty()) {  // pruned, and now known again
      std::string trace = frame(m.trace);
      Query(kept("UPDATE record SET trace_z = ? WHERE id = ?"), Blob{trace}, id).run();
    }
    return id;
  }
  static const std::string sql = schema::insert_statement(schema::table("record"));
  Record record;
  record.workload = m.workload;
  record.target = m.target;
  record.mode = m.mode;
  record.trace_key = m.result.trace_key;
  std::string trace = m.trace.empty() ? std::string() : frame(m.trace);
  std::optional<Blob> trace_z;
  if (!trace.empty()) trace_z = Blob{trace};
  Query(kept(sql), workload, target, m.mode, record.trace_key, record.short_id(), trace_z, 0, 0, std::nullopt,
        std::nullopt, std::nullopt, 0, 0, 0, 0, 0, std::string(), std::nullopt, std::string("{}"), std::string(),
        std::string(), std::string("[]"), 0)
      .run();
  RecordId id = connection_->raw().getLastInsertRowid();
  touched[id].fresh = true;
  return id;
}

void SqliteDatabase::insert_measurements(const std::vector<Measurement>& measurements,
                                         std::map<RecordId, Touched>& touched) {
  static const std::string sql = schema::insert_statement(schema::table("measurement"));
  std::vector<const Measurement*> sorted;  // by key: neighbours in the index are written together
  for (const Measurement& m : measurements) sorted.push_back(&m);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return place(*a) < place(*b); });
  for (const Measurement* m : sorted) {
    const JobResult& r = m->result;
    if (Query(kept("SELECT 1 FROM measurement WHERE campaign = ? AND seq = ? AND attempt = ?"), m->campaign.value,
              m->seq, r.attempt)
            .step())
      continue;
    RecordId record = record_of(*m, touched);
    std::string detail = frame(json_text(r)), source = m->source.empty() ? std::string() : frame(m->source);
    std::optional<Blob> source_z;
    if (!source.empty()) source_z = Blob{source};
    Query(kept(sql), m->campaign.value, m->seq, r.attempt, record, r.status, r.stage, r.median_ns, r.ci_lo_ns,
          r.ci_hi_ns, r.n, flags_of(*m), r.finished_us, r.device, r.canary_ratio, r.toolchain, r.artifact,
          json_text(r.plugins), Blob{detail}, source_z)
        .run();
    touched[record].inserted.push_back(m);
  }
}

/// Verdicts of a device since its last good canary do not count any more. A notice that is not newer than the one
/// stored was applied before: what the device did after its release must stay.
void SqliteDatabase::withdraw(const DeviceQuarantined& q, std::map<RecordId, Touched>& touched) {
  static const std::string sql = schema::insert_statement(
      schema::table("quarantine"),
      "ON CONFLICT (kind, key) DO UPDATE SET reason = excluded.reason, evidence = excluded.evidence, since_us = "
      "excluded.since_us, until_us = excluded.until_us WHERE excluded.since_us > quarantine.since_us");
  if (Query(kept(sql), std::string("device"), q.device, q.reason, q.evidence, q.since_us, q.until_us).run() == 0)
    return;
  std::set<RecordId> records;
  {
    Query find(
        kept(fmt::format("SELECT record FROM measurement WHERE device = ? AND finished_us >= ? AND flags & {} = 0",
                         flag_withdrawn)),
        q.device, q.since_us);
    while (find.step()) records.insert(find.integer());
  }
  Query(kept(fmt::format("UPDATE measurement SET flags = flags | {} WHERE device = ? AND finished_us >= ?",
                         flag_withdrawn)),
        q.device, q.since_us)
      .run();
  for (RecordId id : records) touched[id].fresh = false;
}

/// Summarises a record from all of its measurements.
void SqliteDatabase::refresh(RecordId id, const Touched& touched) {
  Record record;
  std::vector<Measurement> stored;
  std::vector<const Measurement*> all = touched.inserted;
  if (!touched.fresh) {
    Query find(kept("SELECT unblocked_us FROM record WHERE id = ?"), id);
    TW_CHECK(find.step());
    record.unblocked_us = find.integer_or_null();
    stored = summaries(id);
    all.clear();
    for (const Measurement& m : stored) all.push_back(&m);
  }
  summarize(record, all);
  update_record(id, record);
}

void SqliteDatabase::update_record(RecordId id, const Record& r) {
  Query(
      kept("UPDATE record SET status = ?, stage = ?, rank_ns = ?, ci_lo_ns = ?, ci_hi_ns = ?, n = ?, measurements = ?, "
           "settled = ?, verified = ?, blocked = ?, failures = ?, toolchain = ?, artifact = ?, plugins = ?, "
           "updated_us = ? WHERE id = ?"),
      r.status, r.stage, r.rank_ns, r.ci_lo_ns, r.ci_hi_ns, r.n, r.measurements, r.settled, r.verified, r.blocked,
      json_text(r.failures), r.toolchain, r.artifact, json_text(r.plugins), r.updated_us, id)
      .run();
}

/// Trains the dictionary once there is something to train on; frames from before stay readable without it.
void SqliteDatabase::train() {
  int64_t rows = 0;
  {
    Query count(kept("SELECT count(*) FROM (SELECT 1 FROM record LIMIT ?)"), training_rows);
    if (count.step()) rows = count.integer();
  }
  if (rows < training_rows) return;
  SQLite::Transaction transaction(connection_->raw(), SQLite::TransactionBehavior::IMMEDIATE);
  load_dictionary();
  if (trained_) return;
  std::vector<std::string> samples;
  for (const char* sql : {"SELECT trace_z FROM record WHERE trace_z IS NOT NULL LIMIT ?",
                          "SELECT detail_z FROM measurement WHERE detail_z IS NOT NULL LIMIT ?"}) {
    Query query(kept(sql), training_rows);
    while (query.step()) samples.push_back(unframe(query.text()));
  }
  // An empty one, if zstd finds nothing in common, is stored too: it is not tried again.
  std::string dictionary = train_dictionary(samples, dictionary_bytes);
  Query(kept("INSERT OR REPLACE INTO meta (name, value) VALUES ('zstd_dictionary', ?)"), Blob{dictionary}).run();
  transaction.commit();
  load_dictionary();
}

void SqliteDatabase::load_dictionary() {
  if (trained_) return;
  Query query(kept("SELECT value FROM meta WHERE name = 'zstd_dictionary'"));
  if (!query.step()) return;
  compressor_ = Compressor(query.text());
  trained_ = true;
}

}  // namespace tilewright::sqlite
