// The tables of the tuning database, defined once; each back end turns them into its own SQL.
// To change them: raise `schema_version`, add the step to `migrations()`, keep old steps as they are.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::schema {

inline constexpr int schema_version = 1;

enum class Type { integer, real, text, bytes };

struct Column {
  const char* name;
  Type type;
  bool nullable = false;
};

struct Index {
  const char* name;
  std::vector<const char*> columns;
  bool unique = false;
  const char* where = nullptr;  ///< a condition that every dialect reads, or none
};

struct Table {
  const char* name;
  std::vector<Column> columns;
  std::vector<const char*> primary_key;  ///< {"id"} of type integer: numbered by the database
  std::vector<Index> indexes;
};

/// Tables in an order in which they can be created.
std::span<const Table> tables();
const Table& table(std::string_view name);

/// How a dialect writes the parts that differ.
struct Dialect {
  const char* integer;
  const char* real;
  const char* text;
  const char* bytes;
  const char* numbered_key;  ///< of a primary key that the database numbers
  const char* keyed_suffix;  ///< after a table whose primary key is not "id"
};

/// One statement per table and index.
std::vector<std::string> create_statements(const Dialect&);
/// "INSERT INTO t (a, b) VALUES (?, ?)" over all columns of the table but a numbered key, plus `suffix`.
std::string insert_statement(const Table&, std::string_view suffix = {});
/// "a, b, c": every column of the table, each after `prefix`.
std::string column_list(const Table&, std::string_view prefix = {});

/// Statements that lead from version `from` to `from` + 1. Forward only; each step is one transaction.
std::vector<std::string> migration(int from);

}  // namespace tilewright::schema
