// The embedded measurer: an agent as child process on a socket pair, no ports, no files. One thread talks to it; the
// search calls submit and poll from another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "measure/measurer.h"
#include "measure/process/spawn.h"
#include "measure/session/codec.h"
#include "measure/session/frame.h"

namespace tilewright::measure {

class EmbeddedMeasurer final : public Measurer {
 public:
  static Result<std::unique_ptr<Measurer>> open(const MeasurerOptions& options);
  ~EmbeddedMeasurer() override;

  void submit(Job job) override;
  std::vector<Outcome> poll(std::chrono::milliseconds timeout) override;
  void acknowledge(std::span<const MeasurementId> ids) override;
  void cancel(std::span<const MeasurementId> ids) override;
  void wake() override;
  size_t in_flight() const override;
  size_t capacity() const override;
  std::vector<DeviceInfo> devices() const override;
  Result<Calibration> calibrate(const std::string& device, int threads) override;
  Result<std::string> artifact(const std::string& digest) override;
  std::vector<std::string> take_events() override;
  void park_while_quiet() override;

  pid_t agent_pid() const;  ///< for tests that kill it

 private:
  using Time = std::chrono::steady_clock::time_point;
  explicit EmbeddedMeasurer(MeasurerOptions options);

  // On the thread of the session, with the lock held:
  void serve();
  void start_agent();
  void lost_agent(const Exit* exit);
  void send_jobs();
  void send_blob(const std::string& digest, const std::string& bytes);
  void handle(const wire::Down& message);
  void handle_rejected(const wire::Rejected& rejected);
  void deliver(Outcome outcome);
  void answer_quiet();
  void interrupt();

  MeasurerOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
  Fd interrupt_;  ///< eventfd: something is to be sent

  Child agent_;
  FrameSocket socket_;
  bool open_ = false, closing_ = false, woken_ = false;
  int failed_starts_ = 0;
  Time next_start_{};
  std::string start_error_;
  std::vector<DeviceInfo> devices_;
  size_t credits_ = 0;
  uint64_t incarnation_ = 0;
  std::set<std::string> sent_blobs_;

  std::multimap<int, Job, std::greater<>> waiting_;  ///< by priority; equal ones in the order submitted
  std::map<MeasurementId, Job> dispatched_;
  std::vector<Outcome> done_;
  std::vector<std::string> to_acknowledge_, to_cancel_;
  std::vector<std::string> events_;
  std::map<uint64_t, std::optional<Result<Calibration>>> calibrations_;
  std::vector<wire::Up> requests_;
  uint64_t next_ticket_ = 1;
  std::map<std::string, std::string> fetched_;
  std::map<std::string, bool> fetch_done_;

  bool quiet_ = false, parked_ = false;
  Time quiet_until_{};
};

}  // namespace tilewright::measure
