// The only file that sees CLI11. Parsing and --help come from the registered commands; unknown names are answered here,
// with "did you mean", because CLI11's own messages and exit codes are not ours.
#include "tools/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <deque>

namespace tilewright::tools {

const std::vector<Option>& global_options() {
  static const std::vector<Option> options{
      {"--target", "T",
       "what to compile for: native, a CPU name, sm_90a, ..., with :key=value,... behind it (default native)"},
      {"--db", "URL",
       "the tuning database: a path, sqlite:PATH or memory: (default ~/.local/share/tilewright/tuning.db)"},
      {"--set", "GROUP.KEY=VALUE", "one setting, as in search.trials=256", 1, true},
      {"--plugin", "SO", "open a plug-in first", 1, true},
      {"--json", "", "JSON on stdout: one document; of tune the events of the run, one a line (schema events)"},
      {"--config", "FILE", "settings (default $XDG_CONFIG_HOME/tilewright/config.toml)"},
      {"--color", "WHEN", "auto, always or never (default auto)"},
      {"--progress", "HOW", "auto, plain, none or json: what a long command shows on stderr (default auto)"},
      {"-q,--quiet", "", "errors only"},
      {"-v,--verbose", "", "every trial, and where settings come from"},
  };
  return options;
}

namespace {

std::string first_spelling(const std::string& name) {
  std::string last = name.substr(name.rfind(',') == std::string::npos ? 0 : name.rfind(',') + 1);
  return last;
}

/// One option of one parser, with the place that its values go to.
struct Bound {
  std::string name;
  CLI::Option* option;
  std::vector<std::string> values;
};
using Bounds = std::deque<Bound>;  // addresses stay

void bind_option(CLI::App& app, const Option& o, Bounds& bounds) {
  Bound& bound = bounds.emplace_back(Bound{first_spelling(o.name), nullptr, {}});
  if (o.value.empty()) {
    bound.option = app.add_flag(o.name, o.doc);
    return;
  }
  bound.option = app.add_option(o.name, bound.values, o.doc)->type_name(o.value)->allow_extra_args(false);
  bound.option->type_size(o.values)->expected(1);
  if (o.repeatable) bound.option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void bind_positional(CLI::App& app, const Positional& p, Bounds& bounds) {
  Bound& bound = bounds.emplace_back(Bound{p.name, nullptr, {}});
  bound.option = app.add_option(p.name, bound.values, p.doc)->type_name("");
  if (!p.many) bound.option->expected(1)->allow_extra_args(false);
  if (p.required) bound.option->required();
}

Arguments collect(const Bounds& bounds) {
  Arguments out;
  for (const Bound& b : bounds)
    if (b.option->count() > 0) {
      std::vector<std::string> values = b.values;
      if (values.empty()) values.assign(b.option->count(), "");
      out.set(b.name, std::move(values));
    }
  return out;
}

Diagnostic bad(std::string message, std::string help = "") {
  return {std::string(bad_command_line.text), std::move(message), {}, {}, std::move(help)};
}

/// What CLI11 says, in our voice.
std::string reworded(const std::string& what) {
  std::string out = what;
  while (!out.empty() && (out.back() == '.' || out.back() == '\n')) out.pop_back();
  if (out.size() > 1 && std::isupper(static_cast<unsigned char>(out[0])) &&
      std::islower(static_cast<unsigned char>(out[1])))
    out[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(out[0])));
  return out;
}

std::vector<std::string> option_names(const std::string& command) {
  std::vector<std::string> names{"--help", "--version"};
  for (const Option& o : global_options()) names.push_back(first_spelling(o.name));
  if (const Command* c = Registry<Command>::instance().find(command))
    for (const Option& o : c->options) names.push_back(first_spelling(o.name));
  return names;
}

/// The error for the first argument that nothing takes.
Diagnostic unknown_argument(const std::string& argument, const std::string& command) {
  if (argument.size() > 1 && argument[0] == '-') {
    std::string name = argument.substr(0, argument.find('='));
    std::string near = did_you_mean(name, option_names(command));
    std::string owner = command.empty() ? "tilewright" : "tilewright " + command;
    return bad(fmt::format("{} has no option {}", owner, name), near.empty()
                                                                    ? fmt::format("{} --help lists the options", owner)
                                                                    : fmt::format("did you mean {}?", near));
  }
  if (command.empty()) {
    std::string near = Registry<Command>::instance().suggestion(argument);
    return bad(fmt::format("tilewright has no command \"{}\"", argument),
               near.empty() ? "tilewright --help lists the commands" : fmt::format("did you mean \"{}\"?", near));
  }
  return bad(fmt::format("tilewright {} takes no further argument, found \"{}\"", command, argument),
             fmt::format("tilewright {} --help says what it takes", command));
}

/// The error for an option that takes one value and is given several times.
std::optional<Diagnostic> repeated_option(int argc, char** argv, const std::string& command) {
  std::vector<Option> options = global_options();
  if (const Command* c = Registry<Command>::instance().find(command))
    options.insert(options.end(), c->options.begin(), c->options.end());
  for (const Option& o : options) {
    if (o.value.empty() || o.repeatable) continue;
    const std::string name = first_spelling(o.name);
    const auto times = std::count_if(argv + 1, argv + argc, [&](std::string_view argument) {
      return argument == name || argument.starts_with(name + "=");
    });
    if (times > 1) return bad(fmt::format("{} is given {} times, expected once", name, times), "leave one of them out");
  }
  return std::nullopt;
}

std::optional<Diagnostic> read_globals(const Arguments& a, Globals& g) {
  g.target = a.get("--target", "native");
  g.target_given = a.has("--target");
  g.database = a.get("--db");
  g.color = a.get("--color", "auto");
  g.plugins = a.all("--plugin");
  g.json = a.has("--json");
  g.quiet = a.has("--quiet");
  g.verbose = a.has("--verbose");
  g.config = a.get("--config");
  g.progress = a.get("--progress", "auto");
  if (g.progress != "auto" && g.progress != "plain" && g.progress != "none" && g.progress != "json")
    return bad(fmt::format("--progress: expected auto, plain, none or json, found \"{}\"", g.progress));
  if (g.color != "auto" && g.color != "always" && g.color != "never")
    return bad(fmt::format("--color: expected auto, always or never, found \"{}\"", g.color));
  for (const std::string& text : a.all("--set")) {
    size_t equal = text.find('=');
    if (equal == std::string::npos || equal == 0)
      return bad(fmt::format("--set: expected GROUP.KEY=VALUE, found \"{}\"", text));
    g.settings.emplace_back(text.substr(0, equal), text.substr(equal + 1));
  }
  return std::nullopt;
}

std::string exit_code_help() {
  std::string text = "\nExit codes:\n";
  for (const ExitCode& e : exit_codes()) text += fmt::format("  {:<10} {}\n", e.code, e.meaning);
  return text;
}

/// CLI11's help of a command, with the program's name before it.
std::string help_of(const CLI::App& shown, const CLI::App& app) {
  std::string text = shown.help();
  if (&shown == &app) return text + exit_code_help();
  if (size_t at = text.find("Usage: "); at != std::string::npos) text.insert(at + 7, "tilewright ");
  return text + "tilewright --help lists the options that every command takes\n";
}

}  // namespace

CommandLine parse_command_line(int argc, char** argv) {
  CommandLine out;
  CLI::App app{"tilewright tunes tensor programs: it searches for fast schedules, measures them, and exports the best.",
               "tilewright"};
  app.set_version_flag("--version", std::string("tilewright ") + TILEWRIGHT_VERSION);
  app.require_subcommand(0, 1);
  app.allow_extras();
  Bounds globals;
  for (const Option& o : global_options()) bind_option(app, o, globals);
  std::map<std::string, Bounds> bounds;
  for (const auto& [name, entry] : Registry<Command>::instance().entries()) {
    CLI::App* sub = app.add_subcommand(name, entry.doc);
    sub->fallthrough();
    for (const Positional& p : entry.value.positionals) bind_positional(*sub, p, bounds[name]);
    for (const Option& o : entry.value.options) bind_option(*sub, o, bounds[name]);
  }
  // Errors are reported as JSON too, so that this must be known before anything has been understood.
  for (int i = 1; i < argc; ++i) out.globals.json |= std::string_view(argv[i]) == "--json";
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    CLI::App* shown = &app;
    for (CLI::App* sub : app.get_subcommands()) shown = sub;
    out.text = help_of(*shown, app);
    return out;
  } catch (const CLI::CallForVersion&) {
    out.text = std::string("tilewright ") + TILEWRIGHT_VERSION + "\n";
    return out;
  } catch (const CLI::ParseError& e) {
    for (CLI::App* sub : app.get_subcommands()) out.name = sub->get_name();
    std::vector<std::string> rest = app.remaining(true);
    bool unknown = !rest.empty() && rest[0].size() > 1 && rest[0][0] == '-';
    if (out.error = repeated_option(argc, argv, out.name); out.error) return out;
    out.error = unknown ? unknown_argument(rest[0], out.name)
                        : bad(reworded(e.what()), fmt::format("tilewright {}--help says what it takes",
                                                              out.name.empty() ? "" : out.name + " "));
    return out;
  }
  for (CLI::App* sub : app.get_subcommands()) out.name = sub->get_name();
  if (std::vector<std::string> rest = app.remaining(true); !rest.empty()) {
    out.error = unknown_argument(rest[0], out.name);
    return out;
  }
  bool json = out.globals.json;
  out.globals.command_line.assign(argv, argv + argc);
  out.error = read_globals(collect(globals), out.globals);
  out.globals.json |= json;
  if (out.error) return out;
  if (out.name.empty()) {
    out.text = help_of(app, app);
    return out;
  }
  out.command = Registry<Command>::instance().find(out.name);
  out.arguments = collect(bounds[out.name]);
  return out;
}

}  // namespace tilewright::tools
