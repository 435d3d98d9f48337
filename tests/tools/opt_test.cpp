#include <cstring>

#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using Opt = ToolTest;

constexpr const char* kTrace = R"(b0 = sch.get_sblock(name="C")
l1, l2, l3 = sch.get_loops(block=b0)
l4, l5 = sch.split(loop=l1, factors=[4, 16])
sch.parallel(loop=l4)
)";

TEST_F(Opt, PrintsAProgramThatPrintsTheSame) {
  write("mm.py", kMatmul);
  Ran first = run({"opt", "mm.py"});
  ASSERT_EQ(first.code, 0) << first.err;
  Ran again = run({"opt", "-"}, first.out);
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, first.out);
}

TEST_F(Opt, AppliesPlainCallsPythonAndJsonAlike) {
  write("mm.py", kMatmul);
  write("calls.py", kTrace);
  Ran plain = run({"opt", "mm.py", "--schedule", "calls.py"});
  ASSERT_EQ(plain.code, 0) << plain.err;
  EXPECT_NE(plain.out.find("T.parallel(4)"), std::string::npos) << plain.out;
  Ran python = run({"opt", "mm.py", "--trace", "calls.py", "--emit", "trace"});
  Ran json = run({"opt", "mm.py", "--trace", "calls.py", "--emit", "json"});
  ASSERT_EQ(python.code, 0);
  ASSERT_EQ(json.code, 0);
  write("trace.py", python.out);
  write("trace.json", json.out);
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "trace.py"}).out, plain.out);
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "trace.json"}).out, plain.out);
  EXPECT_EQ(run({"show", "trace", "trace.json"}).out, python.out);
}

TEST_F(Opt, PrintsWhatChangedVerifiesAndUpdates) {
  write("mm.py", kMatmul);
  write("calls.py", kTrace);
  Ran plain = run({"opt", "mm.py", "--schedule", "calls.py"});
  Ran watched = run({"opt", "mm.py", "--schedule", "calls.py", "--verify-each", "--print-changed"});
  ASSERT_EQ(watched.code, 0) << watched.err;
  EXPECT_EQ(watched.out, plain.out);
  EXPECT_EQ(watched.err.find("# after step 0"), std::string::npos) << watched.err;
  EXPECT_NE(watched.err.find("# after step 2: l4, l5 = sch.split("), std::string::npos) << watched.err;
  EXPECT_NE(watched.err.find("+         for i_0 in T.parallel(4):"), std::string::npos) << watched.err;
  Ran passes = run({"opt", "mm.py", "--pass", "lower_block_init,open_blocks", "--print-changed"});
  ASSERT_EQ(passes.code, 0) << passes.err;
  EXPECT_NE(passes.err.find("# after pass lower_block_init"), std::string::npos) << passes.err;
  EXPECT_NE(passes.err.find("# after pass open_blocks"), std::string::npos) << passes.err;
  EXPECT_EQ(run({"opt", "mm.py", "--schedule", "calls.py", "--update"}).out, "");
  EXPECT_EQ(read("mm.py"), plain.out);
  EXPECT_EQ(run({"opt", "-", "--update"}, kMatmul).code, 2);
}

TEST_F(Opt, SeedDecidesWhatTheTraceLeavesOpen) {
  write("mm.py", kMatmul);
  write("s.py", "l = sch.get_loops(\"C\")\nsch.split(l[0], sch.sample_perfect_tile(l[0], n=4))\n");
  Ran one = run({"opt", "mm.py", "--schedule", "s.py", "--seed", "7"});
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(run({"opt", "mm.py", "--schedule", "s.py", "--seed", "7"}).out, one.out);
  bool another = false;
  for (const char* seed : {"1", "2", "3", "4", "5"})
    another |= run({"opt", "mm.py", "--schedule", "s.py", "--seed", seed}).out != one.out;
  EXPECT_TRUE(another);
}

TEST_F(Opt, TextThatDoesNotParseIsExitTwoWithACaret) {
  write("bad.py", "@T.prim_func\ndef main(:\n    pass\n");
  Ran bad = run({"opt", "bad.py"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(bad.out.empty());
  EXPECT_NE(bad.err.find("bad.py:2:"), std::string::npos) << bad.err;
  EXPECT_NE(bad.err.find("^"), std::string::npos);
  write("mm.py", kMatmul);
  write("bad.json", "[[[\"Split\"");
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "bad.json"}).code, 2);
  write("torn.py", "sch.split(\n");
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "torn.py"}).code, 2);
}

TEST_F(Opt, ATargetThatIsGivenDecidesAboutIntrinsics) {
  write("mm.py", R"(@T.prim_func
def main(A: T.Buffer((8, 4), "uint8"), B: T.Buffer((16, 4), "int8"), C: T.Buffer((8, 16), "int32")):
    for i, j, k in T.grid(8, 16, 4):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.int32(0)
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vj, vk])
)");
  write("t.py", "i, j, k = sch.get_loops(\"C\")\nsch.tensorize(j, \"dot_16x4_vnni\")\n");
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "t.py"}).code, 0) << "no target is given";
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "t.py", "--target", "cascadelake:cores=2"}).code, 0);
  Ran ran = run({"opt", "mm.py", "--trace", "t.py", "--target", "x86-64-v3:cores=2"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("which needs avx512vnni  [intrinsic-not-on-target]"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "t.py", "--target", "x86-64-v9"}).code, 2);
}

