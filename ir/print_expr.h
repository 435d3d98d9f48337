// The printer of expressions and of names; ir/print.cpp adds statements. Private to ir/print*.cpp.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "ir/print.h"

namespace tilewright::text {

/// Names of one printed text: legal identifiers, unique among those that are visible together.
class Names {
 public:
  Names();
  /// A new name for a definition: the hint, made legal; a clash gets `_1`.
  const std::string& define(uint64_t id, std::string_view hint);
  const std::string* find(uint64_t id) const;
  void set(uint64_t id, std::string text) {
    names_[id] = std::move(text);
  }  ///< a spelling that takes no name: `A.data`
  size_t mark() const { return live_.size(); }
  void release(size_t mark);  ///< names defined since may be used again

 private:
  std::unordered_map<uint64_t, std::string> names_;
  std::unordered_set<std::string> used_;
  std::vector<std::string> live_;
};

class ExprPrinter {
 public:
  explicit ExprPrinter(PrintOptions options) : options_(options) {}
  std::string take() { return std::move(out_); }

  void expr(const Expr& e, int parent = 0);
  void region(const BufferRegion&);
  void attr(const Attr&);
  void dict(const AttrDict&);

 protected:
  const std::string& name_of(const VarNode*);
  const std::string& name_of(const Buffer&);
  void define(const Buffer&);
  void quoted(std::string_view);
  void constant(const IntImm&, bool typed);
  void constant(const FloatImm&);
  void list(const std::vector<Expr>&);
  void binary(const Binary&, int parent);
  void call(const Call&);
  void load(const Load&);
  void indices(const std::vector<Expr>&);
  void tuple(const std::vector<Expr>&);
  /// `begin:end` or `begin, end` of a range.
  void end_of(const Range&);
  void text(std::string_view s) { out_ += s; }
  void place(const void* node, size_t begin) {
    if (places_)
      places_->emplace_back(node, TextRange{static_cast<uint32_t>(begin), static_cast<uint32_t>(out_.size())});
  }

  PrintOptions options_;
  std::string out_;
  Names names_;
  std::vector<std::pair<const void*, TextRange>>* places_ = nullptr;
};

/// The result type that a call has when its text states none; the reader uses the same rule.
DType default_result(const Operation&, const std::vector<Expr>& args);

}  // namespace tilewright::text
