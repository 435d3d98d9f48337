// The CPU as a place to measure: clocks, other load, neighbours.
#include <fmt/format.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "tools/doctor/doctor.h"

namespace tilewright::tools {
namespace {

std::vector<Finding> governor(const DoctorContext&) {
  auto value = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!value)
    return {{"cpu-governor", Level::note, "not visible", "clocks are set by somebody else, as on a virtual machine",
             "nothing to do here; measure on a machine of your own for figures to publish"}};
  if (*value == "performance") return {{"cpu-governor", Level::good, *value, "", ""}};
  return {{"cpu-governor", Level::warning, *value,
           "the clock follows the load, so that short kernels run at a low clock",
           "sudo cpupower frequency-set -g performance"}};
}

std::vector<Finding> turbo(const DoctorContext&) {
  auto off = first_line("/sys/devices/system/cpu/intel_pstate/no_turbo");
  auto boost = first_line("/sys/devices/system/cpu/cpufreq/boost");
  if (!off && !boost)
    return {{"cpu-turbo", Level::note, "not visible", "it cannot be told whether clocks are boosted", ""}};
  if (off ? *off == "1" : *boost == "0") return {{"cpu-turbo", Level::good, "off", "", ""}};
  return {{"cpu-turbo", Level::note, "on", "clocks depend on temperature and on what other cores do",
           off ? "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
               : "echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"}};
}

std::vector<Finding> load(const DoctorContext&) {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  double now = 0;
  std::istringstream(first_line("/proc/loadavg").value_or("0")) >> now;
  std::string value = fmt::format("{:.2f} on {} cores, over the last minute", now, cores);
  if (now < 0.5 * cores) return {{"cpu-load", Level::good, value, "", ""}};
  return {{"cpu-load", Level::warning, value, "other processes take the caches and cores that kernels are timed on",
           "stop them, or wait; `top` lists them"}};
}

struct CpuTimes {
  double all = 0, stolen = 0;
};
CpuTimes cpu_times() {
  std::istringstream in(first_line("/proc/stat").value_or(""));
  std::string word;
  in >> word;
  CpuTimes out;
  double x = 0;
  for (int column = 0; column < 8 && in >> x; ++column) {
    out.all += x;
    if (column == 7) out.stolen = x;
  }
  return out;
}

std::vector<Finding> steal(const DoctorContext&) {
  CpuTimes a = cpu_times();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CpuTimes b = cpu_times();
  const double share = b.all > a.all ? (b.stolen - a.stolen) / (b.all - a.all) : 0;
  std::string value = fmt::format("{:.1f} % over 0.3 s", 100 * share);
  if (share <= 0.01) return {{"cpu-steal", Level::good, value, "", ""}};
  return {{"cpu-steal", Level::warning, value, "the host gives this machine's cores to others while kernels are timed",
           "use a machine whose cores are not shared"}};
}

std::vector<Finding> smt(const DoctorContext&) {
  auto active = first_line("/sys/devices/system/cpu/smt/active");
  if (!active || *active == "0") return {{"cpu-smt", Level::good, active ? "off" : "not visible", "", ""}};
  return {{"cpu-smt", Level::note, "on", "two threads share a core's units: a busy sibling slows a timed kernel",
           "echo off | sudo tee /sys/devices/system/cpu/smt/control"}};
}

std::vector<Finding> clock_source(const DoctorContext&) {
  auto source = first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource").value_or("unknown");
  if (source == "tsc" || source == "kvm-clock") return {{"cpu-clock", Level::good, source, "", ""}};
  return {{"cpu-clock", Level::warning, source, "reading the clock is slow, which blurs times of short kernels",
           "boot with clocksource=tsc"}};
}

const Register<DoctorCheck> entries[] = {{"cpu-governor", "how the clock is chosen", {false, governor}},
                                         {"cpu-turbo", "whether clocks are boosted", {false, turbo}},
                                         {"cpu-load", "other processes", {false, load}},
                                         {"cpu-steal", "time taken by the host", {false, steal}},
                                         {"cpu-smt", "threads that share a core", {false, smt}},
                                         {"cpu-clock", "where the time of day comes from", {false, clock_source}}};

}  // namespace
}  // namespace tilewright::tools
