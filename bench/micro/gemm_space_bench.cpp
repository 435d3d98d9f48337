// How good the gemm space of the x86 rules is, without processes in between: random candidates of each sketch are
// lowered, compiled and timed in this process, alternately with OpenBLAS. Prints the best ratio per sketch. Asserts
// nothing.
//   gemm_space_bench [n] [candidates per sketch] [seed]
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <map>

#include "codegen/codegen.h"
#include "ir/parse.h"
#include "lowering/pipeline.h"
#include "search/space.h"

using namespace tilewright;

namespace {

double seconds(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

float* matrix(int n, uint64_t seed) {
  auto* p =
      static_cast<float*>(std::aligned_alloc(4096, (static_cast<size_t>(n) * n * sizeof(float) + 4095) / 4096 * 4096));
  Rng rng(seed);
  for (int i = 0; i < n * n; ++i) p[i] = static_cast<float>(rng.uniform() * 2 - 1);
  return p;
}

}  // namespace

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 512, count = argc > 2 ? std::atoi(argv[2]) : 10;
  const uint64_t seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::string text = fmt::format(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({0}, {0}), "float32"), B: T.Buffer(({0}, {0}), "float32"), C: T.Buffer(({0}, {0}), "float32")):
    T.func_attr({{"global_symbol": "main", "tir.noalias": True}})
    for i, j, k in T.grid({0}, {0}, {0}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                 n);
  Target target = native_target();
  Task task = Task::make("gemm", parse_program(text, "gemm")->program, target);
  auto space = Space::from_rules(task, *parts_for("tilewright", target));
  if (!space) return fmt::print("{}", render_text(space.error().diagnostic())), 1;
  float *a = matrix(n, 1), *b = matrix(n, 2), *c = matrix(n, 3), *ref = matrix(n, 3);
  openblas_set_num_threads(1);
  auto blas = [&] { cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n, 0, ref, n); };
  blas();
  const double flop = 2.0 * n * n * n;
  for (const Sketch& sketch : space->sketches()) {
    double best = 0, best_gflops = 0, replay_ms = 0, lower_ms = 0, llvm_ms = 0;
    int ok = 0;
    std::map<std::string, int> codes;
    std::string best_trace;
    for (int i = 0; i < count; ++i) {
      std::optional<Result<Materialised>> m;
      replay_ms +=
          1e3 * seconds([&] {
            m = space->materialise(task, sketch, nullptr,
                                   Rng::keyed(seed, static_cast<uint64_t>(sketch.id), static_cast<uint64_t>(i)));
          });
      if (!*m) {
        ++codes[std::string(m->error().code())];
        continue;
      }
      const Schedule& s = (*m)->schedule;
      std::optional<Result<lowering::LoweredFunction>> lowered;
      lower_ms += 1e3 * seconds([&] { lowered = lowering::lower(s.function(), target); });
      if (!*lowered) {
        ++codes["lower:" + std::string(lowered->error().code())];
        continue;
      }
      std::optional<Result<codegen::CompiledObject>> object;
      llvm_ms += 1e3 * seconds([&] { object = codegen::compile(**lowered, target); });
      if (!*object) {
        ++codes["compile:" + std::string(object->error().code())];
        continue;
      }
      std::string objects[] = {(*object)->object};
      auto loaded = codegen::load_objects(objects);
      if (!loaded) {
        ++codes["load:" + std::string(loaded.error().code())];
        continue;
      }
      auto entry = (*loaded)->entry((*object)->entry);
      std::vector<char> workspace(static_cast<size_t>((*object)->workspace_size(1)) + 64);
      tw_host host{};
      host.abi = 1;
      host.workers = 1;
      host.workspace = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 63) / 64 * 64);
      void* buffers[] = {a, b, c};
      auto run = [&] { entry(buffers, nullptr, &host); };
      run();
      double worst = 0;
      for (int k = 0; k < n * n; ++k) worst = std::max(worst, static_cast<double>(std::fabs(c[k] - ref[k])));
      if (worst > 1e-3 * std::sqrt(n)) {
        ++codes["WRONG"];
        continue;
      }
      std::vector<double> mine, theirs, ratios;
      int reps = std::max(3, static_cast<int>(2e9 / flop));
      reps = std::min(reps, 40);
      for (int r = 0; r < reps; ++r) {
        theirs.push_back(seconds(blas));
        mine.push_back(seconds(run));
      }
      ++ok;
      double ratio = median(theirs) / median(mine);
      if (ratio > best) {
        best = ratio;
        best_gflops = flop / median(mine) / 1e9;
        best_trace = trace_to_python(s.trace());
      }
    }
    fmt::print(
        "{}: best {:.3f} of OpenBLAS, {:.1f} GFLOP/s; {} of {} ran; replay {:.2f} ms, lower {:.2f} ms, llvm {:.1f} ms "
        "each",
        sketch.name, best, best_gflops, ok, count, replay_ms / count, lower_ms / std::max(ok, 1),
        llvm_ms / std::max(ok, 1));
    for (const auto& [code, k] : codes) fmt::print("; {} {}", code, k);
    fmt::print("\n");
    if (std::getenv("TRACE")) fmt::print("{}\n", best_trace);
    std::fflush(stdout);
  }
}
