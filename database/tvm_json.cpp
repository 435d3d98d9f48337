#include "database/tvm_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "support/append_file.h"
#include "support/json.h"

namespace tilewright {

namespace {

constexpr double failed_seconds = 1e10;

/// The elements of a JSON list as slices of its text. The text must be valid JSON.
std::optional<std::vector<std::string_view>> elements(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  auto trim = [&](std::string_view s) {
    size_t begin = s.find_first_not_of(space);
    return begin == s.npos ? std::string_view{} : s.substr(begin, s.find_last_not_of(space) - begin + 1);
  };
  text = trim(text);
  if (text.size() < 2 || text.front() != '[') return std::nullopt;
  std::vector<std::string_view> out;
  int depth = 0;
  size_t start = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        for (++i; text[i] != '"'; ++i)
          if (text[i] == '\\') ++i;
        break;
      case '[':
      case '{':
        ++depth;
        break;
      case ']':
      case '}':
        --depth;
        break;
      case ',':
        if (depth == 1) {
          out.push_back(trim(text.substr(start, i - start)));
          start = i + 1;
        }
        break;
      default:
        break;
    }
  }
  std::string_view last = trim(text.substr(start, text.size() - 1 - start));
  if (!last.empty() || !out.empty()) out.push_back(last);
  return out;
}

struct RecordLine {
  int64_t workload = 0;
  std::string_view trace, target;
  std::vector<double> seconds;
  bool failed = false;
};

tl::unexpected<Refusal> bad(std::string message) { return refuse(tvm_line_invalid, std::move(message)); }

Status read_seconds(std::string_view text, RecordLine& out) {
  if (text == "null") return out.failed = true, Status{};
  auto items = elements(text);
  if (!items) return bad("expected a list of seconds or null");
  for (std::string_view item : *items) {
    double value = 0;
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc{} || end != item.data() + item.size() || !std::isfinite(value) || value < 0)
      return bad(fmt::format("expected seconds, found {}", item));
    if (value >= failed_seconds) out.failed = true;
    out.seconds.push_back(value);
  }
  if (out.seconds.empty()) out.failed = true;
  return {};
}

Result<RecordLine> read_record(std::string_view line, int64_t workloads) {
  if (!Json::accept(line)) return bad("not JSON");
  auto outer = elements(line);
  if (!outer || outer->size() != 2) return bad("expected [workload, record]");
  auto inner = elements((*outer)[1]);
  if (!inner || inner->size() != 4) return bad("expected [trace, seconds, target, args]");
  RecordLine record;
  std::string_view number = (*outer)[0];
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), record.workload);
  if (error != std::errc{} || end != number.data() + number.size() || record.workload < 0 ||
      record.workload >= workloads)
    return bad(fmt::format("expected a workload number below {}, found {}", workloads, number));
  record.trace = (*inner)[0];
  auto trace = elements(record.trace);
  if (!trace || trace->size() != 2 || !elements((*trace)[0]) || !elements((*trace)[1]))
    return bad("expected a trace [instructions, decisions]");
  record.target = (*inner)[2];
  TW_TRY_VOID(read_seconds((*inner)[1], record));
  return record;
}

/// Gives each whole line, without its newline, to f(number from 1, line); returns whether a torn one was dropped.
template <class F>
Result<bool> for_each_line(const std::string& path, F&& f) {
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  char* buffer = nullptr;
  size_t capacity = 0;
  int64_t number = 0;
  bool torn = false;
  Status status;
  for (ssize_t n = 0; status && !torn && (n = ::getline(&buffer, &capacity, file)) > 0;) {
    std::string_view line(buffer, static_cast<size_t>(n));
    // TVM writes no newline after its last line, so an unfinished line is torn only if it is not JSON.
    bool whole = line.back() == '\n';
    if (whole) line.remove_suffix(1);
    if (!whole && !Json::accept(line))
      torn = true;
    else if (!line.empty())
      status = f(++number, line);
    else
      ++number;
  }
  std::free(buffer);
  std::fclose(file);
  if (!status) return refuse(status.error());
  return torn;
}

