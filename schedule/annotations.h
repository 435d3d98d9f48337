// Annotation keys with a fixed meaning: where they may stand and which values they take. Unknown keys pass verbatim,
// except in our own name space (tilewright.*), where a misspelt key would silently do nothing.
#pragma once

#include <functional>
#include <optional>

#include "ir/expr.h"
#include "support/refusal.h"

namespace tilewright {

TW_REFUSAL_CODE(annotation_value_invalid, "annotation-value-invalid", "the value does not fit the annotation's key");
TW_REFUSAL_CODE(annotation_misplaced, "annotation-misplaced",
                "the annotation belongs on a block and stands on a loop, or the other way round");
TW_REFUSAL_CODE(annotation_unknown, "annotation-unknown", "no annotation tilewright.* has that name");

enum class AnnotationPlace : uint8_t { block, loop, either };

struct AnnotationKey {
  const char* key;
  AnnotationPlace place;
  std::function<bool(const Attr&)> accepts;
  const char* values;  ///< legal values in words, for the message
  const char* doc;
};
const std::vector<AnnotationKey>& annotation_keys();

struct AnnotationProblem {
  const RefusalCode* code;
  std::string message;
};
std::optional<AnnotationProblem> check_annotation(const std::string& key, const Attr& value, bool on_block);

}  // namespace tilewright
