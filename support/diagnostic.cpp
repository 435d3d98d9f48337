#include "support/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "support/printable.h"

namespace tilewright {

namespace {

constexpr size_t kMostColumns = 120;  ///< of a source line; the rest is cut around the caret

/// One character as a terminal may get it. Control bytes and broken UTF-8 would move its cursor or worse: \x1b.
std::vector<std::string> characters(std::string_view text) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    bool whole = n > 0 && i + n <= text.size();
    for (size_t k = 1; whole && k < n; ++k) whole = (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
    // U+0080 to U+009F are control characters too.
    const bool control =
        c < 0x20 || c == 0x7f || (c == 0xc2 && whole && static_cast<unsigned char>(text[i + 1]) < 0xa0);
    if (c == '\t') {
      out.emplace_back(" ");
      n = 1;
    } else if (!whole || control) {
      n = whole ? n : 1;
      std::string shown;
      for (size_t k = 0; k < n; ++k) shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
      out.push_back(std::move(shown));
    } else {
      out.emplace_back(text.substr(i, n));
    }
    i += n;
  }
  return out;
}

size_t columns(const std::string& character) { return character[0] == '\\' ? character.size() : 1; }

void render_place(std::string& out, const Span& span) {
  if (span.line == 0) return;
  out += fmt::format("  {}:{}:{}\n", printable(span.file), span.line, span.column);
  const std::vector<std::string> line = characters(span.text);
  const size_t column = static_cast<size_t>(std::max(span.column, 1)) - 1;
  // Leading indentation is cut so that long lines keep their interesting part on the screen.
  size_t begin = 0;
  while (begin < line.size() && begin < column && line[begin] == " ") ++begin;
  if (begin == line.size()) return;
  if (line.size() - begin > kMostColumns && column > begin + kMostColumns / 2) begin = column - kMostColumns / 2;
  begin = std::min(begin, line.size());
  const size_t end = std::min(line.size(), begin + kMostColumns);
  std::string text = begin > 0 && line[begin - 1] != " " ? "..." : "", caret(text.size(), ' ');
  const size_t caret_end = static_cast<size_t>(std::max(span.end_column - 1, span.column));
  for (size_t i = begin; i < end; ++i) {
    text += line[i];
    if (i < caret_end) caret.append(columns(line[i]), i < column ? ' ' : '^');
  }
  if (end < line.size()) text += "...";
  if (caret.find('^') == std::string::npos) caret.append(std::max(column, end) - end, ' ').append("^");
  out += fmt::format("    {}\n    {}\n", text, caret);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  for (size_t line = 0; line <= text.size();) {
    const size_t end = std::min(text.find('\n', line), text.size());
    for (const std::string& c : characters(text.substr(line, end - line))) out += c;
    if (end < text.size()) out += '\n';
    line = end + 1;
  }
  return out;
}

std::string render_text(const Diagnostic& d, bool color) {
  const char* red = color ? (d.warning ? "\x1b[35;1m" : "\x1b[31;1m") : "";
  const char* bold = color ? "\x1b[1m" : "";
  const char* off = color ? "\x1b[0m" : "";
  std::string out =
      fmt::format("{}{}:{} {}{}{}", red, d.warning ? "warning" : "error", off, bold, printable(d.message), off);
  if (!d.code.empty()) out += fmt::format("  [{}]", d.code);
  out += '\n';
  render_place(out, d.span);
  for (const Note& note : d.notes) {
    out += fmt::format("{}note:{} {}\n", bold, off, printable(note.message));
    render_place(out, note.span);
  }
  if (!d.help.empty()) out += fmt::format("{}help:{} {}\n", bold, off, printable(d.help));
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