class Importer {
 public:
  Importer(Database& store, std::string rejects) : store_(store), rejects_path_(std::move(rejects)) {}

  Result<TvmImport> run(const std::string& workloads, const std::string& records) {
    TW_TRY(bool torn,
           for_each_line(workloads, [&](int64_t n, std::string_view line) { return workload(workloads, n, line); }));
    TW_TRY_VOID(flush());
    TW_TRY(bool torn_record,
           for_each_line(records, [&](int64_t n, std::string_view line) { return record(records, n, line); }));
    TW_TRY_VOID(flush());
    report_.torn = torn || torn_record;
    return report_;
  }

 private:
  Status workload(const std::string& file, int64_t number, std::string_view line) {
    auto parts = Json::accept(line) ? elements(line) : std::nullopt;
    WorkloadEntry w;
    if (!parts || parts->size() != 2 || (*parts)[0].front() != '"' || (*parts)[1].front() != '"') {
      keys_.push_back(std::nullopt);  // keeps its number: later records count it
      return reject(file, number, line, "expected [hash text, graph text]");
    }
    w.program = line;
    w.ir_version = 0;
    w.key = workload_key(line, 0);
    w.name = fmt::format("tvm {}", (*parts)[0].substr(1, (*parts)[0].size() - 2));
    if (campaign_.name.empty()) {
      campaign_.id.value = hash_text(line);
      campaign_.name = "imported from TVM";
      campaign_.state = "imported";
      batch_.campaigns.push_back(campaign_);
    }
    keys_.push_back(w.key);
    batch_.workloads.push_back(std::move(w));
    ++report_.workloads;
    return batch_.workloads.size() < 500 ? Status{} : flush();
  }

  Status record(const std::string& file, int64_t number, std::string_view line) {
    auto parsed = read_record(line, static_cast<int64_t>(keys_.size()));
    if (!parsed) return reject(file, number, line, parsed.error().diagnostic().message);
    auto key = keys_[static_cast<size_t>(parsed->workload)];
    if (!key) return reject(file, number, line, fmt::format("workload {} was rejected", parsed->workload));
    Measurement m;
    m.campaign = campaign_.id;
    // The line's number gives the order, its hash tells files apart that begin alike; importing again gives the same.
    m.seq = number << 36 | static_cast<int64_t>(hash_text(line) & ((int64_t{1} << 36) - 1));
    m.workload = *key;
    m.target = target(parsed->target);
    m.trace = parsed->trace;
    m.source = line;
    JobResult& r = m.result;
    r.trace_key = text_key(m.trace);
    r.stage = Stage::imported;
    r.settled = true;
    if (!parsed->failed) {
      std::vector<double>& seconds = parsed->seconds;
      std::sort(seconds.begin(), seconds.end());
      r.status = TrialStatus::ok;
      r.n = static_cast<int64_t>(seconds.size());
      r.median_ns = 1e9 * (seconds[(seconds.size() - 1) / 2] + seconds[seconds.size() / 2]) / 2;
      r.ci_lo_ns = 1e9 * seconds.front();
      r.ci_hi_ns = 1e9 * seconds.back();
    }
    report_.failed += parsed->failed;
    ++report_.records;
    batch_.measurements.push_back(std::move(m));
    return batch_.measurements.size() < 1000 ? Status{} : flush();
  }

  Key128 target(std::string_view text) {
    auto it = targets_.find(text);
    if (it != targets_.end()) return it->second;
    Key128 key = text_key(text);
    batch_.targets.push_back({key, key, "tvm", std::string(text)});
    return targets_.emplace(text, key).first->second;
  }

