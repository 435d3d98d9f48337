// The entry of `tilewright`. Worker processes leave first, before anything else of the tool is set up; then the command
// line is parsed (command_line.cpp) and the command runs (commands/).
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "measure/entry.h"
#include "support/check.h"
#include "support/component.h"
#include "tools/command_line.h"
#include "tools/settings.h"

namespace tilewright::tools {
namespace {

TW_REFUSAL_CODE(internal_error, "internal-error", "a bug in Tilewright");

int run_command(Tool& tool, const CommandLine& line) {
  for (const std::string& plugin : line.globals.plugins)
    if (auto opened = open_plugin(plugin); !opened) return tool.fail(opened.error(), exit_environment);
  // A misspelt setting is no less a mistake where the command would not have read it.
  TuneSettings settings;
  for (const auto& [name, value] : line.globals.settings)
    if (Status set = set_setting(settings, name, value, "--set"); !set) return tool.fail(set.error(), exit_usage);
  try {
    return line.command->run(tool, line.arguments);
  } catch (const InternalError& e) {
    return tool.fail(Refusal(internal_error, fmt::format("bug in tilewright: {}", e.what()))
                         .with_help("please report this line together with the command and its files"),
                     exit_bug);
  } catch (const std::exception& e) {
    return tool.fail(Refusal(internal_error, fmt::format("bug in tilewright: unexpected exception: {}", e.what())),
                     exit_bug);
  }
}

int run(int argc, char** argv) {
  CommandLine line = parse_command_line(argc, argv);
  if (!line.text.empty()) {
    std::fputs(line.text.c_str(), stdout);
    return exit_yes;
  }
  Tool tool(line.name.empty() ? "tilewright" : line.name, line.globals);
  if (line.error) {
    tool.diagnose(*line.error);
    return tool.finish(exit_usage);
  }
  return tool.finish(run_command(tool, line));
}

}  // namespace
}  // namespace tilewright::tools

int main(int argc, char** argv) {
  if (auto code = tilewright::measure::worker_main(argc, argv)) return *code;
  return tilewright::tools::run(argc, argv);
}
