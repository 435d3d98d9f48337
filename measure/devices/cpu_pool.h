// exec's own thread pool: pinned threads that spin between parallel regions and sleep on a futex after 50 µs. The
// caller is worker 0. Chunks go to workers in contiguous ranges, so equal chunks touch equal caches from launch to
// launch.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "codegen/host.h"

namespace tilewright::measure {

class CpuPool {
 public:
  /// One thread per entry of `cpus`; the calling thread is pinned to the first.
  explicit CpuPool(std::vector<int> cpus);
  ~CpuPool();

  uint32_t workers() const { return static_cast<uint32_t>(cpus_.size()); }
  const std::vector<int>& cpus() const { return cpus_; }
  int32_t run(int64_t chunks, tw_body body, void* env);
  /// For tw_host.
  static int32_t parallel_for(void* pool, int64_t chunks, tw_body body, void* env);
  /// Involuntary context switches of the other workers, as of their last region.
  uint64_t preemptions() const;
  /// While it lives, all workers have real-time priority where this process may ask for it (root, CAP_SYS_NICE,
  /// RLIMIT_RTPRIO): nothing ordinary preempts them. The kernel's real-time throttling keeps a hung candidate from
  /// starving the watchdog. Without the right nothing changes, and disturbed samples are discarded as they come.
  class Undisturbed {
   public:
    explicit Undisturbed(CpuPool& pool) : pool_(pool) { pool_.set_real_time(true); }
    ~Undisturbed() { pool_.set_real_time(false); }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

   private:
    CpuPool& pool_;
  };

 private:
  struct alignas(64) Worker {
    std::thread thread;
    std::atomic<uint64_t> preemptions{0};
    std::atomic<pid_t> tid{0};
  };
  void set_real_time(bool on);
  void serve(uint32_t worker);
  int32_t run_share(uint32_t worker);

  std::vector<int> cpus_;
  std::vector<std::unique_ptr<Worker>> threads_;
  alignas(64) std::atomic<uint32_t> region_{0};  ///< grows by one for each parallel region; futex word
  alignas(64) std::atomic<uint32_t> left_{0};    ///< workers still in the region
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<int32_t> error_{0};
  bool stop_ = false;
  int64_t chunks_ = 0;
  tw_body body_ = nullptr;
  void* env_ = nullptr;
};

}  // namespace tilewright::measure
