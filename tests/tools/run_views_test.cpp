// report, explain and export on a run whose journal is written here.
#include "database/journal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

constexpr const char* kTraceJson =
    R"([[["GetSBlock",[],["C","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2","l3"]],["Parallel",["l1"],[],[]]],[]])";

class RunViews : public ToolTest {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    auto program = parse_program(kMatmul, "mm.py");
    ASSERT_TRUE(program);
    auto journal = JournalWriter::open((folder() / "runs/20261130-0000-mm-a31f").string());
    ASSERT_TRUE(journal);
    EventStream stream([] { return 1.0; });
    stream.add(**journal);
    RunStart start;
    start.run = "a31f";
    start.name = "mm";
    start.settings = {{"search.trials", "2"}, {"search.strategy", "replay_trace"}};
    stream.emit(start);
    TaskStart task;
    task.name = "mm";
    task.program = print(*program->program);
    task.target_name = "x86-64-v3";
    task.target = "x86-64-v3:cores=2";
    stream.emit(task);
    add(stream, 0, "", TrialStatus::ok, 4000);
    add(stream, 1, kTraceJson, TrialStatus::ok, 1000);
    add(stream, 2, R"([[],[]])", TrialStatus::wrong_result, 0);
    TaskDone done;
    done.best_trial = 1;
    done.best_ns = 1000;
    stream.emit(done);
    RunEnd end;
    end.reason = "trials";
    stream.emit(end);
    ASSERT_TRUE((*journal)->sync());
  }

 private:
  static void add(EventStream& stream, int64_t trial, const std::string& trace, TrialStatus status, double ns) {
    JobDispatched d;
    d.trial = trial;
    d.trace = trace;
    d.trace_key = content_key(trace);
    d.origin = trial == 0 ? "baseline" : "sample";
    stream.emit(d);
    JobResult r;
    r.trial = trial;
    r.trace_key = d.trace_key;
    r.status = status;
    r.settled = true;
    r.verified = status == TrialStatus::ok;
    r.stage = Stage::screen;
    r.median_ns = ns;
    r.n = ns > 0 ? 10 : 0;
    r.device = "cpu-test";
    if (status != TrialStatus::ok) r.detail = "C[3] is 1, expected 2";
    stream.emit(r);
  }
};

