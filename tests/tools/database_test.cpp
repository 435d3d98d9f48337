// The tuning database in the tool: what is measured is never lost and never measured again; db, replay and compare.
// All measuring is on the fake device, whose times are a function of the trace.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mount.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "database/journal.h"
#include "database/record.h"
#include "database/replay.h"
#include "database/store.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "tests/tools/run_tool.h"

namespace tilewright {
namespace {

using Words = std::vector<std::string>;

class TuneDatabase : public ToolTest {
 protected:
  /// `tune` of one product on the fake device; `more` may say some of it otherwise.
  static Words tune(const Words& more = {}, const std::string& trials = "8") {
    Words words{"tune", "--op", "gemm:m=64,n=64,k=64", "--target", "x86-64-v3:cores=2", "--trials", trials};
    for (const auto& [flag, value] : {std::pair{"--runner", "fake"}, {"--strategy", "replay_trace"}})
      if (std::find(more.begin(), more.end(), flag) == more.end()) words.insert(words.end(), {flag, value});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// The run of that name, from its journal.
  RunState state(const std::string& name) const {
    auto run = replay_run((folder() / name).string());
    EXPECT_TRUE(run) << run.error().diagnostic().message;
    return run ? *run : RunState{};
  }
  static size_t measured(const RunState& run) {
    size_t n = 0;
    for (const auto& [number, trial] : run.trials) n += trial.settled && trial.settled->record.empty();
    return n;
  }
  static std::set<Key128> traces(const RunState& run) {
    std::set<Key128> out;
    for (const auto& [number, trial] : run.trials) out.insert(trial.trace_key);
    return out;
  }
  Json db(const Words& words, int code = 0) const {
    Words all{"db"};
    all.insert(all.end(), words.begin(), words.end());
    all.emplace_back("--json");
    Ran ran = run(all);
    EXPECT_EQ(ran.code, code) << ran.out << ran.err;
    return ran.json();
  }
  void ok(const Words& words) const {
    Ran ran = run(words);
    ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  }
  bool any_run() const { return std::filesystem::exists(folder() / "runs"); }
};

TEST_F(TuneDatabase, ASecondRunMeasuresNothing) {
  Ran first = run(tune({"--run", "first"}));
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_NE(first.out.find("saved: database +18 results"), std::string::npos) << first.out;
  // Eight trials, and the untuned program on all cores and on one; eight of them in the final comparison.
  EXPECT_EQ(measured(state("first")), 10u);
  EXPECT_EQ(run(tune({"--dry-run", "--json"})).json()["tasks"][0]["stored"], 10);
  Ran second = run(tune({"--run", "second"}));
  ASSERT_EQ(second.code, 0) << second.out << second.err;
  // Only the comparison at the end is measured: eight contenders.
  EXPECT_NE(second.out.find("saved: database +8 results"), std::string::npos) << second.out;
  RunState again = state("second");
  EXPECT_EQ(measured(again), 0u);
  EXPECT_EQ(traces(again), traces(state("first")));
  EXPECT_EQ(again.tasks.at(0).done->best_ns, state("first").tasks.at(0).done->best_ns);
  EXPECT_EQ(again.rounds.size(), 0u) << "nothing was left to search";

  ok(tune({"--run", "another_seed", "--seed", "7"}));
  EXPECT_EQ(measured(state("another_seed")), 0u) << "trials count whatever proposed them";
  ok(tune({"--run", "more"}, "12"));
  EXPECT_EQ(measured(state("more")), 4u);
  ok(tune({"--run", "fresh", "--fresh"}));
  EXPECT_EQ(measured(state("fresh")), 10u);
}

TEST_F(TuneDatabase, OneTimeIsTheTimeInEveryView) {
  write("noisy.json", R"({"noise": 0.05})");
  for (const Words& words : {tune({"--run", "runs/x-a31f", "--runner", "fake:noisy.json"}),
                             Words{"tune", "--run", "a31f", "--trials", "12"}}) {
    Ran told = this->run(words);
    ASSERT_EQ(told.code, 0) << told.out << told.err;
    RunState run = state("runs/x-a31f");
    const TaskDone& done = *run.tasks.at(0).done;
    const double best_ns = *done.best_ns;
    const std::string trial = "a31f:" + std::to_string(*done.best_trial);
    Json report = this->run({"report", "a31f", "--json"}).json()["tasks"][0];
    EXPECT_EQ(report["best_ns"], best_ns);
    const std::string ratio = fmt::format("  {:.2f}x", report["baseline_ns"].get<double>() / best_ns);
    EXPECT_NE(told.out.find(ratio), std::string::npos) << ratio << told.out;
    Json results = this->run({"explain", trial, "--json"}).json()["results"];
    EXPECT_EQ(results.back()["median_ns"], best_ns) << results;
    EXPECT_EQ(results.back()["stage"], "final");
    std::string id = this->run({"replay", trial, "--json"}).json()["recorded_ns"].dump();
    EXPECT_EQ(std::stod(id), best_ns);
    bool found = false;
    const Json top = db({"top", "--limit", "100"});
    for (const Json& row : top["top"]) {
      if (row["trace_key"] != run.trials.at(*done.best_trial).trace_key.hex()) continue;
      EXPECT_NEAR(row["rank_ns"].get<double>(), best_ns, 1e-9 * best_ns);
      EXPECT_EQ(row["stage"], "final");
      found = true;
    }
    EXPECT_TRUE(found);
    ok({"export", "a31f", "--as", "trace", "--lock", "k.lock.json"});
    EXPECT_NEAR(Json::parse(read("k.lock.json"))["kernels"][0]["median_ns"].get<double>(), best_ns, 1e-9 * best_ns);
    std::filesystem::remove(folder() / "k.lock.json");
  }
}

TEST_F(TuneDatabase, OnlyResultsOfTheSameDeviceProtocolAndProgramCount) {
  ok(tune({"--run", "first"}));
  write("other.json", R"({"seed": 9})");
  ok(tune({"--run", "device", "--runner", "fake:other.json"}));
  EXPECT_EQ(measured(state("device")), 10u);
  ok(tune({"--run", "mode", "--set", "measure.mode=warm"}));
  EXPECT_EQ(measured(state("mode")), 10u);
  ok(tune({"--run", "threads", "--set", "measure.threads=1"}));
  EXPECT_EQ(measured(state("threads")), 10u);
  ok({"tune", "--op", "gemm:m=64,n=64,k=32", "--target", "x86-64-v3:cores=2", "--runner", "fake", "--trials", "8",
      "--strategy", "replay_trace", "--run", "program"});
  EXPECT_EQ(measured(state("program")), 10u);
  ok(tune({"--run", "lower", "--set", "lower.fp_contract=off"}));
  EXPECT_EQ(measured(state("lower")), 10u);
  EXPECT_EQ(state("lower").tasks.at(0).start.environment.at("lower"), "fp_contract=off");
  ok(tune({"--run", "default", "--set", "lower.fp_contract=on"}));
  EXPECT_EQ(measured(state("default")), 0u) << "a default that is given is still the default";
  EXPECT_EQ(db({"best"})["best"].size(), 6u);
}

TEST_F(TuneDatabase, WhatBuildsAndHowIsPartOfAResult) {
  // A real build: the fake device makes none.
  ok({"tune", "--op", "gemm:m=16,n=16,k=16", "--trials", "1", "--set", "lower.fp_contract=off", "--run",
      "runs/x-a31f"});
  RunState run = state("runs/x-a31f");
  const auto& environment = run.tasks.at(0).start.environment;
  EXPECT_EQ(environment.at("lower"), "fp_contract=off");
  EXPECT_NE(environment.at("toolchain").find(", LLVM "), std::string::npos) << environment.at("toolchain");
  const std::string trial = "a31f:" + std::to_string(*run.tasks.at(0).done->best_trial);
  Json again = this->run({"replay", trial, "--check", "--json"}).json();
  EXPECT_EQ(again["artifact"], "same") << again;  // built with the same options
  EXPECT_FALSE(again.contains("median_ns")) << again;
  EXPECT_TRUE(this->run({"replay", trial, "--check", "--measure", "--json"}).json().contains("median_ns"));
  const std::string assembly = this->run({"show", trial, "--as", "llvm"}).out;
  EXPECT_EQ(assembly.find("contract"), std::string::npos) << "shown as it was measured";
  EXPECT_NE(this->run({"show", trial, "--as", "llvm", "--set", "lower.fp_contract=on"}).out.find("contract"),
            std::string::npos);
  for (const char* bad : {"lower.fp_contract=maybe", "lower.max_code=0", "lower.fp_contact=off"})
    EXPECT_EQ(this->run({"tune", "--dry-run", "--set", bad}).code, 2) << bad;
  write("c.toml", "[lower]\nmath = \"fast\"\n[[task]]\nop = \"gemm\"\ngrid = { m = 8, n = 8, k = 8 }\n");
  EXPECT_EQ(this->run({"tune", "c.toml", "--dry-run"}).code, 0);
}

TEST_F(TuneDatabase, TracesOfTheSameClassAreMeasuredFirst) {
  ok(tune({"--run", "first"}));
  ok(tune({"--run", "second", "--set", "measure.threads=1"}, "2"));
  RunState second = state("second");
  ASSERT_FALSE(second.seeds.empty());
  EXPECT_EQ(second.seeds[0].origin, "class");
  EXPECT_EQ(second.trials.at(2).trace_key, second.seeds[0].trace_key);
  EXPECT_EQ(second.trials.at(2).origin, "seed");
  db({"import-run", "first", "--db", "b.db"});
  ok(tune({"--run", "cold", "--set", "measure.threads=1", "--warm-start", "none", "--db", "b.db"}, "2"));
  EXPECT_TRUE(state("cold").seeds.empty());
  ok(tune({"--run", "named", "--set", "measure.threads=1", "--warm-start", "first", "--db", "c.db"}, "2"));
  ASSERT_FALSE(state("named").seeds.empty());
  EXPECT_EQ(state("named").seeds.back().origin, "run");
}

TEST_F(TuneDatabase, KilledAndResumedItLosesNothingAndProposesTheSame) {
  // Launches take their time, so that the kill comes before the end.
  write("slow.json", R"({"real_time": true, "base_us": 3000})");
  Words words = tune({"--runner", "fake:slow.json", "--strategy", "evolutionary", "--cost-model", "random"}, "16");
  Words undisturbed = words;
  undisturbed.insert(undisturbed.end(), {"--run", "undisturbed", "--db", "memory:"});
  ok(undisturbed);

  pid_t child = fork();
  if (child == 0) {
    if (chdir(folder().c_str()) != 0) _exit(126);
    setenv("XDG_DATA_HOME", ".data", 1);
    int null = open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) dup2(null, fd);
    words.insert(words.begin(), TW_BINARY_DIR "/bin/tilewright");
    words.insert(words.end(), {"--run", "killed"});
    std::vector<char*> argv;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  auto results = [&] {
    std::string journal = read("killed/events.jsonl");
    size_t n = 0;
    for (size_t at = 0; (at = journal.find("\"job.result\"", at)) != std::string::npos; ++at) ++n;
    return n;
  };
  for (int wait = 0; wait < 6000 && results() < 6; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";
  size_t before = results();
  ASSERT_GE(before, 6u);

  ok({"tune", "--run", "killed"});
  RunState resumed = state("killed"), whole = state("undisturbed");
  EXPECT_EQ(resumed.settled(), 18);
  EXPECT_EQ(traces(resumed), traces(whole));
  for (const auto& [number, trial] : whole.trials)
    for (const auto& [other, same] : resumed.trials)
      if (trial.trace_key == same.trace_key && same.settled) {
        EXPECT_EQ(trial.settled->median_ns, same.settled->median_ns) << number;
      }
  EXPECT_EQ(db({"stats"})["stats"]["records"], 18);
  EXPECT_EQ(db({"verify"})["problems"], 0);
}

TEST_F(TuneDatabase, WhatTheDatabaseLostComesBackFromTheJournal) {
  ok(tune({"--run", "first", "--db", "a.db"}));
  Json imported = db({"import-run", "first", "--db", "b.db"});
  EXPECT_EQ(imported["imported"][0]["inserted"], 18);
  EXPECT_EQ(db({"import-run", "first", "--db", "b.db"})["imported"][0]["inserted"], 0);
  EXPECT_EQ(db({"best", "--db", "a.db"})["best"], db({"best", "--db", "b.db"})["best"]);
  ok(tune({"--run", "second", "--db", "b.db"}));
  EXPECT_EQ(measured(state("second")), 0u);
}

TEST_F(TuneDatabase, MergeTakesOverWhatIsNew) {
  ok(tune({"--run", "first", "--db", "a.db"}));
  ok(tune({"--run", "second", "--db", "b.db", "--seed", "2"}));
  int64_t a = db({"stats", "--db", "a.db"})["stats"]["measurements"],
          b = db({"stats", "--db", "b.db"})["stats"]["measurements"];
  EXPECT_EQ(db({"merge", "b.db", "--db", "a.db"})["merged"][0]["inserted"], b);
  EXPECT_EQ(db({"merge", "b.db", "--db", "a.db"})["merged"][0]["inserted"], 0);
  EXPECT_EQ(db({"stats", "--db", "a.db"})["stats"]["measurements"], a + b);
  EXPECT_EQ(db({"verify", "--db", "a.db"})["problems"], 0);
  ok(tune({"--run", "third", "--db", "a.db"}, "12"));
  EXPECT_EQ(measured(state("third")), 0u);
  EXPECT_EQ(db({"merge", "absent.db", "--db", "a.db"}, 3)["diagnostics"][0]["code"], "database-missing");
}

TEST_F(TuneDatabase, ADatabaseThatCannotBeUsedStopsARunOnlyIfItWasNamed) {
  write("damaged.db", std::string(8192, 'x'));
  Ran damaged = run(tune({"--db", "damaged.db"}));
  EXPECT_EQ(damaged.code, 3);
  EXPECT_NE(damaged.err.find("[database-damaged]"), std::string::npos) << damaged.err;
  EXPECT_FALSE(any_run());
  EXPECT_EQ(db({"verify", "--db", "damaged.db"}, 1)["diagnostics"][0]["code"], "database-damaged");
  EXPECT_EQ(db({"ls", "--db", "damaged.db"}, 3)["diagnostics"][0]["code"], "database-damaged");
  Ran scheme = run(tune({"--db", "mysql:x"}));
  EXPECT_EQ(scheme.code, 2);
  EXPECT_NE(scheme.err.find("[database-url-invalid]"), std::string::npos) << scheme.err;
  EXPECT_EQ(run({"db", "ls"}).code, 3) << "there is none yet";

  std::filesystem::create_directories(folder() / ".data/tilewright");
  write(".data/tilewright/tuning.db", std::string(8192, 'x'));
  Ran journal_only = run(tune({"--run", "first"}));
  EXPECT_EQ(journal_only.code, 0) << journal_only.err;
  EXPECT_NE(journal_only.err.find("warning"), std::string::npos) << journal_only.err;
  EXPECT_NE(journal_only.err.find("tilewright db import-run first"), std::string::npos) << journal_only.err;
  EXPECT_EQ(journal_only.out.find("saved: database"), std::string::npos) << journal_only.out;
  EXPECT_EQ(measured(state("first")), 10u);
}

TEST_F(TuneDatabase, ADatabaseThatCannotBeWrittenToIsSaidBeforeTheRun) {
  std::filesystem::path place = folder() / "place";
  std::filesystem::create_directory(place);
  if (mount("tmpfs", place.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "a file system cannot be mounted here: " << std::strerror(errno);
  ok(tune({"--run", "first", "--db", "place/tuning.db"}));
  auto look = [&](const char* what) {
    Ran named = run(tune({"--run", "named", "--db", "place/tuning.db"}));
    EXPECT_EQ(named.code, 3) << what << named.out << named.err;
    EXPECT_NE(named.err.find("tilewright db import-run named"), std::string::npos) << what << named.err;
    EXPECT_FALSE(std::filesystem::exists(folder() / "named")) << what;
  };
  ASSERT_EQ(mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=4m"), 0);
  look("read-only");
  ASSERT_EQ(mount("tmpfs", place.c_str(), "tmpfs", MS_REMOUNT, "size=4m"), 0);
  {
    std::ofstream(place / "filler") << std::string(8 << 20, 'x');
  }
  look("full");

  // At the default place the run goes on, and says where its results are.
  std::filesystem::create_directories(folder() / ".data");
  std::filesystem::create_directory_symlink(place, folder() / ".data/tilewright");
  Ran ran = run(tune({"--run", "default"}));
  umount(place.c_str());
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.err.find("stay in its journal"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("tilewright db import-run default"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("tilewright db import-run default"), std::string::npos) << ran.out;
  EXPECT_EQ(measured(state("default")), 10u);
}

TEST_F(TuneDatabase, ADatabaseOfANewerVersionIsLeftAlone) {
  ok(tune({"--run", "first", "--db", "a.db"}));
  EXPECT_NE(run({"db", "upgrade", "--db", "a.db"}).out.find("schema version 1"), std::string::npos);
  std::string command =
      "cd '" + folder().string() +
      "' && /usr/bin/python3 -c \"import sqlite3; c = sqlite3.connect('a.db'); c.execute('UPDATE meta "
      "SET value = 99 WHERE name = \\'schema_version\\''); c.commit()\"";
  if (std::system(command.c_str()) != 0) GTEST_SKIP() << "python3 has no sqlite3 here";
  std::string before = read("a.db");
  Ran ran = run(tune({"--run", "second", "--db", "a.db"}));
  EXPECT_EQ(ran.code, 3);
  EXPECT_NE(ran.err.find("[database-newer]"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder() / "second"));
  EXPECT_EQ(db({"ls", "--db", "a.db"}, 3)["diagnostics"][0]["code"], "database-newer");
  EXPECT_EQ(read("a.db"), before);
}

TEST_F(TuneDatabase, AReadOnlyDiskIsReadFrom) {
  std::filesystem::path disk = folder() / "disk";
  std::filesystem::create_directory(disk);
  ASSERT_EQ(run(tune({"--run", "first", "--db", "a.db"})).code, 0);
  Json best = db({"best", "--db", "a.db"});
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=4m") != 0)
    GTEST_SKIP() << "a file system cannot be mounted here: " << std::strerror(errno);
  std::filesystem::copy_file(folder() / "a.db", disk / "a?.db");
  // What a writer leaves that is stopped: its log is not in the file yet.
  std::filesystem::copy_file(folder() / "a.db", disk / "stopped.db");
  write("disk/stopped.db-wal", std::string(4096, 'x'));
  ASSERT_EQ(mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr), 0) << std::strerror(errno);
  const std::string there = "disk/a?.db";
  EXPECT_EQ(db({"best", "--db", there})["best"], best["best"]);
  db({"stats", "--db", there});
  db({"top", "--db", there});
  db({"verify", "--db", there});
  db({"merge", there, "--db", "b.db"});
  const std::string record = best["best"][0]["record"];
  EXPECT_EQ(run({"explain", record, "--db", there}).code, 0);
  EXPECT_EQ(run({"db", "prune", "--db", there}).code, 3);
  EXPECT_EQ(run(tune({"--run", "second", "--db", there})).code, 3);
  Ran readable = run({"doctor", "--fast", "--db", there}), missing = run({"doctor", "--fast", "--db", "disk/new/b.db"}),
      stopped = run({"db", "ls", "--db", "disk/stopped.db"});
  umount(disk.c_str());
  EXPECT_NE(readable.out.find("can only be read"), std::string::npos) << readable.out;
  EXPECT_NE(missing.out.find("disk/new/b.db cannot be made"), std::string::npos) << missing.out;
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(stopped.code, 3);
  EXPECT_NE(stopped.err.find("copy both to a folder that can be written"), std::string::npos) << stopped.err;
  EXPECT_EQ(db({"best", "--db", "b.db"})["best"][0]["record"], record);
}

TEST_F(TuneDatabase, AFullDiskUnderTheJournalStopsTheRunAtOnce) {
  std::filesystem::path disk = folder() / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here: " << std::strerror(errno);
  Ran ran = run(tune({"--run", "disk/first", "--db", "a.db"}, "2000"));
  std::filesystem::copy(disk / "first", folder() / "second", std::filesystem::copy_options::recursive);
  umount(disk.c_str());
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  EXPECT_NE(ran.err.find("[disk-full]"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("tilewright tune --run disk/first"), std::string::npos) << ran.err;
  const size_t kept = measured(state("second"));
  EXPECT_GT(kept, 2u);
  EXPECT_LT(kept, 200u);
  Ran again = run(tune({"--run", "second", "--db", "a.db"}, fmt::format("{}", kept + 4)));
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_GE(measured(state("second")), kept);
}

TEST_F(TuneDatabase, OnAFullDiskTheJournalKeepsEverything) {
  std::filesystem::path disk = folder() / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=192k") != 0)
    GTEST_SKIP() << "a small file system cannot be mounted here: " << std::strerror(errno);
  Ran ran = run(tune({"--run", "first", "--db", "disk/tuning.db"}, "64"));
  umount(disk.c_str());
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.err.find("[disk-full]"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("nothing is lost"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("tilewright db import-run first"), std::string::npos) << ran.out;
  EXPECT_EQ(measured(state("first")), 66u);
  EXPECT_EQ(db({"import-run", "first", "--db", "b.db"})["imported"][0]["inserted"], 74);
}

TEST_F(TuneDatabase, VerbsAnswerAndRefuse) {
  ok(tune({"--run", "first"}));
  Json ls = db({"ls"});
  ASSERT_EQ(ls["workloads"].size(), 1u);
  EXPECT_EQ(ls["workloads"][0]["workload"], "gemm 64x64x64 float32");
  EXPECT_EQ(ls["workloads"][0]["records"], 10);
  Json best = db({"best", "gemm"})["best"];
  ASSERT_EQ(best.size(), 1u);
  for (const char* field : {"workload", "workload_key", "target", "mode", "trace_key", "record", "rank_ns", "ci_lo_ns",
                            "ci_hi_ns", "n", "stage", "verified"})
    EXPECT_TRUE(best[0].contains(field)) << field;
  Json top = db({"top", "--limit", "3"})["top"];
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0], best[0]);
  EXPECT_LE(top[0]["rank_ns"], top[1]["rank_ns"]);
  EXPECT_EQ(db({"best", "conv"}, 1)["best"].size(), 0u);
  EXPECT_EQ(db({"prune", "--keep", "2"})["records"], 8);
  EXPECT_EQ(db({"verify"})["problems"], 0);
  Json exported = db({"export", "--tvm", "pair"});
  EXPECT_EQ(exported["not_expressed"], 18);
  std::string id = best[0]["record"];
  EXPECT_EQ(run({"db", "unblock", id, "--reason", "tried"}).code, 0);
  EXPECT_EQ(run({"db", "unblock", id}).code, 2);
  EXPECT_EQ(run({"db", "unblock", "r-000000000000", "--reason", "tried"}).code, 2);
  EXPECT_EQ(run({"db", "prune", "--older-than", "long"}).code, 2);
  EXPECT_EQ(run({"db", "stats", "x"}).code, 2);
  EXPECT_EQ(run({"db", "import"}).code, 2);
  EXPECT_EQ(run({"db", "import", "nowhere"}).code, 2);
  Ran verb = run({"db", "prun"});
  EXPECT_EQ(verb.code, 2);
  EXPECT_NE(verb.err.find("did you mean \"prune\"?"), std::string::npos) << verb.err;
}

TEST_F(TuneDatabase, TvmPairsComeInAndGoOut) {
  std::filesystem::create_directory(folder() / "in");
  write("in/database_workload.json", "[\"1\",\"YWJj\"]\n");
  write("in/database_tuning_record.json", "[0,[[[],[]],[1e-05],{\"kind\":\"llvm\"},null]]\nnot a line\n");
  Json in = db({"import", "in"});
  EXPECT_EQ(in["imported"][0]["inserted"], 1);
  EXPECT_EQ(in["imported"][0]["rejected"], 1);
  EXPECT_TRUE(std::filesystem::exists(folder() / "in/database_tuning_record.json.rejects.jsonl"));
  EXPECT_EQ(db({"import", "in"})["imported"][0]["inserted"], 0);
  EXPECT_EQ(db({"export", "--tvm", "out"})["records"], 1);
  EXPECT_EQ(read("out/database_workload.json"), read("in/database_workload.json"));
}

TEST_F(TuneDatabase, RecordsAreObjectsEverywhere) {
  ok(tune({"--run", "runs/20261130-0000-x-a31f"}));
  std::string id = db({"best"})["best"][0]["record"];
  for (const std::string& name : {id, id.substr(0, 10), std::string("last:best")}) {
    Ran show = run({"show", name, "--as", "json"});
    EXPECT_EQ(show.code, 0) << name << show.err;
    EXPECT_EQ(show.out, run({"show", id, "--as", "json"}).out) << name;
    EXPECT_EQ(run({"show", name, "--as", "program"}).code, 0) << name;
    EXPECT_EQ(run({"explain", name}).code, 0) << name;
    Ran exported = run({"export", name, "--as", "trace", "--out", "out"});
    EXPECT_EQ(exported.code, 0) << name << exported.err;
  }
  EXPECT_NE(run({"explain", id}).out.find("toolchain"), std::string::npos);
  EXPECT_EQ(run({"show", "r-000000000000"}).code, 2);
  Ran best = run(
      {"export", "--best", "gemm:m=64,n=64,k=64", "--as", "trace", "--out", "best", "--target", "x86-64-v3:cores=2"});
  EXPECT_EQ(best.code, 0) << best.err;
  EXPECT_EQ(read("best/gemm_64x64x64_float32.json"), read("out/gemm_64x64x64_float32.json"));
  EXPECT_EQ(run({"export", "--best", "--as", "trace", "--target", "x86-64-v3:cores=3"}).code, 1);
}

TEST_F(TuneDatabase, ALockFileSaysWhatWasExported) {
  ok(tune({"--run", "runs/20261130-0000-x-a31f"}));
  ok({"export", "last", "--as", "trace", "--out", "one", "--lock", "kernels.lock.json"});
  std::string lock = read("kernels.lock.json");
  ok({"export", "kernels.lock.json", "--as", "trace", "--out", "two", "--lock", "kernels.lock.json"});
  EXPECT_EQ(read("kernels.lock.json"), lock);
  EXPECT_EQ(read("two/gemm_64x64x64_float32.json"), read("one/gemm_64x64x64_float32.json"));
  EXPECT_EQ(run({"compare", "kernels.lock.json", "last"}).code, 0);

  ok({"export", "last:1", "--as", "trace", "--out", "three", "--lock", "kernels.lock.json", "--name", "another"});
  Json document = Json::parse(read("kernels.lock.json"));
  ASSERT_EQ(document["kernels"].size(), 2u);
  EXPECT_EQ(document["kernels"][0]["name"], "another");
  EXPECT_EQ(db({"import", "kernels.lock.json", "--db", "b.db"})["imported"][0]["inserted"], 2);
  EXPECT_EQ(db({"import", "kernels.lock.json", "--db", "b.db"})["imported"][0]["inserted"], 0);
  EXPECT_EQ(db({"best", "--db", "b.db"}, 1)["best"].size(), 0u) << "imported times are not verified";
  ok(tune({"--run", "seeded", "--db", "b.db"}, "2"));
  ASSERT_FALSE(state("seeded").seeds.empty());
  EXPECT_EQ(state("seeded").seeds[0].origin, "imported");

  document["kernels"][1]["files"]["trace/gemm_64x64x64_float32.py"] = std::string(32, '0');
  write("changed.lock.json", document.dump());
  Ran warned = run({"export", "changed.lock.json", "--as", "trace", "--out", "four"});
  EXPECT_EQ(warned.code, 0);
  EXPECT_NE(warned.err.find("[lock-changed]"), std::string::npos) << warned.err;
  EXPECT_EQ(run({"export", "changed.lock.json", "--as", "trace", "--out", "four", "--strict"}).code, 1);
  write("no.lock.json", "{}");
  EXPECT_EQ(run({"export", "no.lock.json", "--as", "trace"}).code, 2);
  Ran fake = run({"export", "last", "--as", "cpu", "--out", "five"});
  EXPECT_EQ(fake.code, 1);
  EXPECT_NE(fake.err.find("fake device"), std::string::npos) << fake.err;
}

TEST_F(TuneDatabase, ReplayReproduces) {
  ok(tune({"--run", "runs/20261130-0000-x-a31f"}));
  std::string id = db({"best"})["best"][0]["record"];
  for (const std::string& name : {std::string("a31f:3"), std::string("last:best"), id}) {
    Ran ran = run({"replay", name, "--json"});
    ASSERT_EQ(ran.code, 0) << name << ran.out;
    Json document = ran.json();
    EXPECT_EQ(document["reproduced"], true);
    EXPECT_EQ(document["status"], "ok");
    EXPECT_EQ(document["artifact"], "same");
    EXPECT_GT(document["median_ns"], 0.0);
  }
  ok({"replay", "last:best", "--keep", "kept"});
  EXPECT_FALSE(read("kept/kernel.so").empty());
  ok({"replay", "kept/trace.json", "--program", "kept/program.py", "--target", "x86-64-v3:cores=2", "--runner",
      "fake"});

  write("wrong.json", R"({"faults": [{"fault": "wrong_all", "p": 1.0}]})");
  Ran wrong = run({"replay", "last:best", "--runner", "fake:wrong.json", "--json"});
  EXPECT_EQ(wrong.code, 1) << wrong.out;
  EXPECT_EQ(wrong.json()["status"], "wrong_result");
  EXPECT_EQ(wrong.json()["reproduced"], false);
  EXPECT_EQ(run({"replay", "last:99"}).code, 2);
  EXPECT_EQ(run({"replay", "kept/trace.json"}).code, 2);
}

/// Runs with one task whose best time is given, to compare.
class Compare : public TuneDatabase {
 protected:
  void SetUp() override {
    ToolTest::SetUp();
    auto program = parse_program(kMatmul, "mm.py");
    ASSERT_TRUE(program);
    text_ = print(*program->program);
  }
  void make_run(const std::string& name, double ns, double half_width, const std::string& toolchain = "t 1",
                double clock = 0) const {
    auto journal = JournalWriter::open((folder() / name).string());
    ASSERT_TRUE(journal);
    EventStream stream([] { return 1.0; });
    stream.add(**journal);
    RunStart start;
    start.run = name;
    stream.emit(start);
    TaskStart task;
    task.name = "mm";
    task.program = text_;
    task.workload_key = workload_key(text_, 1);
    task.target = "x86-64-v3:cores=2";
    task.environment = {{"toolchain", toolchain}};
    task.target_key = text_key(target_text(task.target, task.environment));
    stream.emit(task);
    JobDispatched d;
    d.trace_key = content_key("");
    stream.emit(d);
    JobResult r;
    r.trace_key = d.trace_key;
    r.status = TrialStatus::ok;
    r.stage = Stage::screen;
    r.settled = r.verified = true;
    r.median_ns = ns;
    r.ci_lo_ns = ns * (1 - half_width);
    r.ci_hi_ns = ns * (1 + half_width);
    r.n = 30;
    r.device = "cpu-0";
    if (clock > 0) r.clock_mhz = clock;
    stream.emit(r);
    ASSERT_TRUE((*journal)->sync());
  }
  void expect(const Words& words, int code, const std::string& verdict) const {
    Words all{"compare"};
    all.insert(all.end(), words.begin(), words.end());
    all.emplace_back("--json");
    Ran ran = run(all);
    EXPECT_EQ(ran.code, code) << ran.out;
    Json document = ran.json();
    ASSERT_EQ(document["tasks"].size(), 1u) << ran.out;
    EXPECT_EQ(document["tasks"][0]["verdict"], verdict) << ran.out;
  }

 private:
  std::string text_;
};

TEST_F(Compare, VerdictsHaveTheirExitCodes) {
  make_run("a", 1000, 0.001);
  make_run("faster", 900, 0.001);
  make_run("slower", 1100, 0.001);
  make_run("same", 1003, 0.001);
  make_run("wide", 1003, 0.05);
  make_run("other", 900, 0.001, "t 2");
  expect({"a", "faster"}, 0, "faster");
  expect({"a", "slower"}, 1, "slower");
  expect({"a", "same"}, 0, "same");
  expect({"a", "wide"}, 0, "unsure");
  expect({"a", "wide", "--fail-on", "unsure"}, 1, "unsure");
  expect({"a", "other"}, 0, "missing");
  expect({"a", "other", "--fail-on", "missing"}, 1, "missing");
  expect({"a", "slower", "--threshold", "20%"}, 0, "same");
  EXPECT_EQ(run({"compare", "a", "absent"}).code, 2);
  EXPECT_EQ(run({"compare", "a", "same", "--threshold", "much"}).code, 2);
  EXPECT_EQ(run({"compare", "a", "same", "--fail-on", "slower"}).code, 2);
  Ran table = run({"compare", "a", "slower", "--markdown"});
  EXPECT_NE(table.out.find("| mm | slower | 1.100 |"), std::string::npos) << table.out;
}

TEST_F(Compare, ADifferenceOfClocksIsNoneOfCode) {
  make_run("a", 1000, 0.001, "t 1", 3000);
  make_run("slow_clock", 1100, 0.001, "t 1", 2727);
  expect({"a", "slow_clock"}, 0, "unsure");
}

TEST_F(Compare, DatabasesRecordsAndPairedSamples) {
  ok(tune({"--run", "runs/20261130-0000-x-a31f", "--db", "a.db"}));
  expect({"a.db", "a31f:best"}, 0, "same");
  // The fastest and the slowest of the run; on this device their order is that of their traces, for ever.
  std::map<double, int64_t> trials;
  for (const auto& [number, trial] : state("runs/20261130-0000-x-a31f").trials)
    trials[trial.settled->median_ns] = number;
  std::string fast = fmt::format("a31f:{}", trials.begin()->second),
              slow = fmt::format("a31f:{}", trials.rbegin()->second);
  Ran slower = run({"compare", fast, slow, "--remeasure", "--json"});
  EXPECT_EQ(slower.code, 1) << slower.out;
  EXPECT_EQ(slower.json()["tasks"][0]["evidence"], "paired");
  expect({slow, fast, "--remeasure"}, 0, "faster");
  expect({slow, slow, "--remeasure"}, 0, "same");
}

}  // namespace
}  // namespace tilewright
