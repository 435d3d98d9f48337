// Detection of this machine's CPU: model and features by cpuid, physical cores and caches from the kernel's topology
// files.
#include <cpuid.h>
#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "schedule/target.h"

namespace tilewright {

namespace {

struct CpuId {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

CpuId cpuid(unsigned leaf, unsigned sub = 0) {
  CpuId r;
  __get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d);
  return r;
}

// What the operating system saves on a switch decides what may be used: XCR0 bits 1-2 (AVX), 5-7 (AVX-512).
uint64_t enabled_state() {
  if (!(cpuid(1).c >> 27 & 1)) return 0;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32 | low;
}

std::set<std::string, std::less<>> cpu_features() {
  std::set<std::string, std::less<>> found;
  auto add = [&](unsigned reg, int bit, const char* name, bool usable = true) {
    if (usable && (reg >> bit & 1)) found.insert(name);
  };
  uint64_t state = enabled_state();
  bool avx = (state & 0x6) == 0x6, avx512 = (state & 0xe6) == 0xe6;
  CpuId one = cpuid(1), seven = cpuid(7), seven1 = cpuid(7, 1), extended = cpuid(0x80000001);
  add(one.c, 0, "sse3"), add(one.c, 9, "ssse3"), add(one.c, 19, "sse4.1"), add(one.c, 20, "sse4.2");
  add(one.c, 13, "cx16"), add(one.c, 23, "popcnt"), add(one.c, 22, "movbe"), add(one.c, 26, "xsave");
  add(one.c, 28, "avx", avx), add(one.c, 12, "fma", avx), add(one.c, 29, "f16c", avx);
  add(seven.b, 3, "bmi"), add(seven.b, 8, "bmi2"), add(seven.b, 5, "avx2", avx);
  add(seven.b, 16, "avx512f", avx512), add(seven.b, 17, "avx512dq", avx512), add(seven.b, 28, "avx512cd", avx512);
  add(seven.b, 30, "avx512bw", avx512), add(seven.b, 31, "avx512vl", avx512), add(seven.c, 11, "avx512vnni", avx512);
  add(seven1.a, 5, "avx512bf16", avx512), add(seven.d, 23, "avx512fp16", avx512), add(seven1.a, 4, "avxvnni", avx);
  add(extended.c, 0, "sahf"), add(extended.c, 5, "lzcnt");
  return found;
}

// Vendor and model → LLVM CPU name, for the models that this project has a row for; "" = go by level.
std::string cpu_model() {
  CpuId zero = cpuid(0), one = cpuid(1);
  unsigned family = one.a >> 8 & 15, model = one.a >> 4 & 15;
  if (family == 15) family += one.a >> 20 & 255;
  if (family >= 6) model |= (one.a >> 16 & 15) << 4;
  bool amd = zero.b == 0x68747541, intel = zero.b == 0x756e6547;
  if (amd && family == 0x17) return model >= 0x30 ? "znver2" : "";
  if (amd && family == 0x19)
    return (model >= 0x10 && model <= 0x1f) || (model >= 0x60 && model <= 0xaf) ? "znver4" : "znver3";
  if (amd && family == 0x1a) return "znver5";
  if (intel && family == 6) {
    static const std::map<unsigned, const char*> models{
        {0x3c, "haswell"},        {0x3f, "haswell"},        {0x45, "haswell"},        {0x46, "haswell"},
        {0x6a, "icelake-server"}, {0x6c, "icelake-server"}, {0x8f, "sapphirerapids"}, {0xcf, "sapphirerapids"}};
    if (model == 0x55) return cpuid(7).c >> 11 & 1 ? "cascadelake" : "skylake-avx512";
    if (auto it = models.find(model); it != models.end()) return it->second;
  }
  return "";
}

std::string read_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

int64_t parse_bytes(const std::string& text) {
  if (text.empty()) return 0;
  int64_t value = std::strtoll(text.c_str(), nullptr, 10);
  return text.back() == 'K' ? value << 10 : text.back() == 'M' ? value << 20 : value;
}

// CPUs in a list such as "0-3,8".
int list_size(const std::string& list) {
  int count = 0;
  for (const char* p = list.c_str(); *p;) {
    char* end;
    long first = std::strtol(p, &end, 10), last = first;
    if (end == p) break;
    if (*end == '-') last = std::strtol(end + 1, &end, 10);
    count += static_cast<int>(last - first + 1);
    p = *end == ',' ? end + 1 : end;
  }
  return count;
}

// Physical cores this process may run on: distinct (package, core) pairs of its affinity mask.
int physical_cores() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) return std::max(1L, sysconf(_SC_NPROCESSORS_ONLN));
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &mask)) continue;
    std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    std::string siblings = read_line(topology + "thread_siblings_list");
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

void read_caches(Target& t) {
  for (int index = 0; index < 8; ++index) {
    std::string base = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::string level = read_line(base + "level"), type = read_line(base + "type");
    int64_t size = parse_bytes(read_line(base + "size"));
    if (size <= 0 || type == "Instruction") continue;
    int threads = std::max(1, list_size(read_line(base + "shared_cpu_list")));
    int threads_per_core =
        std::max(1, list_size(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")));
    int64_t share = size / std::max(1, threads / threads_per_core);
    if (level == "1") t.l1_bytes = size;
    if (level == "2") t.l2_bytes = share;
    if (level == "3") t.l3_bytes = share;
  }
}

}  // namespace

std::vector<std::string> features_missing_here(const Target& target) {
  auto here = cpu_features();
  std::vector<std::string> missing;
  for (const std::string& f : target.features)
    if (!here.contains(f)) missing.push_back(f);
  return missing;
}

Target native_target() {
  const auto& registry = Registry<Target>::instance();
  const Target* best = registry.find(cpu_model());
  if (best && !features_missing_here(*best).empty()) best = nullptr;  // a hypervisor may hide features
  for (const char* level : {"x86-64-v4", "x86-64-v3", "x86-64-v2"})
    if (!best && features_missing_here(*registry.find(level)).empty()) best = registry.find(level);
  TW_CHECK(best, "this CPU lacks SSE4.2");
  Target t = *best;
  t.cores = physical_cores();
  read_caches(t);
  t.page_bytes = sysconf(_SC_PAGESIZE);
  return t;
}

}  // namespace tilewright
