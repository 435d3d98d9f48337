#include "support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace tilewright {

namespace {

void render_place(std::string& out, const Span& span) {
  if (span.line == 0) return;
  fmt::format_to(std::back_inserter(out), "  {}:{}:{}\n", span.file, span.line, span.column);
  if (span.text.empty()) return;
  // Leading indentation is cut so that long lines keep their interesting part on the screen.
  size_t indent = span.text.find_first_not_of(' ');
  if (indent == std::string::npos) return;
  indent = std::min<size_t>(indent, span.column - 1);
  int width = std::max(1, span.end_column - span.column);
  fmt::format_to(std::back_inserter(out), "    {}\n    {:{}}{:^>{}}\n", span.text.substr(indent), "",
                 span.column - 1 - static_cast<int>(indent), "^", width);
}

}  // namespace

std::string render_text(const Diagnostic& d, bool color) {
  const char* red = color ? (d.warning ? "\x1b[35;1m" : "\x1b[31;1m") : "";
  const char* bold = color ? "\x1b[1m" : "";
  const char* off = color ? "\x1b[0m" : "";
  std::string out = fmt::format("{}{}:{} {}{}{}", red, d.warning ? "warning" : "error", off, bold, d.message, off);
  if (!d.code.empty()) out += fmt::format("  [{}]", d.code);
  out += '\n';
  render_place(out, d.span);
  for (const Note& note : d.notes) {
    out += fmt::format("{}note:{} {}\n", bold, off, note.message);
    render_place(out, note.span);
  }
  if (!d.help.empty()) out += fmt::format("{}help:{} {}\n", bold, off, d.help);
  return out;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= name.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        size_t substitute = diagonal + (name[i - 1] != candidate[j - 1]);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

std::string source_line(std::string_view text, int line) {
  size_t begin = 0;
  for (int i = 1; i < line; ++i) {
    begin = text.find('\n', begin);
    if (begin == std::string_view::npos) return {};
    ++begin;
  }
  return std::string(text.substr(begin, text.find('\n', begin) - begin));
}

}  // namespace tilewright
