// Every shape of the benchmark suite builds, and its FLOP and byte figures are those that the suite states.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include <map>
#include <set>

#include "workloads/operator.h"

namespace tilewright {
namespace {

ParameterList parameters_of(const toml::table& row) {
  ParameterList out;
  for (auto&& [key, value] : *row["dims"].as_table())
    out.emplace_back(key.str(),
                     value.is_string() ? *value.value<std::string>() : fmt::format("{}", *value.value<int64_t>()));
  for (const char* key : {"layout", "weight_layout", "dtype", "dtype_b", "acc", "out"})
    if (auto text = row[key].value<std::string>()) out.emplace_back(key, *text);
  return out;
}

TEST(Suite, FiguresOfEveryShapeAreTheSuites) {
  const toml::table suite = toml::parse_file(TW_SOURCE_DIR "/bench/suites/suite.toml");
  const toml::array& rows = *suite["workload"].as_array();
  ASSERT_GT(rows.size(), 150u);
  std::map<std::string, std::string> ids;  // by canonical name
  std::set<std::string> operators;
  for (const toml::node& node : rows) {
    const toml::table& row = *node.as_table();
    const std::string id = *row["id"].value<std::string>(), op = *row["op"].value<std::string>();
    Result<Workload> w = make_workload(op, parameters_of(row));
    ASSERT_TRUE(w) << id << ": " << render_text(w.error().diagnostic());
    EXPECT_EQ(w->flop, static_cast<double>(*row["flop"].value<int64_t>())) << id << " " << w->name;
    EXPECT_EQ(w->min_bytes, *row["min_bytes"].value<int64_t>()) << id << " " << w->name;
    operators.insert(op);
    auto [it, fresh] = ids.emplace(w->name, id);
    if (!fresh) continue;  // the suite lists some shapes under two ids
    EXPECT_EQ(w->name.find(op + "_"), 0u) << w->name;
  }
  EXPECT_EQ(operators.size(), 20u);
}

}  // namespace
}  // namespace tilewright
