// tilewright schema, completion and plugin: what other tools need to know about this one.
#include "support/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "support/component.h"
#include "support/json.h"
#include "tools/command.h"
#include "tools/plugin_scaffold.h"
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

Json row_of(const RegistryEntryInfo& e) {
  return {{"registry", e.registry}, {"name", e.name}, {"file", e.file}, {"line", e.line}};
}

int list_registrations(Tool& tool) {
  Json list = Json::array(), plugins = Json::array();
  for (const Plugin& p : open_plugins()) {
    tool.print(fmt::format("{:<18} {:<36} {}\n", "plug-in", p.name, p.path));
    plugins.push_back({{"name", p.name}, {"path", p.path}});
  }
  for (const RegistryEntryInfo& e : all_registrations()) {
    tool.print(fmt::format("{:<18} {:<36} {}:{}\n", e.registry, e.name, e.file, e.line));
    list.push_back(row_of(e));
  }
  tool.field("plugins", std::move(plugins));
  tool.field("registrations", std::move(list));
  return exit_yes;
}

/// Opens a plug-in and lists what it adds.
int check_plugin(Tool& tool, const std::string& path) {
  auto key = [](const RegistryEntryInfo& e) { return e.registry + " " + e.name; };
  std::set<std::string> before;
  for (const RegistryEntryInfo& e : all_registrations()) before.insert(key(e));
  auto plugin = open_plugin(path);
  if (!plugin) return tool.fail(plugin.error());
  tool.print(fmt::format("{}: {}, built for {}\n", path, plugin->name, abi_word()));
  Json list = Json::array();
  for (const RegistryEntryInfo& e : all_registrations()) {
    if (before.contains(key(e))) continue;
    tool.print(fmt::format("  {:<16} {:<32} {}\n", e.registry, e.name, e.doc));
    list.push_back(row_of(e));
  }
  if (list.empty()) tool.say("warning: it registers nothing\n");
  tool.field("plugin", plugin->name);
  tool.field("abi", abi_word());
  tool.field("registrations", std::move(list));
  return exit_yes;
}

/// A CMake project for a plug-in, in a new folder.
int new_plugin(Tool& tool, const Arguments& arguments) {
  const std::string name = arguments.get("NAME"), kind = arguments.get("--kind", "rule");
  if (name.empty() || !std::islower(static_cast<unsigned char>(name[0])) ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
    return tool.usage(fmt::format("plugin new: expected a name of a-z, 0-9 and _, found \"{}\"", name),
                      "tilewright plugin new acme --kind rule");
  const std::vector<std::string> kinds = scaffold_kinds();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    std::string near = did_you_mean(kind, kinds);
    return tool.usage(fmt::format("--kind: expected {}, found \"{}\"", fmt::join(kinds, ", "), kind),
                      near.empty() ? "docs/howto/write-a-plugin.md says what else a plug-in can register"
                                   : fmt::format("did you mean \"{}\"?", near));
  }
  std::error_code ec;
  if (std::filesystem::exists(name, ec))
    return tool.usage(fmt::format("plugin new: expected no file or folder {} here, found one", name));
  const std::vector<ExportFile> files = scaffold(name, kind);
  if (Status written = write_files(name, files); !written) return tool.fail(written.error(), exit_environment);
  Json list = Json::array();
  for (const ExportFile& file : files) {
    tool.print(fmt::format("{}/{}\n", name, file.name));
    list.push_back(fmt::format("{}/{}", name, file.name));
  }
  tool.say(fmt::format(
      "next: cd {0} && cmake -B build -DCMAKE_PREFIX_PATH=PREFIX && cmake --build build && tilewright plugin "
      "check build/lib{0}.so\n",
      name));
  tool.field("files", std::move(list));
  return exit_yes;
}

int plugin(Tool& tool, const Arguments& arguments) {
  std::string verb = arguments.get("VERB");
  if (verb == "ls") return list_registrations(tool);
  if (verb == "new") return new_plugin(tool, arguments);
  if (verb != "check") return tool.usage(fmt::format("plugin: expected ls, check or new, found \"{}\"", verb));
  if (!arguments.has("NAME")) return tool.usage("plugin check: expected a shared object, found none");
  return check_plugin(tool, arguments.get("NAME"));
}

const RegisterCommand schema_entry{"schema", "JSON Schema of what is written", {{{"NAME", "events, ..."}}, {}, schema}};
const RegisterCommand completion_entry{
    "completion", "a completion script for a shell", {{{"SHELL", "bash"}}, {}, completion}};
const RegisterCommand plugin_entry{
    "plugin",
    "ls: everything that is registered, plug-ins (--plugin) included, with its source; "
    "check: open one, list what it adds; new: the files of one",
    {{{"VERB", "ls, check or new"}, {"NAME", "check: the shared object; new: the plug-in's name", false}},
     {{"--kind", "KIND", "new: what it registers: mutator, rule (default), space or target"}},
     plugin}};

}  // namespace
}  // namespace tilewright::tools
