// The fake device: deterministic times and faults on demand, so that a tuner is tested without hardware. It sits in the
// real exec and its builder in the real build worker, so a crash is a crash and a hang is a hang.
//
// Time is a function of (trace decisions, device, seed): base_us · Π over decisions of a penalty for its distance from
// a secret optimum, times log-normal noise per sample; a trace without decisions (the untuned program) takes `untuned`
// times base_us. Settings come as one JSON object, for all trials:
//   {"seed": 1, "base_us": 100, "untuned": 10, "spread": 0.3, "noise": 0.005, "device_offset": 0.0,
//    "drift_per_minute": 0.0, "bimodal": 0.0,
//    "warm_up": 0.0, "clock": [1000, 900], "real_time": false, "canary": 1.0,
//    "faults": [{"fault": "segv", "p": 0.05}, …]}
// and per candidate from any string of the form "fake.KEY=VALUE" in its trace ("fake.fault=hang", "fake.time_us=12.5",
// "fake.noise=0.2"). Without "real_time", launches take no time: only the reported numbers do.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "support/result.h"

namespace tilewright::measure {

TW_REFUSAL_CODE(fake_config_invalid, "fake-config-invalid",
                "the settings of a fake device are not what devices/fake.h describes");

struct FakeConfig {
  uint64_t seed = 1;
  double base_us = 100, untuned = 10, spread = 0.3, noise = 0.005, device_offset = 0, drift_per_minute = 0, bimodal = 0,
         warm_up = 0;
  std::vector<double> clock{1000};  ///< MHz, one per block, the last one for ever
  bool real_time = false;
  double canary = 1;                                   ///< canary time over its baseline
  std::vector<std::pair<std::string, double>> faults;  ///< name, probability per candidate

  static Result<FakeConfig> parse(std::string_view json);
};

/// What a trace says about itself: its "fake.KEY=VALUE" strings and its integer decisions.
struct FakeTrace {
  std::map<std::string, std::string> settings;
  std::vector<int64_t> decisions;
  static FakeTrace parse(std::string_view trace);
};

/// All fault names with a line of documentation; those that start with "build_" or end in "_refused" strike in the
/// build worker.
const std::map<std::string, std::string>& fake_faults();
/// The fault of a candidate: as its trace says, else drawn by a hash of (seed, trace); empty: none.
std::string fake_fault(const FakeConfig& config, const FakeTrace& trace, std::string_view text);
/// Undisturbed time per launch in ns.
double fake_time_ns(const FakeConfig& config, const FakeTrace& trace, int device);

}  // namespace tilewright::measure
