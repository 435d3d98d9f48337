#include "tools/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "ir/verify.h"
#include "schedule/target.h"
#include "support/append_file.h"
#include "support/json.h"
#include "workloads/operator.h"

namespace tilewright::tools {

bool names_operator(const std::string& word) {
  const size_t colon = word.find(':');
  if (Registry<Operator>::instance().find(word.substr(0, colon))) return true;
  std::error_code ec;
  return colon != std::string::npos && word.find('=', colon) != std::string::npos && !std::filesystem::exists(word, ec);
}

Result<std::string> read_file(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file) return refuse(file_cannot_open, fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  std::string out;
  char buffer[1 << 16];
  size_t n;
  while ((n = std::fread(buffer, 1, sizeof buffer, file)) > 0) out.append(buffer, n);
  bool failed = std::ferror(file);
  int error = errno;
  if (file != stdin) std::fclose(file);
  if (failed) return refuse(file_cannot_open, fmt::format("cannot read {}: {}", path, std::strerror(error)));
  return out;
}

std::optional<ParsedProgram> read_program(Tool& tool, const std::string& path, int& exit, Verified verified,
                                          const Extents& extents) {
  auto text = read_file(path);
  if (!text) {
    exit = tool.fail(text.error(), exit_usage);
    return std::nullopt;
  }
  auto parsed = parse_program(*text, path == "-" ? "<stdin>" : path, extents);
  if (!parsed) {
    exit = tool.fail(parsed.error(), exit_usage);
    return std::nullopt;
  }
  tool.diagnose(parsed->warnings);
  if (verified == Verified::yes)
    if (std::vector<Diagnostic> errors = verify(*parsed->program, &parsed->spans); !errors.empty()) {
      exit = tool.fail(errors, exit_no);
      return std::nullopt;
    }
  return std::move(*parsed);
}

namespace {

bool is_json(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '[' || text[first] == '{');
}

}  // namespace

std::string trace_line(const Trace& trace, size_t instruction) {
  constexpr size_t head = 2;  // a comment, and the line with "def"
  std::string line = source_line(trace_to_python(trace), static_cast<int>(instruction + head) + 1);
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

namespace {

/// The bare calls or the trace.
Applied apply_text(const std::string& text, const std::string& file, const ProgramRef& program, uint64_t seed,
                   const ScheduleOptions& options) {
  if (!is_json(text)) {
    Applied out{Schedule(program, seed, options), {}, std::nullopt};
    if (auto ran = run_schedule_text(text, file, out.schedule); !ran) {
      out.errors = ran.error();
      out.refused_at = out.schedule.trace().instructions.size();
    }
    return out;
  }
  auto trace = parse_trace(text, file);
  if (!trace) return {Schedule(program, seed, options), trace.error(), std::nullopt};
  Replayed replayed = replay(*trace, program, Rng(seed), {options});
  Applied out{std::move(replayed.schedule), {}, std::nullopt};
  for (const ReplayRefusal& r : replayed.refusals) {
    Diagnostic d = r.refusal.diagnostic();
    d.notes.insert(
        d.notes.begin(),
        {fmt::format("{}: instruction {} is {}", file, r.instruction, trace_line(*trace, r.instruction)), {}});
    out.errors.push_back(std::move(d));
    out.refused_at = r.instruction;
  }
  return out;
}

}  // namespace

Applied apply_trace_text(Tool& tool, const std::string& text, const std::string& file, const ProgramRef& program,
                         uint64_t seed, const ScheduleOptions& options) {
  Applied out = apply_text(text, file, program, seed, options);
  if (!out.schedule.repairs().empty()) tool.field("repairs", Json(out.schedule.repairs()));
  for (const std::string& repair : out.schedule.repairs()) tool.say(fmt::format("note: {}: {}\n", file, repair));
  return out;
}

bool use_target(Tool& tool, ScheduleOptions& options) {
  if (!tool.globals().target_given) return true;
  auto target = parse_target(tool.globals().target);
  if (!target) return tool.fail(target.error(), exit_usage), false;
  options.target = target->text();
  return true;
}

Result<lowering::LowerOptions> lower_options(const Globals& globals, std::map<std::string, std::string> given) {
  for (const auto& [key, value] : globals.settings)
    if (key.starts_with("lower.")) given[key.substr(6)] = value;
  return lowering::LowerOptions::parse(given);
}

std::optional<Extents> read_extents(Tool& tool, const std::vector<std::string>& arguments) {
  Extents out;
  for (const std::string& text : arguments) {
    const size_t equal = text.find('=');
    int64_t value = 0;
    if (equal != std::string::npos) {
      const char *first = text.data() + equal + 1, *last = text.data() + text.size();
      if (auto [end, error] = std::from_chars(first, last, value); error != std::errc() || end != last) value = 0;
    }
    if (equal == 0 || value < 1) {
      tool.usage(fmt::format("--arg: expected NAME=N with N of at least 1, found \"{}\"", text));
      return std::nullopt;
    }
    out[text.substr(0, equal)] = value;
  }
  return out;
}

std::optional<uint64_t> read_number(Tool& tool, const std::string& option, const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  tool.usage(fmt::format("{}: expected a whole number, found \"{}\"", option, text));
  return std::nullopt;
}

}  // namespace tilewright::tools
