// Dot products of x86 as schedules name them: every target gets its own instruction, and what this machine has computes
// what the interpreter says.
#include <fmt/format.h>

#include "ir/parse.h"
#include "schedule/intrinsics/intrinsic.h"
#include "schedule/schedule.h"
#include "tests/codegen/programs.h"

namespace tilewright::test {
namespace {

struct Case {
  const char* intrinsic;
  int lanes, depth;
  const char *rows, *wide, *sum;
  const char* target;  ///< that has it
  const char* instruction;
  const char* without;  ///< a target that lacks it
};
const Case kCases[] = {
    {"dot_16x4_vnni", 16, 4, "uint8", "int8", "int32", "cascadelake:cores=1", "vpdpbusd", "x86-64-v4:cores=1"},
    {"dot_8x4_avxvnni", 8, 4, "uint8", "int8", "int32", "cascadelake:cores=1", "vpdpbusd", "x86-64-v3:cores=1"},
    {"dot_16x4_avx512", 16, 4, "uint8", "int8", "int32", "x86-64-v4:cores=1", "vpmaddwd", "x86-64-v3:cores=1"},
    {"dot_8x4_avx2", 8, 4, "uint8", "int8", "int32", "x86-64-v3:cores=1", "vpmaddwd", "x86-64-v2:cores=1"},
    {"dot_16x2_avx512bf16", 16, 2, "bfloat16", "bfloat16", "float32", "znver5:cores=1", "vdpbf16ps",
     "x86-64-v4:cores=1"},
};

/// C[i, j] += Σ_k A[i, k] · B[k // depth, j, k % depth], tensorized.
FunctionRef tensorized(const Case& p) {
  std::string text = fmt::format(R"(
@T.prim_func(s_tir=True)
def main(A: T.Buffer((5, 32), "{2}"), B: T.Buffer(({6}, {0}, {1}), "{3}"), C: T.Buffer((5, {0}), "{4}")):
    for i, ko, j, ki in T.grid(5, {6}, {0}, {1}):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            vk = T.axis.reduce(32, ko * {1} + ki)
            with T.init():
                C[vi, vj] = T.Cast("{4}", 0)
            C[vi, vj] = C[vi, vj] + T.Cast("{4}", A[vi, vk]) * T.Cast("{4}", B[vk // {1}, vj, vk % {1}])
)",
                                 p.lanes, p.depth, p.rows, p.wide, p.sum, "", 32 / p.depth);
  auto parsed = parse_program(text, "dot");
  if (!parsed) throw InternalError(render_text(parsed.error().at(0)));
  Schedule s(parsed->program);
  auto block = take(s.get_sblock("C"));
  auto loops = take(s.get_loops(block));
  take(s.decompose_reduction(block, loops[1]));
  Status done = s.tensorize(loops[2], p.intrinsic);
  if (!done) throw InternalError(render_text(done.error().diagnostic()));
  return FunctionRef(&s.function());
}

class Dot : public testing::TestWithParam<Case> {};

TEST_P(Dot, IsTheTargetsInstruction) {
  const Case& p = GetParam();
  Target t = target(p.target);
  codegen::CodegenOptions options;
  options.keep_assembly = true;
  std::string text = take(codegen::compile(take(lowering::lower(*tensorized(p), t)), t, options)).assembly;
  EXPECT_NE(text.find(p.instruction), std::string::npos) << text;
  EXPECT_EQ(text.find("vpmaddubsw"), std::string::npos) << "saturates\n" << text;
}

TEST_P(Dot, IsRefusedForATargetWithoutIt) {
  const Case& p = GetParam();
  Target t = target(p.without);
  auto compiled = codegen::compile(take(lowering::lower(*tensorized(p), t)), t, {});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code(), "codegen-unsupported");
}

TEST_P(Dot, ComputesWhatTheInterpreterSays) {
  const Case& p = GetParam();
  const TensorIntrinsic* intrinsic = Registry<TensorIntrinsic>::instance().find(p.intrinsic);
  ASSERT_TRUE(intrinsic);
  if (!intrinsic->on(native_target())) GTEST_SKIP() << "this CPU lacks " << p.intrinsic;
  expect_same_as_interpreter(*tensorized(p));
}

INSTANTIATE_TEST_SUITE_P(X86, Dot, testing::ValuesIn(kCases),
                         [](const auto& p) { return std::string(p.param.intrinsic); });

}  // namespace
}  // namespace tilewright::test
