// Design spaces of the x86 rules: every sampled candidate is executed by the interpreter against the unscheduled
// program.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "search/baseline.h"
#include "search/mutators/mutator.h"
#include "search/space.h"
#include "tests/ir/execution.h"
#include "tests/seed.h"

namespace tilewright {
namespace {

constexpr const char* kGemm = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((12, 8), "float32"), B: T.Buffer((8, 48), "float32"), C: T.Buffer((12, 48), "float32")):
    for i, j, k in T.grid(12, 48, 8):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
/// Sizes that no good register tile divides: padded.
constexpr const char* kUneven = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((13, 10), "float32"), B: T.Buffer((10, 45), "float32"), C: T.Buffer((13, 45), "float32")):
    for i, j, k in T.grid(13, 45, 10):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";
constexpr const char* kGemmRelu = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((24, 16), "float32"), B: T.Buffer((16, 32), "float32"), D: T.Buffer((24, 32), "float32")):
    C = T.sblock_alloc_buffer((24, 32), "float32")
    for i, j, k in T.grid(24, 32, 16):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j in T.grid(24, 32):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))
)";
constexpr const char* kSoftmax = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 32), "float32"), D: T.Buffer((8, 32), "float32")):
    M = T.sblock_alloc_buffer((8,), "float32")
    E = T.sblock_alloc_buffer((8, 32), "float32")
    S = T.sblock_alloc_buffer((8,), "float32")
    for i, k in T.grid(8, 32):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-1e30)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, j in T.grid(8, 32):
        with T.sblock("E"):
            vi, vj = T.axis.remap("SS", [i, j])
            E[vi, vj] = T.exp(A[vi, vj] - M[vi])
    for i, k in T.grid(8, 32):
        with T.sblock("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + E[vi, vk]
    for i, j in T.grid(8, 32):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = E[vi, vj] / S[vi]
)";

Task make_task(const char* text, const char* on = "x86-64-v3:cores=2") {
  auto parsed = parse_program(text, "test");
  TW_CHECK(parsed, "the test program does not parse");
  auto target = parse_target(on);
  TW_CHECK(target);
  return Task::make("test", parsed->program, *target);
}

class SpaceTest : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(SpaceTest, EverySampledCandidateComputesTheSame) {
  Task task = make_task(GetParam().second);
  for (const char* preset : {"tilewright", "metaschedule"}) {
    auto parts = parts_for(preset, task.target);
    ASSERT_TRUE(parts);
    auto space = Space::from_rules(task, *parts);
    ASSERT_TRUE(space) << render_text(space.error().diagnostic());
    ASSERT_FALSE(space->sketches().empty());
    int valid = 0, tried = 0;
    std::map<std::string, int> refused;
    for (const Sketch& sketch : space->sketches()) {
      for (uint64_t n = 0; n < 3; ++n) {
        ++tried;
        auto m = space->materialise(task, sketch, nullptr, Rng::keyed(7, static_cast<uint64_t>(sketch.id), n));
        if (!m) {
          ++refused[std::string(m.error().code())];
          continue;
        }
        ++valid;
        ExecutionCheck check;
        check.reassociated = true;
        check.small_exact = GetParam().second != kSoftmax;
        ASSERT_TRUE(equal_by_execution(*task.program->main(), m->schedule.function(), check))
            << preset << " " << sketch.name << "\n"
            << trace_to_python(m->schedule.trace()) << print(m->schedule.function());
        // The complete trace replays to the same program, through its JSON text.
        auto trace = trace_from_json(trace_to_json(m->schedule.trace()));
        ASSERT_TRUE(trace);
        Replayed again = replay(*trace, task.program, Rng(1));
        ASSERT_TRUE(again.refusals.empty()) << render_text(again.refusals[0].refusal.diagnostic());
        EXPECT_EQ(structural_hash(again.schedule.function()), structural_hash(m->schedule.function()));
      }
    }
    std::string codes;
    for (const auto& [code, count] : refused) codes += " " + code + " " + std::to_string(count);
    EXPECT_GT(valid * 4, tried) << "most candidates are refused:" << codes;
    RecordProperty(std::string(preset) + "_sketches", static_cast<int>(space->sketches().size()));
    std::printf("%s: %zu sketches, %d of %d valid%s\n", preset, space->sketches().size(), valid, tried, codes.c_str());
  }
  ExecutionCheck check;
  check.reassociated = true;
  check.small_exact = GetParam().second != kSoftmax;
  for (const Schedule& baseline : baseline_schedules(task))
    EXPECT_TRUE(equal_by_execution(*task.program->main(), baseline.function(), check)) << print(baseline.function());
}

INSTANTIATE_TEST_SUITE_P(Programs, SpaceTest,
                         ::testing::Values(std::pair{"gemm", kGemm}, std::pair{"uneven", kUneven},
                                           std::pair{"gemm_relu", kGemmRelu}, std::pair{"softmax", kSoftmax}),
                         [](const auto& p) { return p.param.first; });

