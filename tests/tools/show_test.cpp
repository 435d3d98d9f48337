#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using Show = ToolTest;

TEST_F(Show, AnOperatorIsAProgramThatParses) {
  Ran ran = run({"show", "gemm:m=8,n=8,k=8"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(run({"opt", "-"}, ran.out).out, ran.out);
  EXPECT_EQ(run({"show", "program", "gemm:m=8,n=8,k=8"}).out, ran.out);
}

TEST_F(Show, MistakesInOperatorsSayWhatIsMissing) {
  Ran missing = run({"show", "gemm:m=8,n=8"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("[parameter-missing]"), std::string::npos) << missing.err;
  Ran unknown = run({"show", "gemm:m=8,n=8,kk=8"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"k\""), std::string::npos) << unknown.err;
  EXPECT_EQ(run({"show", "gemm:m=8,n=8,k=8", "--as", "ptx"}).code, 2);
}

TEST_F(Show, LoweredLlvmAndAssembly) {
  Ran lowered = run({"show", "gemm:m=8,n=8,k=8", "--as", "lowered", "--target", "x86-64-v3:cores=1"});
  EXPECT_EQ(lowered.code, 0) << lowered.err;
  EXPECT_EQ(lowered.out.find("T.sblock"), std::string::npos) << lowered.out;
  Ran llvm = run({"show", "gemm:m=8,n=8,k=8", "--as", "llvm", "--target", "x86-64-v3:cores=1"});
  EXPECT_EQ(llvm.code, 0) << llvm.err;
  EXPECT_NE(llvm.out.find("target triple"), std::string::npos);
  Ran assembly = run({"show", "gemm:m=8,n=8,k=8", "--as", "asm", "--target", "x86-64-v3:cores=1"});
  EXPECT_EQ(assembly.code, 0) << assembly.err;
  EXPECT_NE(assembly.out.find(".text"), std::string::npos);
}

TEST_F(Show, SketchesOfASpaceApplyToTheirProgram) {
  Ran maps = run({"show", "space", "gemm:m=64,n=64,k=64", "--target", "x86-64-v3:cores=2", "--as", "tvm"});
  EXPECT_EQ(maps.code, 0) << maps.err;
  EXPECT_NE(maps.out.find("tirx.IndexMap"), std::string::npos) << "index maps are graphs of TVM's objects";
  EXPECT_EQ(maps.out.find("lambda"), std::string::npos);
  Ran space = run({"show", "space", "gemm:m=64,n=64,k=64", "--target", "x86-64-v3:cores=2", "--json"});
  ASSERT_EQ(space.code, 0) << space.out;
  Json document = space.json();
  ASSERT_FALSE(document["sketches"].empty());
  write("mm.py", run({"show", "gemm:m=64,n=64,k=64"}).out);
  for (const Json& sketch : document["sketches"]) {
    EXPECT_GE(sketch["points"].get<double>(), 1);
    write("sketch.json", sketch["trace"].dump());
    Ran applied = run({"opt", "mm.py", "--trace", "sketch.json"});
    EXPECT_EQ(applied.code, 0) << sketch["name"] << applied.err;
  }
}

TEST_F(Show, SettingsFollowTheEnvironmentAndSet) {
  Ran ran = run({"show", "settings", "--set", "search.trials=7", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  bool seen = false;
  const Json document = ran.json();
  for (const Json& s : document["settings"])
    if (s["name"] == "search.trials") seen = s["value"] == "7" && s["default"] == "64";
  EXPECT_TRUE(seen);
  EXPECT_EQ(run({"show", "settings", "--set", "search.trials=none"}).code, 2);
  Ran near = run({"show", "settings", "--set", "search.trails=7"});
  EXPECT_EQ(near.code, 2);
  EXPECT_NE(near.err.find("did you mean \"search.trials\"?"), std::string::npos) << near.err;
}

}  // namespace
}  // namespace tilewright
