// What is particular to the SQLite file: crashes, several processes, full disks, damage, versions, file systems.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "database/ingest.h"
#include "database/journal.h"
#include "database/sqlite_connection.h"
#include "database/store.h"
#include "tests/database/random_run.h"
#include "tests/database/scratch.h"

namespace tilewright {
namespace {

/// One measurement of a space that is always the same; `n` tells them apart.
Batch one_row(int64_t n, uint64_t campaign = 1) {
  Batch batch;
  batch.workloads.push_back({workload_key("def main(): pass", 1), {}, "def main(): pass"});
  batch.targets.push_back({content_key("{}"), content_key("c"), "t", "{}"});
  Measurement m;
  m.campaign = {campaign};
  m.seq = n;
  m.workload = batch.workloads[0].key;
  m.target = batch.targets[0].key;
  m.trace = fmt::format("[[],[{}]]", n % 50);
  m.result.trial = n;
  m.result.trace_key = text_key(m.trace);
  m.result.status = TrialStatus::ok;
  m.result.stage = Stage::screen;
  m.result.n = 10;
  m.result.median_ns = 100 + static_cast<double>(n % 17);
  m.result.verified = m.result.settled = true;
  batch.measurements.push_back(m);
  return batch;
}

std::set<int64_t> rows_of(Database& store, uint64_t campaign) {
  std::set<int64_t> rows;
  EXPECT_OK(store.for_each_measurement(nullptr, [&](const Measurement& m) {
    if (m.campaign.value == campaign) rows.insert(m.seq);
    return Status{};
  }));
  return rows;
}

void expect_sound(Database& store) {
  auto report = store.verify();
  ASSERT_OK(report);
  for (const Diagnostic& d : report->problems) ADD_FAILURE() << d.message;
}

/// A child that commits rows of `campaign` and writes each acknowledged number to the pipe until it is killed or `last`
/// is in.
pid_t spawn_writer(const std::string& url, uint64_t campaign, int64_t first, int64_t last, int pipe) {
  pid_t child = ::fork();
  if (child != 0) return child;
  auto store = open_database(url);
  if (!store) ::_exit(1);
  for (int64_t n = first; n < last; ++n) {
    if (!(*store)->commit(one_row(n, campaign))) ::_exit(2);
    if (::write(pipe, &n, sizeof n) != sizeof n) ::_exit(3);
  }
  ::_exit(0);
}

TEST(Sqlite, KillLosesNoAcknowledgedRow) {
  constexpr uint64_t seed = 21;
  constexpr int kills = 120;
  Rng rng(seed);
  Scratch dir;
  std::string url = "sqlite:" + (dir / "t.db");
  std::set<int64_t> acknowledged;
  int64_t next = 0;
  for (int kill = 0; kill < kills; ++kill) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ::fcntl(ends[1], F_SETPIPE_SZ, 4096);
    pid_t child = spawn_writer(url, 1, next, next + 500, ends[1]);
    ::close(ends[1]);
    int64_t n = 0;
    int64_t wait_for = rng.between(0, 6);
    for (int64_t i = 0; i < wait_for && ::read(ends[0], &n, sizeof n) == sizeof n; ++i) acknowledged.insert(n);
    ::usleep(static_cast<useconds_t>(rng.below(2000)));
    ::kill(child, SIGKILL);
    while (::read(ends[0], &n, sizeof n) == sizeof n) acknowledged.insert(n);
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "the writer gave up with " << WEXITSTATUS(status);
    next = acknowledged.empty() ? 0 : *acknowledged.rbegin() + 1;  // the one in flight may be there: committed again
  }
  auto store = open_database(url);
  ASSERT_OK(store);
  std::set<int64_t> rows = rows_of(**store, 1);
  for (int64_t n : acknowledged) EXPECT_TRUE(rows.count(n)) << "row " << n << ", seed " << seed;
  EXPECT_GT(acknowledged.size(), size_t{kills});
  EXPECT_LE(rows.size(), acknowledged.size() + kills);
  expect_sound(**store);
}

TEST(Sqlite, TwoProcessesWriteOneDatabase) {
  Scratch dir;
  std::string url = "sqlite:" + (dir / "t.db");
  std::vector<pid_t> children;
  int sink = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (uint64_t campaign = 1; campaign <= 3; ++campaign) children.push_back(spawn_writer(url, campaign, 0, 150, sink));
  for (pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
  }
  ::close(sink);
  auto store = open_database(url);
  ASSERT_OK(store);
  for (uint64_t campaign = 1; campaign <= 3; ++campaign) EXPECT_EQ(rows_of(**store, campaign).size(), 150u);
  EXPECT_EQ((*store)->stats()->records, 50);
  expect_sound(**store);
}

TEST(Sqlite, ManyProcessesCreateOneDatabaseAtATime) {
  int sink = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (int round = 0; round < 20; ++round) {
    Scratch dir;
    std::string url = "sqlite:" + (dir / "t.db");
    std::vector<pid_t> children;
    for (uint64_t campaign = 1; campaign <= 4; ++campaign) children.push_back(spawn_writer(url, campaign, 0, 2, sink));
    for (pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    }
    auto store = open_database(url);
    ASSERT_OK(store);
    EXPECT_EQ((*store)->stats()->measurements, 8);
  }
  ::close(sink);
}

TEST(Sqlite, TwoOpenStoresSeeEachOthersRowsAndDictionary) {
  Scratch dir;
  std::string url = "sqlite:" + (dir / "t.db");
  auto a = open_database(url), b = open_database(url);
  ASSERT_OK(a);
  ASSERT_OK(b);
  Batch batch = one_row(0);
  for (int64_t n = 1; n < 400; ++n) {
    Measurement m = batch.measurements[0];
    m.seq = m.result.trial = n;
    m.trace = fmt::format(R"([["Split",["l{}"],[{}]],["Reorder",["l1","l2"]]])", n, n * 7);
    m.result.trace_key = text_key(m.trace);
    batch.measurements.push_back(m);
  }
  ASSERT_OK((*a)->commit(batch));  // trains
  Batch more = one_row(1000);
  more.measurements[0].trace = R"([["Split",["l5"],[12345]],["Reorder",["l1","l2"]]])";
  more.measurements[0].result.trace_key = text_key(more.measurements[0].trace);
  ASSERT_OK((*a)->commit(more));  // with the dictionary
  auto found = (*b)->find({more.workloads[0].key, more.targets[0].key}, more.measurements[0].result.trace_key);
  ASSERT_OK(found);
  ASSERT_TRUE(*found);
  EXPECT_EQ((*found)->trace, more.measurements[0].trace);
}

TEST(Sqlite, ABusyDatabaseIsReportedAfterTheWait) {
  Scratch dir;
  std::string path = dir / "t.db";
  auto store = open_database("sqlite:" + path, {.busy_ms = 10});
  ASSERT_OK(store);
  SQLite::Database other(path, SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  auto result = (*store)->commit(one_row(1));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), "database-busy");
  other.exec("ROLLBACK");
  EXPECT_OK((*store)->commit(one_row(1)));
}

