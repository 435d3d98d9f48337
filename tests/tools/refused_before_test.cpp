// What tune cannot do is said before the run starts, with what it can.
#include <array>

#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

class RefusedBefore : public ToolTest {
 protected:
  /// Refused with that code and exit, and nothing was begun.
  void refused(const std::vector<std::string>& arguments, const std::string& code, int exit,
               const std::string& told = "") const {
    std::vector<std::string> all{"tune"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    Ran ran = run(all);
    EXPECT_EQ(ran.code, exit) << ran.out << ran.err;
    EXPECT_NE(ran.err.find("[" + code + "]"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(told), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(folder() / "runs")) << ran.out;
  }
};

TEST_F(RefusedBefore, AnElementTypeThatTheTargetDoesNotComputeWith) {
  for (const char* dtype : {"float8_e4m3fn", "float8_e5m2", "e4m3"}) {
    const std::string op = std::string("gemm:m=16,n=16,k=16,dtype=") + dtype;
    refused({"--op", op}, "dtype-not-generated", 3, "bfloat16");
    refused({"--op", op, "--dry-run"}, "dtype-not-generated", 3);
    EXPECT_EQ(run({"show", op, "--as", "asm"}).code, 3);
    EXPECT_EQ(run({"export", op}).code, 3);
    EXPECT_EQ(run({"tune", "--op", op, "--dry-run", "--runner", "fake"}).code, 0) << "a fake device builds nothing";
  }
  EXPECT_EQ(run({"tune", "--op", "gemm:m=16,n=16,k=16,dtype=bfloat16", "--dry-run"}).code, 0);
}

TEST_F(RefusedBefore, ElementTypesThatAreOnlyMovedAreBuilt) {
  write("copy.py",
        "@T.prim_func\n"
        "def main(A: T.Buffer((64,), \"float8_e4m3fn\"), B: T.Buffer((64,), \"float8_e4m3fn\")):\n"
        "    for i in range(64):\n"
        "        with T.sblock(\"B\"):\n"
        "            vi = T.axis.spatial(64, i)\n"
        "            B[vi] = A[vi]\n");
  Ran ran = run({"tune", "copy.py", "--dry-run"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(run({"show", "copy.py", "--as", "asm"}).code, 0);
}

TEST_F(RefusedBefore, TargetsWithoutACodeGenerator) {
  for (const char* target : {"sm_90a", "h200", "a100"}) {
    refused({"--op", "gemm:m=16,n=16,k=16", "--target", target}, "code-generator-missing", 3, "--target native");
    refused({"--op", "gemm:m=16,n=16,k=16", "--target", target, "--dry-run"}, "code-generator-missing", 3);
  }
  write("c.toml", "[campaign]\ntarget = \"sm_90a\"\n[[task]]\nop = \"gemm\"\ngrid = { m = 16, n = 16, k = 16 }\n");
  refused({"c.toml"}, "code-generator-missing", 3);
}

TEST_F(RefusedBefore, NamesThatAreNotRegistered) {
  const std::vector<std::string> op{"--op", "gemm:m=16,n=16,k=16"};
  for (const auto& [flag, value, near] :
       std::vector<std::array<std::string, 3>>{{"--no-rule", "auto_inlin", "auto_inline"},
                                               {"--strategy", "evolutionry", "evolutionary"},
                                               {"--cost-model", "gbt", "gbdt"},
                                               {"--preset", "tilewrigth", "tilewright"},
                                               {"--set", "search.scheduler=gradeint", "gradient"}})
    for (const char* how : {"--dry-run", "--fresh"})
      refused({op[0], op[1], flag, value, how}, "name-unknown", 2, "did you mean \"" + near + "\"?");
  refused({op[0], op[1], "--no-rule", "nope"}, "name-unknown", 2, "auto_inline");
  refused({op[0], op[1], "--space", "nope"}, "name-unknown", 2);
  refused({op[0], op[1], "--warm-start", "nope", "--dry-run"}, "run-unknown", 2, "auto, none or a run");
  EXPECT_EQ(run({"show", "settings", "--set", "search.strategy=nope"}).code, 2);
}

TEST_F(RefusedBefore, FlagsThatNothingUses) {
  const std::vector<std::string> op{"--op", "gemm:m=16,n=16,k=16"};
  refused({op[0], op[1], "--only", "smoke"}, "bad-command-line", 2, "--only");
  refused({op[0], op[1], "--arg", "n=4"}, "bad-command-line", 2, "--arg");
  refused({op[0], op[1], "--resume"}, "bad-command-line", 2, "--name");
  write("c.toml", "[[task]]\nop = \"gemm\"\ngrid = { m = 16, n = 16, k = 16 }\n");
  refused({"c.toml", "--arg", "n=4"}, "bad-command-line", 2, "args = ");
}

TEST_F(RefusedBefore, CampaignsThatMeanNothing) {
  auto campaign = [&](const std::string& lines, const std::string& told) {
    write("c.toml", "[[task]]\nop = \"gemm\"\n" + lines + "\n");
    refused({"c.toml", "--dry-run"}, "campaign-malformed", 2, told);
    refused({"c.toml", "--dry-run"}, "campaign-malformed", 2, "c.toml:3:");
  };
  const std::string grid = "grid = { m = 16, n = 16, k = 16 }\n";
  for (const char* weight : {"-1", "0", "nan", "inf", "\"3\"", "true"})
    campaign("weight = " + std::string(weight) + "\n" + grid,
             "weight: expected a number above 0, found " + std::string(weight));
  campaign("grid = { m = [], n = 16, k = 16 }", "expected at least one value for m, found []");
  campaign("grid = { m = [16, 32, 16], n = 16, k = 16 }", "each value of m once, found 16 twice");
  write("c.toml", "[[task]]\nop = \"gemm\"\nweight = 2.5\n" + grid);
  EXPECT_EQ(run({"tune", "c.toml", "--dry-run"}).code, 0);
}

TEST_F(RefusedBefore, SizesThatNoMachineHolds) {
  for (const char* sizes :
       {"m=0,n=8,k=8", "m=-4,n=8,k=8", "m=1.5,n=8,k=8", "m=,n=8,k=8", "m=99999999999999999999,n=8,k=8",
        "m=536870912,n=536870912,k=8", "m=1,n=536870912,k=536870912"}) {
    Ran ran = run({"tune", "--op", std::string("gemm:") + sizes, "--dry-run"});
    EXPECT_EQ(ran.code, 2) << sizes << ran.out << ran.err;
  }
}

}  // namespace
}  // namespace tilewright
