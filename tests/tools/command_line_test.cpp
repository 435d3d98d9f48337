#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using CommandLine = ToolTest;

TEST_F(CommandLine, HelpAndVersion) {
  Ran help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("opt "), std::string::npos);
  EXPECT_EQ(run({}).out, help.out);
  Ran opt = run({"opt", "--help"});
  EXPECT_EQ(opt.code, 0);
  EXPECT_NE(opt.out.find("tilewright opt"), std::string::npos) << opt.out;
  EXPECT_NE(opt.out.find("--equal"), std::string::npos);
  EXPECT_EQ(run({"--version"}).out, "tilewright " TILEWRIGHT_VERSION "\n");
}

TEST_F(CommandLine, MistakesAreExitTwoAndSayWhatWasMeant) {
  Ran command = run({"shw", "primitives"});
  EXPECT_EQ(command.code, 2);
  EXPECT_NE(command.err.find("did you mean \"show\"?"), std::string::npos) << command.err;
  Ran option = run({"opt", "--traec", "x"});
  EXPECT_EQ(option.code, 2);
  EXPECT_NE(option.err.find("did you mean --trace?"), std::string::npos) << option.err;
  EXPECT_EQ(run({"opt", "--trace"}).code, 2);
  EXPECT_EQ(run({"opt", "a.py", "b.py"}).code, 2);
  EXPECT_EQ(run({"opt"}).code, 2);
  EXPECT_EQ(run({"opt", "absent.py"}).code, 2);
  EXPECT_EQ(run({"--color", "blue", "show", "targets"}).code, 2);
  EXPECT_EQ(run({"show", "targets", "--set", "nothing"}).code, 2);
  EXPECT_EQ(run({"show", "program"}).code, 2);
}

TEST_F(CommandLine, JsonHoldsErrorsToo) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"opt", "--json"}, {"--json", "opt", "--traec"}, {"shwo", "--json"}}) {
    Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.err.empty()) << ran.err;
    Json document = ran.json();
    ASSERT_TRUE(document.is_object()) << ran.out;
    EXPECT_EQ(document["ok"], false);
    EXPECT_EQ(document["diagnostics"].size(), 1u);
    EXPECT_EQ(document["diagnostics"][0]["code"], "bad-command-line");
  }
}

TEST_F(CommandLine, WordsOfOtherCommandsAreArguments) {
  write("show", kMatmul);
  EXPECT_EQ(run({"opt", "show"}).code, 0);
}

TEST_F(CommandLine, APluginThatIsMissingIsAnEnvironmentFailure) {
  Ran ran = run({"--plugin", "./libabsent.so", "show", "targets"});
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("[plugin-not-loadable]"), std::string::npos) << ran.err;
}

TEST_F(CommandLine, ShowListsWhatIsRegistered) {
  for (const char* object : {"primitives", "targets", "rules", "refusals", "features", "cost-models", "operations"}) {
    Ran text = run({"show", object});
    EXPECT_EQ(text.code, 0) << object << text.err;
    EXPECT_FALSE(text.out.empty()) << object;
    Json document = run({"show", object, "--json"}).json();
    ASSERT_TRUE(document.is_object()) << object;
    EXPECT_FALSE(document[object].empty()) << object;
  }
  Ran near = run({"show", "primitive"});
  EXPECT_EQ(near.code, 2);
  EXPECT_NE(near.err.find("did you mean \"primitives\"?"), std::string::npos) << near.err;
  Ran program = run({"show", "program", "gem"});
  EXPECT_EQ(program.code, 2);
  EXPECT_NE(program.err.find("did you mean \"gemm\"?"), std::string::npos) << program.err;
  EXPECT_EQ(run({"show", "target", "sm_90a"}).code, 0);
  EXPECT_EQ(run({"show", "target", "sm_9000"}).code, 2);
}

}  // namespace
}  // namespace tilewright
