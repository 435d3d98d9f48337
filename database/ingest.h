// From the events of a run to rows of the database. The tuner feeds it while it runs, `db import-run` from a journal;
// both come to the same database, and feeding it twice changes nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "database/journal.h"
#include "database/store.h"
#include "support/events.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(event_key_mismatch, "event-key-mismatch", "the key in an event is not that of the text beside it");

class Ingest {
 public:
  /// Takes one event; most kinds leave no row. Refused: a result before its run, task or dispatch, or a key that does
  /// not belong to its text.
  Status apply(const Event&);

  size_t pending() const { return pending_; }  ///< results taken and not yet committed
  /// Commits everything taken so far; nothing is lost if it is refused, and it may be called again. Returns the event
  /// to write to the journal.
  Result<DbCommitted> flush(Database&);

 private:
  Status take(const RunStart&);
  Status take(const RunEnd&);
  Status take(const TaskStart&);
  Status take(const JobDispatched&);
  Status take(const JobResult&);
  Status take(const DeviceQuarantined&);
  template <class Other>
  Status take(const Other&) {
    return {};
  }
  /// The batch that the next row goes into. What a device does after its quarantine is not withdrawn with what it did
  /// before, so a withdrawal closes its batch.
  Batch& open_batch();

  std::deque<Batch> batches_;
  CampaignEntry campaign_;
  bool started_ = false;
  std::map<int64_t, SpaceKey> tasks_;
  std::map<int64_t, std::string> traces_;  ///< of trials that are not settled
  size_t pending_ = 0;
  int64_t seq_ = 0;
};

struct ImportReport {
  int64_t results = 0;   ///< in the journal
  int64_t inserted = 0;  ///< of those, new in the database
  JournalReading journal;
};

/// Puts a run's journal into the database. Damaged lines are left out and reported.
Result<ImportReport> import_run(Database&, const std::string& directory);

}  // namespace tilewright