/// Two products in a row; sizes that every tile divides.
constexpr const char* kChain = R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 96), "float32"), C: T.Buffer((96, 64), "float32"), E: T.Buffer((64, 64), "float32")):
    D = T.sblock_alloc_buffer((64, 96), "float32")
    for i, j, k in T.grid(64, 96, 64):
        with T.sblock("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j, k in T.grid(64, 64, 96):
        with T.sblock("E"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                E[vi, vj] = T.float32(0)
            E[vi, vj] = E[vi, vj] + D[vi, vk] * C[vk, vj]
)";

std::string typed_gemm(const char* rows, const char* wide, const char* sum) {
  std::string text = kGemm;
  auto all = [&](const std::string& from, const std::string& to) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  };
  all("C: T.Buffer((12, 48), \"float32\")", fmt::format("C: T.Buffer((12, 48), \"{}\")", sum));
  all("B: T.Buffer((8, 48), \"float32\")", fmt::format("B: T.Buffer((8, 48), \"{}\")", wide));
  all("A: T.Buffer((12, 8), \"float32\")", fmt::format("A: T.Buffer((12, 8), \"{}\")", rows));
  all("T.float32(0)", fmt::format("T.{}(0)", sum));
  all("A[vi, vk] * B[vk, vj]", fmt::format("T.Cast(\"{0}\", A[vi, vk]) * T.Cast(\"{0}\", B[vk, vj])", sum));
  return text;
}

TEST(Space, DotProductsOfTheTargetAreUsed) {
  struct Case {
    const char *target, *rows, *wide, *sum, *intrinsic;
  };
  for (const Case& p : {Case{"x86-64-v3:cores=2", "uint8", "int8", "int32", "dot_8x4_avx2"},
                        Case{"x86-64-v4:cores=2", "uint8", "int8", "int32", "dot_16x4_avx512"},
                        Case{"cascadelake:cores=2", "uint8", "int8", "int32", "dot_16x4_vnni"},
                        Case{"znver5:cores=2", "bfloat16", "bfloat16", "float32", "dot_16x2_avx512bf16"}}) {
    SCOPED_TRACE(p.intrinsic);
    Task task = make_task(typed_gemm(p.rows, p.wide, p.sum).c_str(), p.target);
    auto parts = parts_for("tilewright", task.target);
    ASSERT_TRUE(parts);
    auto space = Space::from_rules(task, *parts);
    ASSERT_TRUE(space);
    int tensorized = 0, tried = 0;
    for (const Sketch& sketch : space->sketches()) {
      for (uint64_t n = 0; n < 2; ++n) {
        ++tried;
        auto m = space->materialise(task, sketch, nullptr, Rng::keyed(7, static_cast<uint64_t>(sketch.id), n));
        if (!m) continue;
        tensorized += trace_to_python(m->schedule.trace()).find(fmt::format("tensor_intrin=\"{}\"", p.intrinsic)) !=
                      std::string::npos;
        ExecutionCheck check;
        check.reassociated = true;
        ASSERT_TRUE(equal_by_execution(*task.program->main(), m->schedule.function(), check))
            << trace_to_python(m->schedule.trace());
      }
    }
    EXPECT_GT(tensorized * 4, tried);
  }
}

TEST(Space, UnevenSizesArePaddedToAGoodTile) {
  Task task = make_task(kUneven);
  auto parts = parts_for("tilewright", task.target);
  ASSERT_TRUE(parts);
  auto space = Space::from_rules(task, *parts);
  ASSERT_TRUE(space);
  EXPECT_TRUE(std::any_of(space->sketches().begin(), space->sketches().end(), [](const Sketch& sketch) {
    return trace_to_python(sketch.trace).find("sch.pad_einsum(") != std::string::npos;
  }));
}

TEST(Space, TheReferencesByteTilingIsAppliedOnTargetsThatHaveIt) {
  std::string text = typed_gemm("uint8", "int8", "int32");
  for (auto [target, sketches] :
       {std::pair{"x86-64-v3:cores=2", "multi_level_tiling"}, std::pair{"x86-64-v4:cores=2", "dot_16x4_avx512"},
        std::pair{"cascadelake:cores=2", "dot_16x4_vnni"}}) {
    Task task = make_task(text.c_str(), target);
    auto parts = parts_for("metaschedule", task.target);
    ASSERT_TRUE(parts);
    auto space = Space::from_rules(task, *parts);
    ASSERT_TRUE(space);
    for (const Sketch& sketch : space->sketches()) {
      const std::string python = trace_to_python(sketch.trace);
      const bool dot = python.find(fmt::format("ann_val=\"{}\"", sketches)) != std::string::npos;
      EXPECT_EQ(dot, std::string(sketches).starts_with("dot")) << python;
      // The operand does not lie as the intrinsic wants it.
      auto m = space->materialise(task, sketch, nullptr, Rng(3));
      if (!dot) continue;
      ASSERT_FALSE(m);
      EXPECT_EQ(m.error().code(), "tensorize-failed");
    }
  }
}

