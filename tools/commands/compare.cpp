// tilewright compare: is B faster than A? One verdict per task, with the interval behind it (docs/concepts/database.md
// names the rules).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "support/json.h"
#include "tools/command.h"
#include "tools/database.h"
#include "tools/inputs.h"
#include "tools/objects.h"
#include "tools/progress.h"
#include "tools/runner.h"

namespace tilewright::tools {
namespace {

/// Times of two devices are never compared more finely than this.
constexpr double across_devices = 0.03;

enum class Verdict { faster, slower, same, unsure, missing };
constexpr const char* verdict_names[] = {"faster", "slower", "same", "unsure", "missing"};

struct Compared {
  std::string task;
  Verdict verdict = Verdict::missing;
  double ratio = 0, lo = 0, hi = 0;  ///< time of B over time of A
  std::string evidence;              ///< "paired", "recorded", or empty
  std::string remark;
  const char* name() const { return verdict_names[static_cast<int>(verdict)]; }
};

using Side = std::vector<Subject>;

/// The verdict of a ratio interval under threshold t.
Verdict judge(double lo, double hi, double t) {
  if (hi < 1 - t) return Verdict::faster;
  if (lo > 1 + t) return Verdict::slower;
  if (lo >= 1 - t && hi <= 1 + t) return Verdict::same;
  return Verdict::unsure;
}

bool is_database(const std::string& word) {
  std::error_code ec;
  return word.starts_with("sqlite:") || word.starts_with("postgresql:") ||
         (std::filesystem::is_regular_file(word, ec) && !word.ends_with(".json"));
}

Result<Side> read_side(Tool& tool, const std::string& word) {
  if (is_database(word)) {
    TW_TRY(auto database, open_database(database_url(word), {.create = false, .write = false}));
    return best_of(*database);
  }
  std::error_code ec;
  if (word.ends_with(".json") && std::filesystem::is_regular_file(word, ec)) {
    TW_TRY(std::string text, read_file(word));
    TW_TRY(Lock lock, parse_lock(text, word));
    Side side;
    for (const LockedKernel& kernel : lock.kernels) side.push_back(subject_of(kernel));
    return side;
  }
  if (names_record(word) || word.find(':') != std::string::npos) {
    TW_TRY(Subject subject, find_subject(tool, word));
    return Side{std::move(subject)};
  }
  TW_TRY(std::string directory, find_run(word));
  TW_TRY(RunState state, replay_run(directory));
  std::vector<Diagnostic> without;
  TW_TRY(Side side, winners_of(directory, state, without));
  tool.diagnose(without);
  return side;
}

/// Fields of the targets that differ, as "toolchain X and Y".
std::string differing_fields(const Subject& a, const Subject& b) {
  std::string out;
  auto add = [&](const std::string& name, const std::string& x, const std::string& y) {
    if (x != y) out += fmt::format("{}{} \"{}\" and \"{}\"", out.empty() ? "" : ", ", name, x, y);
  };
  for (const auto& [name, value] : a.target) {
    auto it = b.target.find(name);
    add(name, value, it == b.target.end() ? "" : it->second);
  }
  for (const auto& [name, value] : b.target)
    if (!a.target.contains(name)) add(name, "", value);
  add("mode", to_string(a.space.mode), to_string(b.space.mode));
  return out;
}

Compared compare_recorded(const Subject& a, const Subject& b, double t) {
  Compared c{a.task};
  if (!a.valid() || !b.valid()) {
    c.remark = fmt::format("{} has no verified time", a.valid() ? b.name : a.name);
    return c;
  }
  c.evidence = "recorded";
  if (!a.device.empty() && !b.device.empty() && a.device != b.device) t = std::max(t, across_devices);
  c.ratio = b.median_ns / a.median_ns;
  c.lo = b.ci_lo_ns / a.ci_hi_ns;
  c.hi = b.ci_hi_ns / a.ci_lo_ns;
  c.verdict = judge(c.lo, c.hi, t);
  // A difference in time that is none in cycles is one of clocks, not of code.
  if (a.clock_mhz > 0 && b.clock_mhz > 0 && (c.verdict == Verdict::faster || c.verdict == Verdict::slower)) {
    double clocks = b.clock_mhz / a.clock_mhz;
    if (judge(c.lo * clocks, c.hi * clocks, t) != c.verdict) {
      c.verdict = Verdict::unsure;
      c.remark =
          fmt::format("the clocks differ ({:.0f} and {:.0f} MHz); --remeasure settles it", a.clock_mhz, b.clock_mhz);
      return c;
    }
  }
  if (c.verdict == Verdict::unsure) c.remark = "--remeasure settles it: paired samples on one device";
  return c;
}

/// Both traces in one interleaved comparison on the device here.
class Paired {
 public:
  explicit Paired(std::string runner) : runner_(std::move(runner)) {}

  Result<Compared> compare(const Subject& a, const Subject& b, double t) {
    if (!measurer_) {
      if (runner_.empty()) runner_ = a.runner;
      TW_TRY(measurer_, open_runner(runner_, 0));
    }
    TW_TRY(Target target, parse_target(a.target.at("target")));
    auto threads = a.target.find("threads");
    measure::Job job;
    job.id.trial = next_++;
    job.program = a.program;
    job.target = target.text();
    job.contenders = {{a.trace, a.trace_key}, {b.trace, b.trace_key}};
    job.build.options = lower_options_of(a.target);
    job.run.mode = a.space.mode;
    job.run.stage = Stage::final;
    job.run.threads = threads == a.target.end() ? std::max(1, target.cores) : std::stoi(threads->second);
    job.run.input_seed = a.input_seed;
    job.alone = true;
    job.build.wall_ms *= 2, job.build.cpu_ms *= 2;
    measure::Outcome outcome = run_job(*measurer_, job);
    Compared c{a.task};
    c.evidence = "paired";
    c.verdict = Verdict::unsure;
    if (!outcome.ok() || outcome.paired.empty()) {
      c.remark = fmt::format("the comparison ended with {} {}", to_string(outcome.status), outcome.detail);
      return c;
    }
    const measure::Paired& pair = outcome.paired.front();
    c.ratio = pair.ratio, c.lo = pair.lo, c.hi = pair.hi;
    c.verdict = judge(c.lo, c.hi, t);
    if (c.verdict == Verdict::unsure) c.remark = "on a quieter machine the interval gets narrower: tilewright doctor";
    return c;
  }

