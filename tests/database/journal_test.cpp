#include "database/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "support/rng.h"
#include "tests/database/scratch.h"

namespace tilewright {
namespace {

Event event(int64_t seq, std::string text = "hello") {
  return {seq, 0.5 * static_cast<double>(seq), Warning{"w", std::move(text)}};
}

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  EXPECT_OK(read_journal(path, [&](const Event& e) {
    lines.push_back(to_line(e));
    return Status{};
  }));
  return lines;
}

TEST(Journal, ContinuesWhereItStopped) {
  Scratch dir;
  for (int64_t start : {1, 4, 7}) {
    int64_t replayed = 0;
    auto journal = JournalWriter::open(dir / "run", [&](const Event& e) {
      EXPECT_EQ(e.seq, ++replayed);
      return Status{};
    });
    ASSERT_OK(journal);
    EXPECT_EQ(replayed, start - 1);
    EXPECT_EQ((*journal)->found().last_seq, start - 1);
    for (int64_t i = 0; i < 3; ++i) ASSERT_OK((*journal)->append(event(start + i)));
    ASSERT_OK((*journal)->sync());
    EXPECT_EQ((*journal)->synced_seq(), start + 2);
  }
  EXPECT_EQ(lines_of(dir / "run/events.jsonl").size(), 9u);
}

TEST(Journal, EveryCutOfTheLastLineIsDroppedWithAWarning) {
  Scratch dir;
  std::string whole = to_line(event(1)) + "\n", last = to_line(event(2, "é\n√")) + "\n";
  for (size_t cut = 1; cut < last.size(); ++cut) {
    write_file(dir / "events.jsonl", whole + last.substr(0, cut));
    auto reading = read_journal(dir / "events.jsonl", {});
    ASSERT_OK(reading);
    EXPECT_EQ(reading->events, 1);
    EXPECT_EQ(reading->dropped_bytes, static_cast<int64_t>(cut));
    ASSERT_EQ(reading->warnings.size(), 1u);
    EXPECT_EQ(reading->warnings[0].code, "journal-torn-tail");
    EXPECT_EQ(reading->warnings[0].span.line, 2);
    EXPECT_TRUE(reading->damage.empty());
  }
  auto journal = JournalWriter::open(dir.path());
  ASSERT_OK(journal);
  ASSERT_OK((*journal)->append(event(2, "again")));
  ASSERT_OK((*journal)->sync());
  EXPECT_EQ(read_file(dir / "events.jsonl"), whole + to_line(event(2, "again")) + "\n");
}

TEST(Journal, ZerosAtTheEndAreATornTail) {
  Scratch dir;
  write_file(dir / "events.jsonl", to_line(event(1)) + "\n" + std::string(4096, '\0'));
  auto reading = read_journal(dir / "events.jsonl", {});
  ASSERT_OK(reading);
  EXPECT_EQ(reading->dropped_bytes, 4096);
  EXPECT_TRUE(reading->damage.empty());
}

TEST(Journal, DamageInTheMiddleIsReportedByLine) {
  Scratch dir;
  std::string text;
  for (int64_t i = 1; i <= 6; ++i) text += i == 3 ? "{\"v\":1,\"se\n" : to_line(event(i)) + "\n";
  write_file(dir / "events.jsonl", text);
  int64_t seen = 0;
  auto reading = read_journal(dir / "events.jsonl", [&](const Event&) { return ++seen, Status{}; });
  ASSERT_OK(reading);
  EXPECT_EQ(seen, 5);
  ASSERT_EQ(reading->damage.size(), 1u);
  EXPECT_EQ(reading->damage[0].span.line, 3);
  EXPECT_EQ(reading->last_seq, 6);
  auto journal = JournalWriter::open(dir.path());
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code(), "journal-damaged");
  EXPECT_NE(error_text(journal).find("line 3:"), std::string::npos) << error_text(journal);
  EXPECT_EQ(read_file(dir / "events.jsonl"), text) << "a damaged journal must be left as it is";
}

TEST(Journal, MissingLinesAreDamage) {
  Scratch dir;
  write_file(dir / "events.jsonl", to_line(event(1)) + "\n" + to_line(event(4)) + "\n" + to_line(event(5)) + "\n");
  auto reading = read_journal(dir / "events.jsonl", {});
  ASSERT_OK(reading);
  ASSERT_EQ(reading->damage.size(), 1u);
  EXPECT_EQ(reading->damage[0].message, "expected seq 2, found 4");
  EXPECT_EQ(reading->damage[0].span.line, 2);
}

TEST(Journal, KindsOfANewerVersionAreSkippedWithAWarning) {
  Scratch dir;
  write_file(dir / "events.jsonl", to_line(event(1)) + "\n" + R"({"v":1,"seq":2,"t":1,"kind":"moon.phase"})" + "\n" +
                                       to_line(event(3)) + "\n");
  auto journal = JournalWriter::open(dir.path());
  ASSERT_OK(journal);
  EXPECT_EQ((*journal)->found().unknown, 1);
  EXPECT_EQ((*journal)->found().last_seq, 3);
  ASSERT_EQ((*journal)->found().warnings.size(), 1u);
  EXPECT_EQ((*journal)->found().warnings[0].code, "journal-newer-events");
}

