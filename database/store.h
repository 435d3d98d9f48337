// Database: the tuning database behind one interface, whatever engine holds it. open_database(URL) gives one. What a
// record is and how it follows from measurements: database/record.h. From a run's events to rows: database/ingest.h.
// All calls may come from any thread; they are done one after the other.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "database/record.h"
#include "support/events.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(database_url_invalid, "database-url-invalid",
                "a database URL is not sqlite:PATH, memory: or postgresql://…");
TW_REFUSAL_CODE(database_missing, "database-missing", "there is no database at that place");
TW_REFUSAL_CODE(database_newer, "database-newer", "a newer version wrote this database");
TW_REFUSAL_CODE(database_foreign, "database-foreign", "the file is a database of another program");
TW_REFUSAL_CODE(database_damaged, "database-damaged", "the database file is damaged");
TW_REFUSAL_CODE(database_busy, "database-busy", "another process keeps the database locked");
TW_REFUSAL_CODE(database_file_system, "database-file-system", "the database lies on a file system that corrupts it");
TW_REFUSAL_CODE(database_failed, "database-failed", "the database cannot be read or written");
TW_REFUSAL_CODE(database_row_unknown, "database-row-unknown",
                "a row refers to a workload, target or record that is not there");

/// What goes in together: one transaction, all or nothing. Rows that are there already are left as they are, so that a
/// batch may be committed again.
struct Batch {
  std::vector<WorkloadEntry> workloads;
  std::vector<TargetEntry> targets;
  std::vector<CampaignEntry> campaigns;  ///< here the newer state wins
  std::vector<Measurement> measurements;
  std::vector<DeviceQuarantined> withdrawals;  ///< applied after the measurements
  bool empty() const {
    return workloads.empty() && targets.empty() && campaigns.empty() && measurements.empty() && withdrawals.empty();
  }
};

/// Which records belong together and are compared with one another.
struct SpaceKey {
  Key128 workload, target;
  Mode mode = Mode::cold;
};

struct TopQuery {
  SpaceKey space;
  bool by_class = false;    ///< `space.target` is a class key; such times must be taken again before they are used
  bool unverified = false;  ///< imported and unchecked times too, after the verified ones; still without blocked ones
  int limit = 1;
};

struct DatabaseStats {
  int64_t workloads = 0, targets = 0, campaigns = 0, records = 0, verified = 0, blocked = 0, measurements = 0,
          bytes = 0;
  ByName<int64_t> by_status;  ///< measurements
  TW_FIELDS(workloads, targets, campaigns, records, verified, blocked, measurements, bytes, by_status)
};

struct PrunePolicy {
  int keep = 128;                        ///< best records of each space that stay whole
  std::optional<int64_t> older_than_us;  ///< only records last measured before this time are cut
};
struct PruneReport {
  int64_t records = 0, bytes_before = 0, bytes_after = 0;
};

struct VerifyReport {
  int64_t workloads = 0, records = 0, measurements = 0;
  std::vector<Diagnostic> problems;  ///< at most 100
};

class Database {
 public:
  virtual ~Database() = default;

  /// The measurements really inserted. On the disk when it returns.
  virtual Result<int64_t> commit(const Batch&) = 0;

  /// The best records, best first: verified, not blocked, by rank_ns, then trace key.
  virtual Result<std::vector<Record>> top(const TopQuery&) = 0;
  virtual Result<std::optional<Record>> find(const SpaceKey&, const Key128& trace_key) = 0;
  /// Records "r-<12 hex>": nearly always one; several if 48 bits collide.
  virtual Result<std::vector<Record>> find_id(uint64_t short_id) = 0;
  /// Trials that are settled, for `--trials N` of a run that continues earlier ones.
  virtual Result<int64_t> settled_trials(const SpaceKey&) = 0;
  /// All records of a space, or of all spaces, in the order of their insertion.
  virtual Status for_each_record(const std::optional<SpaceKey>&, const std::function<Status(const Record&)>&) = 0;
  /// All measurements, or those of one record, in the order of (campaign, seq, attempt), each with its trace.
  virtual Status for_each_measurement(const Record*, const std::function<Status(const Measurement&)>&) = 0;

  virtual Result<std::vector<WorkloadEntry>> workloads(std::optional<Key128> anchor = {}) = 0;
  virtual Result<std::vector<TargetEntry>> targets() = 0;
  virtual Result<std::vector<CampaignEntry>> campaigns() = 0;
  virtual Result<std::vector<DeviceQuarantined>> quarantined_devices() = 0;

  virtual Result<DatabaseStats> stats() = 0;
  /// Cuts losers to their summary: traces, samples and reports go, times and verdicts stay. Blocked records stay whole.
  virtual Result<PruneReport> prune(const PrunePolicy&) = 0;
  /// Checks the file, every reference, and every record against its measurements.
  virtual Result<VerifyReport> verify() = 0;
  /// Verdicts known up to now do not block the record any more.
  virtual Status unblock(const Record&, std::string_view reason) = 0;
};

struct DatabaseOptions {
  bool create = true;       ///< false: refuse database-missing
  bool write = true;        ///< false: for reading alone, so that a file that cannot be written to will do
  bool allow_fuse = false;  ///< a file system in user space may or may not keep locks: only for who knows it does
  int busy_ms = 10'000;     ///< wait for other processes
};

/// A kind of store, by the scheme of its URLs.
struct DatabaseBackend {
  static constexpr const char* registry_name = "database";
  Result<std::unique_ptr<Database>> (*open)(std::string_view rest_of_url, const DatabaseOptions&);
};

/// sqlite:PATH, memory:, postgresql://… (opens the component "postgres").
Result<std::unique_ptr<Database>> open_database(std::string_view url, const DatabaseOptions& = {});

/// Copies everything of `from` that `to` lacks; may be repeated. Returns the measurements inserted.
Result<int64_t> merge(Database& to, Database& from);

}  // namespace tilewright
