// Campaign and suite files (TOML): tables of tasks, and for a campaign its settings.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/result.h"

namespace tilewright::tools {

/// One task as the file states it: an operator with parameters, or a program file.
struct CampaignTask {
  std::string id;  ///< of a suite's workload; may be empty
  std::string op;  ///< empty: a file
  std::vector<std::pair<std::string, std::string>> parameters;
  std::string file;  ///< as written, from the campaign file's folder
  std::vector<std::string> tags;
  double weight = 1;
  Span place;
};

struct Campaign {
  std::string name;
  std::vector<std::string> targets;                           ///< empty: as the command line says
  std::vector<std::pair<std::string, std::string>> settings;  ///< by their full names
  std::vector<std::string> plugins;
  std::vector<CampaignTask> tasks;
};

tl::expected<Campaign, std::vector<Diagnostic>> read_campaign(const std::string& text, const std::string& file);

}  // namespace tilewright::tools
