// tilewright db: looks at the tuning database and keeps it in order. One function per verb; the table is at the end.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <tuple>

#include "database/ingest.h"
#include "database/schema.h"
#include "database/tvm_json.h"
#include "export/lock.h"
#include "schedule/target.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/database.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "tools/settings.h"

namespace tilewright::tools {
namespace {

using Words = std::vector<std::string>;

enum class Access : uint8_t { reads, writes, creates };

struct Verb {
  const char* name;
  const char* words;  ///< what it takes, as --help shows it
  const char* doc;
  size_t least, most;  ///< number of words
  Access access;       ///< to the database; creates: also makes one that is not there
  int (*run)(Tool&, const Arguments&, Database&, const Words&);
};

constexpr size_t any_number = 1'000'000;

int fail(Tool& tool, const Refusal& refusal) { return tool.fail(refusal, exit_of_name(refusal)); }

/// Names of workloads and targets, by key.
struct Names {
  std::map<Key128, WorkloadEntry> workloads;
  std::map<Key128, TargetEntry> targets;

  static Result<Names> read(Database& database) {
    Names out;
    TW_TRY(std::vector<WorkloadEntry> workloads, database.workloads());
    for (WorkloadEntry& w : workloads) out.workloads.emplace(w.key, std::move(w));
    TW_TRY(std::vector<TargetEntry> targets, database.targets());
    for (TargetEntry& t : targets) out.targets.emplace(t.key, std::move(t));
    return out;
  }
  std::string workload(const Key128& key) const {
    auto it = workloads.find(key);
    return it == workloads.end() ? key.hex() : it->second.name;
  }
  ByName<std::string> target(const Key128& key) const {
    auto it = targets.find(key);
    return it == targets.end() ? ByName<std::string>{{"target", key.hex()}} : target_parts(it->second.text);
  }
  /// Whether `word`, part of a name or the start of a key, means this workload; none means every one.
  bool wanted(const WorkloadEntry& w, const Words& words) const {
    return words.empty() || w.name.find(words[0]) != std::string::npos || w.key.hex().starts_with(words[0]);
  }
};

std::string target_line(const ByName<std::string>& parts) {
  std::string out = parts.at("target");
  for (const auto& [name, value] : parts)
    if (name != "target") out += fmt::format(", {} {}", name, value);
  return out;
}

Json record_row(const Names& names, const Record& r) {
  ByName<std::string> target = names.target(r.target);
  Json row = {{"workload", names.workload(r.workload)},
              {"workload_key", r.workload.hex()},
              {"target", target.at("target")},
              {"mode", to_string(r.mode)},
              {"trace_key", r.trace_key.hex()},
              {"record", r.id()},
              {"rank_ns", nullptr},
              {"ci_lo_ns", nullptr},
              {"ci_hi_ns", nullptr},
              {"n", r.n},
              {"stage", to_string(r.stage)},
              {"verified", r.verified},
              {"target_key", r.target.hex()}};
  if (r.rank_ns) row["rank_ns"] = *r.rank_ns;
  if (r.ci_lo_ns) row["ci_lo_ns"] = *r.ci_lo_ns;
  if (r.ci_hi_ns) row["ci_hi_ns"] = *r.ci_hi_ns;
  for (const auto& [name, value] : target)
    if (name != "target") row["environment"][name] = value;
  return row;
}

std::string record_line(const Record& r) {
  std::string interval = r.ci_lo_ns && r.ci_hi_ns && *r.ci_lo_ns > 0
                             ? fmt::format(" [{}, {}]", nice_time(*r.ci_lo_ns), nice_time(*r.ci_hi_ns))
                             : "";
  return fmt::format("{}  {:>9}{}  {} samples, {}{}", r.id(), nice_time(r.rank_ns.value_or(0)), interval, r.n,
                     to_string(r.stage), r.verified ? ", verified" : ", not verified");
}

int ls(Tool& tool, const Arguments&, Database& database, const Words& words) {
  auto names = Names::read(database);
  if (!names) return fail(tool, names.error());
  struct Row {
    int64_t records = 0, blocked = 0, settled = 0;
    std::optional<double> best;
  };
  std::map<std::tuple<std::string, Key128, Key128, Mode>, Row> rows;
  Status read = database.for_each_record(std::nullopt, [&](const Record& r) -> Status {
    auto w = names->workloads.find(r.workload);
    if (w == names->workloads.end() || !names->wanted(w->second, words)) return {};
    Row& row = rows[{w->second.name, r.workload, r.target, r.mode}];
    ++row.records;
    row.blocked += r.blocked;
    row.settled += r.settled;
    if (r.verified && !r.blocked && r.rank_ns) row.best = std::min(row.best.value_or(*r.rank_ns), *r.rank_ns);
    return {};
  });
  if (!read) return fail(tool, read.error());
  Json list = Json::array();
  for (const auto& [key, row] : rows) {
    const auto& [name, workload, target, mode] = key;
    ByName<std::string> parts = names->target(target);
    tool.print(fmt::format("{:<36} {:>9}  {} records{}  {}, {}\n", name, nice_time(row.best.value_or(0)), row.records,
                           row.blocked ? fmt::format(" ({} blocked)", row.blocked) : "", target_line(parts),
                           to_string(mode)));
    Json line = {{"workload", name},           {"workload_key", workload.hex()}, {"target", parts.at("target")},
                 {"target_key", target.hex()}, {"mode", to_string(mode)},        {"records", row.records},
                 {"blocked", row.blocked},     {"settled", row.settled},         {"best_ns", nullptr}};
    if (row.best) line["best_ns"] = *row.best;
    list.push_back(std::move(line));
  }
  tool.field("workloads", std::move(list));
  return exit_yes;
}

/// The best `limit` records of each workload, target (or class of targets) and mode.
int list_best(Tool& tool, const Arguments& arguments, Database& database, const Words& words, int limit,
              const char* field) {
  std::string match = arguments.get("--match", "strict");
  if (match != "strict" && match != "class")
    return tool.usage(fmt::format("--match: expected strict or class, found \"{}\"", match));
  auto names = Names::read(database);
  if (!names) return fail(tool, names.error());
  std::map<Key128, std::string> targets;  // by key of the query, with the line that is printed
  for (const auto& [key, target] : names->targets)
    if (match == "class")
      targets[target.class_key] =
          "class of " + target_line(target_parts(target.text)) + ", to be measured again before use";
    else
      targets[key] = target_line(target_parts(target.text));
  Json list = Json::array();
  for (const auto& [workload_key, workload] : names->workloads) {
    if (!names->wanted(workload, words)) continue;
    for (const auto& [target_key, line] : targets)
      for (Mode mode : {Mode::cold, Mode::warm, Mode::cold_sustained}) {
        auto found = database.top({{workload_key, target_key, mode}, match == "class", false, limit});
        if (!found) return fail(tool, found.error());
        if (found->empty()) continue;
        tool.print(fmt::format("{}  {}, {}\n", workload.name, line, to_string(mode)));
        for (const Record& r : *found) {
          tool.print("  " + record_line(r) + "\n");
          list.push_back(record_row(*names, r));
        }
      }
  }
  const bool none = list.empty();
  tool.field(field, std::move(list));
  if (!none) return exit_yes;
  tool.print("no verified record\n");
  return exit_no;
}

int best(Tool& tool, const Arguments& arguments, Database& database, const Words& words) {
  return list_best(tool, arguments, database, words, 1, "best");
}

int top(Tool& tool, const Arguments& arguments, Database& database, const Words& words) {
  auto limit = read_number(tool, "--limit", arguments.get("--limit", "10"));
  return limit ? list_best(tool, arguments, database, words, static_cast<int>(*limit), "top") : exit_usage;
}

int stats(Tool& tool, const Arguments&, Database& database, const Words&) {
  auto stats = database.stats();
  if (!stats) return fail(tool, stats.error());
  Json all = Json::object();
  for_each_named_field(*stats, [&](std::string_view name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int64_t>) {
      tool.print(fmt::format("{:<14} {}\n", name, value));
      all[std::string(name)] = value;
    } else {
      Json by = Json::object();
      for (const auto& [status, n] : value) {
        tool.print(fmt::format("  {:<12} {}\n", status, n));
        by[status] = n;
      }
      all[std::string(name)] = std::move(by);
    }
  });
  tool.field("stats", std::move(all));
  return exit_yes;
}

int merge_into(Tool& tool, const Arguments&, Database& database, const Words& words) {
  Json list = Json::array();
  for (const std::string& word : words) {
    auto from = open_database(database_url(word), {.create = false, .write = false});
    if (!from) return fail(tool, from.error());
    auto rows = merge(database, **from);
    if (!rows) return fail(tool, rows.error());
    tool.print(fmt::format("{}: {} new measurements\n", word, *rows));
    list.push_back({{"from", word}, {"inserted", *rows}});
  }
  tool.field("merged", std::move(list));
  return exit_yes;
}

int import_runs(Tool& tool, const Arguments&, Database& database, const Words& words) {
  Json list = Json::array();
  bool damaged = false;
  for (const std::string& word : words) {
    auto directory = find_run(word);
    if (!directory) return fail(tool, directory.error());
    auto report = import_run(database, *directory);
    if (!report) return fail(tool, report.error());
    tool.diagnose(report->journal.warnings);
    tool.diagnose(report->journal.damage);
    damaged |= !report->journal.damage.empty();
    tool.print(fmt::format("{}: {} results, {} new\n", *directory, report->results, report->inserted));
    list.push_back({{"run", *directory}, {"results", report->results}, {"inserted", report->inserted}});
  }
  tool.field("imported", std::move(list));
  return damaged ? exit_no : exit_yes;
}

/// "WORKLOADS,RECORDS", or the folder of a pair with TVM's names.
std::pair<std::string, std::string> tvm_pair(const std::string& text) {
  size_t comma = text.find(',');
  if (comma != std::string::npos) return {text.substr(0, comma), text.substr(comma + 1)};
  return {text + "/database_workload.json", text + "/database_tuning_record.json"};
}

/// The kernels of a lock file as records: traces to start from, whose times are not ours.
Result<int64_t> import_lock(Database& database, const std::string& file) {
  TW_TRY(std::string text, read_file(file));
  TW_TRY(Lock lock, parse_lock(text, file));
  Batch batch;
  for (const LockedKernel& kernel : lock.kernels) {
    Subject s = subject_of(kernel);
    batch.workloads.push_back({s.space.workload, s.space.workload, s.program, 1, s.task, s.task, 0, 0});
    TW_TRY(Target target, parse_target(kernel.target));
    std::string device = s.target.contains("device") ? s.target.at("device") : "";
    batch.targets.push_back({s.space.target, target_class(target.arch, device), target.name,
                             target_text(kernel.target, kernel.measured_on)});
    Measurement m;
    // The same kernel has the same name for ever, so that importing it again changes nothing.
    m.campaign.value = content_key(kernel.record + s.trace_key.hex()).high;
    m.workload = s.space.workload, m.target = s.space.target, m.mode = kernel.mode, m.trace = kernel.trace;
    m.result.trace_key = s.trace_key;
    m.result.status = TrialStatus::ok;
    m.result.stage = Stage::imported;
    m.result.settled = true;
    m.result.median_ns = kernel.median_ns, m.result.ci_lo_ns = kernel.ci_lo_ns, m.result.ci_hi_ns = kernel.ci_hi_ns;
    m.result.n = kernel.n;
    batch.measurements.push_back(std::move(m));
  }
  return database.commit(batch);
}

int import_files(Tool& tool, const Arguments& arguments, Database& database, const Words& words) {
  std::vector<std::string> pairs = arguments.all("--tvm");
  pairs.insert(pairs.end(), words.begin(), words.end());
  if (pairs.empty())
    return tool.usage("db import: expected lock files or a pair of TVM's files, found none",
                      "tilewright db import --tvm database_workload.json,database_tuning_record.json");
  Json list = Json::array();
  for (const std::string& pair : pairs) {
    std::error_code ec;
    if (pair.ends_with(".json") && pair.find(',') == std::string::npos && std::filesystem::is_regular_file(pair, ec)) {
      auto inserted = import_lock(database, pair);
      if (!inserted)
        return tool.fail(inserted.error(),
                         inserted.error().is(lock_invalid) ? exit_usage : exit_of_name(inserted.error()));
      tool.print(fmt::format("{}: {} new\n", pair, *inserted));
      list.push_back({{"lock_file", pair}, {"inserted", *inserted}});
      continue;
    }
    auto [workloads, records] = tvm_pair(pair);
    auto report = import_tvm(database, workloads, records, records + ".rejects.jsonl");
    if (!report) {
      bool missing = report.error().is(file_cannot_open);
      return tool.fail(report.error(), missing ? exit_usage : exit_of_name(report.error()));
    }
    tool.print(fmt::format("{}: {} workloads, {} records, {} new, {} failed runs, {} rejected{}{}\n", records,
                           report->workloads, report->records, report->inserted, report->failed, report->rejected,
                           report->rejected ? " (see " + records + ".rejects.jsonl)" : "",
                           report->torn ? ", a torn last line was left out" : ""));
    list.push_back({{"records_file", records},
                    {"workloads", report->workloads},
                    {"records", report->records},
                    {"inserted", report->inserted},
                    {"failed", report->failed},
                    {"rejected", report->rejected},
                    {"torn", report->torn}});
  }
  tool.field("imported", std::move(list));
  return exit_yes;
}

int export_pair(Tool& tool, const Arguments& arguments, Database& database, const Words& words) {
  std::string directory = arguments.get("--tvm", words.empty() ? "" : words[0]);
  if (directory.empty())
    return tool.usage("db export: expected a folder for the pair of TVM's files, found none",
                      "tilewright db export --tvm DIR");
  auto report = export_tvm(database, directory, arguments.has("--best"));
  if (!report) return tool.fail(report.error(), exit_environment);
  tool.print(fmt::format("{}: {} workloads, {} records; {} measurements of programs whose graphs only TVM can write\n",
                         directory, report->workloads, report->records, report->not_expressed));
  tool.field("directory", directory);
  tool.field("workloads", report->workloads);
  tool.field("records", report->records);
  tool.field("not_expressed", report->not_expressed);
  return exit_yes;
}

/// "30d", or a time that parse_duration knows; in microseconds.
std::optional<int64_t> parse_age(const std::string& text) {
  auto seconds = text.ends_with("d") ? parse_duration(text.substr(0, text.size() - 1)) : parse_duration(text);
  if (!seconds) return std::nullopt;
  return static_cast<int64_t>(*seconds * (text.ends_with("d") ? 86400e6 : 1e6));
}

int prune(Tool& tool, const Arguments& arguments, Database& database, const Words&) {
  PrunePolicy policy;
  if (arguments.has("--keep")) {
    auto keep = read_number(tool, "--keep", arguments.get("--keep"));
    if (!keep) return exit_usage;
    policy.keep = static_cast<int>(*keep);
  }
  if (std::string older = arguments.get("--older-than"); !older.empty()) {
    auto age = parse_age(older);
    if (!age) return tool.usage(fmt::format("--older-than: expected a time such as 30d or 12h, found \"{}\"", older));
    auto now = std::chrono::system_clock::now().time_since_epoch();
    policy.older_than_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count() - *age;
  }
  auto report = database.prune(policy);
  if (!report) return fail(tool, report.error());
  tool.print(fmt::format("{} records cut to their summary, {} to {} bytes\n", report->records, report->bytes_before,
                         report->bytes_after));
  tool.field("records", report->records);
  tool.field("bytes_before", report->bytes_before);
  tool.field("bytes_after", report->bytes_after);
  return exit_yes;
}

/// Opening a database brings it up to date; this only says so.
int upgrade(Tool& tool, const Arguments&, Database&, const Words&) {
  tool.print(fmt::format("the database has schema version {}\n", schema::schema_version));
  tool.field("schema_version", schema::schema_version);
  return exit_yes;
}

int verify(Tool& tool, const Arguments&, Database& database, const Words&) {
  auto report = database.verify();
  if (!report) return tool.fail(report.error(), report.error().is(database_damaged) ? exit_no : exit_environment);
  tool.diagnose(report->problems);
  tool.print(fmt::format("{} workloads, {} records, {} measurements: {}\n", report->workloads, report->records,
                         report->measurements,
                         report->problems.empty() ? "sound" : fmt::format("{} problems", report->problems.size())));
  tool.field("workloads", report->workloads);
  tool.field("records", report->records);
  tool.field("measurements", report->measurements);
  tool.field("problems", report->problems.size());
  return report->problems.empty() ? exit_yes : exit_no;
}

int unblock(Tool& tool, const Arguments& arguments, Database& database, const Words& words) {
  std::string reason = arguments.get("--reason");
  if (reason.empty()) return tool.usage("db unblock: expected --reason TEXT, found none");
  auto record = find_record(database, words[0]);
  if (!record) return fail(tool, record.error());
  if (!record->blocked) {
    tool.print(fmt::format("{} is not blocked\n", record->id()));
    tool.field("record", record->id());
    return exit_yes;
  }
  if (Status done = database.unblock(*record, reason); !done) return fail(tool, done.error());
  tool.print(fmt::format("{} may be ranked again\n", record->id()));
  tool.field("record", record->id());
  return exit_yes;
}

constexpr Verb verbs[] = {
    {"ls", "[WORKLOAD]", "workloads with their records and best times", 0, 1, Access::reads, ls},
    {"best", "[WORKLOAD]", "the best record of each workload, target and mode", 0, 1, Access::reads, best},
    {"top", "[WORKLOAD]", "the best records (--limit N)", 0, 1, Access::reads, top},
    {"stats", "", "row counts and size", 0, 0, Access::reads, stats},
    {"merge", "DB...", "take over what other databases have", 1, any_number, Access::creates, merge_into},
    {"import", "FILE|DIR...", "read lock files, and pairs of TVM's files (a folder, or --tvm WORKLOADS,RECORDS)", 0,
     any_number, Access::creates, import_files},
    {"import-run", "RUN...", "put runs' journals in", 1, any_number, Access::creates, import_runs},
    {"export", "[DIR]", "write a pair of TVM's files (--tvm DIR, --best)", 0, 1, Access::reads, export_pair},
    {"prune", "", "cut losers to their summary (--keep N, --older-than 30d)", 0, 0, Access::writes, prune},
    {"upgrade", "", "bring the schema up to date", 0, 0, Access::writes, upgrade},
    {"verify", "", "check file, references and every record", 0, 0, Access::reads, verify},
    {"unblock", "RECORD", "let a record be ranked again that was proved wrong (--reason TEXT)", 1, 1, Access::writes,
     unblock},
};

int run(Tool& tool, const Arguments& arguments) {
  std::string name = arguments.get("VERB");
  auto verb = std::find_if(std::begin(verbs), std::end(verbs), [&](const Verb& v) { return name == v.name; });
  if (verb == std::end(verbs)) {
    std::vector<std::string> all;
    for (const Verb& v : verbs) all.emplace_back(v.name);
    std::string near = did_you_mean(name, all);
    return tool.usage(fmt::format("db has no verb \"{}\"", name), near.empty()
                                                                      ? fmt::format("one of: {}", fmt::join(all, ", "))
                                                                      : fmt::format("did you mean \"{}\"?", near));
  }
  Words words = arguments.all("ARGUMENTS");
  if (words.size() < verb->least || words.size() > verb->most)
    return tool.usage(
        fmt::format("db {0}: expected `db {0} {1}`, found {2} arguments", name, verb->words, words.size()));
  auto database = open_database(database_url(tool.globals().database),
                                {.create = verb->access == Access::creates, .write = verb->access != Access::reads});
  if (!database) {
    bool answer = database.error().is(database_damaged) && name == "verify";
    return tool.fail(database.error(), answer ? exit_no : exit_of_database(database.error()));
  }
  return verb->run(tool, arguments, **database, words);
}

std::string verb_list() {
  std::string out;
  for (const Verb& v : verbs)
    out += fmt::format("{}{}{}{}: {}", out.empty() ? "" : "; ", v.name, *v.words ? " " : "", v.words, v.doc);
  return out;
}

const RegisterCommand entry{
    "db",
    "look at the tuning database and keep it in order",
    {{{"VERB", verb_list()}, {"ARGUMENTS", "as the verb says", false, true}},
     {{"--match", "HOW", "best, top: strict (default: the whole target) or class"},
      {"--limit", "N", "top: records of each workload (default 10)"},
      {"--tvm", "PAIR", "import: WORKLOADS,RECORDS or their folder; export: the folder", 1, true},
      {"--best", "", "export: only the best line of each workload"},
      {"--keep", "N", "prune: best records of each workload that stay whole (default 128)"},
      {"--older-than", "AGE", "prune: only what was last measured before, as 30d or 12h"},
      {"--reason", "TEXT", "unblock: why"}},
     run}};

}  // namespace
}  // namespace tilewright::tools
