// NVIDIA GPUs and the toolkit that assembles code for them. The driver's own tool, nvidia-smi, is asked; nothing is
// linked.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>

#include "tools/doctor/doctor.h"

namespace tilewright::tools {
namespace {

constexpr const char* kDriverVersion = "/proc/driver/nvidia/version";

/// "580.95" → 580; 0: no driver.
int driver_major() {
  std::smatch found;
  std::string line = first_line(kDriverVersion).value_or("");
  return std::regex_search(line, found, std::regex(R"( (\d+)\.\d+)")) ? std::stoi(found[1]) : 0;
}

Level missing(const DoctorContext& c) { return c.gpu ? Level::error : Level::note; }

std::vector<Finding> driver(const DoctorContext& c) {
  if (int major = driver_major()) return {{"gpu-driver", Level::good, fmt::format("release {}", major), "", ""}};
  return {{"gpu-driver", missing(c), "none", "GPU kernels are generated and interpreted here, not run",
           "install the NVIDIA driver, or measure on another machine"}};
}

std::vector<Finding> ptxas(const DoctorContext& c) {
  std::vector<std::string> places;
  for (const char* variable : {"CUDAToolkit_ROOT", "CUDA_HOME"})
    if (const char* root = std::getenv(variable); root && *root) places.push_back(std::string(root) + "/bin/ptxas");
  places.emplace_back("/usr/local/cuda/bin/ptxas");
  places.emplace_back("ptxas");
  for (const std::string& place : places) {
    auto text = output_of("'" + place + "' --version");
    std::smatch found;
    if (!text || !std::regex_search(*text, found, std::regex(R"(release (\d+)\.(\d+))"))) continue;
    const int major = std::stoi(found[1]), minor = std::stoi(found[2]);
    std::string value = fmt::format("{} ({}.{})", place, major, minor);
    if (major < 12)
      return {{"ptxas", Level::warning, value, "it cannot assemble sm_90a code; at least 12.0 is needed",
               "install cuda-toolkit-13-0, or set CUDA_HOME to a newer one"}};
    // The oldest driver release for a major version of the toolkit.
    const int needs = major >= 13 ? 580 : 525, has = driver_major();
    if (has && has < needs)
      return {{"ptxas", Level::warning, fmt::format("{}, driver release {}", value, has),
               fmt::format("code from this toolkit needs driver release {} or newer", needs),
               fmt::format("install driver {} or newer, or an older toolkit", needs)}};
    return {{"ptxas", Level::good, value, "", ""}};
  }
  return {{"ptxas", missing(c), "not found", "PTX is emitted and interpreted here, not assembled",
           "scripts/setup tells how to add the CUDA toolkit"}};
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ',');) {
    field.erase(0, std::min(field.find_first_not_of(' '), field.size()));
    field.erase(std::find_if(field.rbegin(), field.rend(), [](char x) { return x != ' ' && x != '\r'; }).base(),
                field.end());
    out.push_back(field);
  }
  return out;
}

/// Settings of every GPU, as its driver's tool reports them.
std::vector<Finding> devices(const DoctorContext&) {
  auto text = output_of(
      "nvidia-smi --query-gpu=index,name,persistence_mode,ecc.mode.current,mig.mode.current,compute_mode,power.limit,"
      "power.default_limit --format=csv,noheader,nounits");
  if (!text) return {};
  std::vector<Finding> out;
  std::istringstream in(*text);
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> f = fields_of(line);
    if (f.size() != 8) continue;
    const std::string gpu = "gpu-" + f[0];
    out.push_back({gpu, Level::good, f[1], "", ""});
    if (f[2] == "Disabled")
      out.push_back({gpu + "-persistence", Level::note, "off", "the first launch after a pause waits for the driver",
                     "sudo nvidia-smi -pm 1"});
    out.push_back({gpu + "-ecc", Level::good, f[3], "", ""});
    if (f[4] == "Enabled")
      out.push_back({gpu + "-mig", Level::warning, "on",
                     "times are those of a slice of the GPU, and neighbours share its memory", "tune on a whole GPU"});
    if (f[5] != "Default" && f[5] != "[N/A]")
      out.push_back({gpu + "-compute-mode", Level::note, f[5], "only one process may use the GPU at a time",
                     "sudo nvidia-smi -c DEFAULT, if several runners share it"});
    if (f[6] != f[7] && f[6] != "[N/A]")
      out.push_back({gpu + "-power-cap", Level::warning, fmt::format("{} W of {} W", f[6], f[7]),
                     "a cap lowers clocks under load; times hold only under the same cap",
                     fmt::format("sudo nvidia-smi -i {} -pl {}", f[0], f[7])});
  }
  return out;
}

std::vector<Finding> processes(const DoctorContext&) {
  auto text = output_of("nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader");
  if (!text) return {};
  const auto n = std::count(text->begin(), text->end(), '\n');
  if (n == 0) return {{"gpu-processes", Level::good, "none", "", ""}};
  return {{"gpu-processes", Level::warning, fmt::format("{} on the GPUs", n),
           "they take time and bandwidth while kernels are timed", "stop them; `nvidia-smi` lists them"}};
}

std::vector<Finding> mps(const DoctorContext&) {
  if (driver_major() == 0) return {};
  std::error_code ec;
  const char* pipe = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  if (!std::filesystem::exists(std::filesystem::path(pipe && *pipe ? pipe : "/tmp/nvidia-mps") / "control", ec))
    return {{"gpu-mps", Level::good, "off", "", ""}};
  return {{"gpu-mps", Level::warning, "on", "a fault of one client ends the kernels of all others",
           "echo quit | nvidia-cuda-mps-control"}};
}

std::vector<Finding> gpu_counters(const DoctorContext&) {
  auto text = output_of("cat /proc/driver/nvidia/params");
  if (!text) return {};
  if (text->find("RmProfilingAdminOnly: 1") == std::string::npos || geteuid() == 0)
    return {{"gpu-counters", Level::good, "permitted", "", ""}};
  return {{"gpu-counters", Level::note, "for root only", "reports have no hardware counters",
           "load the driver with NVreg_RestrictProfilingToAdminUsers=0"}};
}

const Register<DoctorCheck> entries[] = {{"gpu-driver", "the NVIDIA driver", {false, driver}},
                                         {"ptxas", "the assembler, and the driver that its code needs", {false, ptxas}},
                                         {"gpu-devices", "settings of each GPU", {false, devices}},
                                         {"gpu-processes", "other users of the GPUs", {false, processes}},
                                         {"gpu-mps", "shared GPU contexts", {false, mps}},
                                         {"gpu-counters", "hardware counters of GPUs", {false, gpu_counters}}};

}  // namespace
}  // namespace tilewright::tools
