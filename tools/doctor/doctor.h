// Checks of `tilewright doctor`: each looks at one thing of the machine and says what it measured, why that matters and
// what to do about it. One file per subject, self-registered. A check never changes anything.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "support/registry.h"
#include "tools/tool.h"

namespace tilewright::tools {

enum class Level : uint8_t {
  good,
  note,     ///< worth knowing, nothing to do for most
  warning,  ///< times will be worse or less certain
  error,    ///< tuning does not work
};

struct Finding {
  std::string check;
  Level level = Level::good;
  std::string value;     ///< as measured, with its unit
  std::string why, fix;  ///< empty when good
};

struct DoctorContext {
  bool gpu = false;  ///< the user wants a GPU: what a GPU lacks is an error
  std::string target;
  std::string database;  ///< --db
  std::string runner;    ///< --runner; empty: none is looked at
};

struct DoctorCheck {
  static constexpr const char* registry_name = "doctor check";
  bool slow = false;  ///< takes seconds: left out by --fast
  std::vector<Finding> (*look)(const DoctorContext&) = nullptr;
};

/// The first line of a file without its end; nothing: it cannot be read.
std::optional<std::string> first_line(const std::string& path);
/// What a command prints (stderr too) when it ends well; nothing: it does not exist or fails.
std::optional<std::string> output_of(const std::string& command);

}  // namespace tilewright::tools
