#include "database/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "support/check.h"

namespace tilewright {

namespace {

namespace fs = std::filesystem;

Diagnostic about_line(const std::string& path, int64_t line, std::string_view code, std::string message, bool warning) {
  Diagnostic d;
  d.code = code;
  d.message = std::move(message);
  d.span.file = path;
  d.span.line = static_cast<int>(line);
  d.span.column = 1;
  d.warning = warning;
  return d;
}

/// Reads a file line by line. A line is whole if its newline is there.
class LineReader {
 public:
  explicit LineReader(std::FILE* file) : file_(file) {}
  ~LineReader() {
    std::fclose(file_);
    std::free(buffer_);
  }
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  bool next() {
    ssize_t n = ::getline(&buffer_, &capacity_, file_);
    if (n < 0) return false;
    whole = buffer_[n - 1] == '\n';
    text = std::string_view(buffer_, static_cast<size_t>(n - whole));
    ++number;
    return true;
  }
  bool failed() const { return std::ferror(file_) != 0; }

  std::string_view text;
  bool whole = true;
  int64_t number = 0;

 private:
  std::FILE* file_;
  char* buffer_ = nullptr;
  size_t capacity_ = 0;
};

/// Puts one line into `reading`: an event, or damage. Gives the event if its kind is known.
std::optional<Event> take_line(const std::string& path, const LineReader& line, JournalReading& reading) {
  auto damaged = [&](std::string message) {
    reading.damage.push_back(about_line(path, line.number, journal_damaged.text, std::move(message), false));
  };
  Result<ParsedEvent> parsed = parse_line(line.text);
  if (!parsed) {
    damaged(parsed.error().diagnostic().message);
    ++reading.last_seq;  // most likely one line: the next number is then right, and one fault is reported once
    return std::nullopt;
  }
  if (parsed->seq != reading.last_seq + 1)
    damaged(fmt::format("expected seq {}, found {}", reading.last_seq + 1, parsed->seq));
  ++reading.events;
  reading.last_seq = parsed->seq;
  if (!parsed->event) {
    ++reading.unknown;
    return std::nullopt;
  }
  reading.last_t = parsed->event->t;
  return std::move(parsed->event);
}

void add_warnings(const std::string& path, int64_t last_line, JournalReading& reading) {
  if (reading.dropped_bytes)
    reading.warnings.push_back(about_line(
        path, last_line, "journal-torn-tail",
        fmt::format("the last line is cut: dropped {} bytes, kept {} events", reading.dropped_bytes, reading.events),
        true));
  if (reading.unknown)
    reading.warnings.push_back(
        about_line(path, 0, "journal-newer-events",
                   fmt::format("skipped {} events of kinds that this version does not know", reading.unknown), true));
}

}  // namespace

Result<JournalReading> read_journal(const std::string& path, const std::function<Status(const Event&)>& event) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  LineReader line(file);
  JournalReading reading;
  while (line.next()) {
    // After power loss a tail can also be zeros: the size reached the disk, the data did not. Such a tail has no
    // newline.
    if (!line.whole) {
      reading.dropped_bytes = static_cast<int64_t>(line.text.size());
      break;
    }
    reading.good_bytes += static_cast<int64_t>(line.text.size()) + 1;
    std::optional<Event> found = take_line(path, line, reading);
    if (!found || !event) continue;
    Status status = event(*found);
    if (!status)
      return refuse(status.error().with_note(
          [path, n = line.number] { return Note{fmt::format("line {} of {}", n, path), {}}; }));
  }
  if (line.failed()) return refuse(file_cannot_open, fmt::format("cannot read {}: {}", path, std::strerror(errno)));
  add_warnings(path, line.number, reading);
  return reading;
}

// ---- lock -----------------------------------------------------------------------------------------------------------

Result<RunLock> RunLock::take(const std::string& directory) {
  std::string path = directory + "/lock";
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  RunLock lock(fd);
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char holder[128] = {};
    ssize_t n = ::pread(fd, holder, sizeof holder - 1, 0);
    std::string who(holder, n > 0 ? static_cast<size_t>(n) : 0);
    while (!who.empty() && who.back() == '\n') who.pop_back();
    return refuse(Refusal(run_is_locked,
                          fmt::format("{} is being written by {}", directory, who.empty() ? "another process" : who))
                      .with_help("wait for it, stop it, or start another run with --name"));
  }
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  std::string who = fmt::format("process {} on {}\n", ::getpid(), host);
  // Only for the message above; the lock itself is held by the open file.
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, who.data(), who.size(), 0) < 0) errno = 0;
  return lock;
}

