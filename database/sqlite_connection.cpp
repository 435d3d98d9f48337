#include "database/sqlite_connection.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "database/schema.h"
#include "support/append_file.h"

namespace tilewright::sqlite {

namespace {

namespace fs = std::filesystem;

constexpr int application_id = 0x54574442;  // "TWDB", in the file's header

// WITHOUT ROWID: rows of one campaign lie together in the order of their trials, and the key is stored once.
constexpr schema::Dialect dialect{"INTEGER", "REAL", "TEXT", "BLOB", "INTEGER PRIMARY KEY", " WITHOUT ROWID"};

struct BadFileSystem {
  uint32_t magic;
  const char* name;
};
constexpr uint32_t fuse_magic = 0x65735546;
// From statfs(2) and linux/magic.h.
constexpr BadFileSystem bad_file_systems[] = {
    {0x6969, "NFS"},        {0x517b, "SMB"},     {0xff534d42, "CIFS"}, {0xfe534d42, "SMB2"}, {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x5346414f, "AFS"}, {0x01021997, "9P"},   {fuse_magic, "FUSE"},
};

std::string damage_help() { return "rebuild it from the runs: tilewright db import-run runs/*"; }

/// Switches to write-ahead logging; gives the mode that is then in force. Processes that open a new file at one time
/// may find it busy, and for this statement SQLite does not wait by itself.
std::string use_write_ahead_log(SQLite::Database& database, int busy_ms) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
  for (;;) {
    try {
      return database.execAndGet("PRAGMA journal_mode = WAL").getString();
    } catch (const SQLite::Exception& e) {
      if (e.getErrorCode() != SQLITE_BUSY || std::chrono::steady_clock::now() > deadline) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

/// Neither the file nor its folder can be written to, or one of them: no process changes it by this path. SQLite is
/// told so, for it could create neither the log nor the shared memory that it otherwise reads through.
bool only_for_reading(const std::string& path) {
  fs::path directory = fs::path(path).parent_path();
  return ::access(path.c_str(), W_OK) != 0 || ::access(directory.empty() ? "." : directory.c_str(), W_OK) != 0;
}

/// Results that a writer has committed and not yet moved from its log into the file.
bool has_log(const std::string& path) {
  std::error_code error;
  const auto bytes = fs::file_size(path + "-wal", error);
  return !error && bytes > 0;
}

std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (char c : path) uri += c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", c) : std::string(1, c);
  return uri + "?immutable=1";
}

[[noreturn]] void throw_refusal(Refusal refusal) { throw Refused{std::move(refusal)}; }

}  // namespace

Status check_file_system(uint32_t magic, const std::string& path, bool allow_fuse) {
  for (const BadFileSystem& bad : bad_file_systems) {
    if (bad.magic != magic || (magic == fuse_magic && allow_fuse)) continue;
    return refuse(Refusal(database_file_system,
                          fmt::format("{} is on {}, where SQLite's write-ahead log gets corrupted", path, bad.name))
                      .with_help("put it on a local disk: --db sqlite:/var/tmp/tuning.db"));
  }
  return {};
}

Refusal translate(const SQLite::Exception& e, const std::string& path) {
  std::string what = fmt::format("{}: {}", path, e.what());
  switch (e.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Refusal(database_damaged, what).with_help(damage_help());
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Refusal(database_busy, fmt::format("{}: another process keeps it locked", path));
    case SQLITE_FULL:
      return Refusal(disk_full, what).with_help(fmt::format("make room: df -h {}", path));
    default:
      return Refusal(database_failed, what);
  }
}

void Query::bind(const Key128& x) {
  char bytes[16];
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(x.high >> (56 - 8 * i));
    bytes[8 + i] = static_cast<char>(x.low >> (56 - 8 * i));
  }
  bind(Blob{{bytes, 16}});
}

Key128 Query::key() {
  SQLite::Column column = statement_->getColumn(column_++);
  if (column.getBytes() != 16)
    throw_refusal(Refusal(database_damaged, fmt::format("expected a key of 16 bytes, found {}", column.getBytes())));
  const auto* bytes = static_cast<const unsigned char*>(column.getBlob());
  Key128 key;
  for (int i = 0; i < 8; ++i) {
    key.high = key.high << 8 | bytes[i];
    key.low = key.low << 8 | bytes[8 + i];
  }
  return key;
}

std::optional<double> Query::real_or_null() {
  if (!null()) return real();
  ++column_;
  return std::nullopt;
}

std::optional<int64_t> Query::integer_or_null() {
  if (!null()) return integer();
  ++column_;
  return std::nullopt;
}

Result<std::unique_ptr<Connection>> Connection::open(const std::string& path, const DatabaseOptions& options) {
  bool in_memory = path == ":memory:", reading = false;
  if (!in_memory) {
    fs::path directory = fs::path(path).parent_path();
    if (directory.empty()) directory = ".";
    std::error_code error;
    if (!fs::exists(path, error)) {
      if (!options.create) return refuse(database_missing, fmt::format("there is no database {}", path));
      fs::create_directories(directory, error);
      if (error)
        return refuse(database_failed, fmt::format("cannot create {}: {}", directory.string(), error.message()));
    }
    reading = !options.write && only_for_reading(path);
    struct statfs info{};
    if (::statfs(directory.c_str(), &info) != 0)
      return refuse(database_failed, fmt::format("cannot examine {}: {}", directory.string(), std::strerror(errno)));
    if (!reading) TW_TRY_VOID(check_file_system(static_cast<uint32_t>(info.f_type), path, options.allow_fuse));
  }
  try {
    std::unique_ptr<Connection> connection(new Connection(path, options, reading));
    connection->check_owner();
    if (!reading) connection->configure(in_memory);
    connection->prepare_schema(reading);
    return connection;
  } catch (const SQLite::Exception& e) {
    Refusal refusal = translate(e, path);
    if (reading && has_log(path))
      refusal = refusal.with_help(fmt::format(
          "a writer was stopped before it moved {0}-wal into the file: copy both to a folder that can be written",
          path));
    return refuse(refusal);
  } catch (const Refused& e) {
    return refuse(e.refusal);
  }
}

Connection::Connection(const std::string& path, const DatabaseOptions& options, bool reading)
    : path_(path),
      busy_ms_(options.busy_ms),
      database_(reading && !has_log(path) ? immutable_uri(path) : path,
                reading ? SQLite::OPEN_READONLY | SQLite::OPEN_URI : SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                options.busy_ms) {}

void Connection::check_owner() {
  // Before anything is written: is it ours? Reading the header also finds a file that is no database. Tables first: who
  // creates them sets the id in the same transaction.
  int tables = database_.execAndGet("SELECT count(*) FROM sqlite_master").getInt();
  int found = database_.execAndGet("PRAGMA application_id").getInt();
  if (found != application_id && tables > 0)
    throw_refusal(Refusal(database_foreign, fmt::format("{} is an SQLite database of another program", path_))
                      .with_help("name another file: --db sqlite:tuning.db"));
}

void Connection::configure(bool in_memory) {
  std::string mode = use_write_ahead_log(database_, busy_ms_);
  if (!in_memory && mode != "wal")
    throw_refusal(Refusal(database_file_system,
                          fmt::format("{}: expected write-ahead logging, the file system gives \"{}\"", path_, mode)));
  // FULL: a committed result is on the disk, because `db.committed` in the journal promises it (docs/decisions).
  exec("PRAGMA synchronous = FULL");
  exec("PRAGMA foreign_keys = OFF");
  exec("PRAGMA cache_size = -65536");
  exec("PRAGMA temp_store = MEMORY");
}

void Connection::prepare_schema(bool reading) {
  auto version = [&]() -> int {
    if (!database_.tableExists("meta")) return 0;
    SQLite::Statement query(database_, "SELECT value FROM meta WHERE name = 'schema_version'");
    const int found = query.executeStep() ? query.getColumn(0).getInt() : 0;
    if (found >= 1) return found;
    throw_refusal(Refusal(database_damaged, fmt::format("{}: expected a schema version of at least 1, found {}", path_,
                                                        found == 0 ? "none" : fmt::format("{}", found)))
                      .with_help(damage_help()));
  };
  int found = version();
  if (found > schema::schema_version)
    throw_refusal(Refusal(database_newer, fmt::format("{} has schema version {}, this program knows up to {}", path_,
                                                      found, schema::schema_version))
                      .with_help("use the newer Tilewright, or another file with --db"));
  if (reading && found < schema::schema_version)
    throw_refusal(
        Refusal(database_failed, fmt::format("{} has schema version {}, expected {}, and cannot be written to", path_,
                                             found, schema::schema_version))
            .with_help("copy it to where it can be upgraded: tilewright db upgrade --db COPY"));
  while (found < schema::schema_version) {
    SQLite::Transaction transaction(database_, SQLite::TransactionBehavior::IMMEDIATE);
    found = version();  // another process may have been quicker
    if (found == schema::schema_version) break;
    for (const std::string& sql : found == 0 ? schema::create_statements(dialect) : schema::migration(found)) exec(sql);
    found = found == 0 ? schema::schema_version : found + 1;
    exec(fmt::format("INSERT OR REPLACE INTO meta (name, value) VALUES ('schema_version', {})", found));
    exec(fmt::format("PRAGMA application_id = {}", application_id));
    transaction.commit();
  }
}

SQLite::Statement& Connection::kept(const std::string& sql) {
  auto it = kept_.find(sql);
  if (it == kept_.end()) it = kept_.emplace(sql, SQLite::Statement(database_, sql)).first;
  return it->second;
}

}  // namespace tilewright::sqlite
