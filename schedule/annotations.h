// Annotation keys with a fixed meaning: where they may stand and which values they take (schedule-language.md §5.4).
// Unknown keys pass verbatim, except in our own name space (tilewright.*), where a misspelt key would silently do
// nothing.
#pragma once

#include <functional>
#include <optional>

#include "schedule/state.h"
#include "support/refusal.h"

namespace tilewright {

TW_REFUSAL_CODE(annotation_value_invalid, "annotation-value-invalid", "the value does not fit the annotation's key");
TW_REFUSAL_CODE(
    annotation_misplaced, "annotation-misplaced",
    "the annotation stands where it has no meaning: on a loop instead of a block, or on one of another kind");
TW_REFUSAL_CODE(annotation_unknown, "annotation-unknown", "no annotation tilewright.* has that name");

enum class AnnotationPlace : uint8_t { block, loop, either };

/// Where an annotation is about to stand: one of block and loop is set.
struct AnnotationSite {
  const State& state;
  const Block* block = nullptr;
  const For* loop = nullptr;
};
/// What is wrong with the site or the value there; nothing: it fits.
using AnnotationCheck = std::function<std::optional<std::string>(const AnnotationSite&, const Attr& value)>;

struct AnnotationKey {
  const char* key;
  AnnotationPlace place;
  std::function<bool(const Attr&)> accepts;
  const char* values;  ///< legal values in words, for the message
  const char* doc;
  AnnotationCheck site = {};   ///< beyond `place`; empty: any block or loop
  AnnotationCheck there = {};  ///< the value against what stands there; empty: nothing more
};
const std::vector<AnnotationKey>& annotation_keys();

struct AnnotationProblem {
  const RefusalCode* code;
  std::string message;
};
std::optional<AnnotationProblem> check_annotation(const std::string& key, const Attr& value, const AnnotationSite&);

}  // namespace tilewright
