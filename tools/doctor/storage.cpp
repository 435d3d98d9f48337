// Where runs and records go: space on disk, a place to write, the default database.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "database/store.h"
#include "tools/database.h"
#include "tools/doctor/doctor.h"

namespace tilewright::tools {
namespace {

namespace fs = std::filesystem;

std::vector<Finding> disk(const DoctorContext&) {
  std::error_code ec;
  const fs::space_info space = fs::space(".", ec);
  if (ec) return {{"disk", Level::error, ec.message(), "runs are written here", "change to a folder that exists"}};
  const double gib = static_cast<double>(space.available) / (1 << 30);
  std::string value = fmt::format("{:.1f} GiB free here", gib);
  if (gib >= 1) return {{"disk", Level::good, value, "", ""}};
  return {{"disk", gib < 0.05 ? Level::error : Level::warning, value,
           "a journal that cannot grow ends the run; a thousand trials take some ten MiB",
           "free space, or run elsewhere"}};
}

std::vector<Finding> runs_folder(const DoctorContext&) {
  std::error_code ec;
  std::string folder = fs::is_directory("runs", ec) ? "runs" : ".";
  if (access(folder.c_str(), W_OK) == 0) return {{"runs-folder", Level::good, "can be written", "", ""}};
  return {{"runs-folder", Level::error, folder + " cannot be written", "the journal of a run is its memory",
           "change to a folder of your own, or name one: tilewright tune --run FOLDER"}};
}

/// Whether a file may be made at the path, folders on the way included.
bool can_be_made(const fs::path& path) {
  std::error_code ec;
  fs::path folder = fs::absolute(path, ec).parent_path();
  while (!fs::exists(folder, ec) && folder.has_relative_path()) folder = folder.parent_path();
  return access(folder.c_str(), W_OK) == 0 && fs::is_directory(folder, ec);
}

std::vector<Finding> database(const DoctorContext& context) {
  const std::string url = database_url(context.database);
  auto records = [&](bool write) -> Result<std::string> {
    TW_TRY(auto opened, open_database(url, {.create = false, .write = write}));
    TW_TRY(auto stats, opened->stats());
    return fmt::format("{}, {} records", url, stats.records);
  };
  if (auto found = records(true)) return {{"database", Level::good, *found, "", ""}};
  const char* other_place = "name a place of your own: --db sqlite:FILE";
  auto found = records(false);
  if (found)
    return {{"database", Level::warning, *found + ", can only be read", "results of a run cannot be stored there",
             other_place}};
  if (found.error().is(database_missing)) {
    const std::string_view file = url;
    if (!file.starts_with("sqlite:") || can_be_made(file.substr(7)))
      return {{"database", Level::good, url + " (not there yet)", "", ""}};
    return {{"database", Level::error, url + " cannot be made", "results are stored there", other_place}};
  }
  Diagnostic d = found.error().diagnostic();
  return {{"database", Level::error, d.message, "stored results cannot be used",
           d.help.empty() ? "tilewright db verify" : d.help}};
}

const Register<DoctorCheck> entries[] = {{"disk", "free space", {false, disk}},
                                         {"runs-folder", "a place for runs", {false, runs_folder}},
                                         {"database", "the tuning database", {false, database}}};

}  // namespace
}  // namespace tilewright::tools
