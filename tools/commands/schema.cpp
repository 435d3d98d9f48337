// tilewright schema, completion and plugin: what other tools need to know about this one.
#include "support/schema.h"

#include <fmt/format.h>

#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/tool.h"

namespace tilewright::tools {
namespace {

int schema(Tool& tool, const Arguments& arguments) {
  std::string name = arguments.get("NAME");
  const auto& registry = Registry<Schema>::instance();
  const Schema* found = registry.find(name);
  if (!found) {
    std::string near = registry.suggestion(name);
    return tool.usage(fmt::format("no schema is called \"{}\"", name),
                      near.empty() ? fmt::format("schemas: {}", fmt::join(registry.names(), ", "))
                                   : fmt::format("did you mean \"{}\"?", near));
  }
  std::string text = found->text();
  tool.print(text + (text.ends_with('\n') ? "" : "\n"));
  tool.field("document", Json::parse(text));
  return exit_yes;
}

/// All spellings of options, separated by blanks.
std::string words(const std::vector<Option>& options) {
  std::string out;
  for (const Option& o : options) {
    std::string spellings = o.name;
    for (char& c : spellings)
      if (c == ',') c = ' ';
    out += " " + spellings;
  }
  return out;
}

int completion(Tool& tool, const Arguments& arguments) {
  if (arguments.get("SHELL") != "bash")
    return tool.usage(fmt::format("expected bash, found \"{}\"", arguments.get("SHELL")));
  std::string global = words(global_options()) + " --help";
  std::string text =
      "_tilewright() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" options=\"\" known=\"\"\n  case "
      "\"${COMP_WORDS[1]}\" in\n";
  std::string names;
  for (const auto& [name, entry] : Registry<Command>::instance().entries()) {
    names += " " + name;
    text += fmt::format("    {}) options=\"{}\" ;;\n", name, words(entry.value.options));
  }
  text += fmt::format(
      "  esac\n  if [ \"$COMP_CWORD\" -eq 1 ]; then known=\"{} --version{}\"\n"
      "  elif [ \"${{word:0:1}}\" = - ]; then known=\"$options{}\"\n"
      "  else COMPREPLY=($(compgen -f -- \"$word\")); return; fi\n"
      "  COMPREPLY=($(compgen -W \"$known\" -- \"$word\"))\n}}\ncomplete -o filenames -F _tilewright tilewright\n",
      names, global, global);
  tool.print(text);
  tool.field("script", text);
  return exit_yes;
}

int plugin(Tool& tool, const Arguments& arguments) {
  if (arguments.get("VERB") != "ls")
    return tool.usage(fmt::format("plugin: expected ls, found \"{}\"", arguments.get("VERB")));
  Json list = Json::array();
  for (const RegistryEntryInfo& e : all_registrations()) {
    tool.print(fmt::format("{:<18} {:<36} {}:{}\n", e.registry, e.name, e.file, e.line));
    list.push_back({{"registry", e.registry}, {"name", e.name}, {"file", e.file}, {"line", e.line}});
  }
  tool.field("registrations", std::move(list));
  return exit_yes;
}

const RegisterCommand schema_entry{"schema", "JSON Schema of what is written", {{{"NAME", "events, ..."}}, {}, schema}};
const RegisterCommand completion_entry{
    "completion", "a completion script for a shell", {{{"SHELL", "bash"}}, {}, completion}};
const RegisterCommand plugin_entry{"plugin",
                                   "everything that is registered, plug-ins (--plugin) included, with its source",
                                   {{{"VERB", "ls"}}, {}, plugin}};

}  // namespace
}  // namespace tilewright::tools
