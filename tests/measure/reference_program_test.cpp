// The reference program computes what the program does, more precisely.
#include "measure/check/reference_program.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "tests/ir/execution.h"
#include "workloads/operator.h"

namespace tilewright::measure {
namespace {

class ReferenceProgram : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceProgram, ComputesTheSame) {
  auto workload = make_workload(GetParam());
  ASSERT_TRUE(workload.has_value());
  ProgramRef reference = reference_program(workload->program);
  EXPECT_TRUE(equal_by_execution(*workload->program->main(), *reference->main(),
                                 {.small_exact = false, .reassociated = true, .tolerance = 1e-4}))
      << print(*reference);
}

INSTANTIATE_TEST_SUITE_P(All, ReferenceProgram,
                         testing::Values("gemm:m=5,n=6,k=7", "gemm:m=4,n=4,k=4,dtype=bfloat16", "softmax:m=3,n=9",
                                         "layernorm:m=3,n=8", "conv2d:n=1,h=5,w=5,ci=2,co=3,kernel=3,pad=1",
                                         "gemm_bias_relu:m=4,n=5,k=6", "gemm:m=4,n=5,k=6,dtype=int8"));

TEST(ReferenceProgram, SumsInFloat64OutsideTheInnermostSpatialLoop) {
  auto workload = make_workload("gemm:m=8,n=8,k=8");
  ASSERT_TRUE(workload.has_value());
  std::string text = print(*reference_program(workload->program));
  EXPECT_NE(text.find("for i in T.parallel(8):\n            for k, j in T.grid(8, 8):"), std::string::npos) << text;
  EXPECT_NE(
      text.find("C_wide[vi, vj] = C_wide[vi, vj] + T.Cast(\"float64\", A[vi, vk]) * T.Cast(\"float64\", B[vk, vj])"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("C[v0, v1] = T.Cast(\"float32\", C_wide[v0, v1])"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright::measure
