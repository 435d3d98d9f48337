#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using Tune = ToolTest;

constexpr const char* kTarget = "x86-64-v3:cores=2";

TEST_F(Tune, DryRunListsTheTasksOfACampaign) {
  write("c.toml",
        "[campaign]\nname = \"c\"\ntrials = 5\n[[task]]\nop = \"gemm\"\ngrid = { m = [16, 32], n = 64, k = 64 "
        "}\nweight = 3\n"
        "[[task]]\nfile = \"mm.py\"\ntrials = 7\n");
  write("mm.py", kMatmul);
  Ran ran = run({"tune", "c.toml", "--dry-run", "--json", "--target", kTarget});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  Json tasks = ran.json()["tasks"];
  ASSERT_EQ(tasks.size(), 3u);
  EXPECT_EQ(tasks[0]["task"], "gemm 16x64x64 float32");
  EXPECT_EQ(tasks[1]["task"], "gemm 32x64x64 float32");
  EXPECT_EQ(tasks[2]["task"], "mm");
  for (const Json& task : tasks) {
    EXPECT_EQ(task["trials"], task["task"] == "mm" ? 7 : 5);
    EXPECT_GE(task["sketches"], 1);
    EXPECT_GE(task["points"], 1.0);
  }
  EXPECT_FALSE(std::filesystem::exists(folder() / "runs"));
  Json flag = run({"tune", "c.toml", "--dry-run", "--json", "--trials", "9", "--target", kTarget}).json();
  EXPECT_EQ(flag["tasks"][0]["trials"], 9);
  EXPECT_EQ(flag["tasks"][2]["trials"], 9) << "a flag is for every task";
}

TEST_F(Tune, SymbolicExtentsGetTheirValues) {
  std::string text = kMatmul;
  text.replace(text.find("def main("), text.find(":\n    for") - text.find("def main("),
               "def main(A: T.Buffer((\"n\", 64), "
               "\"float32\"), B: T.Buffer((64, 64), \"float32\"), C: T.Buffer((\"n\", 64), \"float32\"))");
  text.replace(text.find("T.grid(64,"), 10, "T.grid(n,");
  write("mm.py", text);
  Ran flag = run({"tune", "mm.py", "--arg", "n=32", "--dry-run", "--json", "--target", kTarget});
  ASSERT_EQ(flag.code, 0) << flag.out;
  EXPECT_EQ(flag.json()["tasks"][0]["task"], "mm n=32");
  EXPECT_NE(run({"show", "mm.py", "--arg", "n=32"}).out.find("T.grid(32, 64, 64)"), std::string::npos);
  write("c.toml", "[[task]]\nfile = \"mm.py\"\nargs = { n = 16 }\n[[task]]\nfile = \"mm.py\"\nargs = { n = 48 }\n");
  Ran campaign = run({"tune", "c.toml", "--dry-run", "--json", "--target", kTarget});
  ASSERT_EQ(campaign.code, 0) << campaign.out;
  EXPECT_EQ(campaign.json()["tasks"][1]["task"], "mm n=48");
  Ran unknown = run({"tune", "mm.py", "--arg", "nn=32", "--dry-run"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("[extent-unknown]"), std::string::npos) << unknown.err;
  EXPECT_EQ(run({"tune", "mm.py", "--arg", "n=0", "--dry-run"}).code, 2);
  write("bad.toml", "[[task]]\nop = \"gemm\"\nargs = { n = 16 }\n");
  EXPECT_EQ(run({"tune", "bad.toml", "--dry-run"}).code, 2);
}

TEST_F(Tune, ProgramsThatCannotBeMeasuredAreRefusedAtTheirLine) {
  auto refused = [&](const std::string& text, const std::string& code, const std::string& place) {
    write("p.py", text);
    Ran ran = run({"tune", "p.py", "--target", kTarget});
    EXPECT_EQ(ran.code, 2) << ran.out << ran.err;
    EXPECT_NE(ran.err.find("[" + code + "]"), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(place), std::string::npos) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(folder() / "runs"));
  };
  auto with = [](std::string text, const std::string& from, const std::string& to) {
    EXPECT_NE(text.find(from), std::string::npos);
    return text.replace(text.find(from), from.size(), to);
  };
  std::string symbolic = kMatmul;
  for (const char* name : {"A: T.Buffer((64,", "C: T.Buffer((64,"})
    symbolic = with(symbolic, name, std::string(name, 13) + "\"n\",");
  refused(with(symbolic, "T.grid(64,", "T.grid(n,"), "extent-not-given", "p.py:2:");
  refused(with(kMatmul, "T.grid(64, 64,", "T.grid(32, 64,"), "output-not-covered", "p.py:8:");
  refused(with(kMatmul, "def main(", "def main(x: T.float32, "), "parameter-not-a-buffer", "p.py:2:");
  // Written in two parts, or in place: nothing is missing.
  std::string halves = with(kMatmul, "T.grid(64, 64,", "T.grid(32, 64,");
  halves += with(halves.substr(halves.find("    for i")), "vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                 "vi = T.axis.spatial(64, i + 32)\n            vj, vk = T.axis.remap(\"SR\", [j, k])");
  write("p.py", with(halves, "vi, vj, vk = T.axis.remap(\"SSR\", [i, j, k])",
                     "vi = T.axis.spatial(64, i)\n            vj, vk = T.axis.remap(\"SR\", [j, k])"));
  Ran ran = run({"tune", "p.py", "--dry-run", "--target", kTarget});
  EXPECT_EQ(ran.err.find("output-not-covered"), std::string::npos) << ran.err;
}

TEST_F(Tune, SuitesAreCampaignsAndOnlyPicksFromThem) {
  Ran ran = run({"tune", TW_SOURCE_DIR "/bench/suites/suite.toml", "--only", "smoke", "--dry-run", "--json", "--target",
                 kTarget});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.json()["tasks"].size(), 6u);
  EXPECT_EQ(run({"tune", TW_SOURCE_DIR "/bench/suites/suite.toml", "--only", "nothing", "--dry-run"}).code, 2);
}

