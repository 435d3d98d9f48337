// NVIDIA targets: limits by compute capability (CUDA C++ programming guide, table of technical specifications), then
// devices by tag (data sheets). Only sm_90a was confirmed on a device.
#include <algorithm>

#include "schedule/target.h"

namespace tilewright {

namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * 1024;
using Words = std::vector<std::string>;

struct PerSm {
  int threads, blocks;
  int64_t shared_kib, reserved, granularity;
};

Target gpu(std::string arch, PerSm sm, Words features) {
  Target t;
  t.kind = TargetKind::cuda;
  t.arch = t.name = std::move(arch);
  t.features = std::move(features);
  std::sort(t.features.begin(), t.features.end());
  t.warp_size = 32;
  t.max_threads_per_block = 1024;
  t.threads_per_sm = sm.threads;
  t.blocks_per_sm = sm.blocks;
  t.registers_per_sm = 65536;
  t.registers_per_thread = 255;
  t.shared_per_sm = sm.shared_kib * kKiB;
  t.shared_reserved = sm.reserved;
  t.shared_per_block = t.shared_per_sm - sm.reserved;
  t.shared_granularity = sm.granularity;
  t.max_cluster = t.has("cluster") ? 8 : 1;
  t.page_bytes = 0;
  return t;
}

const Words kTuring{"mma"};
const Words kAmpere{"bf16", "cp_async", "mma", "redux", "tf32"};
const Words kAda{"bf16", "cp_async", "fp8", "mma", "redux", "tf32"};
const Words kHopper{"bf16",       "cluster",  "cp_async", "fp8", "mma",  "redux",
                    "setmaxnreg", "stmatrix", "tf32",     "tma", "wgmma"};

Target sm75() { return gpu("sm_75", {1024, 16, 64, 0, 256}, kTuring); }
Target sm80() { return gpu("sm_80", {2048, 32, 164, 1024, 128}, kAmpere); }
Target sm86() { return gpu("sm_86", {1536, 16, 100, 1024, 128}, kAmpere); }
Target sm89() { return gpu("sm_89", {1536, 24, 100, 1024, 128}, kAda); }
Target sm90a() { return gpu("sm_90a", {2048, 32, 228, 1024, 128}, kHopper); }

Target device(std::string tag, Target t, int sms, int64_t l2_mib, double gb_per_s) {
  t.name = std::move(tag);
  t.sms = sms;
  t.l2_bytes = l2_mib * kMiB;
  t.dram_bytes_per_s = gb_per_s * 1e9;
  return t;
}

const Register<Target> targets[] = {
    {"sm_75", "Turing", sm75()},
    {"sm_80", "Ampere (data centre)", sm80()},
    {"sm_86", "Ampere", sm86()},
    {"sm_89", "Ada", sm89()},
    {"sm_90a", "Hopper", sm90a()},
    {"sm_100a", "Blackwell (data centre); limits not confirmed on a device",
     gpu("sm_100a", {2048, 32, 228, 1024, 128}, kAda)},
    {"sm_120", "Blackwell; limits not confirmed on a device", gpu("sm_120", {1536, 24, 100, 1024, 128}, kAda)},
    {"t4", "Tesla T4", device("t4", sm75(), 40, 4, 320)},
    {"a100", "A100 40 GB", device("a100", sm80(), 108, 40, 2039)},
    {"rtx-3090", "GeForce RTX 3090", device("rtx-3090", sm86(), 82, 6, 936)},
    {"rtx-4090", "GeForce RTX 4090", device("rtx-4090", sm89(), 128, 72, 1008)},
    {"l4", "L4", device("l4", sm89(), 58, 48, 300)},
    {"h100", "H100 SXM", device("h100", sm90a(), 132, 50, 3350)},
    {"h200", "H200 SXM", device("h200", sm90a(), 132, 50, 4800)},
};

}  // namespace

}  // namespace tilewright
