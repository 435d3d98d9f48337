// Ceilings of this CPU: fused multiply-add rate per element type and memory rates, on the cores of a pool. Reports
// divide by them.
#pragma once

#include <map>
#include <string>

#include "measure/devices/cpu_clock.h"
#include "measure/devices/cpu_pool.h"

namespace tilewright::measure {

/// Element type → operations per second (a multiply-add counts 2). Only what the CPU has instructions for:
/// float32, float64; int8 with VNNI; bfloat16 with AVX512-BF16.
std::map<std::string, double> peak_rates(CpuPool& pool, const CpuClock& clock);

struct MemoryRates {
  double triad_bytes_per_s = 0;  ///< a = b + s·c: 3 arrays read or written, without the write allocation
  double copy_bytes_per_s = 0;   ///< a = b: 2 arrays
};
/// Arrays of four times the last-level cache together, at least 96 MiB.
MemoryRates memory_rates(CpuPool& pool, const CpuClock& clock, uint64_t last_level_bytes);

/// Nanoseconds of a fixed number of float32 multiply-adds on the calling core: compared with this core's own baseline.
double fma_canary_ns(const CpuClock& clock);

}  // namespace tilewright::measure
