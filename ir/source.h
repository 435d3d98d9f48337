// Source text and places in it: what the readers (programs, traces, schedule files) share to point at what they read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "support/diagnostic.h"
#include "support/refusal.h"

namespace tilewright {

/// Byte offsets [begin, end) into a source text.
struct TextRange {
  uint32_t begin = 0, end = 0;
  bool operator==(const TextRange&) const = default;
};

/// One file's text, shared by everything that points into it.
class SourceText {
 public:
  SourceText(std::string text, std::string file);
  std::string_view text() const { return text_; }
  const std::string& file() const { return file_; }
  std::string_view slice(TextRange r) const { return text().substr(r.begin, r.end - r.begin); }
  /// Line from 1 of a byte offset.
  int line(uint32_t offset) const;
  /// The range as line and columns in characters; a range over several lines is cut at the end of the first.
  Span span(TextRange) const;

 private:
  std::string text_, file_;
  std::vector<uint32_t> line_starts_;
};
using SourceRef = std::shared_ptr<const SourceText>;

/// Collects the errors of one reader. After kLimit of them nothing more is recorded: later ones mostly follow from
/// earlier ones.
class ErrorList {
 public:
  static constexpr size_t kLimit = 20;
  explicit ErrorList(SourceRef source) : source_(std::move(source)) {}
  const SourceText& source() const { return *source_; }
  /// Records an error and returns it for notes and help (a scratch one beyond the limit).
  Diagnostic& add(const RefusalCode& code, TextRange where, std::string message);
  Note note(std::string message, TextRange where) const { return {std::move(message), source_->span(where)}; }
  bool empty() const { return errors_.empty(); }
  bool full() const { return errors_.size() >= kLimit; }
  /// All errors in source order, at most kLimit.
  std::vector<Diagnostic> sorted() const;
  void append(std::vector<Diagnostic> errors);

 private:
  SourceRef source_;
  std::vector<Diagnostic> errors_;
  Diagnostic scratch_;
};

/// Where nodes of a program came from: keyed by the address of a statement, function, buffer or expression that the
/// program holds alive. Rewritten nodes have no entry.
class SourceMap {
 public:
  SourceMap() = default;
  explicit SourceMap(SourceRef source) : source_(std::move(source)) {}
  void add(const void* node, TextRange where) { ranges_[node] = where; }
  /// Line 0 when the node is not known.
  Span find(const void* node) const {
    auto it = ranges_.find(node);
    return it == ranges_.end() ? Span{} : source_->span(it->second);
  }
  const SourceRef& source() const { return source_; }
  size_t size() const { return ranges_.size(); }

 private:
  SourceRef source_;
  std::unordered_map<const void*, TextRange> ranges_;
};

}  // namespace tilewright
