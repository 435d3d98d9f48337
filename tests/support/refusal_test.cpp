#include "support/refusal.h"

#include <gtest/gtest.h>

#include "support/result.h"

namespace tilewright {
namespace {

TW_REFUSAL_CODE(test_code, "test-code", "only for this test");

TEST(Refusal, RendersLazilyAndKeepsItsCode) {
  int rendered = 0;
  Refusal refusal(test_code, [&] {
    ++rendered;
    Diagnostic d;
    d.message = "expected 3, found 4";
    return d;
  });
  EXPECT_EQ(refusal.code(), "test-code");
  EXPECT_EQ(rendered, 0);
  EXPECT_EQ(render_text(refusal.diagnostic()), "error: expected 3, found 4  [test-code]\n");
  EXPECT_EQ(rendered, 1);
  EXPECT_EQ(find_refusal_code("test-code"), &test_code);
}

Result<int> twice(Result<int> x) {
  TW_TRY(int value, x);
  return 2 * value;
}

TEST(Result, TryPropagates) {
  EXPECT_EQ(*twice(21), 42);
  EXPECT_EQ(twice(refuse(test_code, "no")).error().code(), "test-code");
}

TEST(Diagnostic, CaretStandsUnderTheRange) {
  Diagnostic d;
  d.code = "undefined-name";
  d.message = "name \"vi\" is not defined";
  d.span = {"a.py", 3, 7, 9, "    C[vi, vj] = 0"};
  d.help = "did you mean \"vk\"?";
  EXPECT_EQ(render_text(d),
            "error: name \"vi\" is not defined  [undefined-name]\n"
            "  a.py:3:7\n"
            "    C[vi, vj] = 0\n"
            "      ^^\n"
            "help: did you mean \"vk\"?\n");
}

TEST(Diagnostic, SuggestsTheNearestName) {
  EXPECT_EQ(did_you_mean("kernal", {"kernel", "stride", "pad"}), "kernel");
  EXPECT_EQ(did_you_mean("zzz", {"kernel", "stride", "pad"}), "");
}

}  // namespace
}  // namespace tilewright
