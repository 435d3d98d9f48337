// Check plans read off program text.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "measure/check/program_plan.h"

namespace tilewright::measure {
namespace {

Result<CheckPlan> plan_of(const std::string& text) {
  auto parsed = parse_program(text, "test.py");
  if (!parsed) {
    for (const Diagnostic& d : parsed.error()) ADD_FAILURE() << render_text(d);
    return refuse(not_checkable, "not parsed");
  }
  return plan_checks(*parsed->program->main());
}

std::string gemm(const std::string& in, const std::string& out, const std::string& value) {
  return "@T.prim_func\ndef main(A: T.Buffer((128, 512), \"" + in + "\"), B: T.Buffer((512, 64), \"" + in +
         "\"), C: T.Buffer((128, 64), \"" + out + R"(")):
    for i, j, k in T.grid(128, 64, 512):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = )" +
         (out == "int32" ? "0" : "T." + out + "(0)") + "\n            C[vi, vj] = C[vi, vj] + " + value + "\n";
}

TEST(ProgramPlan, AGemmHasTwoInputsOneOutputAndItsReductionLength) {
  auto plan = plan_of(gemm("float32", "float32", "A[vi, vk] * B[vk, vj]"));
  ASSERT_TRUE(plan.has_value());
  ASSERT_EQ(plan->buffers.size(), 3u);
  EXPECT_EQ(plan->buffers[0].role, Role::input);
  EXPECT_EQ(plan->buffers[2].role, Role::output);
  EXPECT_EQ(plan->buffers[2].reduction, 512);
  EXPECT_EQ(plan->buffers[2].u_acc, 0x1p-24);
  EXPECT_TRUE(plan->exact);
}

TEST(ProgramPlan, IntegersAreExactAndHalfAccumulatorsOnlyOverShortReductions) {
  auto ints = plan_of(gemm("int8", "int32", "T.cast(A[vi, vk], \"int32\") * T.cast(B[vk, vj], \"int32\")"));
  ASSERT_TRUE(ints.has_value());
  EXPECT_TRUE(ints->exact);
  auto half = plan_of(gemm("float16", "float16", "A[vi, vk] * B[vk, vj]"));
  ASSERT_TRUE(half.has_value());
  EXPECT_TRUE(half->exact) << "8 * sqrt(512) * 6.7 fits 11 bits";
  EXPECT_EQ(half->buffers[2].u_acc, 0x1p-11);
}

TEST(ProgramPlan, AnUpdateWithoutInitReadsItsOutput) {
  auto plan = plan_of(R"(@T.prim_func
def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = C[vi] + A[vi]
)");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->buffers[1].role, Role::inout);
}

TEST(ProgramPlan, DivisorsArePositiveAndFunctionsEndTheExactSet) {
  auto plan = plan_of(R"(@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), D: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.exp(A[vi]) / B[vi] + T.sqrt(D[vi])
)");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->buffers[0].fill, Fill::uniform);
  EXPECT_EQ(plan->buffers[1].fill, Fill::positive);
  EXPECT_EQ(plan->buffers[2].fill, Fill::positive);
  EXPECT_FALSE(plan->exact);
  EXPECT_GT(plan->buffers[3].e_fn, 4 * 0x1p-24);
}

TEST(ProgramPlan, IndexTensorsStayInsideWhatTheyIndex) {
  auto plan = plan_of(R"(@T.prim_func
def main(table: T.Buffer((100, 8), "float32"), rows: T.Buffer((16,), "int32"), C: T.Buffer((16, 8), "float32")):
    for i, j in T.grid(16, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = table[rows[vi], vj]
)");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->buffers[1].fill, Fill::index);
  EXPECT_EQ(plan->buffers[1].low, 0);
  EXPECT_EQ(plan->buffers[1].high, 100);
}

TEST(ProgramPlan, ReductionsAddUpAlongThePath) {
  auto plan = plan_of(R"(@T.prim_func
def main(A: T.Buffer((16, 64), "float32"), B: T.Buffer((64, 32), "float32"), E: T.Buffer((32, 8), "float32"), C: T.Buffer((16, 8), "float32")):
    D = T.alloc_buffer((16, 32), "float32")
    for i, j, k in T.grid(16, 32, 64):
        with T.block("D"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                D[vi, vj] = T.float32(0)
            D[vi, vj] = D[vi, vj] + A[vi, vk] * B[vk, vj]
    for i, j, k in T.grid(16, 8, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + D[vi, vk] * E[vk, vj]
)");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->buffers[3].reduction, 64 + 32 - 1);
  EXPECT_TRUE(plan->exact);
  EXPECT_EQ(plan->buffers.size(), 4u) << "only parameters have buffers of their own";
}

TEST(ProgramPlan, WhatCannotBeCheckedIsRefused) {
  EXPECT_FALSE(plan_of(R"(@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            T.evaluate(A[vi])
)")
                   .has_value());
}

}  // namespace
}  // namespace tilewright::measure