TEST(Journal, AnOlderProgramDoesNotTouchANewerFormat) {
  Scratch dir;
  std::string text = to_line(event(1)) + "\n" + R"({"v":2,"seq":2,"t":1,"kind":"warning","code":"x"})" + "\n";
  write_file(dir / "events.jsonl", text);
  auto journal = JournalWriter::open(dir.path());
  ASSERT_FALSE(journal);
  EXPECT_NE(error_text(journal).find("format version 2, this program reads 1"), std::string::npos)
      << error_text(journal);
  EXPECT_EQ(read_file(dir / "events.jsonl"), text);
}

TEST(Journal, SecondWriterIsRefusedAndNamesTheFirst) {
  Scratch dir;
  auto first = JournalWriter::open(dir.path());
  ASSERT_OK(first);
  auto second = JournalWriter::open(dir.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), "run-is-locked");
  EXPECT_NE(error_text(second).find("process " + std::to_string(::getpid())), std::string::npos) << error_text(second);
  first->reset();
  EXPECT_OK(JournalWriter::open(dir.path()));
}

TEST(Journal, TimerSyncsWithoutACall) {
  Scratch dir;
  JournalOptions options;
  options.sync_after = std::chrono::milliseconds(1);
  auto journal = JournalWriter::open(dir.path(), {}, options);
  ASSERT_OK(journal);
  for (int64_t seq = 1; seq <= 3; ++seq) {
    ASSERT_OK((*journal)->append(event(seq)));
    while ((*journal)->synced_seq() < seq) ::usleep(100);  // ends by the test's own time limit if the timer is broken
  }
}

TEST(Journal, SyncsWhenTheBatchIsFull) {
  Scratch dir;
  int syncs = 0;
  JournalOptions options;
  options.sync_events = 10;
  options.sync_after = std::chrono::hours(1);
  options.calls.sync = [&](int) { return ++syncs, 0; };
  auto journal = JournalWriter::open(dir.path(), {}, options);
  ASSERT_OK(journal);
  for (int64_t seq = 1; seq <= 25; ++seq) ASSERT_OK((*journal)->append(event(seq)));
  EXPECT_EQ(syncs, 2);
  EXPECT_EQ((*journal)->synced_seq(), 20);
}

// ---- faults
// -----------------------------------------------------------------------------------------------------------

TEST(JournalFaults, FullDiskGivesAClearErrorAndLosesNothing) {
  Scratch dir;
  int64_t room = 150;
  JournalOptions options;
  options.sync_after = std::chrono::hours(1);
  options.calls.write = [&](int fd, const void* data, size_t size) -> ssize_t {
    if (room == 0) return errno = ENOSPC, -1;
    ssize_t n = ::write(fd, data, std::min<size_t>(size, static_cast<size_t>(room)));
    room -= n;
    return n;
  };
  auto journal = JournalWriter::open(dir.path(), {}, options);
  ASSERT_OK(journal);
  ASSERT_OK((*journal)->append(event(1)));
  Status full = (*journal)->append(event(2, std::string(100, 'x')));
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), "disk-full");
  EXPECT_FALSE((*journal)->append(event(3)));
  EXPECT_FALSE((*journal)->trouble());
  EXPECT_FALSE((*journal)->sync()) << "nothing may be acknowledged while an event is not on the disk";
  EXPECT_EQ((*journal)->synced_seq(), 0);
  EXPECT_EQ(lines_of(dir / "events.jsonl").size(), 1u) << "a reader sees whole events and a torn tail";
  room = 1 << 20;  // somebody makes room
  ASSERT_OK((*journal)->append(event(4)));
  ASSERT_OK((*journal)->sync());
  ASSERT_OK((*journal)->trouble());
  EXPECT_EQ((*journal)->synced_seq(), 4);
  EXPECT_EQ(lines_of(dir / "events.jsonl").size(), 4u);
}

TEST(JournalFaults, ShortWritesOfEverySizeAndInterruptionsAreHealed) {
  Scratch dir;
  Rng rng(3);
  JournalOptions options;
  options.calls.write = [&](int fd, const void* data, size_t size) -> ssize_t {
    if (rng.chance(0.3)) return errno = EINTR, -1;
    return ::write(fd, data, 1 + rng.below(size));
  };
  std::string expected;
  {
    auto journal = JournalWriter::open(dir.path(), {}, options);
    ASSERT_OK(journal);
    for (int64_t seq = 1; seq <= 200; ++seq) {
      ASSERT_OK((*journal)->append(event(seq)));
      expected += to_line(event(seq)) + "\n";
    }
    ASSERT_OK((*journal)->sync());
  }
  EXPECT_EQ(read_file(dir / "events.jsonl"), expected);
}

