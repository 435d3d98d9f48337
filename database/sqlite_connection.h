// One connection to an SQLite file: how it is opened and guarded, statements that are kept prepared, and the
// translation of SQLite's errors. Only database/sqlite*.cpp include this.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "database/store.h"
#include "support/hash.h"
#include "support/result.h"

namespace tilewright::sqlite {

/// Refusal for a file system whose statfs magic is `magic`: WAL needs memory shared between processes and honest locks.
Status check_file_system(uint32_t magic, const std::string& path, bool allow_fuse);

/// A refusal thrown through a transaction, so that it rolls back; caught by guarded().
struct Refused {
  Refusal refusal;
};

Refusal translate(const SQLite::Exception&, const std::string& path);

struct Blob {
  std::string_view bytes;
};

/// A kept statement in use: reset when it goes out of scope.
class Query {
 public:
  template <class... Args>
  Query(SQLite::Statement& statement, const Args&... args) : statement_(&statement) {
    (bind(args), ...);
  }
  ~Query() { statement_->tryReset(); }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  bool step() { return column_ = 0, statement_->executeStep(); }
  int run() { return statement_->exec(); }

  void bind(int64_t x) { statement_->bind(++bound_, x); }
  void bind(int x) { bind(int64_t{x}); }
  void bind(uint64_t x) { bind(static_cast<int64_t>(x)); }
  void bind(bool x) { bind(int64_t{x}); }
  void bind(double x) { statement_->bind(++bound_, x); }
  void bind(const std::string& x) { statement_->bind(++bound_, x); }
  void bind(Blob x) { statement_->bind(++bound_, x.bytes.data(), static_cast<int>(x.bytes.size())); }
  void bind(const Key128& x);
  void bind(std::nullopt_t) { statement_->bind(++bound_); }
  template <class E>
    requires std::is_enum_v<E>
  void bind(E x) {
    bind(static_cast<int64_t>(x));
  }
  template <class T>
  void bind(const std::optional<T>& x) {
    x ? bind(*x) : bind(std::nullopt);
  }

  /// The next column of the row.
  int64_t integer() { return statement_->getColumn(column_++).getInt64(); }
  double real() { return statement_->getColumn(column_++).getDouble(); }
  std::string text() { return statement_->getColumn(column_++).getString(); }
  Key128 key();
  template <class E>
  E value() {
    return static_cast<E>(integer());
  }
  std::optional<double> real_or_null();
  std::optional<int64_t> integer_or_null();
  bool null() { return statement_->getColumn(column_).isNull(); }

 private:
  SQLite::Statement* statement_;
  int bound_ = 0, column_ = 0;
};

class Connection {
 public:
  /// `path` may be ":memory:". Opens or creates the file, checks what it is, brings its schema up to date.
  static Result<std::unique_ptr<Connection>> open(const std::string& path, const DatabaseOptions&);

  SQLite::Database& raw() { return database_; }
  const std::string& path() const { return path_; }
  /// A statement that is prepared once and kept. One use at a time: scans prepare their own.
  SQLite::Statement& kept(const std::string& sql);
  void exec(const std::string& sql) { database_.exec(sql); }

  /// Runs f and turns exceptions of SQLite, and Refused, into refusals.
  template <class F>
  auto guarded(F&& f) -> decltype(f()) {
    try {
      return f();
    } catch (const SQLite::Exception& e) {
      return refuse(translate(e, path_));
    } catch (const Refused& e) {
      return refuse(e.refusal);
    }
  }

 private:
  Connection(const std::string& path, const DatabaseOptions&, bool reading);
  void configure(bool in_memory);
  void check_owner();
  void prepare_schema(bool reading);

  std::string path_;
  int busy_ms_;
  SQLite::Database database_;
  std::map<std::string, SQLite::Statement> kept_;
};

}  // namespace tilewright::sqlite
