// Pass order, options and the interface of the pipeline.
#include "lowering/pipeline.h"

#include <gtest/gtest.h>

namespace tilewright::lowering {
namespace {

TEST(Pipeline, OrderOnCpu) {
  EXPECT_EQ(pass_order(TargetKind::cpu),
            (std::vector<std::string>{"normalize_loops", "lower_block_init", "open_blocks", "place_allocations",
                                      "compact_buffers", "assign_layouts", "drop_blocks", "partition_loops",
                                      "guard_unsafe_selects", "flatten_buffers", "vectorize_loops", "unroll_loops",
                                      "insert_prefetches", "legalize_dtypes", "plan_workspace"}));
}

TEST(LowerOptions, TextIsWhatDiffers) {
  EXPECT_EQ(LowerOptions().text(), "");
  Result<LowerOptions> o = LowerOptions::parse({{"fp_contract", "off"}, {"max_code", "99"}, {"math", "auto"}});
  ASSERT_TRUE(o);
  EXPECT_EQ(o->text(), "fp_contract=off,max_code=99");
}

TEST(LowerOptions, RefusesBadText) {
  EXPECT_EQ(LowerOptions::parse({{"fp_contract", "yes"}}).error().code(), "lower-option-invalid");
  EXPECT_EQ(LowerOptions::parse({{"max_code", "-1"}}).error().code(), "lower-option-invalid");
  EXPECT_EQ(LowerOptions::parse({{"denormals", "maybe"}}).error().code(), "lower-option-invalid");
  Result<LowerOptions> o = LowerOptions::parse({{"max_cod", "1"}});
  EXPECT_EQ(o.error().code(), "lower-option-unknown");
  EXPECT_EQ(o.error().diagnostic().help, "did you mean \"max_code\"?");
}

}  // namespace
}  // namespace tilewright::lowering
