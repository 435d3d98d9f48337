// annotate: attaches a key and value to a block or loop. Keys that Tilewright knows are checked here and again before
// lowering.
#include <fmt/format.h>

#include "schedule/annotations.h"
#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

template <class Node>
Status set(Context& c, const Node* node, const std::string& key, const Attr& value) {
  auto it = node->annotations.find(key);
  if (it != node->annotations.end()) {
    if (it->second == value) return {};
    if (c.schedule.options().tvm_mode) {
      c.schedule.note_repair(fmt::format("annotate: \"{}\" keeps its old value", key));
      return {};
    }
    return c.refuse(codes::annotation_exists, fmt::format("annotation \"{}\" is already there with another value", key),
                    node);
  }
  auto copy = edit(*node);
  copy->annotations[key] = value;
  c.state.replace(node, finish(std::move(copy)));
  return {};
}

Status apply(Context& c) {
  TW_TRY(Context::BlockOrLoop target, c.block_or_loop("block_or_loop"));
  const std::string& key = c.text("ann_key");
  Attr value = c.attr("ann_val");
  if (std::optional<AnnotationProblem> problem = check_annotation(key, value, {c.state, target.block, target.loop}))
    return c.refuse(*problem->code, problem->message, target.stmt());
  return target.block ? set(c, target.block, key, value) : set(c, target.loop, key, value);
}

const RegisterPrimitive entry{
    "annotate",
    "attaches a key and value to a block or loop",
    {.kind = "Annotate",
     .inputs = {{"block_or_loop", ArgType::block_or_loop, {}, "what is annotated"},
                {"ann_val", ArgType::value, {}, "any value; handles of integers are replaced by their value"}},
     .attrs = {{"ann_key", ArgType::text, {}, "the key"}},
     .python_order = {"block_or_loop", "ann_key", "ann_val"},
     .refusals = {annotation_misplaced, annotation_value_invalid, annotation_unknown, codes::annotation_exists},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
