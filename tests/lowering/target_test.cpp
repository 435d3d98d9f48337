// Target text: canonical form, overrides, native detection, refusals.
#include "schedule/target.h"

#include <gtest/gtest.h>

namespace tilewright {
namespace {

std::string code_of(std::string_view text) {
  Result<Target> t = parse_target(text);
  return t ? "ok" : std::string(t.error().code());
}

TEST(Target, CanonicalTextParsesBack) {
  for (const auto& [name, entry] : Registry<Target>::instance().entries()) {
    std::string text = entry.value.is_cpu() ? name + ":cores=3" : name;
    Result<Target> t = parse_target(text);
    ASSERT_TRUE(t) << name;
    EXPECT_EQ(t->text(), text);
    EXPECT_TRUE(std::is_sorted(t->features.begin(), t->features.end())) << name;
  }
}

TEST(Target, OverridesAreKeptInFixedOrder) {
  Result<Target> t = parse_target("x86-64-v3:l2=1M,+avxvnni,num-cores=2,-movbe,l1=32K");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->text(), "x86-64-v3:cores=2,l2=1M,+avxvnni,-movbe");  // l1 is the registered value
  EXPECT_EQ(*parse_target(t->text()), *t);
  EXPECT_EQ(t->lanes(32), 8);
  EXPECT_TRUE(t->has("fma"));
  EXPECT_FALSE(t->has("movbe"));
}

TEST(Target, NativeRunsHere) {
  Target t = native_target();
  EXPECT_GE(t.cores, 1);
  EXPECT_GT(t.l1_bytes, 0);
  EXPECT_TRUE(features_missing_here(t).empty());
  Result<Target> again = parse_target(t.text());
  ASSERT_TRUE(again) << t.text();
  EXPECT_EQ(*again, t);
}

TEST(Target, DevicesInheritTheirArchitecture) {
  Result<Target> t = parse_target("h200");
  ASSERT_TRUE(t);
  EXPECT_EQ(t->arch, "sm_90a");
  EXPECT_EQ(t->sms, 132);
  EXPECT_EQ(t->shared_per_block, 232448);
}

TEST(Target, RefusesBadText) {
  EXPECT_EQ(code_of(""), "target-malformed");
  EXPECT_EQ(code_of("x86-64-v3:"), "target-malformed");
  EXPECT_EQ(code_of("x86-64-v3:cores"), "target-malformed");
  EXPECT_EQ(code_of("x86-64-v9:cores=1"), "target-unknown");
  EXPECT_EQ(code_of("znver5"), "target-cores-missing");
  EXPECT_EQ(code_of("znver5:cores=0"), "target-value-invalid");
  EXPECT_EQ(code_of("znver5:cores=2K"), "target-value-invalid");
  EXPECT_EQ(code_of("znver5:cores=99999999999999999999"), "target-value-invalid");
  EXPECT_EQ(code_of("znver5:cores=1,vector-bits=300"), "target-value-invalid");
  EXPECT_EQ(code_of("znver5:core=1"), "target-key-unknown");
  EXPECT_EQ(code_of("cuda"), "target-needs-device");
  EXPECT_EQ(parse_target("cascadelak").error().diagnostic().help, "did you mean \"cascadelake\"?");
  EXPECT_EQ(parse_target("znver5:core=1").error().diagnostic().help, "did you mean \"cores\"?");
}

}  // namespace
}  // namespace tilewright