 private:
  std::string runner_;
  std::unique_ptr<measure::Measurer> measurer_;
  uint32_t next_ = 0;
};

void print_table(Tool& tool, const std::vector<Compared>& all, bool markdown) {
  size_t width = 4;
  for (const Compared& c : all) width = std::max(width, c.task.size());
  if (markdown) tool.print("| task | verdict | B / A | 95 % interval | evidence |\n|---|---|---|---|---|\n");
  for (const Compared& c : all) {
    std::string ratio = c.evidence.empty() ? "-" : fmt::format("{:.3f}", c.ratio);
    std::string interval = c.evidence.empty() ? "-" : fmt::format("[{:.3f}, {:.3f}]", c.lo, c.hi);
    std::string evidence = c.evidence + (c.remark.empty() ? "" : (c.evidence.empty() ? "" : "; ") + c.remark);
    tool.print(markdown ? fmt::format("| {} | {} | {} | {} | {} |\n", c.task, c.name(), ratio, interval, evidence)
                        : fmt::format(" {:<{}}  {:<7}  {:>6}  {:<16}  {}\n", c.task, width, c.name(), ratio, interval,
                                      evidence));
  }
}

std::optional<double> read_threshold(const std::string& text) {
  bool percent = text.ends_with("%");
  std::string digits = percent ? text.substr(0, text.size() - 1) : text;
  char* end = nullptr;
  double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || *end != '\0' || !(value >= 0)) return std::nullopt;
  value = percent ? value / 100 : value;
  return value < 1 ? std::optional(value) : std::nullopt;
}

/// The subject of the other side for the same workload: of the same target and mode if there is one.
const Subject* counterpart(const Subject& a, const Side& side) {
  const Subject* same_workload = nullptr;
  for (const Subject& b : side) {
    if (b.space.workload != a.space.workload) continue;
    if (b.space.target == a.space.target && b.space.mode == a.space.mode) return &b;
    if (!same_workload) same_workload = &b;
  }
  return same_workload;
}

int run(Tool& tool, const Arguments& arguments) {
  auto threshold = read_threshold(arguments.get("--threshold", "1%"));
  if (!threshold)
    return tool.usage(
        fmt::format("--threshold: expected a share such as 1%, found \"{}\"", arguments.get("--threshold")));
  std::vector<std::string> strict = arguments.all("--fail-on");
  for (const std::string& word : strict)
    if (word != "unsure" && word != "missing")
      return tool.usage(fmt::format("--fail-on: expected unsure or missing, found \"{}\"", word));
  auto a = read_side(tool, arguments.get("A")), b = read_side(tool, arguments.get("B"));
  for (const auto* side : {&a, &b})
    if (!*side)
      return tool.fail(side->error(), side->error().is(lock_invalid) ? exit_usage : exit_of_name(side->error()));

  Paired paired(arguments.get("--runner"));
  std::vector<Compared> all;
  for (const Subject& x : *a) {
    const Subject* y = counterpart(x, *b);
    if (!y) {
      all.push_back({x.task});
      all.back().remark = "only in A";
      continue;
    }
    std::string fields = differing_fields(x, *y);
    if (arguments.has("--remeasure")) {
      auto compared = paired.compare(x, *y, *threshold);
      if (!compared) return tool.fail(compared.error(), exit_environment);
      all.push_back(std::move(*compared));
    } else if (!fields.empty()) {
      all.push_back({x.task});
      all.back().remark = "measured under different conditions: " + fields;
    } else {
      all.push_back(compare_recorded(x, *y, *threshold));
    }
  }
  for (const Subject& y : *b)
    if (!counterpart(y, *a)) {
      all.push_back({y.task});
      all.back().remark = "only in B";
    }
  print_table(tool, all, arguments.has("--markdown"));
  Json list = Json::array();
  bool no = false;
  for (const Compared& c : all) {
    Json row = {{"task", c.task}, {"verdict", c.name()},    {"ratio", nullptr},  {"lo", nullptr},
                {"hi", nullptr},  {"evidence", c.evidence}, {"remark", c.remark}};
    if (!c.evidence.empty()) row["ratio"] = c.ratio, row["lo"] = c.lo, row["hi"] = c.hi;
    list.push_back(std::move(row));
    no |= c.verdict == Verdict::slower || std::find(strict.begin(), strict.end(), c.name()) != strict.end();
  }
  tool.field("tasks", std::move(list));
  return no ? exit_no : exit_yes;
}

const RegisterCommand entry{
    "compare",
    "whether B is faster than A, task by task",
    {{{"A", "a run, a trial RUN:N, a record r-..., a lock file, or a database"}, {"B", "likewise"}},
     {{"--threshold", "T", "a smaller difference is none (default 1%)"},
      {"--remeasure", "", "measure both here, interleaved"},
      {"--runner", "WHERE", "with --remeasure: local, fake or fake:FILE (default: as recorded)"},
      {"--markdown", "", "a table for a pull request"},
      {"--fail-on", "VERDICT", "exit 1 on unsure or missing too; may be repeated", 1, true}},
     run}};

}  // namespace
}  // namespace tilewright::tools