  Status reject(const std::string& file, int64_t number, std::string_view line, const std::string& reason) {
    ++report_.rejected;
    if (!rejects_) {
      TW_TRY(AppendFile out, AppendFile::open(rejects_path_, 0));
      rejects_.emplace(std::move(out));
    }
    Json json = {{"file", file}, {"line", number}, {"reason", reason}, {"text", line}};
    return rejects_->append(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  }

  Status flush() {
    TW_TRY(int64_t rows, store_.commit(batch_));
    report_.inserted += rows;
    batch_ = {};
    return {};
  }

  Database& store_;
  std::string rejects_path_;
  std::optional<AppendFile> rejects_;
  TvmImport report_;
  CampaignEntry campaign_;
  std::vector<std::optional<Key128>> keys_;  ///< by workload number
  std::map<std::string, Key128, std::less<>> targets_;
  Batch batch_;
};

/// A file that replaces its predecessor only when it is whole.
class ReplacedFile {
 public:
  static Result<ReplacedFile> create(const std::string& path) {
    TW_TRY(AppendFile file, AppendFile::open(path + ".tmp", 0));
    return ReplacedFile(path, std::move(file));
  }
  Status line(std::string_view text) {
    buffer_.append(text);
    buffer_ += '\n';
    return buffer_.size() < (1 << 20) ? Status{} : flush();
  }
  Status finish() {
    TW_TRY_VOID(flush());
    TW_TRY_VOID(file_.sync_written());
    std::error_code error;
    std::filesystem::rename(path_ + ".tmp", path_, error);
    if (error) return refuse(file_write_failed, fmt::format("cannot replace {}: {}", path_, error.message()));
    return sync_directory(std::filesystem::path(path_).parent_path());
  }

 private:
  ReplacedFile(std::string path, AppendFile file) : path_(std::move(path)), file_(std::move(file)) {}
  Status flush() {
    TW_TRY_VOID(file_.append(buffer_));
    buffer_.clear();
    return {};
  }
  std::string path_, buffer_;
  AppendFile file_;
};

/// The line with another workload number in front.
std::string renumbered(const std::string& line, int64_t number) {
  size_t begin = line.find_first_not_of(" \t", line.find('[') + 1), end = line.find_first_not_of("0123456789", begin);
  return fmt::format("{}{}{}", line.substr(0, begin), number, line.substr(end));
}

}  // namespace

Result<TvmImport> import_tvm(Database& store, const std::string& workloads, const std::string& records,
                             const std::string& rejects) {
  return Importer(store, rejects).run(workloads, records);
}

Result<TvmExport> export_tvm(Database& store, const std::string& directory, bool best_only) {
  TvmExport out;
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return refuse(file_cannot_open, fmt::format("cannot create {}: {}", directory, error.message()));
  TW_TRY(ReplacedFile workload_file, ReplacedFile::create(directory + "/database_workload.json"));
  TW_TRY(ReplacedFile record_file, ReplacedFile::create(directory + "/database_tuning_record.json"));
  std::map<Key128, int64_t> numbers;
  TW_TRY(auto workloads, store.workloads());
  for (const WorkloadEntry& w : workloads) {
    if (w.ir_version != 0) continue;
    numbers[w.key] = out.workloads++;
    TW_TRY_VOID(workload_file.line(w.program));
  }
  struct Least {
    double ns;
    std::string line;
  };
  std::map<int64_t, Least> best;  // by workload number
  TW_TRY_VOID(store.for_each_measurement(nullptr, [&](const Measurement& m) -> Status {
    auto number = numbers.find(m.workload);
    if (m.source.empty() || number == numbers.end()) return ++out.not_expressed, Status{};
    std::string line = renumbered(m.source, number->second);
    if (best_only) {
      if (m.result.status != TrialStatus::ok) return {};
      auto [it, fresh] = best.try_emplace(number->second, Least{m.result.median_ns, line});
      if (!fresh && m.result.median_ns < it->second.ns) it->second = {m.result.median_ns, line};
      return {};
    }
    ++out.records;
    return record_file.line(line);
  }));
  for (const auto& [number, entry] : best) {
    ++out.records;
    TW_TRY_VOID(record_file.line(entry.line));
  }
  TW_TRY_VOID(workload_file.finish());
  TW_TRY_VOID(record_file.finish());
  return out;
}

}  // namespace tilewright