TEST(Sqlite, AFullDiskRollsBackAndGoesOnAfterwards) {
  Scratch dir;
  auto connection = sqlite::Connection::open(dir / "t.db", {});
  ASSERT_OK(connection);
  // The limit on pages belongs to a connection, so this goes through the connection that will hit it.
  (*connection)->exec("PRAGMA max_page_count = 1");
  auto full = (*connection)->guarded([&]() -> Status {
    (*connection)->exec("CREATE TABLE filler (x)");
    return (*connection)->exec("INSERT INTO filler VALUES (zeroblob(10000000))"), Status{};
  });
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code(), "disk-full");
  auto store = open_database("sqlite:" + (dir / "t.db"));
  ASSERT_OK(store);
  EXPECT_OK((*store)->commit(one_row(1)));
  expect_sound(**store);
}

TEST(Sqlite, ANewerSchemaIsRefusedWithBothNumbers) {
  Scratch dir;
  ASSERT_OK(open_database("sqlite:" + (dir / "t.db")));
  SQLite::Database(dir / "t.db", SQLite::OPEN_READWRITE)
      .exec("UPDATE meta SET value = 7 WHERE name = 'schema_version'");
  auto store = open_database("sqlite:" + (dir / "t.db"));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), "database-newer");
  EXPECT_NE(error_text(store).find("schema version 7, this program knows up to 1"), std::string::npos)
      << error_text(store);
}

TEST(Sqlite, AnotherProgramsDatabaseIsLeftAlone) {
  Scratch dir;
  SQLite::Database(dir / "t.db", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE bookmarks (url)");
  std::string before = read_file(dir / "t.db");
  auto store = open_database("sqlite:" + (dir / "t.db"));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), "database-foreign");
  EXPECT_EQ(read_file(dir / "t.db"), before);
}

TEST(Sqlite, AFileThatIsNoDatabaseIsDamaged) {
  Scratch dir;
  write_file(dir / "t.db", std::string(5000, 'x'));
  auto store = open_database("sqlite:" + (dir / "t.db"));
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code(), "database-damaged");
  EXPECT_NE(error_text(store).find("import-run"), std::string::npos);
}

