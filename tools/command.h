// Command: one subcommand of `tilewright`. Each is one file in tools/commands/ that registers one record; the command
// line,
// --help and completion follow from it. Read next: tool.h (what a command sees), command_line.cpp (parsing).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/registry.h"

namespace tilewright::tools {

class Tool;

/// An option "--name VALUE", or a flag when `value` is empty.
struct Option {
  std::string name;   ///< "--trace"; further spellings after commas
  std::string value;  ///< placeholder in --help; empty: a flag
  std::string doc;
  int values = 1;           ///< values that one use takes
  bool repeatable = false;  ///< may be given several times
};

struct Positional {
  std::string name, doc;
  bool required = true;
  bool many = false;  ///< takes all that are left
};

/// What the command line gave, by the first spelling of each option.
class Arguments {
 public:
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }
  /// The last value given.
  std::string get(std::string_view name, std::string fallback = "") const {
    auto it = values_.find(name);
    return it == values_.end() || it->second.empty() ? std::move(fallback) : it->second.back();
  }
  std::vector<std::string> all(std::string_view name) const {
    auto it = values_.find(name);
    return it == values_.end() ? std::vector<std::string>{} : it->second;
  }
  void set(std::string name, std::vector<std::string> values) { values_[std::move(name)] = std::move(values); }

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

struct Command {
  static constexpr const char* registry_name = "command";
  std::vector<Positional> positionals;
  std::vector<Option> options;
  std::function<int(Tool&, const Arguments&)> run;  ///< an Exit
};
using RegisterCommand = Register<Command>;

/// Options that every command takes.
const std::vector<Option>& global_options();

}  // namespace tilewright::tools
