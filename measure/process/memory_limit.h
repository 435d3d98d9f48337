// How much memory a worker may take. Two limits: the worker limits its own data, so that its allocations fail and it
// says so (exit_out_of_memory); the agent watches what is resident, which catches mappings that do not count as data.
#pragma once

#include <cstdint>

namespace tilewright::measure {

/// Limits the data of this process; 0: no limit but the one that it was started with. A sanitizer's shadow memory
/// counts as data though little of it is ever touched, so with one this does nothing, and the agent's limit is the only
/// one.
void limit_data(uint64_t mib);

/// What may be resident of a process that is to use `bytes`; more with a sanitizer, which has memory of its own.
uint64_t resident_limit(uint64_t bytes);

}  // namespace tilewright::measure
