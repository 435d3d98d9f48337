// Opening and reading.
#include <fmt/format.h>

#include <algorithm>

#include "database/schema.h"
#include "database/sqlite.h"
#include "support/check.h"
#include "support/reflect_json.h"

namespace tilewright::sqlite {

namespace {

template <class T>
T from_json(const std::string& text, const char* what) {
  T out;
  Json json = Json::parse(text, nullptr, false);
  Status status = json.is_discarded() ? Status(refuse(database_damaged, fmt::format("{}: not JSON", what)))
                                      : reflect_json::read(json, out, what);
  if (!status) throw Refused{Refusal(database_damaged, status.error().diagnostic().message)};
  return out;
}

const std::string& record_columns() {
  static const std::string columns = schema::column_list(schema::table("record"), "record.");
  return columns;
}

Register<DatabaseBackend> sqlite_entry{
    "sqlite", "one file on this machine: sqlite:PATH", {[](std::string_view path, const DatabaseOptions& options) {
      if (path.empty())
        return Result<std::unique_ptr<Database>>(
            refuse(database_url_invalid, "expected a path after \"sqlite:\", found none"));
      return SqliteDatabase::open(std::string(path), options);
    }}};
Register<DatabaseBackend> memory_entry{
    "memory", "nothing is kept: memory:", {[](std::string_view rest, const DatabaseOptions& options) {
      if (!rest.empty())
        return Result<std::unique_ptr<Database>>(
            refuse(database_url_invalid, fmt::format("expected nothing after \"memory:\", found \"{}\"", rest)));
      return SqliteDatabase::open(":memory:", options);
    }}};

}  // namespace

Result<std::unique_ptr<Database>> SqliteDatabase::open(const std::string& path, const DatabaseOptions& options) {
  TW_TRY(std::unique_ptr<Connection> connection, Connection::open(path, options));
  std::unique_ptr<SqliteDatabase> store(new SqliteDatabase(std::move(connection)));
  TW_TRY_VOID(store->guarded([&]() -> Status { return store->load_dictionary(), Status{}; }));
  return store;
}

std::string SqliteDatabase::unframe(const std::string& frame) {
  auto text = compressor_.decompress(frame);
  if (!text && !trained_) {  // another process trained the dictionary after this one opened the file
    load_dictionary();
    text = compressor_.decompress(frame);
  }
  if (!text) throw Refused{Refusal(database_damaged, text.error().diagnostic().message)};
  return *text;
}

Key128 SqliteDatabase::key_of(const char* table, std::map<int64_t, Key128>& cache, int64_t id) {
  auto it = cache.find(id);
  if (it != cache.end()) return it->second;
  Query query(kept(fmt::format("SELECT key FROM {} WHERE id = ?", table)), id);
  if (!query.step()) throw Refused{Refusal(database_damaged, fmt::format("{} {} is not there", table, id))};
  return cache[id] = query.key();
}

Record SqliteDatabase::read_record(Query& query) {
  Record r;
  query.integer();  // id
  r.workload = key_of("workload", workload_keys_, query.integer());
  r.target = key_of("target", target_keys_, query.integer());
  r.mode = query.value<Mode>();
  r.trace_key = query.key();
  query.integer();  // short_id
  if (std::string frame = query.text(); !frame.empty()) r.trace = unframe(frame);
  r.status = query.value<TrialStatus>();
  r.stage = query.value<Stage>();
  r.rank_ns = query.real_or_null();
  r.ci_lo_ns = query.real_or_null();
  r.ci_hi_ns = query.real_or_null();
  r.n = query.integer();
  r.measurements = query.integer();
  r.settled = query.integer();
  r.verified = query.integer() != 0;
  r.blocked = query.integer() != 0;
  r.unblocked_reason = query.text();
  r.unblocked_us = query.integer_or_null();
  r.failures = from_json<ByName<int64_t>>(query.text(), "failures");
  r.toolchain = query.text();
  r.artifact = query.text();
  r.plugins = from_json<std::vector<std::string>>(query.text(), "plugins");
  r.updated_us = query.integer();
  return r;
}

Result<std::vector<Record>> SqliteDatabase::top(const TopQuery& q) {
  return guarded([&]() -> Result<std::vector<Record>> {
    std::vector<Record> best;
    auto workload = find_id_of("workload", workload_ids_, q.space.workload);
    if (!workload) return best;
    std::string sql =
        fmt::format("SELECT {} FROM record WHERE workload = ? AND target = ? AND mode = ?", record_columns());
    // The condition is that of the partial index, word for word.
    sql += q.unverified ? " AND blocked = 0 AND rank_ns IS NOT NULL ORDER BY verified DESC, rank_ns, trace_key LIMIT ?"
                        : " AND verified = 1 AND blocked = 0 ORDER BY rank_ns, trace_key LIMIT ?";
    for (int64_t target : target_ids(q)) {
      Query query(kept(sql), *workload, target, q.space.mode, q.limit);
      while (query.step()) best.push_back(read_record(query));
    }
    std::stable_sort(best.begin(), best.end(), [](const Record& a, const Record& b) {
      return std::tuple(!a.verified, *a.rank_ns, a.trace_key) < std::tuple(!b.verified, *b.rank_ns, b.trace_key);
    });
    if (best.size() > static_cast<size_t>(q.limit)) best.resize(static_cast<size_t>(q.limit));
    return best;
  });
}

std::vector<int64_t> SqliteDatabase::target_ids(const TopQuery& q) {
  std::vector<int64_t> ids;
  if (!q.by_class) {
    if (auto id = find_id_of("target", target_ids_, q.space.target)) ids.push_back(*id);
    return ids;
  }
  Query query(kept("SELECT id FROM target WHERE class_key = ? ORDER BY id"), q.space.target);
  while (query.step()) ids.push_back(query.integer());
  return ids;
}

std::optional<std::pair<int64_t, Record>> SqliteDatabase::lookup(const SpaceKey& space, const Key128& trace_key) {
  auto workload = find_id_of("workload", workload_ids_, space.workload);
  auto target = find_id_of("target", target_ids_, space.target);
  if (!workload || !target) return std::nullopt;
  Query query(kept(fmt::format("SELECT record.id, {} FROM record WHERE workload = ? AND target = ? AND mode = ? AND "
                               "trace_key = ?",
                               record_columns())),
              *workload, *target, space.mode, trace_key);
  if (!query.step()) return std::nullopt;
  int64_t id = query.integer();
  return std::pair(id, read_record(query));
}

Result<std::optional<Record>> SqliteDatabase::find(const SpaceKey& space, const Key128& trace_key) {
  return guarded([&]() -> Result<std::optional<Record>> {
    auto found = lookup(space, trace_key);
    return found ? std::optional(found->second) : std::nullopt;
  });
}

Result<std::vector<Record>> SqliteDatabase::find_id(uint64_t short_id) {
  return guarded([&]() -> Result<std::vector<Record>> {
    std::vector<Record> found;
    Query query(kept(fmt::format("SELECT {} FROM record WHERE short_id = ? ORDER BY id", record_columns())), short_id);
    while (query.step()) found.push_back(read_record(query));
    return found;
  });
}

Result<int64_t> SqliteDatabase::settled_trials(const SpaceKey& space) {
  return guarded([&]() -> Result<int64_t> {
    auto workload = find_id_of("workload", workload_ids_, space.workload);
    auto target = find_id_of("target", target_ids_, space.target);
    if (!workload || !target) return 0;
    Query query(kept("SELECT coalesce(sum(settled), 0) FROM record WHERE workload = ? AND target = ? AND mode = ?"),
                *workload, *target, space.mode);
    query.step();
    return query.integer();
  });
}

Status SqliteDatabase::for_each_record(const std::optional<SpaceKey>& space,
                                       const std::function<Status(const Record&)>& f) {
  return guarded([&]() -> Status {
    std::string where;
    if (space) {
      auto workload = find_id_of("workload", workload_ids_, space->workload);
      auto target = find_id_of("target", target_ids_, space->target);
      if (!workload || !target) return {};
      where = fmt::format("WHERE workload = {} AND target = {} AND mode = {}", *workload, *target,
                          static_cast<int>(space->mode));
    }
    SQLite::Statement scan(connection_->raw(),
                           fmt::format("SELECT {} FROM record {} ORDER BY id", record_columns(), where));
    Query query(scan);
    while (query.step()) TW_TRY_VOID(f(read_record(query)));
    return {};
  });
}

Measurement SqliteDatabase::read_measurement(Query& query) {
  Measurement m;
  m.campaign.value = static_cast<uint64_t>(query.integer());
  m.seq = query.integer();
  JobResult& r = m.result;
  r.attempt = query.integer();
  query.integer();  // record
  r.status = query.value<TrialStatus>();
  r.stage = query.value<Stage>();
  r.median_ns = query.real();
  r.ci_lo_ns = query.real();
  r.ci_hi_ns = query.real();
  r.n = query.integer();
  int64_t flags = query.integer();
  r.verified = flags & flag_verified;
  r.settled = flags & flag_settled;
  m.withdrawn = flags & flag_withdrawn;
  r.finished_us = query.integer();
  r.device = query.text();
  r.canary_ratio = query.real_or_null();
  r.toolchain = query.text();
  r.artifact = query.text();
  if (std::string plugins = query.text(); plugins != "[]")
    r.plugins = from_json<std::vector<std::string>>(plugins, "plugins");
  r.task = m.seq >> 32;
  r.trial = m.seq & 0xffffffff;
  return m;
}

std::vector<Measurement> SqliteDatabase::summaries(RecordId id) {
  static const std::string sql =
      fmt::format("SELECT {} FROM measurement WHERE record = ?", schema::column_list(schema::table("measurement")));
  std::vector<Measurement> all;
  Query query(kept(sql), id);
  while (query.step()) all.push_back(read_measurement(query));
  return all;
}

Status SqliteDatabase::for_each_measurement(const Record* record, const std::function<Status(const Measurement&)>& f) {
  return guarded([&]() -> Status {
    std::string where;
    if (record) {
      auto found = lookup({record->workload, record->target, record->mode}, record->trace_key);
      if (!found) return {};
      where = fmt::format("WHERE measurement.record = {}", found->first);
    }
    SQLite::Statement scan(
        connection_->raw(),
        fmt::format("SELECT {}, record.workload, record.target, record.mode, record.trace_key, "
                    "record.trace_z FROM measurement JOIN record ON record.id = measurement.record {} "
                    "ORDER BY campaign, seq, attempt",
                    schema::column_list(schema::table("measurement"), "measurement."), where));
    Query query(scan);
    while (query.step()) {
      Measurement m = read_measurement(query);
      std::string detail = query.text(), source = query.text();
      if (!detail.empty()) m.result = from_json<JobResult>(unframe(detail), "measurement");
      if (!source.empty()) m.source = unframe(source);
      m.workload = key_of("workload", workload_keys_, query.integer());
      m.target = key_of("target", target_keys_, query.integer());
      m.mode = query.value<Mode>();
      m.result.trace_key = query.key();
      if (std::string trace = query.text(); !trace.empty()) m.trace = unframe(trace);
      TW_TRY_VOID(f(m));
    }
    return {};
  });
}

Result<std::vector<WorkloadEntry>> SqliteDatabase::workloads(std::optional<Key128> anchor) {
  return guarded([&]() -> Result<std::vector<WorkloadEntry>> {
    std::vector<WorkloadEntry> all;
    SQLite::Statement scan(connection_->raw(), fmt::format("SELECT {} FROM workload {} ORDER BY id",
                                                           schema::column_list(schema::table("workload")),
                                                           anchor ? "WHERE anchor_key = ?" : ""));
    Query query(scan);
    if (anchor) query.bind(*anchor);
    while (query.step()) {
      WorkloadEntry& w = all.emplace_back();
      query.integer();
      w.key = query.key();
      w.anchor_key = query.key();
      w.program = unframe(query.text());
      w.ir_version = query.integer();
      w.name = query.text();
      w.shape = query.text();
      w.flops = query.real();
      w.bytes = query.real();
    }
    return all;
  });
}

Result<std::vector<TargetEntry>> SqliteDatabase::targets() {
  return guarded([&]() -> Result<std::vector<TargetEntry>> {
    std::vector<TargetEntry> all;
    Query query(kept("SELECT key, class_key, name, text FROM target ORDER BY id"));
    while (query.step()) {
      TargetEntry& t = all.emplace_back();
      t.key = query.key();
      t.class_key = query.key();
      t.name = query.text();
      t.text = query.text();
    }
    return all;
  });
}

Result<std::vector<CampaignEntry>> SqliteDatabase::campaigns() {
  return guarded([&]() -> Result<std::vector<CampaignEntry>> {
    std::vector<CampaignEntry> all;
    Query query(
        kept("SELECT id, run, name, version, seed, settings, started_us, state FROM campaign ORDER BY started_us, id"));
    while (query.step()) {
      CampaignEntry& c = all.emplace_back();
      c.id.value = static_cast<uint64_t>(query.integer());
      c.run = query.text();
      c.name = query.text();
      c.version = query.text();
      c.seed = static_cast<uint64_t>(query.integer());
      c.settings = from_json<ByName<std::string>>(query.text(), "settings");
      c.started_us = query.integer();
      c.state = query.text();
    }
    return all;
  });
}

Result<std::vector<DeviceQuarantined>> SqliteDatabase::quarantined_devices() {
  return guarded([&]() -> Result<std::vector<DeviceQuarantined>> {
    std::vector<DeviceQuarantined> all;
    Query query(
        kept("SELECT key, reason, evidence, since_us, until_us FROM quarantine WHERE kind = 'device' ORDER BY key"));
    while (query.step()) {
      DeviceQuarantined& q = all.emplace_back();
      q.device = query.text();
      q.reason = query.text();
      q.evidence = query.text();
      q.since_us = query.integer();
      q.until_us = query.integer_or_null();
    }
    return all;
  });
}

}  // namespace tilewright::sqlite
