#include "ir/source.h"

#include <algorithm>
#include <limits>

#include "support/check.h"

namespace tilewright {

namespace {
// Characters of UTF-8 text: bytes that do not continue a sequence.
int count_characters(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}
}  // namespace

SourceText::SourceText(std::string text, std::string file) : text_(std::move(text)), file_(std::move(file)) {
  TW_CHECK(text_.size() < std::numeric_limits<uint32_t>::max(), "a source text of {} bytes", text_.size());
  line_starts_.push_back(0);
  for (size_t at = text_.find('\n'); at != std::string::npos; at = text_.find('\n', at + 1))
    line_starts_.push_back(static_cast<uint32_t>(at + 1));
}

int SourceText::line(uint32_t offset) const {
  return static_cast<int>(std::ranges::upper_bound(line_starts_, offset) - line_starts_.begin());
}

Span SourceText::span(TextRange r) const {
  Span out;
  out.file = file_;
  out.line = line(r.begin);
  uint32_t start = line_starts_[static_cast<size_t>(out.line) - 1];
  std::string_view whole = text().substr(start);
  whole = whole.substr(0, whole.find('\n'));
  if (whole.ends_with('\r')) whole.remove_suffix(1);
  uint32_t line_end = start + static_cast<uint32_t>(whole.size());
  out.text = std::string(whole);
  out.column = 1 + count_characters(text().substr(start, std::min(r.begin, line_end) - start));
  uint32_t end = std::min(r.end, line_end);
  out.end_column =
      out.column + (end > r.begin ? std::max(1, count_characters(text().substr(r.begin, end - r.begin))) : 1);
  return out;
}

Diagnostic& ErrorList::add(const RefusalCode& code, TextRange where, std::string message) {
  Diagnostic& d = full() ? scratch_ : errors_.emplace_back();
  d = {};
  d.code = code.text;
  d.message = std::move(message);
  d.span = source_->span(where);
  return d;
}

void ErrorList::append(std::vector<Diagnostic> errors) {
  for (Diagnostic& d : errors) errors_.push_back(std::move(d));
}

std::vector<Diagnostic> ErrorList::sorted() const {
  std::vector<Diagnostic> out = errors_;
  std::ranges::stable_sort(out, [](const Diagnostic& a, const Diagnostic& b) {
    return std::pair(a.span.line, a.span.column) < std::pair(b.span.line, b.span.column);
  });
  if (out.size() > kLimit) out.resize(kLimit);
  return out;
}

}  // namespace tilewright
