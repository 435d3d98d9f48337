// Diagnostic: an error, warning or refusal as data. The library returns it; tools/ renders it (plain, colour, JSON).
// Text rules: lower case, no final period, expected *and* actual; at most one help, which works when pasted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// A range of one source text. Lines and columns count from 1, in characters; `end_column` is exclusive.
struct Span {
  std::string file;
  int line = 0;  ///< 0: no place known
  int column = 0;
  int end_column = 0;
  std::string text;  ///< the source line, for the caret display
};

struct Note {
  std::string message;
  Span span;
};

struct Diagnostic {
  std::string code;  ///< kebab word, e.g. "factors-do-not-cover-extent"
  std::string message;
  Span span;
  std::vector<Note> notes;
  std::string help;
  bool warning = false;
};

/// "error: message  [code]", place, source line, caret, notes, help. Ends with a newline.
std::string render_text(const Diagnostic&, bool color = false);

/// The candidate nearest to `name` (edit distance at most a third of its length), or "".
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// Line `line` (from 1) of `text`, without its newline.
std::string source_line(std::string_view text, int line);

}  // namespace tilewright
