// Keeping a database in order: figures, prune, verify, unblock.
#include <fmt/format.h>

#include <algorithm>

#include "database/schema.h"
#include "database/sqlite.h"
#include "support/check.h"

namespace tilewright::sqlite {

namespace {

constexpr size_t most_problems = 100;

void report(VerifyReport& out, std::string message) {
  if (out.problems.size() >= most_problems) return;
  Diagnostic d;
  d.code = database_damaged.text;
  d.message = std::move(message);
  out.problems.push_back(std::move(d));
}

/// What differs between a stored record and the same one summarised again; empty if nothing does.
std::string difference(const Record& stored, const Record& again) {
  std::string out;
  auto compare = [&](const char* what, const auto& a, const auto& b) {
    if (a != b) out += fmt::format("{}{}", out.empty() ? "" : ", ", what);
  };
  compare("status", stored.status, again.status);
  compare("stage", stored.stage, again.stage);
  compare("rank_ns", stored.rank_ns, again.rank_ns);
  compare("ci_lo_ns", stored.ci_lo_ns, again.ci_lo_ns);
  compare("ci_hi_ns", stored.ci_hi_ns, again.ci_hi_ns);
  compare("n", stored.n, again.n);
  compare("measurements", stored.measurements, again.measurements);
  compare("settled", stored.settled, again.settled);
  compare("verified", stored.verified, again.verified);
  compare("blocked", stored.blocked, again.blocked);
  compare("failures", stored.failures, again.failures);
  compare("toolchain", stored.toolchain, again.toolchain);
  compare("artifact", stored.artifact, again.artifact);
  compare("plugins", stored.plugins, again.plugins);
  compare("updated_us", stored.updated_us, again.updated_us);
  return out;
}

}  // namespace

Result<DatabaseStats> SqliteDatabase::stats() {
  return guarded([&]() -> Result<DatabaseStats> {
    auto count = [&](const std::string& sql) { return connection_->raw().execAndGet(sql).getInt64(); };
    DatabaseStats s;
    s.workloads = count("SELECT count(*) FROM workload");
    s.targets = count("SELECT count(*) FROM target");
    s.campaigns = count("SELECT count(*) FROM campaign");
    s.records = count("SELECT count(*) FROM record");
    s.verified = count("SELECT count(*) FROM record WHERE verified = 1 AND blocked = 0");
    s.blocked = count("SELECT count(*) FROM record WHERE blocked = 1");
    s.bytes = count("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size");
    Query by_status(kept("SELECT status, count(*) FROM measurement GROUP BY status ORDER BY status"));
    while (by_status.step()) {
      int64_t status = by_status.integer(), rows = by_status.integer();
      bool known = status >= 0 && status < static_cast<int64_t>(trial_statuses.size());
      s.by_status[to_string(known ? static_cast<TrialStatus>(status) : TrialStatus::unspecified)] += rows;
      s.measurements += rows;
    }
    return s;
  });
}

Result<PruneReport> SqliteDatabase::prune(const PrunePolicy& policy) {
  return guarded([&]() -> Result<PruneReport> {
    auto bytes = [&] {
      return connection_->raw()
          .execAndGet("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
          .getInt64();
    };
    PruneReport out;
    out.bytes_before = bytes();
    {
      SQLite::Transaction transaction(connection_->raw(), SQLite::TransactionBehavior::IMMEDIATE);
      connection_->exec("CREATE TEMP TABLE loser (id INTEGER PRIMARY KEY)");
      SQLite::Statement choose(
          connection_->raw(),
          "INSERT INTO loser SELECT id FROM (SELECT id, blocked, updated_us, row_number() OVER (PARTITION BY workload, "
          "target, mode ORDER BY blocked, verified DESC, rank_ns IS NULL, rank_ns, trace_key) AS place FROM record) "
          "WHERE place > ? AND blocked = 0 AND updated_us < ?");
      out.records = Query(choose, policy.keep, policy.older_than_us.value_or(INT64_MAX)).run();
      connection_->exec("UPDATE record SET trace_z = NULL WHERE id IN (SELECT id FROM loser)");
      connection_->exec(
          "UPDATE measurement SET detail_z = NULL, source_z = NULL WHERE record IN (SELECT id FROM loser)");
      connection_->exec("DROP TABLE loser");
      transaction.commit();
    }
    connection_->exec("VACUUM");
    out.bytes_after = bytes();
    return out;
  });
}

Result<VerifyReport> SqliteDatabase::verify() {
  return guarded([&]() -> Result<VerifyReport> {
    VerifyReport out;
    verify_file(out);
    if (!out.problems.empty()) return out;  // what follows would only repeat it
    verify_references(out);
    verify_workloads(out);
    verify_records(out);
    return out;
  });
}

void SqliteDatabase::verify_file(VerifyReport& out) {
  SQLite::Statement check(connection_->raw(), fmt::format("PRAGMA integrity_check({})", most_problems));
  Query query(check);
  while (query.step())
    if (std::string line = query.text(); line != "ok") report(out, line);
}

void SqliteDatabase::verify_references(VerifyReport& out) {
  struct Reference {
    const char *table, *column, *other;
  };
  for (const Reference& r : {Reference{"measurement", "record", "record"}, Reference{"record", "workload", "workload"},
                             Reference{"record", "target", "target"}}) {
    int64_t lost = connection_->raw()
                       .execAndGet(fmt::format("SELECT count(*) FROM {} WHERE {} NOT IN (SELECT id FROM {})", r.table,
                                               r.column, r.other))
                       .getInt64();
    if (lost) report(out, fmt::format("{} rows of {} name a {} that is not there", lost, r.table, r.other));
  }
}

void SqliteDatabase::verify_workloads(VerifyReport& out) {
  SQLite::Statement scan(connection_->raw(), "SELECT id, key, program_z, ir_version FROM workload ORDER BY id");
  Query query(scan);
  while (query.step()) {
    ++out.workloads;
    int64_t id = query.integer();
    Key128 key = query.key();
    auto program = compressor_.decompress(query.text());
    if (!program)
      report(out, fmt::format("workload {}: {}", id, program.error().diagnostic().message));
    else if (Key128 again = workload_key(*program, query.integer()); again != key)
      report(out, fmt::format("workload {}: expected key {}, its program has {}", id, key.hex(), again.hex()));
  }
}

void SqliteDatabase::verify_records(VerifyReport& out) {
  SQLite::Statement ids(connection_->raw(), "SELECT id FROM record ORDER BY id");
  Query query(ids);
  static const std::string sql =
      fmt::format("SELECT {} FROM record WHERE id = ?", schema::column_list(schema::table("record")));
  while (query.step()) {
    RecordId id = query.integer();
    try {
      Query row(kept(sql), id);
      row.step();
      Record stored = read_record(row);
      std::vector<Measurement> measurements = summaries(id);
      std::vector<const Measurement*> pointers;
      for (const Measurement& m : measurements) pointers.push_back(&m);
      Record again = stored;
      summarize(again, pointers);
      ++out.records;
      out.measurements += static_cast<int64_t>(measurements.size());
      std::string differs = difference(stored, again);
      if (!differs.empty())
        report(out, fmt::format("record {} does not follow from its measurements: {}", stored.id(), differs));
      if (!stored.trace.empty() && text_key(stored.trace) != stored.trace_key)
        report(out, fmt::format("record {}: its trace has key {}, not {}", stored.id(), text_key(stored.trace).hex(),
                                stored.trace_key.hex()));
    } catch (const Refused& e) {
      report(out, fmt::format("record {}: {}", id, e.refusal.diagnostic().message));
    }
  }
}

Status SqliteDatabase::unblock(const Record& record, std::string_view reason) {
  if (reason.empty()) return refuse(database_failed, "expected a reason for unblocking a record, found none");
  return guarded([&]() -> Status {
    SQLite::Transaction transaction(connection_->raw(), SQLite::TransactionBehavior::IMMEDIATE);
    auto found = lookup({record.workload, record.target, record.mode}, record.trace_key);
    if (!found) return refuse(database_row_unknown, fmt::format("there is no record {}", record.id()));
    // The time of the last verdict, not of the clock: an equal verdict that comes later blocks again, on every machine.
    int64_t until = record.unblocked_us.value_or(found->second.updated_us);
    Query(kept("UPDATE record SET unblocked_reason = ?, unblocked_us = ? WHERE id = ?"), std::string(reason), until,
          found->first)
        .run();
    refresh(found->first, Touched{});
    transaction.commit();
    return {};
  });
}

}  // namespace tilewright::sqlite
