// Golden schedules: tests/golden/schedule/*.txt hold `# before` (a program), `# trace` (a schedule as a person writes
// it), and `# after` (the program it gives) or `# refused: code` with the rendered message. Every applied golden is
// executed against its before, and its trace is taken through JSON and Python text and replayed to the same program.
// refusals/<primitive>_<code>.txt: one for each code that a primitive declares (refusals_test.cpp).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "schedule/schedule.h"
#include "tests/ir/execution.h"

namespace tilewright {
namespace {

struct Golden {
  std::filesystem::path path;
  std::map<std::string, std::string> sections;
  std::string refused;
  bool reassociated = false, repair = true;
};

Golden read_golden(const std::filesystem::path& path) {
  Golden g{path, {}, ""};
  std::ifstream file(path);
  std::string line, section;
  while (std::getline(file, line)) {
    if (line == "# before" || line == "# trace" || line == "# after") {
      section = line.substr(2);
      g.sections[section];
    } else if (line.rfind("# refused: ", 0) == 0) {
      section = "refused";
      g.refused = line.substr(11);
      g.sections[section];
    } else if (line == "# reassociated") {
      g.reassociated = true;
    } else if (line == "# repair: refuse") {
      g.repair = false;
    } else if (!section.empty()) {
      g.sections[section] += line + "\n";
    }
  }
  return g;
}

void write_golden(const Golden& g, const std::string& section, const std::string& text) {
  std::ofstream out(g.path);
  if (g.reassociated) out << "# reassociated\n";
  if (!g.repair) out << "# repair: refuse\n";
  out << "# before\n" << g.sections.at("before") << "# trace\n" << g.sections.at("trace");
  out << (section == "after" ? "# after\n" : "# refused: " + g.refused + "\n") << text;
}

std::vector<std::filesystem::path> goldens() {
  std::vector<std::filesystem::path> out;
  const std::string folder = std::string(TW_SOURCE_DIR) + "/tests/golden/schedule";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::sort(out.begin(), out.end());
  return out;
}

ProgramRef parse(const std::string& text, const std::string& name) {
  auto parsed = parse_program(text, name);
  if (!parsed) {
    for (const Diagnostic& d : parsed.error()) ADD_FAILURE() << render_text(d);
    return nullptr;
  }
  return parsed->program;
}

class ScheduleGolden : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(ScheduleGolden, AppliesOrRefusesAsWritten) {
  Golden g = read_golden(GetParam());
  ASSERT_TRUE(g.sections.count("before") && g.sections.count("trace")) << "expected sections before and trace";
  const bool update = std::getenv("TILEWRIGHT_UPDATE_GOLDEN") != nullptr;
  ASSERT_TRUE(update || g.sections.count("after") || g.sections.count("refused")) << "a golden needs an expectation";
  ProgramRef before = parse(g.sections["before"], "before");
  ASSERT_TRUE(before);
  Hash64 hash = structural_hash(*before);
  ScheduleOptions options;
  if (!g.repair) options.repair = RepairMode::refuse;
  Schedule s(before, 1, options);
  auto ran = run_schedule_text(g.sections["trace"], "trace", s);
  if (!g.refused.empty()) {
    ASSERT_FALSE(ran) << "expected the refusal " << g.refused << "; the schedule applied:\n" << print(*s.program());
    std::string text = render_text(ran.error().at(0));
    EXPECT_EQ(ran.error().at(0).code, g.refused);
    EXPECT_EQ(structural_hash(*before), hash);
    // The schedule stands where the steps before the refused one have left it.
    Replayed applied = replay(s.trace(), before, Rng(2));
    EXPECT_TRUE(applied.refusals.empty());
    EXPECT_EQ(structural_hash(s.function()), structural_hash(applied.schedule.function()));
    if (update) return write_golden(g, "refused", text);
    EXPECT_EQ(g.sections["refused"], text);
    return;
  }
  if (!ran) FAIL() << render_text(ran.error().at(0));
  std::string after = print(s.function());
  ExecutionCheck check;
  check.reassociated = g.reassociated;
  EXPECT_TRUE(equal_by_execution(*before->main(), s.function(), check)) << after;
  ProgramRef again = parse(print(*s.program()), "after");
  ASSERT_TRUE(again);
  EXPECT_TRUE(structural_equal(*again, *s.program())) << after;
  if (update)
    write_golden(g, "after", after);
  else
    EXPECT_EQ(g.sections["after"], after);

  // The trace through both text forms, replayed on the same program.
  auto from_json = trace_from_json(trace_to_json(s.trace()));
  ASSERT_TRUE(from_json) << render_text(from_json.error().diagnostic());
  auto from_python = traces_from_python(trace_to_python(s.trace()), "trace");
  ASSERT_TRUE(from_python) << render_text(from_python.error().at(0));
  for (const Trace& trace : {*from_json, from_python->at(0).trace, simplify(s.trace())}) {
    Replayed replayed = replay(trace, before, Rng(2));
    ASSERT_TRUE(replayed.refusals.empty()) << render_text(replayed.refusals.at(0).refusal.diagnostic());
    EXPECT_EQ(structural_hash(replayed.schedule.function()), structural_hash(s.function()));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ScheduleGolden, ::testing::ValuesIn(goldens()), [](const auto& param) {
  std::string name = param.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

}  // namespace
}  // namespace tilewright
