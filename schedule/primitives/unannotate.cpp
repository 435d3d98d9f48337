// unannotate: removes a key from a block or loop.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(annotation_missing, "annotation-missing", "the block or loop has no annotation of that key");

template <class Node>
Status remove(Context& c, const Node* node, const std::string& key) {
  if (!node->annotations.count(key)) {
    std::vector<std::string> keys;
    for (const auto& [k, v] : node->annotations) keys.push_back(k);
    auto refusal = c.refuse(annotation_missing, fmt::format("there is no annotation \"{}\"", key), node);
    std::string hint = did_you_mean(key, keys);
    return hint.empty() ? refusal : refuse(refusal.value().with_help(fmt::format("did you mean \"{}\"?", hint)));
  }
  auto copy = edit(*node);
  copy->annotations.erase(key);
  c.state.replace(node, finish(std::move(copy)));
  return {};
}

Status apply(Context& c) {
  TW_TRY(Context::BlockOrLoop target, c.block_or_loop("block_or_loop"));
  const std::string& key = c.text("ann_key");
  return target.block ? remove(c, target.block, key) : remove(c, target.loop, key);
}

const RegisterPrimitive entry{"unannotate",
                              "removes a key from a block or loop",
                              {.kind = "Unannotate",
                               .inputs = {{"block_or_loop", ArgType::block_or_loop, {}, "what carries the annotation"}},
                               .attrs = {{"ann_key", ArgType::text, {}, "the key"}},
                               .refusals = {annotation_missing},
                               .apply = apply}};

}  // namespace
}  // namespace tilewright
