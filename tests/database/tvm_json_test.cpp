#include "database/tvm_json.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>

#include "support/rng.h"
#include "tests/database/scratch.h"

namespace tilewright {
namespace {

std::unique_ptr<Database> memory() {
  auto store = open_database("memory:");
  EXPECT_OK(store);
  return std::move(*store);
}

std::string workload_line(int n) { return fmt::format(R"(["{}", "AbC{}=="])", 1000 + n, n); }
std::string record_line(int workload, int n, const std::string& seconds) {
  return fmt::format(
      R"([{}, [[[["GetSBlock", [], ["C_\"{}", "main"], ["b0"]], ["GetLoops", ["b0"], [], ["l{}"]]], [[2, [1, {}]]]], )"
      R"({}, {{"kind": "llvm", "keys": ["cpu"]}}, [["TENSOR", "float32", [4, 4]]]]])",
      workload, n % 7, n, n, seconds);
}

struct Pair {
  std::string workloads, records;
};
Pair random_pair(int workloads, int records) {
  Rng rng(5);
  Pair out;
  for (int n = 0; n < workloads; ++n) out.workloads += workload_line(n) + "\n";
  for (int n = 0; n < records; ++n) {
    std::string seconds = n % 9 == 8   ? "[1e10]"
                          : n % 9 == 7 ? "null"
                                       : fmt::format("[{}, {:e}]", 1e-4 * rng.uniform(), 1e-4 * rng.uniform());
    out.records += record_line(static_cast<int>(rng.below(static_cast<uint64_t>(workloads))), n / 2, seconds) + "\n";
  }
  return out;
}

struct Files {
  Scratch dir;
  std::string workloads = dir / "w.json", records = dir / "r.json", rejects = dir / "rejects.jsonl";
  Files(const Pair& pair) {
    write_file(workloads, pair.workloads);
    write_file(records, pair.records);
  }
  Result<TvmImport> import(Database& store) { return import_tvm(store, workloads, records, rejects); }
};

TEST(TvmJson, RoundTripIsByteEqualAndImportIsIdempotent) {
  Pair pair = random_pair(20, 2000);
  Files files(pair);
  auto store = memory();
  auto report = files.import(*store);
  ASSERT_OK(report);
  EXPECT_EQ(report->workloads, 20);
  EXPECT_EQ(report->records, 2000);
  EXPECT_EQ(report->inserted, 2000);
  EXPECT_EQ(report->failed, 2 * (2000 / 9));
  EXPECT_EQ(report->rejected, 0);
  EXPECT_FALSE(std::filesystem::exists(files.rejects));
  ASSERT_OK(export_tvm(*store, files.dir / "out"));
  EXPECT_EQ(read_file(files.dir / "out/database_workload.json"), pair.workloads);
  EXPECT_EQ(read_file(files.dir / "out/database_tuning_record.json"), pair.records);
  report = files.import(*store);
  ASSERT_OK(report);
  EXPECT_EQ(report->inserted, 0);
  EXPECT_EQ(store->verify()->problems.size(), 0u);
  write_file(files.records, pair.records + record_line(3, 77777, "[1]") + "\n");  // TVM went on
  EXPECT_EQ(files.import(*store)->inserted, 1);
}

TEST(TvmJson, TimesAreSeedsAndNeverStrictResults) {
  Files files({workload_line(0) + "\n", record_line(0, 1, "[3e-3, 1e-3, 2e-3]") + "\n" + record_line(0, 2, "[1e-3]") +
                                            "\n" + record_line(0, 3, "[1e10]") + "\n"});
  auto store = memory();
  ASSERT_OK(files.import(*store));
  SpaceKey space{store->workloads()->at(0).key, store->targets()->at(0).key, Mode::cold};
  EXPECT_EQ(store->top({space, false, false, 10})->size(), 0u);
  auto seeds = store->top({space, false, true, 10});
  ASSERT_OK(seeds);
  ASSERT_EQ(seeds->size(), 2u);
  EXPECT_NEAR(*(*seeds)[0].rank_ns, 1e6, 1e-3);
  EXPECT_NEAR(*(*seeds)[1].rank_ns, 2e6, 1e-3);
  EXPECT_EQ((*seeds)[0].stage, Stage::imported);
  EXPECT_FALSE((*seeds)[0].verified);
  EXPECT_EQ((*seeds)[0].trace.substr(0, 18), R"([[["GetSBlock", [])");
}

