// The CPU device with shared objects that the system's C compiler makes: in process, and through a whole embedded
// session whose build pipeline "c-source" takes the trace as C code.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "measure/check/compare.h"
#include "measure/check/inputs.h"
#include "measure/devices/cpu_calibrate.h"
#include "measure/devices/cpu_clock.h"
#include "measure/devices/device.h"
#include "measure/process/memfd.h"
#include "measure/worker/pipeline.h"
#include "tests/measure/harness.h"

namespace tilewright::measure {
namespace {

constexpr int64_t n = 128;

CheckPlan gemm_plan() {
  CheckPlan plan;
  plan.buffers = {{"A", kFloat32, {n, n}, Role::input},
                  {"B", kFloat32, {n, n}, Role::input},
                  {"C", kFloat32, {n, n}, Role::output}};
  plan.buffers[2].reduction = n;
  plan.exact = true;
  return plan;
}

const std::string prelude = R"(
#include <stdint.h>
#include <stdlib.h>
typedef struct tw_host { uint32_t abi, workers; void* ctx; void* workspace;
  int32_t (*parallel_for)(void*, int64_t, int32_t (*)(void*, int64_t, uint32_t), void*); } tw_host;
enum { N = 128 };
static void gemm_rows(const float* A, const float* B, float* C, int lo, int hi) {
  for (int i = lo; i < hi; ++i) {
    for (int j = 0; j < N; ++j) C[i*N+j] = 0;
    for (int k = 0; k < N; ++k) for (int j = 0; j < N; ++j) C[i*N+j] += A[i*N+k] * B[k*N+j];
  }
}
)";
const std::string good = R"(
int32_t kernel(void* const* b, const int64_t* s, const tw_host* h) { gemm_rows(b[0], b[1], b[2], 0, N); return 0; }
)";

std::string entry_with(const std::string& statement) {
  return "int32_t kernel(void* const* b, const int64_t* s, const tw_host* h) { float* C = b[2]; const float* A = b[0];"
         "gemm_rows(b[0], b[1], b[2], 0, N); (void)C; (void)A; " +
         statement + " return 0; }\n";
}

