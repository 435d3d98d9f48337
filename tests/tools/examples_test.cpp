// What examples/ holds, run as its files say; on the fake device where candidates are measured, so that a busy machine
// changes nothing.
#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using Examples = ToolTest;

const std::string kExamples = TW_SOURCE_DIR "/examples/";

/// The journal's events of one kind.
std::vector<Json> events(const Ran& ran, const std::string& kind) {
  std::vector<Json> out;
  std::istringstream in(ran.out);
  for (std::string line; std::getline(in, line);)
    if (Json event = Json::parse(line); event["kind"] == kind) out.push_back(event);
  return out;
}

TEST_F(Examples, AScheduleFileIsASpace) {
  const std::string program = kExamples + "matmul_space/matmul.py", space = kExamples + "matmul_space/space.py";
  Json plan = run({"tune", program, "--space", space, "--dry-run", "--json"}).json();
  EXPECT_EQ(plan["tasks"][0]["sketches"], 1);
  EXPECT_GE(plan["tasks"][0]["points"], 40);
  Ran ran = run({"tune", program, "--space", space, "--trials", "64", "--runner", "fake", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::vector<Json> dispatched = events(ran, "job.dispatched");
  ASSERT_GE(dispatched.size(), 40u);
  for (const char* step : {"SamplePerfectTile", "Split", "Reorder", "Vectorize", "DecomposeReduction"})
    EXPECT_NE(dispatched.back()["trace"].get<std::string>().find(step), std::string::npos) << step;
  EXPECT_EQ(events(ran, "run.end").at(0)["failed"], 0);
}

TEST_F(Examples, TheScheduleFileRunsOnThisMachine) {
  Ran ran = run({"tune", kExamples + "matmul_space/matmul.py", "--space", kExamples + "matmul_space/space.py",
                 "--trials", "2", "--final", "1", "--json"});
  std::vector<Json> results = events(ran, "job.result");
  ASSERT_GE(results.size(), 3u) << ran.err;
  // A busy machine may not settle on a time; a wrong result or a crash is never right.
  for (const Json& r : results)
    EXPECT_TRUE(r["status"] == "ok" || r["status"] == "noisy" || r["status"] == "run_timeout") << r.dump();
}

TEST_F(Examples, ACampaignOfThreeKindsOfOperators) {
  Ran ran = run({"tune", kExamples + "campaign.toml", "--trials", "4", "--runner", "fake", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::vector<Json> tasks = events(ran, "task.start");
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[0]["weight"], 4);
  EXPECT_EQ(events(ran, "task.done").size(), 4u);
  EXPECT_EQ(events(ran, "run.end").at(0)["trials"], 16);
}

TEST_F(Examples, TheHandSchedule) {
  Ran ran = run({"opt", kExamples + "mm_relu.py", "--trace", kExamples + "mm_relu.trace.py"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("Y_update"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace tilewright
