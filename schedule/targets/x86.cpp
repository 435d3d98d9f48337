// x86-64 targets. Cache sizes are those of one core, for planning; `native` overrides them by what the CPU reports.
// FMA pipes and latency: vendors' optimisation manuals (Zen 3 to 5 and Intel from Skylake: two 4-cycle pipes).
#include <algorithm>

#include "schedule/target.h"

namespace tilewright {

namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;

using Words = std::vector<std::string>;
const Words kV2{"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"};
const Words kV3{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"};
const Words kV4{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"};

Words join(std::initializer_list<Words> lists) {
  Words all;
  for (const Words& list : lists) all.insert(all.end(), list.begin(), list.end());
  std::sort(all.begin(), all.end());
  return all;
}

struct Caches {
  int64_t l1, l2, l3;
};

Target cpu(std::string name, Words features, int bits, int registers, Caches caches) {
  Target t;
  t.kind = TargetKind::cpu;
  t.arch = t.name = std::move(name);
  t.features = std::move(features);
  t.vector_bits = bits;
  t.vector_registers = registers;
  t.fma_pipes = 2;
  t.fma_latency = 4;
  t.l1_bytes = caches.l1;
  t.l2_bytes = caches.l2;
  t.l3_bytes = caches.l3;
  return t;
}

const Words kVnni{"avx512vnni"}, kBf16{"avx512bf16"}, kFp16{"avx512fp16"};

const Register<Target> targets[] = {
    {"x86-64-v2", "SSE4.2", cpu("x86-64-v2", join({kV2}), 128, 16, {32 * kKiB, 256 * kKiB, 2 * kMiB})},
    {"x86-64-v3", "AVX2 and FMA", cpu("x86-64-v3", join({kV2, kV3}), 256, 16, {32 * kKiB, 512 * kKiB, 2 * kMiB})},
    {"x86-64-v4", "AVX-512", cpu("x86-64-v4", join({kV2, kV3, kV4}), 512, 32, {32 * kKiB, kMiB, 2 * kMiB})},
    {"haswell", "AVX2 and FMA", cpu("haswell", join({kV2, kV3}), 256, 16, {32 * kKiB, 256 * kKiB, 2 * kMiB})},
    {"znver2", "AVX2 and FMA", cpu("znver2", join({kV2, kV3}), 256, 16, {32 * kKiB, 512 * kKiB, 4 * kMiB})},
    {"znver3", "AVX2 and FMA", cpu("znver3", join({kV2, kV3}), 256, 16, {32 * kKiB, 512 * kKiB, 4 * kMiB})},
    {"skylake-avx512", "AVX-512",
     cpu("skylake-avx512", join({kV2, kV3, kV4}), 512, 32, {32 * kKiB, kMiB, 1408 * kKiB})},
    {"cascadelake", "AVX-512 and VNNI",
     cpu("cascadelake", join({kV2, kV3, kV4, kVnni}), 512, 32, {32 * kKiB, kMiB, 1408 * kKiB})},
    {"icelake-server", "AVX-512 and VNNI",
     cpu("icelake-server", join({kV2, kV3, kV4, kVnni}), 512, 32, {48 * kKiB, 1280 * kKiB, 1536 * kKiB})},
    {"sapphirerapids", "AVX-512, VNNI, BF16, FP16; AMX is not used",
     cpu("sapphirerapids", join({kV2, kV3, kV4, kVnni, kBf16, kFp16}), 512, 32, {48 * kKiB, 2 * kMiB, 1920 * kKiB})},
    {"znver4", "AVX-512, VNNI, BF16 on 256-bit units",
     cpu("znver4", join({kV2, kV3, kV4, kVnni, kBf16}), 512, 32, {32 * kKiB, kMiB, 4 * kMiB})},
    {"znver5", "AVX-512, VNNI, BF16 on 512-bit units",
     cpu("znver5", join({kV2, kV3, kV4, kVnni, kBf16}), 512, 32, {48 * kKiB, kMiB, 4 * kMiB})},
};

}  // namespace

}  // namespace tilewright
