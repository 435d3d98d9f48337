// A measurer in this process: times of the fake device (measure/devices/fake.h), endings as a script says. Jobs arrive
// in any order the test likes, so that nothing rests on the order of arrival.
#pragma once

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include "measure/devices/fake.h"
#include "measure/measurer.h"

namespace tilewright {

class ScriptedMeasurer : public measure::Measurer {
 public:
  /// Changes the outcome of a job, which is ok when it comes in. Called once per job, in order of arrival.
  std::function<void(const measure::Job&, measure::Outcome&)> script;
  measure::FakeConfig config;
  size_t slots = 4;           ///< capacity
  size_t per_poll = 2;        ///< results per poll
  bool newest_first = false;  ///< which jobs end first
  bool keep_times = false;    ///< of outcomes that are not ok, as of noisy ones
  bool slow = false;          ///< nothing has ended unless somebody waits
  std::function<bool(const measure::Job&)> hangs = [](const measure::Job&) { return false; };  ///< until cancelled
  std::vector<measure::Job> seen;

  void submit(measure::Job job) override {
    seen.push_back(job);
    jobs_.push_back(std::move(job));
  }
  std::vector<measure::Outcome> poll(std::chrono::milliseconds timeout) override {
    std::vector<measure::Outcome> out;
    if (slow && timeout.count() == 0) return out;
    std::swap(out, cancelled_);
    for (size_t i = 0; i < per_poll && !jobs_.empty(); ++i) {
      auto at = newest_first ? jobs_.end() - 1 : jobs_.begin();
      if (hangs(*at)) {
        std::this_thread::sleep_for(timeout);
        break;
      }
      measure::Job job = std::move(*at);
      jobs_.erase(at);
      out.push_back(measure(job));
    }
    return out;
  }
  void acknowledge(std::span<const measure::MeasurementId>) override {}
  void cancel(std::span<const measure::MeasurementId> ids) override {
    for (const measure::MeasurementId& id : ids) {
      std::erase_if(jobs_, [&](const measure::Job& job) { return job.id == id; });
      measure::Outcome& o = cancelled_.emplace_back();
      o.id = id;
      o.status = TrialStatus::cancelled;
    }
  }
  void wake() override {}
  size_t in_flight() const override { return jobs_.size(); }
  size_t capacity() const override { return slots; }
  std::vector<measure::DeviceInfo> devices() const override { return {}; }
  Result<measure::Calibration> calibrate(const std::string&, int) override { return measure::Calibration(); }
  Result<std::string> artifact(const std::string&) override { return std::string(); }
  std::vector<std::string> take_events() override { return {}; }
  void park_while_quiet() override {}

 private:
  measure::Outcome measure(const measure::Job& job) {
    measure::Outcome o;
    o.id = job.id;
    o.status = TrialStatus::ok;
    o.phase = "time";
    o.device = "fake-0";
    o.exec = std::to_string(job.id.trial % 3);
    o.check.emplace();
    for (size_t i = 0; i < job.contenders.size(); ++i) {
      measure::Measurement m;
      m.contender = static_cast<int>(i);
      m.stage = job.run.stage;
      m.n = 10;
      m.median = measure::fake_time_ns(config, measure::FakeTrace::parse(job.contenders[i].trace), 0);
      m.ci_lo = 0.99 * m.median;
      m.ci_hi = 1.01 * m.median;
      o.measurements.push_back(m);
    }
    if (script) script(job, o);
    if (!o.ok() && !keep_times) o.measurements.clear();
    return o;
  }
  std::vector<measure::Job> jobs_;
  std::vector<measure::Outcome> cancelled_;
};

}  // namespace tilewright
