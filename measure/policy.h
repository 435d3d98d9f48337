// How long and how carefully a time is taken. One value per stage; every number can be set per job.
#pragma once

#include <cstdint>

namespace tilewright::measure {

struct MeasurePolicy {
  uint32_t min_samples = 10;  ///< samples before the stopping rule is asked
  uint32_t max_samples = 200;
  uint32_t block = 10;          ///< samples between two looks at the clock
  uint32_t budget_us = 30'000;  ///< device time per contender, checks excluded
  uint32_t ci_ppm = 10'000;     ///< stop when the 95 % interval of the median lies within ± this of it
  uint32_t cut_ppm = 500'000;   ///< slower than the incumbent by this (first samples; 3/5 of it later, by ci_lo): ok +
                                ///< cut_short; 0: off
  uint64_t flush_bytes = 0;     ///< cold mode: bytes to evict with; 0: the device's rule
  uint32_t pacing_us = 0;       ///< idle gap after each block
  uint32_t clock_change_ppm = 30'000;  ///< a larger change of the clock inside a block repeats the block
  uint32_t canary_period = 16;         ///< jobs between two canaries; 0: never

  static MeasurePolicy screen() { return {}; }
  static MeasurePolicy confirm() {
    MeasurePolicy p;
    p.min_samples = 30, p.max_samples = 1000, p.budget_us = 300'000, p.ci_ppm = 3'000, p.cut_ppm = 0;
    return p;
  }
  /// Per contender; `max_samples` is the number of rounds of the shoot-out.
  static MeasurePolicy final() {
    MeasurePolicy p = confirm();
    p.min_samples = 5, p.max_samples = 30, p.block = 1, p.budget_us = 3'000'000;
    return p;
  }
};

}  // namespace tilewright::measure
