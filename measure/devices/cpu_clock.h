// Time and its disturbances on a CPU: the time stamp counter, a probe of the real clock rate, stolen time, which cores
// to use.
#pragma once

#include <x86intrin.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::measure {

/// Reads a counter that waits for earlier instructions and holds back later ones.
inline uint64_t read_counter() {
  unsigned aux;
  uint64_t t = __rdtscp(&aux);
  _mm_lfence();
  return t;
}

class CpuClock {
 public:
  /// Calibrates the counter against CLOCK_MONOTONIC_RAW (10 ms).
  CpuClock();
  bool invariant() const { return invariant_; }
  /// Counter if it is invariant, else CLOCK_MONOTONIC_RAW in ns.
  uint64_t now() const { return invariant_ ? read_counter() : raw_ns(); }
  double ns(uint64_t ticks) const { return static_cast<double>(ticks) * ns_per_tick_; }
  /// MHz of this core, by a chain of dependent adds: the best of three runs of about 50 µs.
  double probe_mhz() const;
  static uint64_t raw_ns();

 private:
  bool invariant_ = false;
  double ns_per_tick_ = 1;
};

/// CPUs this process may use, one hardware thread per physical core, in order; the last ones first, because interrupts
/// and everybody else's threads prefer the first.
std::vector<int> usable_cores();
/// Ticks of 1/100 s that the hypervisor took from these CPUs so far.
uint64_t stolen_ticks(const std::vector<int>& cpus);
/// Involuntary context switches of the calling thread so far.
uint64_t preemptions();

struct CpuFacts {
  std::string model;
  uint64_t last_level_bytes = 0;  ///< of one cache
  std::string governor;           ///< empty: not visible
  std::string microcode;
};
CpuFacts cpu_facts();

/// Writes back and evicts the lines of a range.
void flush_range(const void* begin, size_t bytes);

}  // namespace tilewright::measure