RunLock::RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

// The file stays: removing it would let a second process lock a new file of that name while a third waits for the old
// one.
RunLock::~RunLock() {
  if (fd_ >= 0) ::close(fd_);
}

// ---- writer ---------------------------------------------------------------------------------------------------------

Result<std::unique_ptr<JournalWriter>> JournalWriter::open(const std::string& directory,
                                                           const std::function<Status(const Event&)>& replayed,
                                                           JournalOptions options) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) return refuse(file_cannot_open, fmt::format("cannot create {}: {}", directory, error.message()));
  TW_TRY(RunLock lock, RunLock::take(directory));
  std::string path = directory + "/events.jsonl";
  JournalReading found;
  if (fs::exists(path, error)) {
    TW_TRY(found, read_journal(path, replayed));
    if (!found.damage.empty()) {
      const Diagnostic& first = found.damage.front();
      return refuse(journal_damaged, [first, path, n = found.damage.size()] {
        Diagnostic d = first;
        d.message = fmt::format("cannot continue {}: line {}: {}", path, first.span.line, first.message);
        if (n > 1) d.notes.push_back({fmt::format("{} more lines are damaged", n - 1), {}});
        d.help =
            fmt::format("save what can be read: tilewright db import-run {}", fs::path(path).parent_path().string());
        return d;
      });
    }
  }
  TW_TRY(AppendFile file, AppendFile::open(path, found.good_bytes, options.calls));
  return std::unique_ptr<JournalWriter>(
      new JournalWriter(std::move(lock), std::move(file), std::move(found), std::move(options)));
}

JournalWriter::JournalWriter(RunLock lock, AppendFile file, JournalReading found, JournalOptions options)
    : lock_(std::move(lock)),
      found_(std::move(found)),
      options_(std::move(options)),
      file_(std::move(file)),
      appended_seq_(found_.last_seq),
      synced_seq_(found_.last_seq),
      timer_([this] { sync_in_time(); }) {}

JournalWriter::~JournalWriter() {
  static_cast<void>(sync());
  {
    std::scoped_lock guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  timer_.join();
}

Status JournalWriter::append(const Event& event) {
  std::unique_lock guard(mutex_);
  return trouble_ = append_locked(event, guard);
}

Status JournalWriter::append_locked(const Event& event, std::unique_lock<std::mutex>& guard) {
  std::string line = to_line(event);
  line += '\n';
  if (!broken_) return broken_;
  TW_CHECK(event.seq == appended_seq_ + 1, "expected event {}, got {}", appended_seq_ + 1, event.seq);
  if (appended_seq_ == synced_seq_) {
    oldest_unsynced_ = std::chrono::steady_clock::now();
    wake_.notify_all();
  }
  appended_seq_ = event.seq;
  TW_TRY_VOID(file_.append(line));
  if (appended_seq_ - synced_seq_ >= options_.sync_events) return sync_locked(guard);
  return {};
}

Status JournalWriter::sync() {
  std::unique_lock guard(mutex_);
  return trouble_ = sync_locked(guard);
}

Status JournalWriter::trouble() const {
  std::scoped_lock guard(mutex_);
  return trouble_;
}

Status JournalWriter::sync_locked(std::unique_lock<std::mutex>& guard) {
  if (!broken_) return broken_;
  TW_TRY_VOID(file_.write_pending());
  int64_t through = appended_seq_;
  if (through == synced_seq_) return {};
  guard.unlock();  // appending goes on while the disk works
  Status status = file_.sync_written();
  guard.lock();
  if (!status) {
    broken_ = status;
    return status;
  }
  if (through > synced_seq_) synced_seq_ = through;
  oldest_unsynced_ = std::chrono::steady_clock::now();
  return {};
}

int64_t JournalWriter::synced_seq() const {
  std::scoped_lock guard(mutex_);
  return synced_seq_;
}

/// The timer thread: no event stays unsynced for longer than options_.sync_after.
void JournalWriter::sync_in_time() {
  std::unique_lock guard(mutex_);
  while (!stopping_) {
    if (appended_seq_ == synced_seq_ || !broken_) {
      wake_.wait(guard);
    } else if (auto due = oldest_unsynced_ + options_.sync_after; std::chrono::steady_clock::now() < due) {
      wake_.wait_until(guard, due);
    } else if (trouble_ = sync_locked(guard); !trouble_) {
      wake_.wait_for(guard, options_.sync_after);  // a full disk: try again; sync() tells the caller
    }
  }
}

}  // namespace tilewright
