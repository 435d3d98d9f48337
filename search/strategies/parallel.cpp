#include "search/strategies/parallel.h"

#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include "support/sanitizer.h"

namespace tilewright {

void parallel_for(size_t begin, size_t end, int threads, const std::function<void(size_t)>& body) {
  if (threads <= 1) {
    for (size_t i = begin; i < end; ++i) body(i);
    return;
  }
  char order = 0;  // its address stands for what oneTBB orders: the start before each body, each body before the end
  tbb::task_arena arena(threads);
  happens_before(&order);
  arena.execute([&] {
    tbb::parallel_for(begin, end, [&](size_t i) {
      happens_after(&order);
      body(i);
      happens_before(&order);
    });
  });
  happens_after(&order);
}

}  // namespace tilewright
