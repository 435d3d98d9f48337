// Exported kernels are compiled with the system's C compiler and run: the check program must accept a right kernel.
#include "export/export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ir/parse.h"
#include "schedule/schedule.h"

namespace tilewright {
namespace {

constexpr const char* kProgram = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((33, 17), "float32"), B: T.Buffer((17, 40), "float32"), C: T.Buffer((33, 40), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(33, 40, 17):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

ExportRequest request() {
  auto parsed = parse_program(kProgram, "test");
  TW_CHECK(parsed);
  Schedule s(parsed->program, 1);
  auto ran = run_schedule_text(
      "i, j, k = sch.get_loops(\"C\")\nj0, j1 = sch.split(j, [None, 8])\nsch.reorder(i, j0, k, j1)\n"
      "sch.parallel(i)\nsch.vectorize(j1)\nsch.decompose_reduction(\"C\", k)\n",
      "trace", s);
  TW_CHECK(ran, "{}", ran ? "" : render_text(ran.error()[0]));
  return {"gemm_test", "gemm 33x40x17 float32", parsed->program, trace_to_json(s.trace()), native_target(), {}, "", ""};
}

std::string run(const std::string& command, int* status) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::string out;
  char buffer[256];
  while (fgets(buffer, sizeof buffer, pipe)) out += buffer;
  *status = pclose(pipe);
  return out;
}

TEST(Export, CheckProgramAcceptsTheKernel) {
  auto files = export_files({request()}, "cpu");
  ASSERT_TRUE(files) << render_text(files.error().diagnostic());
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("tilewright-export-" + std::to_string(::getpid()));
  ASSERT_TRUE(write_files(dir.string(), *files));
  int status = 0;
  std::string built = run(
      "cd " + dir.string() + " && cc -O1 -o check main.c tw_runtime.c gemm_test.o gemm_test_reference.o -lpthread -lm",
      &status);
  ASSERT_EQ(status, 0) << built;
  std::string out = run(dir.string() + "/check", &status);
  EXPECT_EQ(status, 0) << out;
  EXPECT_EQ(out.rfind("gemm_test ok max_err=", 0), 0u) << out;
  EXPECT_TRUE(std::filesystem::exists(dir / "libgemm_test.so"));
  std::filesystem::remove_all(dir);
}

// More threads than cores: workers come late, and the caller takes their ranges over.
constexpr const char* kPoolProgram = R"(
#include <stdio.h>
#include <string.h>
#include "tw_runtime.h"
static unsigned char done[97];
static int32_t body(void* env, int64_t chunk, uint32_t worker) {
  (void)env;
  if (worker >= 8) return 7;
  ++done[chunk];
  return 0;
}
static int64_t chunks;
static int32_t kernel(void* const* buffers, const int64_t* scalars, const tw_host* host) {
  (void)buffers, (void)scalars;
  return host->parallel_for(host->ctx, chunks, body, NULL);
}
int main(void) {
  tw_set_threads(8);
  for (int job = 0; job < 20000; ++job) {
    chunks = 1 + job % 97;
    memset(done, 0, sizeof done);
    if (tw_call(kernel, NULL, NULL, 0, 0) != 0) return puts("a body failed"), 1;
    for (int64_t i = 0; i < 97; ++i)
      if (done[i] != (i < chunks)) return printf("job %d: chunk %d ran %d times\n", job, (int)i, done[i]), 1;
  }
  return 0;
}
)";

TEST(Export, ThePoolRunsEveryChunkOnce) {
  std::filesystem::path dir =
      std::filesystem::temp_directory_path() / ("tilewright-pool-" + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  std::ofstream(dir / "pool.c") << kPoolProgram;
  const std::string runtime = std::string(TW_SOURCE_DIR) + "/export/runtime";
  int status = 0;
  std::string built = run("cc -O2 -Wall -Werror -I" + runtime + " -o " + (dir / "pool").string() + " " +
                              (dir / "pool.c").string() + " " + runtime + "/tw_runtime.c -lpthread",
                          &status);
  ASSERT_EQ(status, 0) << built;
  std::string out = run((dir / "pool").string(), &status);
  EXPECT_EQ(status, 0) << out;
  std::filesystem::remove_all(dir);
}

TEST(Export, SameInputsGiveTheSameBytes) {
  auto a = export_files({request()}, "cpu"), b = export_files({request()}, "cpu");
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->size(), b->size());
  for (size_t i = 0; i < a->size(); ++i) EXPECT_EQ((*a)[i].bytes, (*b)[i].bytes) << (*a)[i].name;
}

TEST(Export, RefusesBadInput) {
  ExportRequest r = request();
  r.name = "not a name";
  EXPECT_EQ(export_files({r}, "cpu").error().code(), "export-name-invalid");
  EXPECT_EQ(export_files({request()}, "cpux").error().code(), "export-form-unknown");
  r = request();
  r.trace = R"([[["GetSBlock",[],["D","main"],["b0"]]],[]])";
  EXPECT_EQ(export_files({r}, "cpu").error().code(), "trace-does-not-apply");
  EXPECT_EQ(write_files("/proc/no-such-place", {{"a", "b"}}).error().code(), "file-not-writable");
}

}  // namespace
}  // namespace tilewright
