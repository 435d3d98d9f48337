// A loop over the cores of one process; the only place that uses oneTBB.
#pragma once

#include <cstddef>
#include <functional>

namespace tilewright {

/// body(i) for each i in [begin, end), on at most `threads` threads at once; returns when all have ended. One thread:
/// in order, on the caller's.
void parallel_for(size_t begin, size_t end, int threads, const std::function<void(size_t)>& body);

}  // namespace tilewright
