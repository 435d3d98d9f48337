#include "tools/tool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "support/json.h"

namespace tilewright::tools {

namespace {

bool wants_color(const std::string& when) {
  if (when != "auto") return when == "always";
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && !std::getenv("NO_COLOR") && term && std::string_view(term) != "dumb";
}

}  // namespace

std::span<const ExitCode> exit_codes() {
  static constexpr ExitCode codes[] = {
      {"0", "done, and the answer is yes"},
      {"1", "the answer is no: nothing valid found, slower, not reproduced, refused, damaged"},
      {"2", "bad command line, a name that nothing has, or text that does not parse"},
      {"3", "the environment: no such device or code generator, database or file that cannot be used, disk full"},
      {"4", "a bug in Tilewright"},
      {"5", "stopped early by a signal: everything is saved, the command to go on is printed"},
      {"130, 143", "stopped at once by a second signal"}};
  return codes;
}

Tool::Tool(std::string command, Globals globals)
    : command_(std::move(command)),
      globals_(std::move(globals)),
      color_(wants_color(globals_.color)),
      fields_(std::make_unique<Json>(Json::object())),
      diagnostics_(std::make_unique<Json>(Json::array())) {}
Tool::~Tool() = default;

void Tool::print(std::string_view text) {
  if (!globals_.json) std::fwrite(text.data(), 1, text.size(), stdout);
}

void Tool::say(std::string_view text) {
  if (globals_.json || globals_.quiet) return;
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void Tool::field(const std::string& name, Json value) { (*fields_)[name] = std::move(value); }

void Tool::diagnose(const Diagnostic& d) {
  if (globals_.json && !streaming_) {
    diagnostics_->push_back(to_json(d));
    return;
  }
  if (d.warning && globals_.quiet) return;
  std::fflush(stdout);
  std::fputs(render_text(d, color_).c_str(), stderr);
}

void Tool::diagnose(const std::vector<Diagnostic>& all) {
  for (const Diagnostic& d : all) diagnose(d);
}

int Tool::fail(const Refusal& refusal, int exit) {
  diagnose(refusal.diagnostic());
  return exit;
}

int Tool::fail(const std::vector<Diagnostic>& all, int exit) {
  diagnose(all);
  return exit;
}

int Tool::usage(std::string message, std::string help) {
  Refusal refusal(bad_command_line, std::move(message));
  return fail(help.empty() ? refusal : refusal.with_help(std::move(help)), exit_usage);
}

int Tool::finish(int exit) {
  if (globals_.json && !streaming_) {
    Json document = {
        {"schema", "tilewright/" + command_ + "@1"}, {"ok", exit == exit_yes}, {"diagnostics", *diagnostics_}};
    for (auto& [name, value] : fields_->items()) document[name] = value;
    std::string text = document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  // A pipe that was closed early (`tilewright show primitives | head`) is no error of ours; a full disk is.
  errno = 0;
  if (std::fflush(stdout) != 0 && errno != EPIPE) {
    std::fprintf(stderr, "error: the output cannot be written: %s\n", std::strerror(errno));
    return exit_environment;
  }
  return exit;
}

int exit_for_text(const std::vector<Diagnostic>& errors) {
  static constexpr std::array<std::string_view, 7> unreadable{
      "unexpected-token", "bad-indentation", "tab-in-indentation", "unterminated-string",
      "nesting-too-deep", "trace-malformed", "trace-empty"};
  bool found = std::any_of(errors.begin(), errors.end(), [](const Diagnostic& d) {
    return std::find(unreadable.begin(), unreadable.end(), d.code) != unreadable.end();
  });
  return found ? exit_usage : exit_no;
}

}  // namespace tilewright::tools