TEST(Space, AFreeLayoutFollowsTheLoops) {
  std::string text = kGemm;
  text.insert(text.find("    for i, j, k"), "    T.func_attr({\"layout_free_buffers\": [1]})\n");
  Task task = make_task(text.c_str());
  for (const char* preset : {"tilewright", "metaschedule"}) {
    auto parts = parts_for(preset, task.target);
    ASSERT_TRUE(parts);
    auto space = Space::from_rules(task, *parts);
    ASSERT_TRUE(space);
    int rewritten = 0;
    for (const Sketch& sketch : space->sketches()) {
      for (uint64_t n = 0; n < 4; ++n) {
        auto m = space->materialise(task, sketch, nullptr, Rng::keyed(3, static_cast<uint64_t>(sketch.id), n));
        if (!m) continue;
        std::string python = trace_to_python(m->schedule.trace());
        rewritten += python.find("layout_rewrite_preproc") != std::string::npos;
        ExecutionCheck check;
        check.reassociated = true;
        ASSERT_TRUE(equal_by_execution(*task.program->main(), m->schedule.function(), check)) << python;
      }
    }
    EXPECT_GT(rewritten, 0) << preset;
  }
}

TEST(Space, TooManySketchesAreThinnedOutAndSaid) {
  Task task = make_task(kChain);
  auto parts = parts_for("tilewright", task.target);
  ASSERT_TRUE(parts);
  auto space = Space::from_rules(task, *parts);
  ASSERT_TRUE(space);
  EXPECT_LE(space->sketches().size(), 64u);
  EXPECT_GT(space->sketches().size(), 32u);
  ASSERT_EQ(space->warnings().size(), 1u);
  EXPECT_EQ(space->warnings()[0].code(), "too-many-sketches");
  parts->max_sketches = 0;
  auto whole = Space::from_rules(task, *parts);
  ASSERT_TRUE(whole);
  EXPECT_GT(whole->sketches().size(), 64u);
  EXPECT_TRUE(whole->warnings().empty());
}

// A rule of a plug-in with a bug: it is met only by programs that have a block of that name.
const Register<ScheduleRule> throwing{"test.throws",
                                      "fails on blocks called thrower",
                                      {.apply =
                                           [](Schedule s, BlockRV rv, const RuleContext&) {
                                             if ((*s.block(rv))->name == "thrower") throw std::runtime_error("a bug");
                                             return std::vector<Schedule>{s};
                                           },
                                       .before = ""}};

TEST(Space, ARuleThatThrowsLeavesTheBlockAlone) {
  std::string text = kGemm;
  text.replace(text.find("\"C\""), 3, "\"thrower\"");
  Task task = make_task(text.c_str());
  auto parts = parts_for("tilewright", task.target);
  ASSERT_TRUE(parts);
  auto space = Space::from_rules(task, *parts);
  ASSERT_TRUE(space);
  ASSERT_EQ(space->warnings().size(), 1u);
  EXPECT_EQ(space->warnings()[0].code(), "rule-fails");
  EXPECT_EQ(space->warnings()[0].diagnostic().message, "rule test.throws: a bug");
  auto sound = Space::from_rules(make_task(kGemm), *parts);
  ASSERT_TRUE(sound);
  EXPECT_EQ(space->sketches().size(), sound->sketches().size());
}

TEST(Space, TheParallelLimitIsLocatedAndReplayed) {
  Task task = make_task(kGemmRelu);
  auto parts = parts_for("metaschedule", task.target);
  ASSERT_TRUE(parts);
  auto space = Space::from_rules(task, *parts);
  ASSERT_TRUE(space);
  const Mutator* mutator = Registry<Mutator>::instance().find("parallel");
  ASSERT_TRUE(mutator);
  std::set<Hash64> programs;
  for (const Sketch& sketch : space->sketches()) {
    auto fresh = space->materialise(task, sketch, nullptr, Rng(5));
    if (!fresh) continue;
    Rng rng(9);
    for (int i = 0; i < 8; ++i) {
      DecisionVector decisions = fresh->decisions;
      ASSERT_TRUE(mutator->apply(sketch, decisions, rng));
      EXPECT_FALSE(decisions == fresh->decisions);
      auto changed = space->materialise(task, sketch, &decisions, Rng(5));
      ASSERT_TRUE(changed);
      programs.insert(structural_hash(changed->schedule.function()));
      auto found = space->locate(changed->schedule.trace());
      ASSERT_TRUE(found);
      EXPECT_EQ(found->first, sketch.id);
      EXPECT_TRUE(found->second == decisions);
    }
    programs.insert(structural_hash(fresh->schedule.function()));
  }
  EXPECT_GT(programs.size(), space->sketches().size());
}

}  // namespace
}  // namespace tilewright
