#include "database/schema.h"

#include <fmt/format.h>

#include "support/check.h"

namespace tilewright::schema {

namespace {

constexpr Type integer = Type::integer, real = Type::real, text = Type::text, bytes = Type::bytes;
constexpr bool nullable = true;

// Keys are 16 bytes, big end first, so that every back end sorts them alike. Columns named *_z are zstd frames. Enums
// are their numbers in support/trial.h. Lists and maps are JSON text.
const std::vector<Table>& all_tables() {
  static const std::vector<Table> tables = {
      {"meta", {{"name", text}, {"value", bytes}}, {"name"}, {}},
      {"workload",
       {{"id", integer},
        {"key", bytes},
        {"anchor_key", bytes},
        {"program_z", bytes},
        {"ir_version", integer},
        {"name", text},
        {"shape", text},
        {"flops", real},
        {"bytes", real}},
       {"id"},
       {{"workload_key", {"key"}, true}, {"workload_anchor", {"anchor_key"}}}},
      {"target",
       {{"id", integer}, {"key", bytes}, {"class_key", bytes}, {"name", text}, {"text", text}},
       {"id"},
       {{"target_key", {"key"}, true}, {"target_class", {"class_key"}}}},
      {"campaign",
       {{"id", integer},
        {"run", text},
        {"name", text},
        {"version", text},
        {"seed", integer},
        {"settings", text},
        {"started_us", integer},
        {"state", text}},
       {"id"},
       {}},
      {"record",
       {{"id", integer},
        {"workload", integer},
        {"target", integer},
        {"mode", integer},
        {"trace_key", bytes},
        {"short_id", integer},
        {"trace_z", bytes, nullable},
        {"status", integer},
        {"stage", integer},
        {"rank_ns", real, nullable},
        {"ci_lo_ns", real, nullable},
        {"ci_hi_ns", real, nullable},
        {"n", integer},
        {"measurements", integer},
        {"settled", integer},
        {"verified", integer},
        {"blocked", integer},
        {"unblocked_reason", text},
        {"unblocked_us", integer, nullable},
        {"failures", text},
        {"toolchain", text},
        {"artifact", text},
        {"plugins", text},
        {"updated_us", integer}},
       {"id"},
       {{"record_key", {"workload", "target", "mode", "trace_key"}, true},
        {"record_rank", {"workload", "target", "mode", "rank_ns"}, false, "verified = 1 AND blocked = 0"},
        {"record_short", {"short_id"}}}},
      {"measurement",
       {{"campaign", integer},
        {"seq", integer},
        {"attempt", integer},
        {"record", integer},
        {"status", integer},
        {"stage", integer},
        {"median_ns", real},
        {"ci_lo_ns", real},
        {"ci_hi_ns", real},
        {"n", integer},
        {"flags", integer},
        {"finished_us", integer},
        {"device", text},
        {"canary_ratio", real, nullable},
        {"toolchain", text},
        {"artifact", text},
        {"plugins", text},
        {"detail_z", bytes, nullable},
        {"source_z", bytes, nullable}},
       {"campaign", "seq", "attempt"},
       {{"measurement_record", {"record"}}, {"measurement_device", {"device", "finished_us"}}}},
      {"checkpoint",
       {{"campaign", integer}, {"round", integer}, {"state", integer}, {"trials", integer}},
       {"campaign", "round"},
       {}},
      {"quarantine",
       {{"kind", text},
        {"key", text},
        {"reason", text},
        {"evidence", text},
        {"since_us", integer},
        {"until_us", integer, nullable}},
       {"kind", "key"},
       {}},
  };
  return tables;
}

const char* type_name(Type type, const Dialect& dialect) {
  switch (type) {
    case Type::integer:
      return dialect.integer;
    case Type::real:
      return dialect.real;
    case Type::text:
      return dialect.text;
    case Type::bytes:
      return dialect.bytes;
  }
  TW_UNREACHABLE();
}

bool is_numbered(const Table& table) {
  return table.primary_key.size() == 1 && std::string_view(table.primary_key[0]) == "id";
}

/// A campaign's id is its own 64 random bits.
bool is_numbered_by_database(const Table& table) {
  return is_numbered(table) && std::string_view(table.name) != "campaign";
}

std::string joined(const std::vector<const char*>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string create_table(const Table& table, const Dialect& dialect) {
  std::string columns;
  for (const Column& column : table.columns) {
    if (!columns.empty()) columns += ", ";
    bool key = is_numbered(table) && std::string_view(column.name) == "id";
    columns += fmt::format("{} {}", column.name, key ? dialect.numbered_key : type_name(column.type, dialect));
    if (!column.nullable && !key) columns += " NOT NULL";
  }
  if (!is_numbered(table)) columns += fmt::format(", PRIMARY KEY ({})", joined(table.primary_key));
  return fmt::format("CREATE TABLE {} ({}){}", table.name, columns, is_numbered(table) ? "" : dialect.keyed_suffix);
}

std::string create_index(const Table& table, const Index& index) {
  return fmt::format("CREATE {}INDEX {} ON {} ({}){}", index.unique ? "UNIQUE " : "", index.name, table.name,
                     joined(index.columns), index.where ? fmt::format(" WHERE {}", index.where) : "");
}

}  // namespace

std::span<const Table> tables() { return all_tables(); }

const Table& table(std::string_view name) {
  for (const Table& table : all_tables())
    if (table.name == name) return table;
  TW_UNREACHABLE("no table {}", name);
}

std::vector<std::string> create_statements(const Dialect& dialect) {
  std::vector<std::string> statements;
  for (const Table& table : all_tables()) {
    statements.push_back(create_table(table, dialect));
    for (const Index& index : table.indexes) statements.push_back(create_index(table, index));
  }
  return statements;
}

std::string insert_statement(const Table& table, std::string_view suffix) {
  std::string names, marks;
  for (const Column& column : table.columns) {
    if (is_numbered_by_database(table) && std::string_view(column.name) == "id") continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
    marks += marks.empty() ? "?" : ", ?";
  }
  return fmt::format("INSERT INTO {} ({}) VALUES ({}) {}", table.name, names, marks, suffix);
}

std::string column_list(const Table& table, std::string_view prefix) {
  std::string names;
  for (const Column& column : table.columns)
    names += fmt::format("{}{}{}", names.empty() ? "" : ", ", prefix, column.name);
  return names;
}

std::vector<std::string> migration(int from) { TW_UNREACHABLE("no migration from schema version {}", from); }

}  // namespace tilewright::schema
