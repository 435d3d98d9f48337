// SqliteDatabase: the Database in one SQLite file (database/store.h). Reading order: commit() in sqlite_commit.cpp,
// then the queries in sqlite_query.cpp, then prune, verify and unblock in sqlite_maintain.cpp.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "database/sqlite_connection.h"
#include "database/store.h"
#include "support/compress.h"

namespace tilewright::sqlite {

/// Bits of measurement.flags.
inline constexpr int64_t flag_verified = 1, flag_settled = 2, flag_withdrawn = 4;

class SqliteDatabase : public Database {
 public:
  static Result<std::unique_ptr<Database>> open(const std::string& path, const DatabaseOptions&);

  Result<int64_t> commit(const Batch&) override;
  Result<std::vector<Record>> top(const TopQuery&) override;
  Result<std::optional<Record>> find(const SpaceKey&, const Key128& trace_key) override;
  Result<std::vector<Record>> find_id(uint64_t short_id) override;
  Result<int64_t> settled_trials(const SpaceKey&) override;
  Status for_each_record(const std::optional<SpaceKey>&, const std::function<Status(const Record&)>&) override;
  Status for_each_measurement(const Record*, const std::function<Status(const Measurement&)>&) override;
  Result<std::vector<WorkloadEntry>> workloads(std::optional<Key128> anchor) override;
  Result<std::vector<TargetEntry>> targets() override;
  Result<std::vector<CampaignEntry>> campaigns() override;
  Result<std::vector<DeviceQuarantined>> quarantined_devices() override;
  Result<DatabaseStats> stats() override;
  Result<PruneReport> prune(const PrunePolicy&) override;
  Result<VerifyReport> verify() override;
  Status unblock(const Record&, std::string_view reason) override;

 private:
  using RecordId = int64_t;
  /// The measurements of this commit by their record; the record's id is new or old.
  struct Touched {
    bool fresh = false;  ///< the record was inserted by this commit, so that these are all its measurements
    std::vector<const Measurement*> inserted;
  };

  explicit SqliteDatabase(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  /// Takes the lock, and turns what SQLite throws into a refusal.
  template <class F>
  auto guarded(F&& f) -> decltype(f()) {
    std::scoped_lock lock(mutex_);
    return connection_->guarded(std::forward<F>(f));
  }
  SQLite::Statement& kept(const std::string& sql) { return connection_->kept(sql); }

  // commit
  void insert_workload(const WorkloadEntry&);
  void insert_target(const TargetEntry&);
  void upsert_campaign(const CampaignEntry&);
  void insert_measurements(const std::vector<Measurement>&, std::map<RecordId, Touched>&);
  RecordId record_of(const Measurement&, std::map<RecordId, Touched>&);
  void withdraw(const DeviceQuarantined&, std::map<RecordId, Touched>&);
  void refresh(RecordId, const Touched&);
  void train();
  int64_t id_of(const char* table, std::map<Key128, int64_t>& cache, const Key128& key);
  std::optional<int64_t> find_id_of(const char* table, std::map<Key128, int64_t>& cache, const Key128& key);

  // rows
  std::string frame(std::string_view text) { return compressor_.compress(text); }
  std::string unframe(const std::string& frame);
  Record read_record(Query&);
  Measurement read_measurement(Query&);
  Key128 key_of(const char* table, std::map<int64_t, Key128>& cache, int64_t id);
  std::vector<Measurement> summaries(RecordId);
  std::optional<std::pair<RecordId, Record>> lookup(const SpaceKey&, const Key128& trace_key);
  void update_record(RecordId, const Record&);
  std::vector<RecordId> target_ids(const TopQuery&);
  void load_dictionary();

  // verify
  void verify_file(VerifyReport&);
  void verify_references(VerifyReport&);
  void verify_workloads(VerifyReport&);
  void verify_records(VerifyReport&);

  std::recursive_mutex mutex_;  // a callback of a scan may look something up
  std::unique_ptr<Connection> connection_;
  Compressor compressor_;
  bool trained_ = false;
  std::map<Key128, int64_t> workload_ids_, target_ids_;
  std::map<int64_t, Key128> workload_keys_, target_keys_;
};

}  // namespace tilewright::sqlite
