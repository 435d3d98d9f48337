// The command line: from argv to a command with its arguments.
#pragma once

#include <optional>
#include <string>

#include "support/diagnostic.h"
#include "tools/command.h"
#include "tools/tool.h"

namespace tilewright::tools {

struct CommandLine {
  std::string name;  ///< of the command; empty: none
  const Command* command = nullptr;
  Globals globals;
  Arguments arguments;
  std::string text;                 ///< --help or --version: print this and leave
  std::optional<Diagnostic> error;  ///< exit 2
};

CommandLine parse_command_line(int argc, char** argv);

}  // namespace tilewright::tools
