#include "tools/runner.h"

#include <fmt/format.h>

#include <filesystem>

#include "codegen/codegen.h"
#include "lowering/options.h"
#include "support/component.h"
#include "tools/inputs.h"

namespace tilewright::tools {

namespace {

/// Settings of a fake device as JSON; empty: its defaults, or no fake device.
Result<std::string> fake_settings(const std::string& runner) {
  return runner.starts_with("fake:") ? read_file(runner.substr(5)) : Result<std::string>();
}

}  // namespace

Result<std::unique_ptr<measure::Measurer>> open_runner(const std::string& runner, uint64_t campaign) {
  measure::MeasurerOptions options;
  std::error_code ec;
  options.binary = std::filesystem::read_symlink("/proc/self/exe", ec).string();
  for (const Plugin& plugin : open_plugins()) options.plugins.push_back(plugin.path);
  options.campaign = campaign;
  if (runner.starts_with("fake")) {
    options.devices = {"fake"};
    TW_TRY(options.fake, fake_settings(runner));
  }
  return measure::open_measurer(options);
}

Result<ByName<std::string>> environment_of(const measure::Measurer& measurer, const std::string& runner,
                                           int run_threads, const Target& target, const std::string& lower) {
  ByName<std::string> out{{"threads", fmt::format("{}", run_threads)}};
  if (!lower.empty()) out["lower"] = lower;
  if (runner.starts_with("fake")) {  // builds nothing
    out["toolchain"] = fmt::format("tilewright {}", TILEWRIGHT_VERSION);
  } else {
    TW_TRY(out["toolchain"], codegen::toolchain(target));
  }
  for (const measure::DeviceInfo& device : measurer.devices())
    if (device.health == "serving") {
      out["device"] = fmt::format("{} {}", device.kind, device.name);
      break;
    }
  TW_TRY(std::string fake, fake_settings(runner));
  if (!fake.empty()) out["fake"] = content_key(fake).hex();  // its times follow from these settings
  return out;
}

std::map<std::string, std::string> lower_options_of(const ByName<std::string>& environment) {
  auto found = environment.find("lower");
  return found == environment.end() ? std::map<std::string, std::string>{}
                                    : lowering::LowerOptions::split(found->second);
}

measure::Outcome run_job(measure::Measurer& measurer, measure::Job job) {
  constexpr int most_attempts = 3;
  for (;; ++job.id.attempt) {
    measurer.submit(job);
    measure::Outcome outcome;
    for (bool done = false; !done;)
      for (measure::Outcome& o : measurer.poll(std::chrono::milliseconds(200)))
        if (o.id == job.id) outcome = std::move(o), done = true;
    measurer.acknowledge(std::span(&job.id, 1));
    if (info(outcome.status).owner != Owner::environment || job.id.attempt + 1 >= most_attempts) return outcome;
  }
}

}  // namespace tilewright::tools