// Pages are overwritten one after the other: each time the damage is an error or a finding, never a crash, nor silence
// unless the database still holds exactly what it held.
TEST(Sqlite, DamagedPagesAreFound) {
  Scratch dir;
  {
    auto store = open_database("sqlite:" + (dir / "t.db"));
    ASSERT_OK(store);
    Batch batch = one_row(0);
    for (int64_t n = 1; n < 300; ++n) batch.measurements.push_back(one_row(n).measurements[0]);
    ASSERT_OK((*store)->commit(batch));
  }
  std::string good = read_file(dir / "t.db");
  size_t found = 0, pages = 0;
  for (size_t page = 0; page + 4096 <= good.size(); page += 4096, ++pages) {
    std::string bad = good;
    for (size_t i = page + 8; i < page + 4096; i += 3) bad[i] = static_cast<char>(bad[i] ^ 0x5a);
    for (const char* name : {"bad.db-wal", "bad.db-shm"}) std::filesystem::remove(dir / name);
    write_file(dir / "bad.db", bad);
    auto store = open_database("sqlite:" + (dir / "bad.db"));
    if (!store) {
      EXPECT_EQ(store.error().code(), "database-damaged") << error_text(store);
      ++found;
      continue;
    }
    auto report = (*store)->verify();
    if (!report) {
      EXPECT_EQ(report.error().code(), "database-damaged") << error_text(report);
    }
    if (!report || !report->problems.empty())
      ++found;
    else
      EXPECT_EQ(rows_of(**store, 1).size(), 300u) << "page at " << page;  // an empty page, or free space in one
  }
  EXPECT_GT(pages, 10u);
  EXPECT_GE(found, pages * 9 / 10);
}

TEST(Sqlite, VerifyFindsWhatDoesNotFollowFromTheMeasurements) {
  Scratch dir;
  auto problems_after = [&](const char* sql) {
    std::filesystem::remove(dir / "t.db");
    {
      auto store = open_database("sqlite:" + (dir / "t.db"));
      EXPECT_OK(store);
      for (int64_t n = 0; n < 60; ++n) EXPECT_OK((*store)->commit(one_row(n)));
      expect_sound(**store);
    }
    SQLite::Database(dir / "t.db", SQLite::OPEN_READWRITE).exec(sql);
    auto report = (*open_database("sqlite:" + (dir / "t.db")))->verify();
    EXPECT_OK(report);
    std::string all;
    for (const Diagnostic& d : report->problems) all += d.message + "\n";
    return all;
  };
  auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has(problems_after("UPDATE record SET rank_ns = rank_ns * 0.9 WHERE id = 3"), "measurements: rank_ns"));
  EXPECT_TRUE(has(problems_after("DELETE FROM measurement WHERE seq = 5"), "measurements"));
  EXPECT_TRUE(has(problems_after("UPDATE record SET trace_key = zeroblob(16) WHERE id = 4"), "its trace has key"));
  EXPECT_TRUE(has(problems_after("UPDATE workload SET ir_version = 2"), "its program has"));
  EXPECT_TRUE(has(problems_after("UPDATE record SET target = 99 WHERE id = 2"), "not there"));
  EXPECT_TRUE(has(problems_after("UPDATE record SET trace_z = x'00112233' WHERE id = 2"), "zstd"));
}

TEST(Sqlite, NetworkFileSystemsAreRefused) {
  for (uint32_t magic : {0x6969u, 0x517bu, 0xff534d42u, 0xfe534d42u, 0x65735546u}) {
    Status status = sqlite::check_file_system(magic, "/n/t.db", false);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code(), "database-file-system");
  }
  EXPECT_TRUE(sqlite::check_file_system(0x65735546, "/n/t.db", true)) << "FUSE may be forced";
  EXPECT_FALSE(sqlite::check_file_system(0x6969, "/n/t.db", true));
  EXPECT_TRUE(sqlite::check_file_system(0xef53, "/n/t.db", false)) << "ext4";
}

TEST(ImportRun, RebuildsTheDatabaseFromJournals) {
  Scratch dir;
  RandomRun random(31);
  for (int i = 0; i < 300; ++i) random.add_trial();
  {
    auto journal = JournalWriter::open(dir / "run");
    ASSERT_OK(journal);
    for (const Event& event : random.events()) ASSERT_OK((*journal)->append(event));
  }
  auto store = open_database("sqlite:" + (dir / "t.db"));
  ASSERT_OK(store);
  auto report = import_run(**store, dir / "run");
  ASSERT_OK(report);
  EXPECT_EQ(report->inserted, report->results);
  EXPECT_EQ((*store)->stats()->measurements, report->results);
  report = import_run(**store, dir / "run");
  ASSERT_OK(report);
  EXPECT_EQ(report->inserted, 0);
  EXPECT_FALSE(import_run(**store, dir / "none"));
  expect_sound(**store);
}

}  // namespace
}  // namespace tilewright
