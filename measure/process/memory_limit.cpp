#include "measure/process/memory_limit.h"

#include <sys/resource.h>

#include "support/sanitizer.h"

namespace tilewright::measure {

void limit_data(uint64_t mib) {
  if constexpr (with_sanitizer) return;
  // Data, not address space: reserved but unused memory costs nothing.
  rlimit limit{};
  getrlimit(RLIMIT_DATA, &limit);
  limit.rlim_cur = mib ? static_cast<rlim_t>(mib) << 20 : limit.rlim_max;
  setrlimit(RLIMIT_DATA, &limit);
}

uint64_t resident_limit(uint64_t bytes) {
  // ThreadSanitizer shadows a byte with four and a half at most; AddressSanitizer keeps up to 256 MiB of freed blocks.
  constexpr uint64_t factor = 6, kept = uint64_t{256} << 20;
  return with_sanitizer && bytes ? factor * bytes + kept : bytes;
}

}  // namespace tilewright::measure
