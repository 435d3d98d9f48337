// Where settings come from, and which source wins.
#include <set>

#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

class Settings : public ToolTest {
 protected:
  Json setting(const std::vector<std::string>& extra, const std::string& name) const {
    std::vector<std::string> arguments{"show", "settings", "--json"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 0) << ran.out;
    const Json document = ran.json();
    for (const Json& s : document["settings"])
      if (s["name"] == name) return s;
    return {};
  }
};

TEST_F(Settings, SayTheirOriginUnitAndDefault) {
  Json s = setting({}, "search.trials");
  EXPECT_EQ(s["origin"], "default");
  EXPECT_EQ(s["value"], "64");
  EXPECT_EQ(s["unit"], "trials");
  write("c.toml", "[search]\ntrials = 7\n");
  s = setting({"--config", "c.toml"}, "search.trials");
  EXPECT_EQ(s["value"], "7");
  EXPECT_EQ(s["default"], "64");
  EXPECT_EQ(s["origin"], "c.toml:2");
  EXPECT_EQ(setting({"--config", "c.toml", "--set", "search.trials=8"}, "search.trials")["origin"], "--set");
}

TEST_F(Settings, ABudgetIsANumberWithAUnitOrNone) {
  for (auto [text, value] :
       {std::pair("90s", "90s"), {"1.5m", "90s"}, {"2h", "7200s"}, {"30", "30s"}, {".5h", "1800s"}, {"none", "none"}})
    EXPECT_EQ(setting({"--set", std::string("search.budget=") + text}, "search.budget")["value"], value) << text;
  for (const char* text : {"1.2.3", "5d", "m", "1m30s", "-1m", "1e3", "1 m", "0", "0s", "0.0h"}) {
    Ran ran = run({"show", "settings", "--set", std::string("search.budget=") + text});
    EXPECT_EQ(ran.code, 2) << text;
    EXPECT_NE(ran.err.find("expected a time such as 90s, 20m or 2h"), std::string::npos) << ran.err;
  }
}

TEST_F(Settings, TheStrongestWins) {
  write("config.toml", "[search]\ntrials = 2\nseed = 2\nbatch = 2\n");
  write("c.toml",
        "[campaign]\ntrials = 3\n[search]\nseed = 3\n[[task]]\nop = \"gemm\"\ngrid = { m = 16, n = 16, k = 16 }\n");
  auto planned = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> arguments{"tune", "c.toml", "--dry-run", "--json", "--config", "config.toml"};
    arguments.insert(arguments.end(), extra.begin(), extra.end());
    return run(arguments).json()["tasks"][0]["trials"];
  };
  EXPECT_EQ(planned({}), 3);
  setenv("TILEWRIGHT_SEARCH_TRIALS", "4", 1);
  EXPECT_EQ(planned({}), 4);
  EXPECT_EQ(planned({"--set", "search.trials=5"}), 5);
  EXPECT_EQ(planned({"--set", "search.trials=5", "--trials", "6"}), 6);
  unsetenv("TILEWRIGHT_SEARCH_TRIALS");
}

TEST_F(Settings, MistakesInAConfigurationHaveAPlace) {
  write("key.toml", "[search]\ntrails = 7\n");
  Ran key = run({"show", "settings", "--config", "key.toml"});
  EXPECT_EQ(key.code, 2);
  EXPECT_NE(key.err.find("key.toml:2:1"), std::string::npos) << key.err;
  EXPECT_NE(key.err.find("did you mean \"search.trials\"?"), std::string::npos) << key.err;
  write("value.toml", "[search]\nseed = 1\ntrials = \"many\"\n");
  Ran value = run({"tune", "--dry-run", "--config", "value.toml"});
  EXPECT_EQ(value.code, 2);
  EXPECT_NE(value.err.find("value.toml:3:1"), std::string::npos) << value.err;
  write("table.toml", "[serach]\n");
  EXPECT_NE(run({"show", "settings", "--config", "table.toml"}).err.find("did you mean \"search\"?"),
            std::string::npos);
  EXPECT_EQ(run({"show", "settings", "--config", "absent.toml"}).code, 2);
}

TEST_F(Settings, EffortStandsForLimits) {
  write("c.toml", "[campaign]\neffort = 1\n[[task]]\nop = \"gemm\"\ngrid = { m = 16, n = 16, k = 16 }\n");
  EXPECT_EQ(run({"tune", "c.toml", "--dry-run", "--json"}).json()["tasks"][0]["trials"], 32);
  Ran flag = run({"tune", "c.toml", "--dry-run", "--effort", "3"});
  EXPECT_NE(flag.err.find("effort 3 = trials 256, final 8, until-no-gain"), std::string::npos) << flag.err;
  EXPECT_EQ(run({"tune", "c.toml", "--dry-run", "--effort", "6"}).code, 2);
}

