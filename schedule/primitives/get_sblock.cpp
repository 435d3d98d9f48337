// get_sblock: the one block of that name.
#include <fmt/format.h>

#include "schedule/primitive.h"
#include "schedule/primitives/tree_ops.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(block_name_not_found, "block-name-not-found", "no block has that name");
TW_REFUSAL_CODE(block_name_ambiguous, "block-name-ambiguous", "several blocks have that name");
TW_REFUSAL_CODE(function_not_found, "function-not-found", "the program has no function of that name");

Status apply(Context& c) {
  const std::string& name = c.text("name");
  const TraceValue& function = c.value("func_name");
  if (auto* wanted = function.get<std::string>(); wanted && *wanted != c.state.function().name) {
    // A trace of a lone function applies whatever the function is called: only real modules are told apart by name.
    if (c.state.program()->functions.size() > 1) {
      std::vector<std::string> names;
      for (const FunctionRef& f : c.state.program()->functions) names.push_back(f->name);
      auto refusal = c.refuse(function_not_found, fmt::format("expected the function worked on ({}), found \"{}\"",
                                                              c.state.function().name, *wanted));
      std::string hint = did_you_mean(*wanted, names);
      return hint.empty() ? refusal : refuse(refusal.value().with_help(fmt::format("did you mean \"{}\"?", hint)));
    }
  }
  std::vector<Place> found = c.state.tree().blocks_named(name);
  if (found.size() == 1) {
    c.give(c.state.tree().block(found[0]));
    return {};
  }
  if (found.size() > 1)
    return c.refuse(block_name_ambiguous, fmt::format("{} blocks are called \"{}\"", found.size(), name),
                    c.state.tree().stmt(found[1]));
  std::vector<std::string> names;
  for (Place p : c.state.tree().blocks()) names.push_back(c.state.tree().block(p)->name);
  auto refusal = c.refuse(block_name_not_found,
                          fmt::format("no block is called \"{}\"; there are {}", name, fmt::join(names, ", ")));
  std::string hint = did_you_mean(name, names);
  return hint.empty() ? refusal : refuse(refusal.value().with_help(fmt::format("did you mean \"{}\"?", hint)));
}

const RegisterPrimitive entry{
    "get_sblock",
    "the one block of that name",
    {.kind = "GetSBlock",
     .attrs = {{"name", ArgType::text, {}, "name of the block"},
               {"func_name", ArgType::text_or_none, TraceValue(), "the function; None: the one worked on"}},
     .outputs = OutputShape::one_block,
     .output_kind = SymbolKind::block,
     .pure = true,
     .refusals = {block_name_not_found, block_name_ambiguous, function_not_found},
     .apply = apply}};

}  // namespace
}  // namespace tilewright
