// Speed of program text: syntax tree, program, printed text; bytes per second over a module of many functions.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace tilewright {
namespace {

std::string sample() {
  std::string text = "@I.ir_module\nclass Module:\n";
  for (int k = 0; k < 50; ++k)
    text += fmt::format(R"(    @T.prim_func(s_tir=True)
    def f{}(A: T.Buffer((1024, 512), "float16"), B: T.Buffer((512, 256), "float16"), D: T.Buffer((1024, 256), "float32")):
        T.func_attr({{"tirx.noalias": True}})
        # with T.sblock("root"):
        C = T.sblock_alloc_buffer((1024, 256), "float32", scope="shared")
        for io, jo, ko in T.grid(64, 16, 32):
            for ii, ji in T.grid(16, 16):
                for ki in T.unroll(16):
                    with T.sblock("C"):
                        vi = T.axis.spatial(1024, io * 16 + ii)
                        vj = T.axis.spatial(256, jo * 16 + ji)
                        vk = T.axis.reduce(512, ko * 16 + ki)
                        T.where(io * 16 + ii < 1000 and jo * 16 + ji < 250)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        T.sblock_attr({{"meta_schedule.tiling_structure": "SSRSRS"}})
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
        for i, j in T.grid(1024, 256):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(C[vi, vj])
                T.writes(D[vi, vj])
                D[vi, vj] = T.if_then_else(vi < 1000, T.max(C[vi, vj], T.float32(0)), T.float32(0.5)) * T.exp(C[vi, vj])
)",
                        k);
  return text;
}

void syntax(benchmark::State& state) {
  std::string text = sample();
  for (auto _ : state) benchmark::DoNotOptimize(py::parse_module(text, "bench").body.size());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(syntax)->Unit(benchmark::kMillisecond);

void parse(benchmark::State& state) {
  std::string text = sample();
  for (auto _ : state) benchmark::DoNotOptimize(parse_program(text, "bench")->program.get());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
}
BENCHMARK(parse)->Unit(benchmark::kMillisecond);

void print_text(benchmark::State& state) {
  ProgramRef p = parse_program(sample(), "bench")->program;
  size_t bytes = print(*p).size();
  for (auto _ : state) benchmark::DoNotOptimize(print(*p).size());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(print_text)->Unit(benchmark::kMillisecond);

void verify_program(benchmark::State& state) {
  ParsedProgram p = *parse_program(sample(), "bench");
  for (auto _ : state) benchmark::DoNotOptimize(verify(*p.program, &p.spans).size());
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * sample().size()));
}
BENCHMARK(verify_program)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tilewright

BENCHMARK_MAIN();
