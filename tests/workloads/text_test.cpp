// Operators as program text: every one prints and parses back, and the example is the operator that it says it is.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "ir/equal.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "support/diagnostic.h"
#include "workloads/operator.h"

namespace tilewright {
namespace {

std::string all(const Diagnostics& errors) {
  std::string out;
  for (const Diagnostic& d : errors) out += render_text(d);
  return out;
}

TEST(WorkloadText, EveryOperatorPrintsAndParsesBack) {
  for (const auto& [name, entry] : Registry<Operator>::instance().entries()) {
    ParameterList sizes;
    for (const OperatorParameter& p : entry.value.all_parameters())
      if (p.kind == OperatorParameter::Kind::size) sizes.emplace_back(p.name, "6");
    for (const char* dtype : {"float32", "float16"}) {
      ParameterList given = sizes;
      given.emplace_back("dtype", dtype);
      Result<Workload> w = make_workload(name, given);
      ASSERT_TRUE(w) << render_text(w.error().diagnostic());
      const std::string text = print(*w->program);
      auto parsed = parse_program(text, name);
      ASSERT_TRUE(parsed) << text << "\n" << all(parsed.error());
      EXPECT_TRUE(structural_equal(*w->program, *parsed->program)) << text << "\n" << print(*parsed->program);
    }
  }
}

TEST(WorkloadText, TheExampleIsTheOperator) {
  std::stringstream text;
  text << std::ifstream(TW_SOURCE_DIR "/examples/mm_relu.py").rdbuf();
  auto parsed = parse_program(text.str(), "mm_relu.py");
  ASSERT_TRUE(parsed) << all(parsed.error());
  Result<Workload> w = make_workload("mm_relu:m=128,n=128,k=128");
  ASSERT_TRUE(w);
  EXPECT_TRUE(structural_equal(*w->program->main(), *parsed->program->main()))
      << print(*w->program) << print(*parsed->program);
}

}  // namespace
}  // namespace tilewright
