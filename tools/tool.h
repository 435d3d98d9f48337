// Tool: what a command sees of the process: the global options, and the one way out for data and diagnostics. As text,
// data goes to stdout and diagnostics to stderr; with --json, stdout holds one document
// {"schema":"tilewright/<command>@1","ok":…,"diagnostics":[…], then the command's fields} and nothing else.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/result.h"

namespace tilewright::tools {

TW_REFUSAL_CODE(bad_command_line, "bad-command-line", "the command line is not one that tilewright understands");
TW_REFUSAL_CODE(not_found, "not-found", "there is nothing of that name");

/// Exit codes of every command.
enum Exit : int {
  exit_yes = 0,          ///< done, and the answer is yes
  exit_no = 1,           ///< the answer is no
  exit_usage = 2,        ///< bad command line, or text that does not parse
  exit_environment = 3,  ///< no such device, driver mismatch, database unreachable, disk full
  exit_bug = 4,          ///< a bug in Tilewright
  exit_stopped = 5,      ///< stopped early by a signal; everything is saved
};

struct ExitCode {
  std::string_view code, meaning;
};
/// All of them, as --help shows them.
std::span<const ExitCode> exit_codes();

struct Globals {
  std::string target = "native", color = "auto";
  bool target_given = false;
  std::string database;                                       ///< --db; empty: not given
  std::vector<std::pair<std::string, std::string>> settings;  ///< --set, in order
  std::vector<std::string> plugins, command_line;
  std::string progress = "auto", config;
  bool json = false, quiet = false, verbose = false;
};

class Tool {
 public:
  Tool(std::string command, Globals globals);
  ~Tool();
  Tool(const Tool&) = delete;
  Tool& operator=(const Tool&) = delete;

  const Globals& globals() const { return globals_; }
  const std::string& command() const { return command_; }

  /// Data for people: stdout, nothing with --json.
  void print(std::string_view text);
  /// Progress and hints: stderr, nothing with --quiet or --json.
  void say(std::string_view text);
  /// A field of the JSON document.
  void field(const std::string& name, nlohmann::ordered_json value);

  void diagnose(const Diagnostic&);
  void diagnose(const std::vector<Diagnostic>&);
  /// Reports a refusal and gives the exit code back.
  int fail(const Refusal&, int exit = exit_no);
  int fail(const std::vector<Diagnostic>&, int exit = exit_no);
  /// A mistake in how the command was called: exit 2.
  int usage(std::string message, std::string help = "");

  /// From here on the command writes stdout itself (tune --json): no document, and diagnostics go to stderr.
  void stream() { streaming_ = true; }

  /// Writes the JSON document, if that is wanted. Once, at the end.
  int finish(int exit);

 private:
  std::string command_;
  Globals globals_;
  bool color_, streaming_ = false;
  std::unique_ptr<nlohmann::ordered_json> fields_, diagnostics_;
};

/// 2 for codes of a text that does not even parse, else 1.
int exit_for_text(const std::vector<Diagnostic>&);

}  // namespace tilewright::tools
