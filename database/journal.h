// The journal of a run, RUN/events.jsonl: append-only, one writer, the truth of the run. Every view (screen, report,
// resume, the tuning database) is made from it. Lines and their meaning: support/events.h. What they add up to:
// database/replay.h.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/append_file.h"
#include "support/events.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(run_is_locked, "run-is-locked", "another process writes this run");
TW_REFUSAL_CODE(journal_damaged, "journal-damaged",
                "a line in the middle of a journal cannot be read, or lines are missing");

/// What a journal file holds, after reading it.
struct JournalReading {
  int64_t events = 0;   ///< lines that are events, of unknown kinds too
  int64_t unknown = 0;  ///< of those, kinds of a newer version: skipped
  int64_t last_seq = 0;
  double last_t = 0;                 ///< seconds of the run at the last event
  int64_t good_bytes = 0;            ///< up to the torn tail
  int64_t dropped_bytes = 0;         ///< of the torn tail: a crash or a full disk cut the last write
  std::vector<Diagnostic> warnings;  ///< torn tail, unknown kinds
  std::vector<Diagnostic> damage;    ///< lines before the tail that are not events, or a gap in seq; with line numbers
};

/// Reads a journal, in constant memory, and gives each known event to `event`. Damage does not stop the reading: the
/// caller decides whether what is left will do. A refusal of `event` does stop it and gets the line as its place. A
/// missing file is refused with file-cannot-open.
Result<JournalReading> read_journal(const std::string& path, const std::function<Status(const Event&)>& event);

/// The exclusive right to write a run directory: an flock on RUN/lock, which ends with the process however it dies.
class RunLock {
 public:
  /// Refusal run-is-locked names the process that holds it.
  static Result<RunLock> take(const std::string& directory);
  RunLock(RunLock&& other) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

 private:
  explicit RunLock(int fd) : fd_(fd) {}
  int fd_;
};

struct JournalOptions {
  int sync_events = 200;                      ///< unsynced events after which the file is synced
  std::chrono::milliseconds sync_after{200};  ///< age of the oldest unsynced event after which it is
  FileCalls calls = FileCalls::system();
};

class JournalWriter : public Observer {
 public:
  /// Creates `directory` and its journal, or continues it: reads it (each event goes to `replayed`), cuts a torn tail
  /// off and writes on. Refused if another process writes it, or if it is damaged.
  static Result<std::unique_ptr<JournalWriter>> open(const std::string& directory,
                                                     const std::function<Status(const Event&)>& replayed = {},
                                                     JournalOptions = {});
  ~JournalWriter() override;

  /// What was there when it was opened.
  const JournalReading& found() const { return found_; }

  /// Appends; afterwards kill -9 of this process cannot lose the event. A refusal is also kept for the next sync().
  Status append(const Event&);
  void on_event(const Event& event) override { static_cast<void>(append(event)); }

  /// Everything appended before the call is on the disk when this returns without a refusal: call it before a result is
  /// acknowledged or a job leaves. After disk-full it may be called again; nothing that was appended is lost.
  Status sync();
  int64_t synced_seq() const;  ///< seq of the last event that is on the disk
  /// The refusal of the last write or sync; none once a later one has made up for it.
  Status trouble() const;

 private:
  JournalWriter(RunLock, AppendFile, JournalReading, JournalOptions);
  Status append_locked(const Event&, std::unique_lock<std::mutex>&);
  Status sync_locked(std::unique_lock<std::mutex>&);
  void sync_in_time();

  RunLock lock_;
  JournalReading found_;
  JournalOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  AppendFile file_;
  Status broken_;  ///< a failed sync: final
  Status trouble_;
  int64_t appended_seq_, synced_seq_;
  std::chrono::steady_clock::time_point oldest_unsynced_;
  bool stopping_ = false;
  std::thread timer_;
};

}  // namespace tilewright
