// Candidates of the search on one core, for a matrix product of 512: what it costs to replay a sketch with fresh
// decisions, to post-process, hash and featurise it. `items_per_second` of `candidate` is candidates a second.
#include <benchmark/benchmark.h>

#include "costmodel/features/extract.h"
#include "ir/equal.h"
#include "ir/parse.h"
#include "search/space.h"
#include "support/check.h"

namespace tilewright {
namespace {

const Task& task() {
  static const Task made = [] {
    auto parsed = parse_program(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((512, 512), "float32"), B: T.Buffer((512, 512), "float32"), C: T.Buffer((512, 512), "float32")):
    for i, j, k in T.grid(512, 512, 512):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
                                "gemm");
    TW_CHECK(parsed);
    return Task::make("gemm", parsed->program, native_target());
  }();
  return made;
}

const Space& space(const char* preset) {
  static std::map<std::string, Space> made;
  auto it = made.find(preset);
  if (it == made.end()) {
    auto parts = parts_for(preset, task().target);
    TW_CHECK(parts);
    auto space = Space::from_rules(task(), *parts);
    TW_CHECK(space);
    it = made.emplace(preset, std::move(*space)).first;
  }
  return it->second;
}

/// Candidate `n`, or nothing if its decisions are refused.
std::optional<Materialised> candidate(const Space& s, uint64_t n) {
  auto m = s.materialise(task(), s.sketches()[n % s.sketches().size()], nullptr, Rng::keyed(1, n));
  return m ? std::optional(std::move(*m)) : std::nullopt;
}

void replay_and_postprocess(benchmark::State& state, const char* preset) {
  const Space& s = space(preset);
  uint64_t n = 0;
  for (auto _ : state) benchmark::DoNotOptimize(candidate(s, ++n));
  state.SetItemsProcessed(static_cast<int64_t>(n));
}
BENCHMARK_CAPTURE(replay_and_postprocess, tilewright, "tilewright");
BENCHMARK_CAPTURE(replay_and_postprocess, metaschedule, "metaschedule");

void hash(benchmark::State& state, const char* preset) {
  auto m = candidate(space(preset), 1);
  for (auto _ : state) benchmark::DoNotOptimize(structural_hash(m->schedule.function()));
}
BENCHMARK_CAPTURE(hash, tilewright, "tilewright");

void features(benchmark::State& state, const char* preset) {
  auto m = candidate(space(preset), 1);
  for (auto _ : state) benchmark::DoNotOptimize(extract_features(m->schedule.function(), task().target));
}
BENCHMARK_CAPTURE(features, tilewright, "tilewright");

void whole_candidate(benchmark::State& state, const char* preset) {
  const Space& s = space(preset);
  uint64_t n = 0;
  for (auto _ : state) {
    auto m = candidate(s, ++n);
    if (!m) continue;
    benchmark::DoNotOptimize(structural_hash(m->schedule.function()));
    benchmark::DoNotOptimize(extract_features(m->schedule.function(), task().target));
  }
  state.SetItemsProcessed(static_cast<int64_t>(n));
}
BENCHMARK_CAPTURE(whole_candidate, tilewright, "tilewright");
BENCHMARK_CAPTURE(whole_candidate, metaschedule, "metaschedule");

}  // namespace
}  // namespace tilewright