tl::expected<std::string, std::string> compile_c(const std::string& source) {
  char directory[] = "/tmp/tw-cc-XXXXXX";
  if (!mkdtemp(directory)) return tl::unexpected<std::string>("mkdtemp");
  std::string base = directory;
  std::ofstream(base + "/k.c") << source;
  std::string command = "cc -O2 -shared -fPIC -o " + base + "/k.so " + base + "/k.c 2> " + base + "/log";
  int code = std::system(command.c_str());
  auto read = [](const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  std::string object = read(base + "/k.so"), log = read(base + "/log");
  std::filesystem::remove_all(base);
  if (code != 0) return tl::unexpected(log);
  return object;
}

tl::expected<BuildProduct, BuildFailure> build_c(const BuildRequest& request) {
  auto object = compile_c(prelude + (request.naive ? good : request.trace));
  if (!object) return tl::unexpected(BuildFailure{TrialStatus::build_error, object.error(), ""});
  BuildProduct product;
  product.artifact = *object;
  product.entry = {"kernel", 4096, 1024};
  product.plan = gemm_plan();
  product.report.toolchain = "cc";
  return product;
}

Result<std::string> verify_c(const VerifyRequest& request) {
  size_t at = 0;
  for (CheckSet set : request.plan.sets()) {
    Tensor a = make_input(request.plan, 0, set, request.seed), b = make_input(request.plan, 1, set, request.seed);
    for (int64_t i : {int64_t{0}, n - 1, n / 2}) {
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += a.get(i * n + k) * b.get(k * n + i);
      float found = reinterpret_cast<const float*>(request.reference.data() + at)[i * n + i];
      if (std::fabs(found - sum) > 1e-4) return refuse(reference_disagrees, "gemm");
    }
    at += request.plan.buffers[2].bytes();
  }
  return std::string();
}

const Register<BuildPipeline> c_pipeline{"c-source", "the trace is C code (tests)", {build_c, verify_c}};

std::unique_ptr<Measurer> open_cpu() {
  MeasurerOptions options;
  options.binary = "/proc/self/exe";
  auto measurer = open_measurer(options);
  if (!measurer) ADD_FAILURE() << render_text(measurer.error().diagnostic());
  return measurer ? std::move(*measurer) : nullptr;
}

Job c_job(uint32_t trial, const std::string& source) {
  Job job;
  job.id = {.campaign = 2, .task = 1, .trial = trial, .attempt = 0};
  job.program = "gemm 128";
  job.target = "native";
  job.contenders = {{source, {}}};
  job.build.pipeline = "c-source";
  job.run.device_ms = job.run.load_ms = 60'000;  // whoever tests a limit sets it
  job.run.policy.ci_ppm = 100'000;  // tests run beside others: only the way is tested here, not the machine
  job.run.policy.clock_change_ppm = 900'000;
  return job;
}

TEST(Cpu, AGemmIsCheckedAndTimedColdAndWarm) {
  auto measurer = open_cpu();
  ASSERT_TRUE(measurer);
  for (Mode mode : {Mode::cold, Mode::warm}) {
    Job job = c_job(mode == Mode::cold ? 1 : 2, good);
    job.run.mode = mode;
    Outcome o = run_one(*measurer, job);
    ASSERT_TRUE(o.status == TrialStatus::ok || o.status == TrialStatus::noisy)
        << to_string(o.status) << o.phase << o.detail << o.log;
    if (!o.ok()) continue;
    EXPECT_GT(o.median_ns(), 1000);
    EXPECT_GT(o.measurements[0].clock_mhz, 100);
    EXPECT_EQ(o.check->mismatches, 0u);
    EXPECT_GE(o.measurements[0].launches_per_sample * o.median_ns(), mode == Mode::warm ? 50000 : 0);
  }
}

struct CpuCase {
  const char* name;
  std::string source;
  TrialStatus status;
};
class CpuFaults : public testing::TestWithParam<CpuCase> {};

TEST_P(CpuFaults, EndAsTheTableSays) {
  auto measurer = open_cpu();
  ASSERT_TRUE(measurer);
  Job job = c_job(1, GetParam().source);
  if (GetParam().status == TrialStatus::run_timeout) job.run.device_ms = 500;
  Outcome o = run_one(*measurer, job);
  EXPECT_EQ(std::string(to_string(o.status)), to_string(GetParam().status)) << o.phase << ": " << o.detail;
  EXPECT_FALSE(o.detail.empty());
}

INSTANTIATE_TEST_SUITE_P(
    All, CpuFaults,
    testing::Values(
        CpuCase{"SyntaxError", "int32_t kernel(", TrialStatus::build_error},
        CpuCase{"NoSymbol", "int32_t other(void) { return 0; }", TrialStatus::load_error},
        CpuCase{"UndefinedSymbol", "void nobody(void);\n" + entry_with("nobody();"), TrialStatus::load_error},
        CpuCase{"ReturnsAnError", "int32_t kernel(void* const* b) { return -3; }", TrialStatus::launch_error},
        CpuCase{"Segfault", entry_with("*(volatile int*)16 = 0;"), TrialStatus::run_crash},
        CpuCase{"IllegalInstruction", entry_with("__builtin_trap();"), TrialStatus::run_crash},
        CpuCase{"Exit", entry_with("exit(0);"), TrialStatus::run_crash},
        CpuCase{"Endless", entry_with("for (volatile int i = 0;; ++i) {}"), TrialStatus::run_timeout},
        CpuCase{"OneWrongElement", entry_with("C[777] += 0.001f;"), TrialStatus::wrong_result},
        CpuCase{"MissingTerm", entry_with("C[5] -= A[127] * ((float*)b[1])[127*N+5];"), TrialStatus::wrong_result},
        CpuCase{"HalfUnwritten",
                "int32_t kernel(void* const* b, const int64_t* s, const tw_host* h)"
                "{ gemm_rows(b[0], b[1], b[2], 0, N / 2); return 0; }",
                TrialStatus::wrong_result},
        CpuCase{"NotANumber", entry_with("C[0] = C[0] / 0.0f - C[0] / 0.0f;"), TrialStatus::wrong_result},
        CpuCase{"WritesBehind", entry_with("C[N*N + 3] = 1;"), TrialStatus::wrong_result},
        CpuCase{"WritesBefore", entry_with("C[-1] = 1;"), TrialStatus::wrong_result},
        CpuCase{"WorkspaceOverrun", entry_with("((char*)h->workspace)[4096 + 1024 * h->workers] = 1;"),
                TrialStatus::wrong_result},
        CpuCase{"ChangesAnInput", entry_with("((float*)b[0])[9] = 3;"), TrialStatus::wrong_result},
        CpuCase{"WrongLater", entry_with("static int calls; if (++calls > 4) C[9] += 1;"),
                TrialStatus::nondeterministic}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Cpu, ParallelLoopsRunEveryChunkOnceOnEveryNumberOfThreads) {
  auto measurer = open_cpu();
  ASSERT_TRUE(measurer);
  std::string parallel = R"(
static int32_t body(void* env, int64_t chunk, uint32_t worker) { void* const* b = env;
  gemm_rows(b[0], b[1], b[2], chunk * 8, chunk * 8 + 8); return 0; }
int32_t kernel(void* const* b, const int64_t* s, const tw_host* h) {
  if (h->parallel_for) return h->parallel_for(h->ctx, N / 8, body, (void*)b);
  for (int i = 0; i < N / 8; ++i) body((void*)b, i, 0); return 0; }
)";
  auto cores = static_cast<int>(usable_cores().size());
  for (int threads = 1; threads <= std::min(2, cores); ++threads) {
    Job job = c_job(static_cast<uint32_t>(threads), parallel);
    job.run.threads = threads;
    Outcome o = run_one(*measurer, job);
    EXPECT_TRUE(o.status == TrialStatus::ok || o.status == TrialStatus::noisy) << to_string(o.status) << o.detail;
  }
  Job job = c_job(100, parallel);
  job.run.threads = cores + 1;
  EXPECT_EQ(run_one(*measurer, job).status, TrialStatus::launch_error);
}

TEST(Cpu, InOutBuffersAreRestoredBeforeEveryLaunch) {
  const DeviceKind* kind = Registry<DeviceKind>::instance().find("cpu");
  ASSERT_TRUE(kind);
  auto device = std::move(*kind->make(0, ""));
  CheckPlan plan;
  plan.buffers = {{"X", kFloat32, {1000}, Role::inout}};
  ASSERT_TRUE(device->bind(plan, 7, 1).has_value());
  auto object = compile_c(
      prelude +
      "int32_t kernel(void* const* b) { float* x = b[0]; for (int i = 0; i < 1000; ++i) x[i] += 1; return 0; }");
  ASSERT_TRUE(object.has_value()) << object.error();
  Fd file = std::move(*sealed_memfd("k", *object));
  ASSERT_TRUE(device->load(0, file, {"kernel", 0, 0}).has_value());
  float first = make_input(plan, 0, CheckSet::random, 7).as<float>()[0];
  ASSERT_TRUE(device->launch(0, CheckSet::random).has_value());
  EXPECT_EQ(reinterpret_cast<const float*>(device->output(0)->data())[0], first + 1);
  ASSERT_TRUE(device->time(0, {3, 5, Mode::warm, 0}).has_value());
  EXPECT_EQ(reinterpret_cast<const float*>(device->output(0)->data())[0], first + 1) << "adds up over launches";
  EXPECT_EQ(device->changed_input(), "");
  EXPECT_EQ(device->hit_red_zone(), "");
}

TEST(Cpu, CalibrationGivesRatesThatFitTogether) {
  auto measurer = open_cpu();
  ASSERT_TRUE(measurer);
  auto c = measurer->calibrate("cpu-0", 1);
  ASSERT_TRUE(c.has_value()) << render_text(c.error().diagnostic());
  std::printf("one thread: %.0f MHz, float32 %.1f, float64 %.1f GFLOP/s, triad %.1f, copy %.1f GB/s, launch %.0f ns\n",
              c->clock_mhz, c->flops_per_s["float32"] / 1e9, c->flops_per_s["float64"] / 1e9,
              c->stream_bytes_per_s / 1e9, c->copy_bytes_per_s / 1e9, c->launch_ns);
  EXPECT_EQ(c->threads, 1);
  EXPECT_GT(c->clock_mhz, 100);
  EXPECT_GT(c->stream_bytes_per_s, 1e8);
  // No machine does more than 2 multiply-adds on 16 lanes a cycle; how much less a busy one does is not tested.
  EXPECT_LT(c->flops_per_s["float32"] / (c->clock_mhz * 1e6), 64 * 1.5);
  EXPECT_GT(c->flops_per_s["float32"], 0);
  EXPECT_FALSE(measurer->calibrate("cpu-7", 1).has_value());
}

}  // namespace
}  // namespace tilewright::measure
