// The example program and its schedule: applied, executed, and refused nowhere.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "ir/parse.h"
#include "schedule/schedule.h"
#include "tests/ir/execution.h"

namespace tilewright {
namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::string(TW_SOURCE_DIR) + "/examples/" + name);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (size_t at; (at = text.find("128")) != std::string::npos;)
    text.replace(at, 3, "16");  // the interpreter runs it 8 times
  return text;
}

TEST(Example, MmReluScheduleComputesTheSame) {
  auto parsed = parse_program(read("mm_relu.py"), "mm_relu.py");
  ASSERT_TRUE(parsed) << render_text(parsed.error().at(0));
  Schedule s(parsed->program, 1);
  auto ran = run_schedule_text(read("mm_relu.trace.py"), "mm_relu.trace.py", s);
  ASSERT_TRUE(ran) << render_text(ran.error().at(0));
  ExecutionCheck check;
  check.reassociated = true;
  EXPECT_TRUE(equal_by_execution(*parsed->program->main(), s.function(), check));
}

}  // namespace
}  // namespace tilewright