TEST(JournalFaults, FailedSyncIsFinal) {
  Scratch dir;
  bool fail = true;
  JournalOptions options;
  options.sync_after = std::chrono::hours(1);
  options.calls.sync = [&](int) { return fail ? (errno = EIO, -1) : 0; };
  auto journal = JournalWriter::open(dir.path(), {}, options);
  ASSERT_OK(journal);
  ASSERT_OK((*journal)->append(event(1)));
  Status first = (*journal)->sync();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code(), "file-sync-failed");
  fail = false;
  EXPECT_FALSE((*journal)->sync()) << "the kernel may have dropped the pages: success now would be a lie";
  EXPECT_FALSE((*journal)->append(event(2)));
  EXPECT_EQ((*journal)->synced_seq(), 0);
}

TEST(JournalFaults, DevFullIsADiskFullError) {
  auto file = AppendFile::open("/dev/full");
  ASSERT_OK(file);
  Status status = file->append("x\n");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code(), "disk-full");
  EXPECT_NE(error_text(status).find("No space left on device"), std::string::npos);
  EXPECT_TRUE(file->has_pending());
}

// Every I/O point in turn fails once; whatever was acknowledged before must be in the file.
TEST(JournalFaults, AnyFailingCallLosesNothingAcknowledged) {
  for (int error : {ENOSPC, EIO, EDQUOT}) {
    for (int failing = 0; failing < 60; ++failing) {
      Scratch dir;
      int call = 0;
      int64_t acknowledged = 0;
      {
        JournalOptions options;
        options.sync_after = std::chrono::hours(1);
        options.calls.write = [&](int fd, const void* data, size_t size) -> ssize_t {
          if (call++ == failing) return errno = error, -1;
          return ::write(fd, data, std::max<size_t>(size / 2, 1));
        };
        options.calls.sync = [&](int fd) { return call++ == failing ? (errno = error, -1) : ::fdatasync(fd); };
        auto journal = JournalWriter::open(dir.path(), {}, options);
        ASSERT_OK(journal);
        for (int64_t seq = 1; seq <= 8; ++seq) {
          static_cast<void>((*journal)->append(event(seq)));
          if ((*journal)->sync()) acknowledged = seq;
          EXPECT_EQ((*journal)->synced_seq(), acknowledged);
        }
      }
      auto reading = read_journal(dir / "events.jsonl", {});
      ASSERT_OK(reading);
      EXPECT_TRUE(reading->damage.empty()) << failing;
      EXPECT_GE(reading->last_seq, acknowledged) << failing;
    }
  }
}

// A child appends, syncs and reports each acknowledged seq through a pipe until it is killed at a random time.
TEST(JournalFaults, KillLosesNoAcknowledgedEvent) {
  constexpr uint64_t seed = 11;
  auto scratch = std::make_unique<Scratch>();
  Rng rng(seed);
  int64_t acknowledged = 0, appended = 0;
  for (int kill_number = 0; kill_number < 120; ++kill_number) {
    if (kill_number % 10 == 0) {  // a new run now and then: the children read all of it
      scratch = std::make_unique<Scratch>();
      acknowledged = 0;
    }
    const Scratch& dir = *scratch;
    int pipe_ends[2];
    ASSERT_EQ(::pipe2(pipe_ends, O_CLOEXEC), 0);
    ::fcntl(pipe_ends[1], F_SETPIPE_SZ, 4096);  // bounds how far a child runs ahead
    pid_t child = ::fork();
    if (child == 0) {
      JournalOptions options;
      options.sync_events = 7;
      options.calls.write = [](int fd, const void* data, size_t size) -> ssize_t {
        return ::write(fd, data, std::max<size_t>(size / 2, 1));  // in halves, so that kills tear lines
      };
      options.calls.sync = [](int) { return 0; };  // kill -9 needs no fsync; without it the test is quick
      auto journal = JournalWriter::open(dir.path(), {}, options);
      if (!journal) ::_exit(1);
      for (int64_t seq = (*journal)->found().last_seq + 1;; ++seq) {
        if (!(*journal)->append(event(seq, std::string(static_cast<size_t>(seq % 300), 'y'))) || !(*journal)->sync())
          ::_exit(2);
        if (::write(pipe_ends[1], &seq, sizeof seq) != sizeof seq) ::_exit(3);
      }
    }
    ::close(pipe_ends[1]);
    int64_t seq = 0;
    int64_t reads = rng.between(0, 20);
    for (int64_t i = 0; i <= reads && ::read(pipe_ends[0], &seq, sizeof seq) == sizeof seq; ++i) acknowledged = seq;
    ::usleep(static_cast<useconds_t>(rng.below(300)));
    ::kill(child, SIGKILL);
    while (::read(pipe_ends[0], &seq, sizeof seq) == sizeof seq) acknowledged = seq;
    ::close(pipe_ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer gave up with " << WEXITSTATUS(status);
    auto reading = read_journal(dir / "events.jsonl", {});
    ASSERT_OK(reading);
    ASSERT_TRUE(reading->damage.empty()) << "seed " << seed << ", kill " << kill_number;
    ASSERT_GE(reading->last_seq, acknowledged) << "seed " << seed << ", kill " << kill_number;
    appended = std::max(appended, reading->last_seq);
  }
  EXPECT_GT(appended, 10);
}

}  // namespace
}  // namespace tilewright
