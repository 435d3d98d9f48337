// One job in exec, from loaded artifacts to a verified time; the same order on every device:
//   load → (for each set: poison, launch, compare) → red zones, inputs → time on the last set → compare again → red
//   zones, inputs.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure/devices/device.h"
#include "measure/timing/shootout.h"

namespace tilewright::measure {

struct TrialArtifact {
  Fd file;
  EntryInfo entry;
};

struct TrialTask {
  enum class Kind { measure, reference, calibrate } kind = Kind::measure;
  std::vector<TrialArtifact> artifacts;  ///< one per contender
  CheckPlan plan;
  RunSpec spec;
  std::string resident;  ///< equal strings share program, seed and threads: buffers are kept between tasks
  std::string reference_digest;
  std::string_view reference;  ///< outputs in order, set by set
  uint32_t rounds = 0;         ///< stage final: rounds of this process
};

struct TrialHooks {
  std::function<void(const char* name, uint32_t launches)> phase;  ///< 0 launches: our own work
  std::function<bool(bool on)> quiet;                              ///< false: it came late
  std::function<void(double ms)> pause;
};

struct TrialResult {
  Outcome outcome;          ///< without ids, device and build reports
  std::string reference;    ///< kind reference
  Calibration calibration;  ///< kind calibrate
  Rounds rounds;            ///< stage final
  bool replace = false;     ///< the state of this process is no longer trusted
};

class TrialRunner {
 public:
  explicit TrialRunner(Device& device) : device_(device), canary_baseline_(device.canary()) {}
  TrialResult run(const TrialTask& task, const TrialHooks& hooks);

 private:
  Attempt<void> run_unchecked(const TrialTask& task, const TrialHooks& hooks, TrialResult& result);
  Attempt<void> prepare(const TrialTask& task, const TrialHooks& hooks);
  Attempt<void> make_reference(const TrialTask& task, const TrialHooks& hooks, TrialResult& result);
  Attempt<void> check(const TrialTask& task, const TrialHooks& hooks, size_t slot, CheckSet set, CheckReport& report);
  Attempt<void> check_memory(CheckReport& report);
  bool hopeless(const TrialTask& task) const;
  Attempt<void> time(const TrialTask& task, const TrialHooks& hooks, TrialResult& result);

  Device& device_;
  double canary_baseline_, canary_ratio_ = 0;
  uint64_t timed_tasks_ = 0;
  double fastest_check_ns_ = 0;  ///< of the current task's check launches
  std::string resident_;
  std::string sigma_digest_;
  std::map<std::pair<CheckSet, size_t>, double> sigmas_;  ///< of the reference `sigma_digest_`
};

}  // namespace tilewright::measure