TEST_F(Opt, AnEmptyTraceFileIsAnErrorAnEmptyTraceIsNone) {
  write("mm.py", kMatmul);
  for (const char* nothing : {"", "  \n", "# later\nimport tvm\n", "[]", "{}", "{\"a\": 1}"}) {
    write("trace", nothing);
    Ran ran = run({"opt", "mm.py", "--trace", "trace"});
    EXPECT_EQ(ran.code, 2) << nothing;
    EXPECT_NE(ran.err.find(std::strpbrk(nothing, "[{") ? "[trace-malformed]" : "[trace-empty]"), std::string::npos)
        << ran.err;
  }
  std::string plain = run({"opt", "mm.py"}).out;
  for (const char* unscheduled : {"[[],[]]", "def apply_trace(sch):\n  pass\n"}) {
    write("trace", unscheduled);
    EXPECT_EQ(run({"opt", "mm.py", "--trace", "trace"}).out, plain) << unscheduled;
  }
}

TEST_F(Opt, SaysWhichDecisionsWereRepairedOrRefusesThem) {
  write("mm.py", kMatmul);
  write("s.py", R"(l = sch.get_loops("C")
sch.split(l[0], sch.sample_perfect_tile(l[0], n=2, decision=[5, 12]))
)");
  Ran repaired = run({"opt", "mm.py", "--trace", "s.py", "--emit", "json"});
  ASSERT_EQ(repaired.code, 0) << repaired.err;
  EXPECT_EQ(repaired.err, "note: s.py: instruction 2 (sample_perfect_tile): decision [5, 12] was repaired to [8, 8]\n");
  EXPECT_NE(repaired.out.find("[[2,[8,8]]]"), std::string::npos) << repaired.out;
  EXPECT_EQ(run({"opt", "mm.py", "--trace", "s.py", "--json"}).json()["repairs"].size(), 1u);
  Ran tvm = run({"opt", "mm.py", "--trace", "s.py", "--mode", "tvm"});
  EXPECT_NE(tvm.err.find("was repaired to [1, 64]"), std::string::npos) << tvm.err;
  Ran strict = run({"opt", "mm.py", "--trace", "s.py", "--mode", "strict"});
  EXPECT_EQ(strict.code, 1);
  EXPECT_NE(strict.err.find("decision [5, 12] does not fit  [decision-does-not-fit]"), std::string::npos) << strict.err;
  EXPECT_NE(strict.err.find("help: decision=[8, 8] fits"), std::string::npos) << strict.err;
}

TEST_F(Opt, RefusalsAreExitOne) {
  write("mm.py", kMatmul);
  write("refused.py", "b = sch.get_sblock(\"C\")\nl = sch.get_loops(b)\nsch.split(l[0], factors=[3, 3])\n");
  Ran refused = run({"opt", "mm.py", "--trace", "refused.py"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("[factors-do-not-cover-extent]"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("refused.py:3:"), std::string::npos) << refused.err;
  write("unknown.py", "sch.splat(\"C\")\n");
  Ran unknown = run({"opt", "mm.py", "--trace", "unknown.py"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("[instruction-unknown]"), std::string::npos) << unknown.err;
}

TEST_F(Opt, AProgramThatIsNotWellFormedIsExitOne) {
  std::string outside = kMatmul;
  outside.replace(outside.find("A[vi, vk] * B"), 9, "A[vi + 1, vk]");
  write("outside.py", outside);
  Ran ran = run({"opt", "outside.py"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("[access-outside-buffer]"), std::string::npos) << ran.err;
}

TEST_F(Opt, JsonSaysWhereATraceWasRefused) {
  write("mm.py", kMatmul);
  write("t.json", R"([[["GetSBlock",[],["C","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2","l3"]],)"
                  R"(["Split",["l1",3,3],[1,0],["l4","l5"]]],[]])");
  Ran refused = run({"opt", "mm.py", "--trace", "t.json", "--json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.err.empty()) << refused.err;
  Json document = refused.json();
  ASSERT_TRUE(document.is_object()) << refused.out;
  EXPECT_EQ(document["schema"], "tilewright/opt@1");
  EXPECT_EQ(document["ok"], false);
  EXPECT_EQ(document["refused_at"], 2);
  EXPECT_EQ(document["diagnostics"][0]["code"], "factors-do-not-cover-extent");
}

TEST_F(Opt, EqualIsSilentOrNamesTheFirstDifference) {
  write("a.py", kMatmul);
  std::string renamed = kMatmul;
  for (size_t at; (at = renamed.find("vi")) != std::string::npos;) renamed.replace(at, 2, "row");
  write("b.py", renamed);
  Ran same = run({"opt", "--equal", "a.py", "b.py"});
  EXPECT_EQ(same.code, 0) << same.err << same.out;
  EXPECT_TRUE(same.out.empty());
  std::string other = kMatmul;
  other.replace(other.find("A[vi, vk] * B"), 13, "A[vi, vk] + B");
  write("c.py", other);
  Ran differs = run({"opt", "--equal", "a.py", "c.py"});
  EXPECT_EQ(differs.code, 1);
  EXPECT_NE(differs.out.find("a.py:"), std::string::npos) << differs.out;
  EXPECT_NE(differs.out.find("c.py:"), std::string::npos) << differs.out;
}

TEST_F(Opt, CheckBlockPrintsProperties) {
  write("mm.py", kMatmul);
  Ran ran = run({"opt", "mm.py", "--check-block", "C"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("vk reduction"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("reduction: yes"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("complete: no"), std::string::npos) << ran.out;
  Ran missing = run({"opt", "mm.py", "--check-block", "D"});
  EXPECT_EQ(missing.code, 1);
}

TEST_F(Opt, UnknownPassIsRefusedByName) {
  write("mm.py", kMatmul);
  Ran ran = run({"opt", "mm.py", "--pass", "no_such_pass"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("[pass-unknown]"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace tilewright
