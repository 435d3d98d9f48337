// The runner that --runner names: whether it opens, and which devices measure there.
#include <fmt/format.h>

#include "tools/doctor/doctor.h"
#include "tools/runner.h"

namespace tilewright::tools {
namespace {

std::vector<Finding> devices(const DoctorContext& context) {
  if (context.runner.empty()) return {};
  auto runner = open_runner(context.runner, 0);
  if (!runner) {
    Diagnostic d = runner.error().diagnostic();
    return {{"runner", Level::error, fmt::format("{}: {}", context.runner, d.message), "nothing can be measured there",
             d.help.empty() ? "--runner takes local, fake or fake:FILE" : d.help}};
  }
  std::vector<Finding> out;
  for (const measure::DeviceInfo& device : (*runner)->devices()) {
    std::string facts;
    for (const auto& [name, value] : device.facts) facts += fmt::format(", {} {}", name, value);
    const std::string what = fmt::format("{} {} ({}{})", device.kind, device.name, device.uuid, facts);
    if (device.health == "serving")
      out.push_back({"runner", Level::good, what, "", ""});
    else
      out.push_back({"runner", Level::error, fmt::format("{}: {}", what, device.health),
                     "no candidate is measured on it", "start the runner again, and look at what it reported"});
  }
  if (out.empty())
    out.push_back({"runner", Level::error, context.runner + " has no device", "nothing can be measured there", ""});
  return out;
}

const Register<DoctorCheck> entry{"runner", "the devices of --runner", {false, devices}};

}  // namespace
}  // namespace tilewright::tools
