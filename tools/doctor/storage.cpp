// Where runs and records go: space on disk, a place to write, the default database.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "database/store.h"
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

std::vector<Finding> database(const DoctorContext&) {
  const char *base = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  fs::path path;
  if (base && *base)
    path = fs::path(base) / "tilewright" / "tuning.db";
  else if (home && *home)
    path = fs::path(home) / ".local/share/tilewright/tuning.db";
  else
    return {
        {"database", Level::warning, "no home", "the default tuning database lives in the home folder", "set HOME"}};
  std::error_code ec;
  if (!fs::exists(path, ec)) return {{"database", Level::good, path.string() + " (not there yet)", "", ""}};
  DatabaseOptions options;
  options.create = false;
  auto opened = open_database("sqlite:" + path.string(), options);
  if (!opened)
    return {{"database", Level::error, path.string() + ": " + opened.error().diagnostic().message,
             "stored results cannot be used", opened.error().diagnostic().help}};
  auto stats = (*opened)->stats();
  if (!stats)
    return {{"database", Level::error, path.string() + ": " + stats.error().diagnostic().message,
             "stored results cannot be used", "tilewright db verify"}};
  return {{"database", Level::good, fmt::format("{}, {} records", path.string(), stats->records), "", ""}};
}

const Register<DoctorCheck> entries[] = {{"disk", "free space", {false, disk}},
                                         {"runs-folder", "a place for runs", {false, runs_folder}},
                                         {"database", "the default tuning database", {false, database}}};

}  // namespace
}  // namespace tilewright::tools