TEST_F(RunViews, ReportAddsUp) {
  Ran text = run({"report"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("4.00x"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("wrong_result 1"), std::string::npos) << text.out;
  Json document = run({"report", "a31", "--json"}).json();
  ASSERT_EQ(document["tasks"].size(), 1u);
  EXPECT_EQ(document["tasks"][0]["best_trial"], 1);
  EXPECT_EQ(document["tasks"][0]["ok"], 2);
  EXPECT_EQ(document["stop_reason"], "trials");
  EXPECT_EQ(run({"report", "b"}).code, 2);
}

TEST_F(RunViews, ExplainTellsWhatBecameOfATrial) {
  Ran best = run({"explain", "last:best"});
  ASSERT_EQ(best.code, 0) << best.err;
  EXPECT_NE(best.out.find("trial a31f:1 of mm"), std::string::npos) << best.out;
  EXPECT_NE(best.out.find("sch.parallel"), std::string::npos) << best.out;
  Ran wrong = run({"explain", "2"});
  EXPECT_NE(wrong.out.find("C[3] is 1, expected 2"), std::string::npos) << wrong.out;
  Ran missing = run({"explain", "a31f:9"});
  EXPECT_EQ(missing.code, 2);
  EXPECT_NE(missing.err.find("[trial-unknown]"), std::string::npos) << missing.err;
  EXPECT_EQ(run({"explain", "wrong_result"}).code, 0);
  EXPECT_NE(run({"explain", "factors-do-not-cover-extent"}).out.find("factors-do-not-cover-extent: "),
            std::string::npos);
}

TEST_F(RunViews, ExplainShowsWhatStepsAndPassesChanged) {
  Ran diff = run({"explain", "last:best", "--diff"});
  ASSERT_EQ(diff.code, 0) << diff.err;
  EXPECT_NE(diff.out.find("-         for i, j, k in T.grid(64, 64, 64):"), std::string::npos) << diff.out;
  EXPECT_NE(diff.out.find("+         for i in T.parallel(64):"), std::string::npos) << diff.out;
  Ran step = run({"explain", "last:best", "--step", "2", "--json"});
  ASSERT_EQ(step.code, 0) << step.out;
  Json document = step.json();
  EXPECT_EQ(document["step"]["text"], "sch.parallel(loop=l1)");
  EXPECT_NE(document["step"]["program"].get<std::string>().find("T.parallel(64)"), std::string::npos);
  EXPECT_EQ(run({"explain", "last:best", "--step", "3"}).code, 2);
  Ran quiet = run({"explain", "last:best", "--step", "0"});
  EXPECT_NE(quiet.out.find("changed nothing"), std::string::npos) << quiet.out;
  Json passes = run({"explain", "last:best", "--passes", "--json"}).json();
  ASSERT_FALSE(passes["passes"].empty());
  bool changed = false;
  for (const Json& p : passes["passes"]) changed |= !p["diff"].get<std::string>().empty();
  EXPECT_TRUE(changed);
}

TEST_F(RunViews, ExplainARunCountsItsFailures) {
  Ran ran = run({"explain", "a31f"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("wrong_result         1  first a31f:2 C[3] is 1, expected 2"), std::string::npos) << ran.out;
  Json statuses = run({"explain", "a31f", "--json"}).json()["tasks"][0]["statuses"];
  EXPECT_EQ(statuses["ok"]["count"], 2);
  EXPECT_EQ(statuses["wrong_result"]["first"], 2);
  // The stages add up: what one keeps is what the next keeps and loses.
  Json funnel = run({"explain", "a31f", "--json"}).json()["tasks"][0]["funnel"];
  int64_t kept = 2;
  for (const Json& stage : funnel) {
    EXPECT_EQ(stage["kept"].get<int64_t>() + stage["lost"].get<int64_t>(), kept) << stage;
    kept = stage["kept"];
    EXPECT_EQ(stage["lost"], stage["stage"] == "correct" ? 1 : 0) << stage;
  }
  EXPECT_EQ(kept, 1);
  EXPECT_NE(run({"explain", "0"}).out.find("4.00x the winner's time"), std::string::npos);
}

TEST_F(RunViews, ExportTakesTheBestAndRefusesWhatIsNotVerified) {
  Ran ran = run({"export", "a31f", "--as", "trace", "--out", "out", "--json"});
  ASSERT_EQ(ran.code, 0) << ran.out;
  Json document = ran.json();
  ASSERT_FALSE(document["files"].empty());
  for (const Json& file : document["files"])
    EXPECT_TRUE(std::filesystem::exists(folder() / file.get<std::string>())) << file;
  Ran wrong = run({"export", "a31f:2", "--as", "trace", "--out", "wrong"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_NE(wrong.err.find("[export-unverified]"), std::string::npos) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(folder() / "wrong"));
}

TEST_F(RunViews, ARunGoesOnOnlyWithItsOwnWorkloadAndSettings) {
  Ran settings = run({"tune", "--run", "a31f", "--strategy", "evolutionary", "--dry-run"});
  EXPECT_EQ(settings.code, 2);
  EXPECT_NE(settings.err.find("[run-differs]"), std::string::npos) << settings.err;
  Ran workload =
      run({"tune", "--run", "a31f", "--op", "gemm:m=8,n=8,k=8", "--dry-run", "--target", "x86-64-v3:cores=2"});
  EXPECT_EQ(workload.code, 2);
  EXPECT_NE(workload.err.find("[run-differs]"), std::string::npos) << workload.err;
  Ran more = run({"tune", "--run", "a31f", "--trials", "9", "--dry-run", "--json"});
  ASSERT_EQ(more.code, 0) << more.out;
  Json document = more.json();
  EXPECT_EQ(document["tasks"][0]["task"], "mm");
  EXPECT_EQ(document["tasks"][0]["trials"], 9);
}

/// A run of two tasks, of which the first has no valid trial and the second only the untuned program.
class WithoutResult : public ToolTest {
 protected:
  void journal(const std::string& run, const std::string& reason, bool wrong, bool ended = true) {
    auto program = parse_program(kMatmul, "mm.py");
    ASSERT_TRUE(program);
    auto journal = JournalWriter::open((folder() / run).string());
    ASSERT_TRUE(journal);
    EventStream stream([] { return 1.0; });
    stream.add(**journal);
    RunStart start;
    start.run = run;
    stream.emit(start);
    TaskStart task;
    task.name = "mm";
    task.program = print(*program->program);
    task.target = "x86-64-v3:cores=2";
    stream.emit(task);
    for (int64_t trial = 0; trial < (wrong ? 3 : 1); ++trial) {
      JobDispatched d;
      d.trial = trial;
      d.trace = trial == 0 ? "" : R"([[],[]])";
      d.trace_key = content_key(d.trace);
      if (trial == 0) d.origin = "baseline";
      stream.emit(d);
      JobResult r;
      r.trial = trial;
      r.trace_key = d.trace_key;
      r.status = trial == 0 ? TrialStatus::ok : TrialStatus::wrong_result;
      r.settled = true;
      r.verified = trial == 0;
      r.stage = Stage::screen;
      r.median_ns = trial == 0 ? 1000 : 0;
      r.n = trial == 0 ? 10 : 0;
      stream.emit(r);
    }
    if (!ended) return;
    TaskDone done;
    done.reason = reason;
    stream.emit(done);
    RunEnd end;
    end.reason = reason;
    stream.emit(end);
  }
};

TEST_F(WithoutResult, EveryViewSaysWhyAndWhatNext) {
  struct Case {
    const char *run, *reason;
    bool wrong, ended;
    const char *why, *help;
  };
  for (const Case& c :
       {Case{"spent", "budget", false, true, "the budget ended before the first trial",
             "tilewright tune --run spent --budget +1m"},
        {"wrong", "trials", true, true, "none of 2 trials is valid: wrong_result 2", "tilewright explain wrong"},
        {"killed", "", false, false, "no trial has a result yet", "tilewright tune --run killed"}}) {
    journal(c.run, c.reason, c.wrong, c.ended);
    for (const std::vector<std::string>& command : {std::vector<std::string>{"export", c.run, "--as", "trace"},
                                                    {"compare", c.run, c.run},
                                                    {"show", std::string(c.run) + ":best"},
                                                    {"replay", std::string(c.run) + ":best"}}) {
      Ran ran = run(command);
      EXPECT_EQ(ran.code, 1) << command[0] << ran.out << ran.err;
      EXPECT_NE(ran.err.find("[run-without-result]"), std::string::npos) << command[0] << ran.err;
      EXPECT_NE(ran.err.find(c.why), std::string::npos) << command[0] << ran.err;
      EXPECT_NE(ran.err.find(c.help), std::string::npos) << command[0] << ran.err;
    }
    EXPECT_FALSE(std::filesystem::exists(folder() / "export"));
    EXPECT_NE(run({"report", c.run}).out.find(c.why), std::string::npos) << c.run;
  }
}

TEST_F(WithoutResult, ARunThatEndsBeforeItsFirstTrialSaysSo) {
  Ran ran = run({"tune", "--op", "gemm:m=16,n=16,k=16", "--runner", "fake", "--target", "x86-64-v3:cores=2", "--budget",
                 "0.001s", "--run", "short"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("no valid candidate: the untuned program is kept (the budget ended before the first trial)"),
            std::string::npos)
      << ran.out;
  Ran exported = run({"export", "short", "--as", "trace"});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_NE(exported.err.find("has the untuned program as its result: the budget ended before the first trial"),
            std::string::npos)
      << exported.err;
}

using Export = ToolTest;

TEST_F(Export, AKernelWithItsHeader) {
  write("t.json", kTraceJson);
  Ran ran = run({"export", "gemm:m=64,n=64,k=64", "--trace", "t.json", "--name", "mm64", "--out", "out", "--target",
                 "x86-64-v3:cores=2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(read("out/mm64.h").find("mm64"), std::string::npos);
  EXPECT_FALSE(read("out/main.c").empty());
  EXPECT_FALSE(read("out/mm64.o").empty());
  EXPECT_EQ(run({"export", "gemm:m=64,n=64,k=64", "--as", "nothing"}).code, 2);
  EXPECT_EQ(run({"export", "no-such-run"}).code, 2);
}

using Describe = ToolTest;

TEST_F(Describe, SchemaCompletionAndPlugins) {
  Ran schema = run({"schema", "events"});
  EXPECT_EQ(schema.code, 0);
  EXPECT_TRUE(Json::parse(schema.out, nullptr, false).is_object());
  EXPECT_EQ(run({"schema", "event"}).code, 2);
  Ran script = run({"completion", "bash"});
  write("script.bash",
        script.out + "COMP_WORDS=(tilewright opt --eq); COMP_CWORD=2; _tilewright; echo ${COMPREPLY[@]}\n");
  EXPECT_EQ(std::system(("cd " + folder().string() + " && bash script.bash > words").c_str()), 0);
  EXPECT_EQ(read("words"), "--equal\n");
  EXPECT_EQ(run({"completion", "powershell"}).code, 2);
  EXPECT_NE(run({"plugin", "ls"}).out.find("commands/tune.cpp"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
