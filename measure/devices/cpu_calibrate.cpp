#include "measure/devices/cpu_calibrate.h"

#include <immintrin.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "measure/timing/statistics.h"

namespace tilewright::measure {

namespace {

constexpr int chains = 12;  // independent: at least pipes × latency of the machines we know (2 × 4 … 2 × 5)
// Many short runs, of which the best counts: a run below a scheduler's time slice has a chance to be undisturbed on a
// busy host.
constexpr int repetitions = 60;
constexpr double least_ns = 3e5;
constexpr int memory_passes = 5, memory_slices = 32;
constexpr double memory_quantile = 0.9;  // of the slices: the very best ones may owe something to a cache

/// Runs `steps` steps and returns the number of operations done; the result goes to memory so that nothing is dropped.
using Kernel = double (*)(int64_t steps, void* sink);

// One step is `chains` multiply-adds on whole vectors. Twelve names instead of an array: registers at every
// optimisation level.
#define TW_EACH_CHAIN(X) X(a) X(b) X(c) X(d) X(e) X(f) X(g) X(h) X(i) X(j) X(k) X(l)
#define TW_KERNEL(name, features, vector, zero, multiply_add, ops)                                \
  __attribute__((target(features))) double name(int64_t steps, void* sink) {                      \
    vector a = zero, b = a, c = a, d = a, e = a, f = a, g = a, h = a, i = a, j = a, k = a, l = a; \
    vector x = zero, y = zero;                                                                    \
    TW_EACH_CHAIN(TW_DISTINCT)                                                                    \
    for (int64_t step = 0; step < steps; ++step) {                                                \
      asm volatile("" : "+v"(x), "+v"(y)); /* the same work again, for all the compiler knows */  \
      TW_EACH_CHAIN(multiply_add)                                                                 \
    }                                                                                             \
    TW_EACH_CHAIN(TW_STORE)                                                                       \
    return static_cast<double>(steps) * chains * (ops);                                           \
  }
// Else the compiler sees that all chains hold the same value, and computes one.
#define TW_DISTINCT(v) asm volatile("" : "+v"(v));
#define TW_STORE(v)                 \
  std::memcpy(sink, &v, sizeof(v)); \
  asm volatile("" ::"r"(sink) : "memory");
#define TW_F32_256(v) v = _mm256_fmadd_ps(x, y, v);
#define TW_F64_256(v) v = _mm256_fmadd_pd(x, y, v);
#define TW_F32_512(v) v = _mm512_fmadd_ps(x, y, v);
#define TW_F64_512(v) v = _mm512_fmadd_pd(x, y, v);
#define TW_S8_512(v) v = _mm512_dpbusd_epi32(v, x, y);
#define TW_BF16_512(v) v = _mm512_dpbf16_ps(v, reinterpret_cast<__m512bh&>(x), reinterpret_cast<__m512bh&>(y));

TW_KERNEL(f32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), TW_F32_256, 16)
TW_KERNEL(f64_avx2, "avx2,fma", __m256d, _mm256_setzero_pd(), TW_F64_256, 8)
TW_KERNEL(f32_avx512, "avx512f", __m512, _mm512_setzero_ps(), TW_F32_512, 32)
TW_KERNEL(f64_avx512, "avx512f", __m512d, _mm512_setzero_pd(), TW_F64_512, 16)
TW_KERNEL(s8_vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), TW_S8_512, 128)
TW_KERNEL(bf16_dot, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(), TW_BF16_512, 64)

/// Runs body(worker) on every worker of the pool at once; elapsed ns.
double on_all(CpuPool& pool, const CpuClock& clock, const std::function<void(uint32_t)>& body) {
  auto call = [](void* env, int64_t, uint32_t worker) -> int32_t {
    (*static_cast<const std::function<void(uint32_t)>*>(env))(worker);
    return 0;
  };
  uint64_t begin = clock.now();
  pool.run(pool.workers(), call, const_cast<std::function<void(uint32_t)>*>(&body));
  return clock.ns(clock.now() - begin);
}

