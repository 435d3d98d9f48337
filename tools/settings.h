// Settings of a tuning run, declared once: name, type by its parser, default, unit, doc. Flags of `tune`, --set,
// environment variables (TILEWRIGHT_SEARCH_TRIALS), campaign files, the configuration file and the journal all go
// through this table. The strongest wins: flag > --set > environment > campaign file > configuration file > default.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "search/tuner.h"
#include "tools/tool.h"

namespace tilewright::tools {

struct TuneSettings {
  TunerOptions tuner;
  std::string runner = "local";                ///< "local", "fake", "fake:FILE" (devices/fake.h as JSON)
  std::string baseline = "default";            ///< "default", "previous", or the file of a trace
  std::string database;                        ///< URL or path; empty: the default place
  bool reuse = true;                           ///< what the database holds is not measured again
  std::string warm_start = "auto";             ///< "auto", "none", or a run
  std::map<std::string, std::string> origins;  ///< of settings that are not at their default: what set them
};

struct Setting {
  std::string name;  ///< "search.trials"
  std::string doc;
  bool limit = false;  ///< may change when a run goes on
  std::function<std::string(const TuneSettings&)> get;
  /// False: the text is no value of this setting; `expected` says what is.
  std::function<bool(TuneSettings&, const std::string& text)> set;
  std::string expected;
  std::string unit;
  std::vector<std::string> (*names)() =
      nullptr;  ///< what the value may name, several with commas; empty text is always one
};

TW_REFUSAL_CODE(setting_unknown, "setting-unknown", "no setting has that name");
TW_REFUSAL_CODE(name_unknown, "name-unknown", "a setting names something that is not registered");
TW_REFUSAL_CODE(setting_invalid, "setting-invalid", "a setting has a value that it does not take");

const std::vector<Setting>& all_settings();
const Setting* find_setting(std::string_view name);
/// `origin` says where the value came from: "--trials", "config.toml:3".
Status set_setting(TuneSettings&, const std::string& name, const std::string& value, std::string origin);
/// Every name in the settings is registered: checked once all plug-ins are open, before anything begins.
Status check_names(const TuneSettings&);
/// "effort 3": the limits that it stands for; returns them as text. 1 to 5.
Result<std::string> set_effort(TuneSettings&, const std::string& value, const std::string& origin);
/// Settings of the configuration file: --config FILE, else $XDG_CONFIG_HOME/tilewright/config.toml if it is there.
/// Nothing, or why not.
std::vector<Diagnostic> settings_from_configuration(TuneSettings&, const std::string& file);
/// TILEWRIGHT_GROUP_KEY of the environment.
Status settings_from_environment(TuneSettings&);
/// The part of a setting's name before the dot: the tables that files may have.
std::vector<std::string> setting_groups();
std::map<std::string, std::string> settings_as_text(const TuneSettings&);

/// "90", "90s", "20m", "2h": seconds.
std::optional<double> parse_duration(const std::string& text);

}  // namespace tilewright::tools