TEST_F(Tune, MistakesInCampaignsHaveAPlaceAndASuggestion) {
  write("key.toml", "[campaign]\ntrails = 4\n[[task]]\nop = \"gemm\"\n");
  Ran key = run({"tune", "key.toml", "--dry-run"});
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("key.toml:2:1"), std::string::npos) << key.err;
  EXPECT_NE(key.err.find("did you mean \"trials\"?"), std::string::npos) << key.err;
  write("torn.toml", "[[task]\n");
  EXPECT_EQ(run({"tune", "torn.toml", "--dry-run"}).code, 2);
  write("empty.toml", "[campaign]\n");
  EXPECT_EQ(run({"tune", "empty.toml", "--dry-run"}).code, 2);
  write("both.toml", "[[task]]\nop = \"gemm\"\nfile = \"a.py\"\n");
  EXPECT_EQ(run({"tune", "both.toml", "--dry-run"}).code, 2);
  write("op.toml", "[[task]]\nop = \"gem\"\n");
  Ran op = run({"tune", "op.toml", "--dry-run"});
  EXPECT_EQ(op.code, 2);
  EXPECT_NE(op.err.find("op.toml:1:"), std::string::npos) << op.err;
}

TEST_F(Tune, BadValuesAreExitTwo) {
  for (const auto& flags : std::vector<std::vector<std::string>>{{"--trials", "none"},
                                                                 {"--trials", "0"},
                                                                 {"--budget", "soon"},
                                                                 {"--budget", "0s"},
                                                                 {"--budget", "+0m"},
                                                                 {"--runner", "moon"},
                                                                 {"--set", "search.nothing=1"},
                                                                 {"--preset", "nothing"},
                                                                 {"--target", "sm_1"},
                                                                 {"--run", "absent"}}) {
    std::vector<std::string> arguments{"tune", "--dry-run"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << flags[0] << " " << flags[1] << ran.err;
  }
}

}  // namespace
}  // namespace tilewright
