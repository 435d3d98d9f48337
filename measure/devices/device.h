// A device as exec sees it: buffers of one program with red zones, loaded artifacts, launches, blocks of timed
// launches. One file adds a device: it derives from Device and registers a DeviceKind. Failures are values (Fault), so
// that the order of a trial (worker/trial.h) is the same for every device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "measure/check/plan.h"
#include "measure/measurer.h"
#include "measure/process/fd.h"
#include "support/registry.h"

namespace tilewright::measure {

struct Fault {
  TrialStatus status = TrialStatus::internal_error;
  std::string detail;
  bool sticky = false;  ///< the process's device state is no longer trusted: exec is replaced
};

template <class T>
using Attempt = tl::expected<T, Fault>;
inline tl::unexpected<Fault> fault(TrialStatus status, std::string detail, bool sticky = false) {
  return tl::unexpected<Fault>(Fault{status, std::move(detail), sticky});
}

/// Some timed samples of one artifact and the clock around them.
struct Block {
  std::vector<double> ns;                    ///< per launch
  uint32_t discarded = 0;                    ///< disturbed samples, not in ns
  double clock_before = 0, clock_after = 0;  ///< MHz; 0: the device has no probe
  double elapsed_ns = 0;                     ///< device time that the block took, flushes included
  bool coarse = false;                       ///< samples too short for the timer
};

struct BlockSpec {
  uint32_t samples = 10;
  uint32_t launches_per_sample = 1;
  Mode mode = Mode::cold;
  uint64_t flush_bytes = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceInfo info() const = 0;
  virtual Timer timer() const = 0;
  /// Allocates the buffers of the program and makes its inputs. The same addresses serve every candidate until the next
  /// bind.
  virtual Attempt<void> bind(const CheckPlan& plan, uint64_t seed, int threads) = 0;
  /// Puts an artifact into `slot`, replacing what was there.
  virtual Attempt<void> load(size_t slot, const Fd& artifact, const EntryInfo& entry) = 0;
  virtual void unload_all() = 0;

  /// Selects a set of inputs, poisons the outputs, restores inout buffers, launches once and waits. The time of the
  /// launch in ns by the device's clock, cold and not to be ranked.
  virtual Attempt<double> launch(size_t slot, CheckSet set) = 0;
  /// Launches on the last set of the plan, timed. Inout buffers are restored outside the timed part.
  virtual Attempt<Block> time(size_t slot, const BlockSpec& spec) = 0;
  /// Bytes of an output after the last launch; valid until the next one.
  virtual Attempt<std::string_view> output(size_t buffer) = 0;
  /// Names the first buffer whose red zone was hit; empty: none.
  virtual std::string hit_red_zone() = 0;
  /// Names the first input that a launch has changed; empty: none.
  virtual std::string changed_input() = 0;

  /// Time of a fixed piece of work, ns: compared with the device's own baseline.
  virtual double canary() = 0;
  virtual Attempt<Calibration> calibrate(int threads) = 0;
};

/// Registered by kind: "cpu", "fake".
struct DeviceKind {
  static constexpr const char* registry_name = "device";
  /// `index` numbers devices of a kind on a host; `config` is the kind's own JSON.
  std::function<Result<std::unique_ptr<Device>>(int index, const std::string& config)> make;
  /// Build pipeline for jobs that ask for the default or naive one; empty: as asked.
  std::string pipeline;
};

TW_REFUSAL_CODE(device_unavailable, "device-unavailable", "a device does not exist on this host or cannot be used");

}  // namespace tilewright::measure