TEST(TvmJson, BadLinesAreRejectedWithTheirNumberAndTheRestGoesIn) {
  std::vector<std::string> bad = {"{",
                                  "[]",
                                  "[0]",
                                  "[0, []]",
                                  "[0, [1, 2, 3, 4]]",
                                  "[-1, [[[],[]], [1], null, null]]",
                                  "[2, [[[],[]], [1], null, null]]",
                                  "[1, [[[],[]], [1], null, null]]",
                                  "[0.5, [[[],[]], [1], null, null]]",
                                  "[99999999999999999999, [[[],[]], [1], null, null]]",
                                  "[0, [[[],[]], [-1], null, null]]",
                                  "[0, [[[],[]], [NaN], null, null]]",
                                  "[0, [[[],[]], [1e999], null, null]]",
                                  "[0, [[[],[]], \"x\", null, null]]",
                                  "[0, [[[]], [1], null, null]]",
                                  "[0, [[[],[]], [1], null]]",
                                  "[0, [[[],[]], [1], null, null]] x"};
  std::string records;
  for (const std::string& line : bad)
    records += line + "\n" + record_line(0, static_cast<int>(line.size()), "[1]") + "\n";
  Files files({workload_line(0) + "\nnot a workload\n", records + "[0, [[[],[]], [1"});
  auto store = memory();
  auto report = files.import(*store);
  ASSERT_OK(report);
  EXPECT_EQ(report->records, static_cast<int64_t>(bad.size()));
  EXPECT_EQ(report->rejected, static_cast<int64_t>(bad.size()) + 1);
  EXPECT_TRUE(report->torn);
  std::string rejects = read_file(files.rejects);
  EXPECT_EQ(std::count(rejects.begin(), rejects.end(), '\n'), report->rejected);
  for (size_t i = 0; i < bad.size(); ++i)
    EXPECT_NE(rejects.find(fmt::format("\"line\":{},", 2 * i + 1)), std::string::npos) << bad[i];
  EXPECT_NE(rejects.find("workload 1 was rejected"), std::string::npos);
}

TEST(TvmJson, MutatedLinesNeverCrashOrAbort) {
  Rng rng(9);
  std::string records;
  for (int n = 0; n < 10'000; ++n) {
    std::string line = record_line(0, n, "[1e-3]");
    for (uint64_t i = 1 + rng.below(3); i > 0; --i) {
      size_t at = rng.below(line.size());
      switch (rng.below(3)) {
        case 0:
          line[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          line.erase(at, 1 + rng.below(20));
          break;
        default:
          line.insert(at, 1, "[]{}\",\\0"[rng.below(8)]);
      }
    }
    std::replace(line.begin(), line.end(), '\n', ' ');
    records += line + "\n";
  }
  Files files({workload_line(0) + "\n", records});
  auto store = memory();
  auto report = files.import(*store);
  ASSERT_OK(report);
  EXPECT_EQ(report->records + report->rejected, 10'000);
  EXPECT_GT(report->rejected, 1000);
  EXPECT_GT(report->records, 100);
  EXPECT_EQ(store->verify()->problems.size(), 0u);
}

TEST(TvmJson, BestOnlyAndRenumberingAcrossTwoPairs) {
  Files first({workload_line(0) + "\n", record_line(0, 1, "[2]") + "\n" + record_line(0, 2, "[1]") + "\n"});
  Files second({workload_line(1) + "\n" + workload_line(2) + "\n",
                record_line(1, 3, "[5]") + "\n" + record_line(1, 4, "[1e10]") + "\n"});
  auto store = memory();
  ASSERT_OK(first.import(*store));
  ASSERT_OK(second.import(*store));
  auto report = export_tvm(*store, first.dir / "out", true);
  ASSERT_OK(report);
  EXPECT_EQ(report->workloads, 3);
  EXPECT_EQ(report->records, 2);
  EXPECT_EQ(read_file(first.dir / "out/database_tuning_record.json"),
            record_line(0, 2, "[1]") + "\n" + record_line(2, 3, "[5]") + "\n");
}

TEST(TvmJson, MissingFilesAreNamed) {
  auto store = memory();
  auto report = import_tvm(*store, "/none/w.json", "/none/r.json", "/none/rejects");
  ASSERT_FALSE(report);
  EXPECT_NE(error_text(report).find("/none/w.json"), std::string::npos);
}

}  // namespace
}  // namespace tilewright
