// What the system allows this process: address layout, cgroup limits, memory, counters.
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "tools/doctor/doctor.h"

namespace tilewright::tools {
namespace {

std::vector<Finding> aslr(const DoctorContext&) {
  auto value = first_line("/proc/sys/kernel/randomize_va_space");
  if (!value) return {{"aslr", Level::note, "not visible", "it cannot be told whether addresses are random", ""}};
  if (*value == "0") return {{"aslr", Level::good, "off", "", ""}};
  return {{"aslr", Level::note, "on (" + *value + ")",
           "buffers land on other addresses in every process, which moves times by a percent or two",
           "setarch -R tilewright tune ... (for this command alone)"}};
}

std::vector<Finding> cpu_quota(const DoctorContext&) {
  auto line = first_line("/sys/fs/cgroup/cpu.max");
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  std::istringstream in(line.value_or("max 100000"));
  std::string quota;
  double period = 100000;
  in >> quota >> period;
  if (quota == "max" || quota.empty()) return {{"cgroup-cpu", Level::good, "no quota", "", ""}};
  const double allowed = std::stod(quota) / period;
  std::string value = fmt::format("{:.2f} of {} cores", allowed, cores);
  if (allowed >= cores) return {{"cgroup-cpu", Level::good, value, "", ""}};
  return {{"cgroup-cpu", Level::warning, value, "a kernel that uses up the quota is stopped in the middle of a timing",
           "raise the quota, or pin the container to whole cores (docker run --cpuset-cpus)"}};
}

std::vector<Finding> memory(const DoctorContext&) {
  double available_kib = 0;
  std::ifstream in("/proc/meminfo");
  for (std::string key, rest; in >> key && std::getline(in, rest);)
    if (key == "MemAvailable:") available_kib = std::stod(rest);
  double gib = available_kib / (1 << 20);
  if (auto limit = first_line("/sys/fs/cgroup/memory.max"); limit && *limit != "max") {
    double used = std::stod(first_line("/sys/fs/cgroup/memory.current").value_or("0"));
    gib = std::min(gib, (std::stod(*limit) - used) / (1 << 30));
  }
  std::string value = fmt::format("{:.1f} GiB available", gib);
  if (gib >= 4) return {{"memory", Level::good, value, "", ""}};
  return {{"memory", gib < 1 ? Level::error : Level::warning, value,
           "each build worker may take 2 GiB; candidates that find less end as out_of_memory",
           "free memory, or raise the container's limit"}};
}

std::vector<Finding> counters(const DoctorContext&) {
  auto value = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (!value) return {{"cpu-counters", Level::note, "not visible", "hardware counters cannot be read", ""}};
  if (std::stoi(*value) <= 2) return {{"cpu-counters", Level::good, "permitted (" + *value + ")", "", ""}};
  return {{"cpu-counters", Level::note, "not permitted (perf_event_paranoid " + *value + ")",
           "cycles cannot be counted, so that a change of clock looks like a change of the kernel",
           "sudo sysctl kernel.perf_event_paranoid=2"}};
}

const Register<DoctorCheck> entries[] = {{"aslr", "random addresses", {false, aslr}},
                                         {"cgroup-cpu", "quota of processor time", {false, cpu_quota}},
                                         {"memory", "memory for build workers", {false, memory}},
                                         {"cpu-counters", "hardware counters", {false, counters}}};

}  // namespace
}  // namespace tilewright::tools
