// Worker processes, and how steady a kernel's time is here: the device's canary in two sessions, against each other and
// against the last run.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "database/journal.h"
#include "measure/measurer.h"
#include "schedule/target.h"
#include "tools/doctor/doctor.h"
#include "tools/run_directory.h"

namespace tilewright::tools {
namespace {

struct Canary {
  std::string device;
  double ns = 0;
};

double number(const std::map<std::string, std::string>& facts, const std::string& key) {
  auto it = facts.find(key);
  return it == facts.end() ? 0 : std::strtod(it->second.c_str(), nullptr);
}

Result<Canary> canary_now() {
  measure::MeasurerOptions options;
  options.binary = std::filesystem::read_symlink("/proc/self/exe").string();
  TW_TRY(auto measurer, measure::open_measurer(options));
  for (const measure::DeviceInfo& d : measurer->devices()) return Canary{d.uuid, number(d.facts, "canary_ns")};
  return refuse(measure::measurer_unavailable, "the workers serve no device");
}

/// Of the same device, in the last run that has it.
std::optional<double> canary_of_last_run(const std::string& device) {
  for (const std::string& run : runs_latest_first()) {
    std::optional<double> found;
    auto read = read_journal((std::filesystem::path(run) / "events.jsonl").string(), [&](const Event& event) -> Status {
      if (auto* facts = std::get_if<DeviceFacts>(&event.body); facts && facts->device == device)
        if (double ns = number(facts->facts, "canary_ns"); ns > 0) found = ns;
      return {};
    });
    if (read && found) return found;
  }
  return std::nullopt;
}

std::vector<Finding> steadiness(const DoctorContext&) {
  auto first = canary_now();
  if (!first)
    return {{"workers", Level::error, first.error().diagnostic().message,
             "candidates are built and run in worker processes", first.error().diagnostic().help}};
  std::vector<Finding> out{{"workers", Level::good, "start and serve " + first->device, "", ""}};
  auto second = canary_now();
  if (!second || !(first->ns > 0) || !(second->ns > 0)) return out;
  auto compare = [&](const char* check, double a, double b, const std::string& what, const char* fix) {
    const double off = std::abs(a / b - 1);
    Finding f{check, Level::good, fmt::format("{:.1f} % {}", 100 * off, what), "", ""};
    if (off > 0.05) {
      f.level = Level::warning;
      f.why = "a kernel that is known does not repeat within 5 %: differences between candidates drown in that";
      f.fix = fix;
    }
    out.push_back(std::move(f));
  };
  compare("canary", first->ns, second->ns, "between two sessions", "see cpu-load, cpu-governor and cpu-steal");
  if (auto before = canary_of_last_run(first->device))
    compare("canary-stored", std::min(first->ns, second->ns), *before, "off the last run's",
            "something of the machine has changed since: measure winners again before comparing");
  return out;
}

const Register<DoctorCheck> entry{"workers", "worker processes, and how steady times are", {true, steadiness}};

}  // namespace
}  // namespace tilewright::tools
