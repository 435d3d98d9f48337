#include "measure/devices/cpu_clock.h"

#include <cpuid.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tilewright::measure {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool invariant_counter() {
  unsigned a, b, c, d;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}

bool has_clflushopt() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 23);
}

__attribute__((target("clflushopt"))) void flush_opt(const char* p, const char* end) {
  for (; p < end; p += 64) _mm_clflushopt(const_cast<char*>(p));
}

}  // namespace

uint64_t CpuClock::raw_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC_RAW, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

CpuClock::CpuClock() : invariant_(invariant_counter()) {
  if (!invariant_) return;
  uint64_t ns0 = raw_ns(), t0 = read_counter();
  while (raw_ns() - ns0 < 10'000'000) _mm_pause();
  uint64_t ns1 = raw_ns(), t1 = read_counter();
  ns_per_tick_ = static_cast<double>(ns1 - ns0) / static_cast<double>(t1 - t0);
}

double CpuClock::probe_mhz() const {
  constexpr int adds = 160'000;  // one cycle each
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    uint64_t begin = now();
    uint64_t x = begin;
    for (int i = 0; i < adds / 16; ++i)
      asm volatile(
          "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, "
          "%0\n\t"
          "add $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0\n\tadd $1, %0"
          : "+r"(x));
    double elapsed = ns(now() - begin);
    if (elapsed > 0) best = std::max(best, adds / elapsed * 1e3);
  }
  return best;
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(static_cast<size_t>(cpu), &set)) continue;
    // "0,64" or "0-1": the first number is the core's first hardware thread.
    std::string siblings = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    int first = siblings.empty() ? cpu : std::atoi(siblings.c_str());
    if (first == cpu || !CPU_ISSET(static_cast<size_t>(first), &set)) cores.push_back(cpu);
  }
  std::reverse(cores.begin(), cores.end());
  return cores;
}

uint64_t stolen_ticks(const std::vector<int>& cpus) {
  std::ifstream stat("/proc/stat");
  std::string line;
  uint64_t sum = 0;
  while (std::getline(stat, line)) {
    if (line.rfind("cpu", 0) != 0) break;
    std::istringstream words(line);
    std::string name;
    uint64_t value = 0;
    words >> name;
    if (name == "cpu" || std::find(cpus.begin(), cpus.end(), std::atoi(name.c_str() + 3)) == cpus.end()) continue;
    for (int column = 0; column < 8; ++column) words >> value;  // user nice system idle iowait irq softirq steal
    sum += value;
  }
  return sum;
}

uint64_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

CpuFacts cpu_facts() {
  CpuFacts facts;
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (facts.model.empty() && line.rfind("model name", 0) == 0) facts.model = line.substr(colon + 2);
    if (facts.microcode.empty() && line.rfind("microcode", 0) == 0) facts.microcode = line.substr(colon + 2);
  }
  for (int index = 0; index < 5; ++index) {
    std::string size = first_line(fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/size", index));
    if (!size.empty())
      facts.last_level_bytes =
          std::max<uint64_t>(facts.last_level_bytes, std::strtoull(size.c_str(), nullptr, 10) << 10);
  }
  facts.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return facts;
}

void flush_range(const void* begin, size_t bytes) {
  static const bool opt = has_clflushopt();
  auto* p = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(begin) & ~uintptr_t{63});
  const char* end = static_cast<const char*>(begin) + bytes;
  if (opt)
    flush_opt(p, end);
  else
    for (; p < end; p += 64) _mm_clflush(p);
}

}  // namespace tilewright::measure
