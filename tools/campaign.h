// Campaign, suite and configuration files (TOML): tables of tasks, and settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/parse.h"
#include "tools/settings.h"

namespace tilewright::tools {

/// One task as the file states it: an operator with parameters, or a program file.
struct CampaignTask {
  std::string id;  ///< of a suite's workload; may be empty
  std::string op;  ///< empty: a file
  std::vector<std::pair<std::string, std::string>> parameters;
  std::map<std::string, Span> parameter_places;
  std::string file;  ///< as written, from the campaign file's folder
  Extents extents;   ///< of the file's symbolic extents
  std::vector<std::string> tags;
  double weight = 1;
  int64_t trials = 0;  ///< 0: as the campaign says
  Span place;
};

struct CampaignSetting {
  std::string name, value;  ///< full name; "effort" stands for several
  Span place;
};

struct Campaign {
  std::string name;
  std::vector<std::string> targets;  ///< empty: as the command line says
  std::vector<CampaignSetting> settings;
  std::vector<std::string> plugins;
  std::vector<CampaignTask> tasks;
};

tl::expected<Campaign, std::vector<Diagnostic>> read_campaign(const std::string& text, const std::string& file);
/// A file that holds nothing but tables of settings.
tl::expected<std::vector<CampaignSetting>, std::vector<Diagnostic>> read_configuration(const std::string& text,
                                                                                       const std::string& file);
/// Sets it; what is wrong with it goes to `errors`, with its place.
void apply_setting(TuneSettings&, const CampaignSetting&, std::vector<Diagnostic>& errors);

}  // namespace tilewright::tools
