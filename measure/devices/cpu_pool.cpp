#include "measure/devices/cpu_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <chrono>
#include <climits>

namespace tilewright::measure {

namespace {

constexpr auto spin_time = std::chrono::microseconds(50);
thread_local bool in_region = false;
thread_local uint32_t own_number = 0;

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

CpuPool::CpuPool(std::vector<int> cpus) : cpus_(std::move(cpus)) {
  pin(cpus_[0]);
  threads_.reserve(cpus_.size());  // workers look themselves up while others are still being added
  for (uint32_t i = 1; i < cpus_.size(); ++i) {
    threads_.push_back(std::make_unique<Worker>());
    threads_.back()->thread = std::thread([this, i] { serve(i); });
  }
}

CpuPool::~CpuPool() {
  stop_ = true;
  region_.fetch_add(1, std::memory_order_release);
  futex_wake(region_);
  for (auto& worker : threads_) worker->thread.join();
}

uint64_t CpuPool::preemptions() const {
  uint64_t sum = 0;
  for (const auto& worker : threads_) sum += worker->preemptions.load(std::memory_order_relaxed);
  return sum;
}

void CpuPool::set_real_time(bool on) {
  sched_param parameter{on ? 1 : 0};
  int policy = on ? SCHED_FIFO : SCHED_OTHER;
  if (sched_setscheduler(0, policy, &parameter) != 0) return;  // not permitted
  for (auto& worker : threads_)
    if (pid_t tid = worker->tid.load(std::memory_order_acquire)) sched_setscheduler(tid, policy, &parameter);
}

int32_t CpuPool::parallel_for(void* pool, int64_t chunks, tw_body body, void* env) {
  return static_cast<CpuPool*>(pool)->run(chunks, body, env);
}

int32_t CpuPool::run(int64_t chunks, tw_body body, void* env) {
  if (in_region || cpus_.size() == 1 || chunks <= 1) {  // nested regions run on the worker that meets them
    for (int64_t i = 0; i < chunks; ++i)
      if (int32_t error = body(env, i, own_number)) return error;
    return 0;
  }
  chunks_ = chunks, body_ = body, env_ = env;
  error_.store(0, std::memory_order_relaxed);
  left_.store(workers() - 1, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(region_);
  int32_t error = run_share(0);
  if (error) error_.store(error, std::memory_order_relaxed);
  // A worker whose core is taken away needs ours to be given back now and then.
  auto end = std::chrono::steady_clock::now() + spin_time;
  for (int spins = 0; left_.load(std::memory_order_acquire) > 0; ++spins) {
    _mm_pause();
    if (spins % 256 == 255 && std::chrono::steady_clock::now() > end) sched_yield();
  }
  return error_.load(std::memory_order_relaxed);
}

int32_t CpuPool::run_share(uint32_t worker) {
  int64_t n = chunks_, w = workers(), begin = n * worker / w, end = n * (worker + 1) / w;
  in_region = true;
  int32_t error = 0;
  for (int64_t i = begin; i < end && !error; ++i) error = body_(env_, i, worker);
  in_region = false;
  return error;
}

void CpuPool::serve(uint32_t number) {
  pin(cpus_[number]);
  own_number = number;
  threads_[number - 1]->tid.store(gettid(), std::memory_order_release);
  uint32_t seen = 0;
  for (;;) {
    auto end = std::chrono::steady_clock::now() + spin_time;
    for (int spins = 0; region_.load(std::memory_order_acquire) == seen; ++spins) {
      _mm_pause();
      if (spins % 256 != 255 || std::chrono::steady_clock::now() < end) continue;
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      futex_wait(region_, seen);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
    ++seen;
    if (stop_) return;
    if (int32_t error = run_share(number)) error_.store(error, std::memory_order_relaxed);
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    threads_[number - 1]->preemptions.store(static_cast<uint64_t>(usage.ru_nivcsw), std::memory_order_relaxed);
    left_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace tilewright::measure