TEST_F(Settings, AKernelHasNoMoreThreadsThanItsTargetHasCores) {
  Ran ran = run({"tune", "--dry-run", "--target", "x86-64-v3:cores=2", "--set", "measure.threads=3"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("expected at most 2"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"tune", "--dry-run", "--target", "x86-64-v3:cores=2", "--set", "measure.threads=2"}).code, 0);
}

using Default = ToolTest;

TEST_F(Default, TuneWithoutAWorkloadIsOneMatrixProduct) {
  Ran ran = run({"tune", "--dry-run", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  Json tasks = ran.json()["tasks"];
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0]["task"], "gemm 512x512x512 float32");
  EXPECT_EQ(tasks[0]["trials"], 64);
}

using Baseline = ToolTest;

TEST_F(Baseline, IsADefaultAnEarlierWinnerOrATrace) {
  const std::vector<std::string> tune{"tune", "--op",     "gemm:m=64,n=64,k=64", "--runner", "fake", "--trials",
                                      "4",    "--target", "x86-64-v3:cores=1",   "--json"};
  auto baseline = [&](const std::string& what) {
    std::vector<std::string> arguments = tune;
    arguments.insert(arguments.end(), {"--baseline", what});
    return run(arguments);
  };
  auto first_trace = [](const Ran& ran) {
    std::istringstream in(ran.out);
    for (std::string line; std::getline(in, line);)
      if (Json event = Json::parse(line); event["kind"] == "job.dispatched") return event["trace"].get<std::string>();
    return std::string();
  };
  Ran none = baseline("previous");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.out.find("\"baseline-unknown\""), std::string::npos) << none.out;
  write("slow.py", "i, j, k = sch.get_loops(\"C\")\nsch.split(i, factors=[None, 2])\n");
  Ran file = baseline("slow.py");
  ASSERT_EQ(file.code, 0) << file.err;
  EXPECT_NE(first_trace(file).find("\"Split\""), std::string::npos) << first_trace(file);
  Ran previous = baseline("previous");
  ASSERT_EQ(previous.code, 0) << previous.err;
  EXPECT_NE(first_trace(previous), first_trace(baseline("default")));
  EXPECT_EQ(baseline("absent.py").code, 2);
}

using EverythingFails = ToolTest;

TEST_F(EverythingFails, TheSummarySaysWhereAndWhy) {
  write("fake.json", R"({"faults": [{"fault": "segv", "p": 1.0}]})");
  Ran ran = run({"tune", "--op", "gemm:m=64,n=64,k=64", "--runner", "fake:fake.json", "--trials", "4", "--target",
                 "x86-64-v3:cores=1"});
  EXPECT_NE(ran.code, 0);
  // The untuned program crashes as well, so that no candidate is to blame.
  EXPECT_NE(ran.err.find("[baseline-fails]"), std::string::npos) << ran.out << ran.err;
}

using Doctor = ToolTest;

TEST_F(Doctor, SaysWhatItMeasuredWhyAndHowToFixIt) {
  Json document = run({"doctor", "--fast", "--json"}).json();
  std::set<std::string> checks;
  for (const Json& f : document["findings"]) {
    checks.insert(f["check"].get<std::string>());
    EXPECT_FALSE(f["value"].get<std::string>().empty()) << f;
    EXPECT_EQ(f["level"] == "ok", f["why"].get<std::string>().empty()) << f;
  }
  for (const char* check :
       {"aslr", "cpu-governor", "cgroup-cpu", "disk", "memory", "ptxas", "database", "cpu-counters"})
    EXPECT_TRUE(checks.contains(check)) << check;
  EXPECT_FALSE(checks.contains("workers"));
  EXPECT_TRUE(std::filesystem::is_empty(folder()) || !std::filesystem::exists(folder() / "runs"));
}

TEST_F(Doctor, StartsWorkersUnlessToldToBeFast) {
  const Json document = run({"doctor", "--json"}).json();
  bool workers = false;
  for (const Json& f : document["findings"]) workers |= f["check"] == "workers" && f["level"] == "ok";
  EXPECT_TRUE(workers) << document;
}

TEST_F(Doctor, ReadsWhatTheDriversToolReports) {
  std::filesystem::create_directory(folder() / "bin");
  write("bin/nvidia-smi",
        "#!/bin/sh\ncase \"$1\" in\n  *query-gpu*) echo '0, NVIDIA H200, Disabled, Enabled, Enabled, Default, 500.00, "
        "700.00' ;;\n  *) echo '4711, 1024 MiB' ;;\nesac\n");
  std::filesystem::permissions(folder() / "bin/nvidia-smi", std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  setenv("PATH", ((folder() / "bin").string() + ":" + path).c_str(), 1);
  Ran ran = run({"doctor", "--fast"});
  setenv("PATH", path.c_str(), 1);
  for (const char* text : {"gpu-0-mig", "500.00 W of 700.00 W", "sudo nvidia-smi -i 0 -pl 700.00", "gpu-0-persistence",
                           "gpu-processes    1 on the GPUs"})
    EXPECT_NE(ran.out.find(text), std::string::npos) << text << "\n" << ran.out;
}

}  // namespace
}  // namespace tilewright
