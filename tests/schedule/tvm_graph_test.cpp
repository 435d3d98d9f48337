// Index maps in TVM's object graphs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "schedule/schedule.h"
#include "support/json.h"

namespace tilewright {
namespace {

std::string read(const std::string& graph) {
  auto map = index_map_from_graph(graph);
  return map ? index_map_to_python(**map) : render_text(map.error().diagnostic());
}

TEST(TvmGraph, BothGenerationsAreRead) {
  EXPECT_EQ(read(R"({"root_index":9,"nodes":[{"type":"None"},{"type":"ir.PrimType","data":{"span":0,"dtype":"int32"}},
    {"type":"ffi.String","data":"i"},{"type":"ir.Var","data":{"span":0,"ty":1,"name":2}},{"type":"ffi.Array","data":[3]},
    {"type":"int","data":16},{"type":"ir.IntImm","data":{"span":0,"ty":1,"value":5}},
    {"type":"prim.FloorDiv","data":{"span":0,"ty":1,"a":3,"b":6}},{"type":"ffi.Array","data":[7,3]},
    {"type":"tirx.IndexMap","data":{"initial_indices":4,"final_indices":8,"inverse_index_map":10}},
    {"type":"None"}]})"),
            "lambda i: (i // 16, i,)");
  EXPECT_EQ(read(R"({"root":1,"nodes":[{"type_key":""},
    {"type_key":"tir.IndexMap","attrs":{"initial_indices":"2","final_indices":"5","inverse_index_map":"0"}},
    {"type_key":"Array","data":[3]},{"type_key":"tir.Var","attrs":{"dtype":"int32","name":"4","span":"0"}},
    {"type_key":"runtime.String","repr_str":"i"},{"type_key":"Array","data":[6,3]},
    {"type_key":"tir.FloorMod","attrs":{"a":"3","b":"7","dtype":"int32","span":"0"}},
    {"type_key":"IntImm","attrs":{"dtype":"int32","span":"0","value":"4"}}]})"),
            "lambda i: (i % 4, i,)");
}

TEST(TvmGraph, WhatIsWrittenIsReadAgain) {
  for (const char* text :
       {"lambda: ()", "lambda i, j: (i // 16, j, i % 16,)", "lambda i, j: (T.min(i, j) * 3 - 1, T.max(i + j, 2),)",
        "lambda i: (T.int64(i),)", "lambda i, j: (T.float32(0.5),)",
        "tvm.tirx.IndexMap.from_func(lambda i: (i // 4, i % 4,), inverse_index_map=lambda a, b: (a * 4 + b,))"}) {
    auto map = index_map_from_python(text);
    ASSERT_TRUE(map) << text << render_text(map.error().diagnostic());
    auto graph = index_map_to_graph(**map);
    ASSERT_TRUE(graph) << text << render_text(graph.error().diagnostic());
    auto again = index_map_from_graph(*graph);
    ASSERT_TRUE(again) << *graph << render_text(again.error().diagnostic());
    EXPECT_TRUE(**map == **again) << text << "\n" << index_map_to_python(**again) << "\n" << *graph;
  }
}

TEST(TvmGraph, DamagedGraphsAreRefused) {
  const std::string nodes = R"({"root_index":3,"nodes":[{"type":"None"},{"type":"ffi.Array","data":[%]},
    {"type":"ir.Op","data":"prim.exp"},{"type":"tirx.IndexMap","data":{"initial_indices":1,"final_indices":1,"inverse_index_map":^}}]})";
  const std::vector<std::pair<const char*, const char*>> cases = {{"7", "0"}, {"-1", "0"}, {"2", "0"},
                                                                  {"3", "0"}, {"", "3"},   {"", "1"}};
  for (const auto& [item, inverse] : cases) {
    std::string graph = nodes;
    graph.replace(graph.find('%'), 1, item);
    graph.replace(graph.find('^'), 1, inverse);
    EXPECT_NE(read(graph).find("[trace-malformed]"), std::string::npos) << graph << read(graph);
  }
  for (const char* graph : {"", "{", "{}", "[]", R"({"root_index":0})", R"({"root_index":0,"nodes":[{}]})",
                            R"({"root_index":"0","nodes":[]})", R"({"root_index":0,"nodes":[3]})"})
    EXPECT_NE(read(graph).find("[trace-malformed]"), std::string::npos) << graph << read(graph);
}

TEST(TvmGraph, AVariableFromOutsideIsNotWritten) {
  auto map = std::make_unique<IndexMap>();
  map->outputs = {make_var("outside")};
  auto graph = index_map_to_graph(*map);
  ASSERT_FALSE(graph);
  EXPECT_STREQ(graph.error().diagnostic().code.c_str(), "not-expressible-in-dialect");
}

}  // namespace
}  // namespace tilewright
