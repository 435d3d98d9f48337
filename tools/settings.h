// Settings of a tuning run, declared once: name, type by its parser, default, doc. Flags of `tune`, --set, environment
// variables (TILEWRIGHT_SEARCH_TRIALS), campaign files and the journal all go through this table.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/tuner.h"
#include "tools/tool.h"

namespace tilewright::tools {

struct TuneSettings {
  TunerOptions tuner;
  std::string runner = "local";  ///< "local", "fake", "fake:FILE" (devices/fake.h as JSON)
};

struct Setting {
  std::string name;  ///< "search.trials"
  std::string doc;
  bool limit = false;  ///< may change when a run goes on
  std::string (*get)(const TuneSettings&) = nullptr;
  /// False: the text is no value of this setting; `expected` says what is.
  bool (*set)(TuneSettings&, const std::string& text) = nullptr;
  std::string expected;
};

TW_REFUSAL_CODE(setting_unknown, "setting-unknown", "no setting has that name");
TW_REFUSAL_CODE(setting_invalid, "setting-invalid", "a setting has a value that it does not take");

const std::vector<Setting>& all_settings();
const Setting* find_setting(std::string_view name);
Status set_setting(TuneSettings&, const std::string& name, const std::string& value);
/// TILEWRIGHT_GROUP_KEY of the environment.
Status settings_from_environment(TuneSettings&);
std::map<std::string, std::string> settings_as_text(const TuneSettings&);

/// "90", "90s", "20m", "2h": seconds.
std::optional<double> parse_duration(const std::string& text);

}  // namespace tilewright::tools
