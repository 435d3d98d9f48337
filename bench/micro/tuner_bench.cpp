// What the tuner itself costs: a run on the fake device, whose launches take no time. Prints wall time per trial by
// activity, and memory of this process as the run grows. Asserts nothing.
//   tuner_bench [trials] [n of gemm n x n x n] [threads] [strategy]
// Worker processes are those of the binary `tilewright` beside this program.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "ir/parse.h"
#include "search/tuner.h"

using namespace tilewright;

namespace {

/// MiB from /proc/self/status: "VmRSS" now, "VmHWM" at most so far.
int64_t memory_mib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10) / 1024;
  return 0;
}

class Watch : public Observer {
 public:
  explicit Watch(int64_t every) : every_(every) {}
  void on_event(const Event& e) override {
    auto* r = std::get_if<JobResult>(&e.body);
    if (!r || !r->settled || ++results_ % every_ != 0) return;
    fmt::print("{:6} trials  {:7.1f} s  {:5} MiB\n", results_, e.t, memory_mib("VmRSS"));
    std::fflush(stdout);
  }

 private:
  int64_t every_, results_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  TunerOptions options;
  options.trials = argc > 1 ? std::atoll(argv[1]) : 2000;
  const int n = argc > 2 ? std::atoi(argv[2]) : 512;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 1;
  if (argc > 4) options.strategy = argv[4];
  std::string text = fmt::format(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({0}, {0}), "float32"), B: T.Buffer(({0}, {0}), "float32"), C: T.Buffer(({0}, {0}), "float32")):
    for i, j, k in T.grid({0}, {0}, {0}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                 n);
  Task task = Task::make("gemm", parse_program(text, "gemm")->program, native_target());
  measure::MeasurerOptions measuring;
  measuring.devices = {"fake"};
  measuring.binary =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "bin" / "tilewright").string();
  auto measurer = measure::open_measurer(measuring);
  if (!measurer) return fmt::print("{}", render_text(measurer.error().diagnostic())), 1;
  Watch watch(std::max<int64_t>(1, options.trials / 10));
  auto tuner = Tuner::create({task}, options, **measurer, watch);
  if (!tuner) return fmt::print("{}", render_text(tuner.error().diagnostic())), 1;
  const int64_t before = memory_mib("VmRSS");
  const auto start = std::chrono::steady_clock::now();
  auto report = (*tuner)->run();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!report) return fmt::print("{}", render_text(report.error().diagnostic())), 1;
  const TaskReport& t = report->tasks[0];
  fmt::print("{} trials, {} ok, {}: {:.1f} s, {:.2f} ms a trial on {} threads\n", t.trials, t.ok, report->stop_reason,
             wall, 1e3 * wall / static_cast<double>(std::max<int64_t>(t.trials, 1)), options.threads);
  double rest = wall;
  for (const auto& [what, seconds] : report->seconds) {
    fmt::print("  {:8} {:7.2f} ms a trial\n", what, 1e3 * seconds / static_cast<double>(t.trials));
    rest -= seconds;
  }
  fmt::print("  {:8} {:7.2f} ms a trial\n", "rest", 1e3 * rest / static_cast<double>(t.trials));
  fmt::print("memory: {} MiB before, {} MiB at most\n", before, memory_mib("VmHWM"));
  return 0;
}