double rate(CpuPool& pool, const CpuClock& clock, Kernel kernel) {
  struct alignas(64) Sink {
    char bytes[64];
  };
  std::vector<Sink> sinks(pool.workers());
  std::vector<double> done(pool.workers());
  int64_t steps = 10'000;
  auto body = [&](uint32_t w) { done[w] = kernel(steps, &sinks[w]); };
  while (on_all(pool, clock, body) < least_ns) steps *= 2;
  double best = 0;
  for (int i = 0; i < repetitions; ++i) {
    double ns = on_all(pool, clock, body), operations = 0;
    for (double d : done) operations += d;
    best = std::max(best, operations / ns * 1e9);
  }
  return best;
}

/// Anonymous memory on huge pages where there are some.
class Array {
 public:
  explicit Array(size_t bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    data = static_cast<double*>(p);
    madvise(p, bytes, MADV_HUGEPAGE);
  }
  ~Array() {
    if (data) munmap(data, bytes_);
  }
  Array(const Array&) = delete;
  double* data = nullptr;

 private:
  size_t bytes_;
};

}  // namespace

std::map<std::string, double> peak_rates(CpuPool& pool, const CpuClock& clock) {
  std::map<std::string, double> rates;
  __builtin_cpu_init();
  auto take = [&](const char* dtype, Kernel kernel) {
    rates[dtype] = std::max(rates[dtype], rate(pool, clock, kernel));
  };
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    take("float32", f32_avx2);
    take("float64", f64_avx2);
  }
  if (__builtin_cpu_supports("avx512f")) {  // some CPUs are faster with the narrower one: the better counts
    take("float32", f32_avx512);
    take("float64", f64_avx512);
    if (__builtin_cpu_supports("avx512vnni")) take("int8", s8_vnni);
    if (__builtin_cpu_supports("avx512bf16")) take("bfloat16", bf16_dot);
  }
  return rates;
}

MemoryRates memory_rates(CpuPool& pool, const CpuClock& clock, uint64_t last_level_bytes) {
  size_t bytes = std::max<size_t>(size_t{96} << 20, 4 * last_level_bytes) / 3 / 4096 * 4096;
  Array a(bytes), b(bytes), c(bytes);
  if (!a.data || !b.data || !c.data) return {};
  auto n = static_cast<int64_t>(bytes / sizeof(double));
  int64_t slice = 0;
  auto share = [&](uint32_t w) {  // of the current slice
    int64_t workers = pool.workers(), begin = n * slice / memory_slices, size = n * (slice + 1) / memory_slices - begin;
    return std::pair{begin + size * w / workers, begin + size * (w + 1) / workers};
  };
  auto touch = [&](uint32_t w) {
    auto [begin, end] = share(w);
    for (int64_t i = begin; i < end; ++i) a.data[i] = 0, b.data[i] = 1, c.data[i] = 2;
  };
  auto triad = [&](uint32_t w) {
    auto [begin, end] = share(w);
    double *x = a.data, *y = b.data, *z = c.data;
    for (int64_t i = begin; i < end; ++i) x[i] = y[i] + 3.0 * z[i];
  };
  auto copy = [&](uint32_t w) {
    auto [begin, end] = share(w);
    std::memcpy(a.data + begin, b.data + begin, static_cast<size_t>(end - begin) * sizeof(double));
  };
  auto each_slice = [&](const std::function<void(uint32_t)>& body, double arrays) {
    std::vector<double> rates;
    for (slice = 0; slice < memory_slices; ++slice)
      rates.push_back(arrays * static_cast<double>(bytes) / memory_slices / on_all(pool, clock, body) * 1e9);
    return rates;
  };
  each_slice(touch, 3);
  std::vector<double> triads, copies;
  for (int pass = 0; pass < memory_passes; ++pass) {
    for (double r : each_slice(triad, 3)) triads.push_back(r);
    for (double r : each_slice(copy, 2)) copies.push_back(r);
  }
  std::sort(triads.begin(), triads.end());
  std::sort(copies.begin(), copies.end());
  return {quantile(triads, memory_quantile), quantile(copies, memory_quantile)};
}

double fma_canary_ns(const CpuClock& clock) {
  alignas(64) char sink[64];
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
  double best = 0;
  for (int i = 0; i < 3; ++i) {
    uint64_t begin = clock.now();
    f32_avx2(20'000, sink);
    double ns = clock.ns(clock.now() - begin);
    best = best == 0 ? ns : std::min(best, ns);
  }
  return best;
}

}  // namespace tilewright::measure
