// A name or a file that is wrong gets an answer that leads on: what was meant, what there is, what to do.
#include <array>
#include <cstdlib>

#include "database/journal.h"
#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

class WaysOn : public ToolTest {
 protected:
  void tuned(const std::string& run) const {
    Ran ran = this->run({"tune", "--op", "gemm:m=16,n=16,k=16", "--target", "x86-64-v3:cores=2", "--runner", "fake",
                         "--strategy", "replay_trace", "--trials", "2", "--run", run});
    ASSERT_EQ(ran.code, 0) << ran.err;
  }
  void answers(const std::vector<std::string>& command, int exit, const std::string& told) const {
    Ran ran = run(command);
    EXPECT_EQ(ran.code, exit) << command[0] << " " << command.back() << ran.out << ran.err;
    EXPECT_NE(ran.err.find(told), std::string::npos) << command[0] << " " << command.back() << "\n"
                                                     << ran.out << ran.err;
    EXPECT_NE(ran.err.find("help: "), std::string::npos) << ran.err;
  }
};

TEST_F(WaysOn, AWholeRunIdIsThatRun) {
  tuned("runs/x-a31");
  tuned("runs/x-a31f");
  Ran ran = run({"report", "a31"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("a31f"), std::string::npos) << ran.out;
  EXPECT_EQ(run({"report", "x-a31"}).code, 0);
  EXPECT_EQ(run({"report", "a3"}).code, 2);
  answers({"report", "a31e"}, 2, "did you mean");
  answers({"report", "nothing"}, 2, "runs here: ");
}

TEST_F(WaysOn, NamesThatNothingHas) {
  answers({"show", "gem:m=8,n=8,k=8"}, 2, "did you mean \"gemm\"?");
  answers({"show", "program", "gem:m=8,n=8,k=8"}, 2, "did you mean \"gemm\"?");
  answers({"export", "gem:m=8,n=8,k=8"}, 2, "did you mean \"gemm\"?");
  answers({"show", "gemn"}, 2, "did you mean \"gemm\"?");
  answers({"show", "strategie"}, 2, "did you mean \"strategies\"?");
  answers({"show", "nope:3"}, 2, "[run-unknown]");
  answers({"show", "qqqqqqqqqqqq"}, 2, "show one of: ");
  answers({"explain", "nope"}, 2, "tilewright show refusals");
  answers({"explain", "wrong_reslt"}, 2, "did you mean \"wrong_result\"?");
  answers({"explain", "r-zz"}, 2, "tilewright db top");
  answers({"tune", "--trials", "3", "--trials=4"}, 2, "--trials is given 2 times, expected once");
  answers({"show", "ops", "--set", "serch.trials=3"}, 2, "did you mean \"search.trials\"?");
}

TEST_F(WaysOn, EveryStatusSaysWhatToDo) {
  for (const char* status : {"noisy", "throttled", "device_lost"}) {
    Ran ran = run({"explain", status});
    EXPECT_NE(ran.out.find("tilewright doctor"), std::string::npos) << ran.out;
  }
  for (const char* status : {"wrong_result", "build_error", "run_timeout"}) {
    Ran ran = run({"explain", status});
    EXPECT_NE(ran.out.find("tilewright replay"), std::string::npos) << ran.out;
  }
  EXPECT_NE(run({"explain", "wrong_result"}).out.find("db unblock"), std::string::npos);
}

TEST_F(WaysOn, ADamagedJournalCanStillBeSaved) {
  tuned("broken");
  std::string journal = read("broken/events.jsonl");
  journal.replace(journal.find("\"job.result\""), 12, "\"job.resul!\xff");
  write("broken/events.jsonl", journal);
  for (const char* command : {"report", "explain", "export"})
    answers({command, "broken"}, 3, "tilewright db import-run broken");
  Ran saved = run({"db", "import-run", "broken", "--db", "saved.db", "--json"});
  EXPECT_GT(saved.json()["imported"][0]["inserted"], 0) << saved.out << saved.err;
}

TEST_F(WaysOn, ADatabaseWithoutAVersionIsDamaged) {
  tuned("first");
  for (const char* sql : {"UPDATE meta SET value = 0 WHERE name = \\'schema_version\\'",
                          "DELETE FROM meta WHERE name = \\'schema_version\\'"}) {
    const std::string command =
        "cd '" + folder().string() +
        "' && /usr/bin/python3 -c \"import sqlite3; c = sqlite3.connect('.data/tilewright/tuning.db'); "
        "c.execute('" +
        sql + "'); c.commit()\"";
    if (std::system(command.c_str()) != 0) GTEST_SKIP() << "python3 has no sqlite3 here";
    answers({"db", "ls"}, 3, "expected a schema version of at least 1, found ");
  }
}

TEST_F(WaysOn, NamesOfExportsAreFreeInC) {
  for (const char* name : {"int", "main", "while", "class", "printf", "expf", "_kernel", "tw_kernel", "a-b", ""}) {
    Ran ran = run({"export", "gemm:m=8,n=8,k=8", "--as", "trace", "--name", name});
    EXPECT_EQ(ran.code, 2) << name << ran.out << ran.err;
    EXPECT_NE(ran.err.find("[export-name-invalid]"), std::string::npos) << name << ran.err;
  }
  EXPECT_EQ(run({"export", "gemm:m=8,n=8,k=8", "--as", "trace", "--name", "int_kernel"}).code, 0);
}

TEST_F(WaysOn, HelpSaysWhatItTakesAndHowItEnds) {
  Ran help = run({"--help"});
  for (const char* line : {"Exit codes:", "  2 ", "  3 ", "  5 "})
    EXPECT_NE(help.out.find(line), std::string::npos) << line << help.out;
  std::string opt = run({"opt", "--help"}).out;
  EXPECT_NE(opt.find("--equal A B"), std::string::npos) << opt;
  EXPECT_EQ(opt.find(" x 2"), std::string::npos) << opt;
  write("a.py", kMatmul);
  EXPECT_EQ(run({"opt", "--equal", "a.py", "a.py"}).code, 0);
  EXPECT_EQ(run({"opt", "--equal", "a.py"}).code, 2);
}

TEST_F(WaysOn, WhatAUserWroteDoesNotSteerTheTerminal) {
  write("evil.py",
        "@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\")):\n    \x1b[2J" + std::string(3000, 'x') + "\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"opt", "evil.py"}, {"show", "\x1b[2J"}, {"tune", "--\x1b[2J"}, {"\x1b[2J"}}) {
    Ran ran = run(command);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err.find('\x1b'), std::string::npos) << ran.err;
    EXPECT_LT(ran.err.size(), 1500u);
  }
}

TEST_F(WaysOn, NewPluginsAreWrittenOnce) {
  Ran ran = run({"plugin", "new", "acme", "--kind", "mutator"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(read("acme/mutator.cpp").find("\"acme.swap\""), std::string::npos);
  EXPECT_NE(read("acme/CMakeLists.txt").find("tilewright_add_plugin(acme SOURCES plugin.cpp mutator.cpp)"),
            std::string::npos);
  EXPECT_EQ(run({"plugin", "new", "acme"}).code, 2) << "it is there already";
  EXPECT_EQ(run({"plugin", "new", "../acme"}).code, 2);
  EXPECT_EQ(run({"plugin", "new"}).code, 2);
  answers({"plugin", "new", "other", "--kind", "muttaor"}, 2, "did you mean \"mutator\"?");
}

TEST_F(WaysOn, DoctorLooksAtARunner) {
  Ran good = run({"doctor", "--fast", "--runner", "fake"});
  EXPECT_NE(good.out.find("ok       runner           fake"), std::string::npos) << good.out;
  Ran bad = run({"doctor", "--fast", "--runner", "fake:absent.json"});
  EXPECT_EQ(bad.code, 1) << bad.out;
  EXPECT_NE(bad.out.find("error    runner"), std::string::npos) << bad.out;
}

}  // namespace
}  // namespace tilewright
