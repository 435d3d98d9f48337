#include "tools/run_directory.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <filesystem>

#include "tools/tasks.h"

namespace tilewright::tools {

namespace fs = std::filesystem;

std::string new_run_directory(const std::string& name, uint64_t campaign) {
  std::tm now = fmt::localtime(std::time(nullptr));
  return fmt::format("runs/{:%Y%m%d-%H%M}-{}-{:04x}", now, slug(name), campaign & 0xffff);
}

std::string run_id(const std::string& directory) {
  std::string folder = fs::path(directory).filename().string();
  if (folder.empty()) folder = fs::path(directory).parent_path().filename().string();
  return folder.substr(folder.rfind('-') == std::string::npos ? 0 : folder.rfind('-') + 1);
}

bool is_run(const std::string& directory) {
  std::error_code ec;
  return fs::is_regular_file(fs::path(directory) / "events.jsonl", ec);
}

std::vector<std::string> runs_latest_first() {
  std::error_code ec;
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", ec))
    if (std::string path = entry.path().string(); is_run(path))
      found.emplace_back(fs::last_write_time(entry.path() / "events.jsonl", ec), path);
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> out;
  for (auto& [time, path] : found) out.push_back(std::move(path));
  return out;
}

}  // namespace tilewright::tools
