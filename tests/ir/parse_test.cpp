// Goldens of program text: tests/golden/parse/*.txt hold `# before` and either `# after` (the printed form) or
// `# error: code` with the rendered errors. `scripts/dev golden` rewrites the expectation.
#include "ir/parse.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/equal.h"
#include "ir/print.h"

namespace tilewright {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

struct Golden {
  fs::path path;
  std::string before, kind, expected;  // kind: "after" or "error: code"
};

Golden load_golden(const fs::path& path) {
  Golden g;
  g.path = path;
  std::string text = read_file(path);
  size_t begin = text.find("# before\n");
  size_t after = text.find("\n# after\n"), error = text.find("\n# error: ");
  size_t split = std::min(after, error);
  if (begin != 0 || split == std::string::npos) return g;
  g.before = text.substr(9, split + 1 - 9);
  size_t line_end = text.find('\n', split + 1);
  g.kind = text.substr(split + 3, line_end - split - 3);
  g.expected = text.substr(line_end + 1);
  return g;
}

std::vector<fs::path> goldens() {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(fs::path(TW_SOURCE_DIR) / "tests/golden/parse"))
    if (entry.path().extension() == ".txt") out.push_back(entry.path());
  std::ranges::sort(out);
  return out;
}

class ParseGolden : public testing::TestWithParam<fs::path> {};

TEST_P(ParseGolden, MatchesExpectation) {
  Golden g = load_golden(GetParam());
  ASSERT_FALSE(g.kind.empty()) << "no expectation in " << g.path;
  auto parsed = parse_program(g.before, "program");
  std::string actual;
  if (parsed) {
    for (const Diagnostic& d : parsed->warnings) actual += "# " + render_text(d);
    actual += print(*parsed->program);
    EXPECT_EQ(g.kind, "after") << "the program was read";
    auto again = parse_program(print(*parsed->program), "printed");
    ASSERT_TRUE(again) << render_text(again.error()[0]);
    EXPECT_TRUE(structural_equal(*parsed->program, *again->program));
    EXPECT_EQ(print(*again->program), print(*parsed->program));
  } else {
    for (const Diagnostic& d : parsed.error()) actual += render_text(d);
    EXPECT_EQ(g.kind, "error: " + parsed.error()[0].code) << actual;
  }
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDEN")) {
    std::ofstream(g.path) << "# before\n"
                          << g.before << "# " << (parsed ? "after" : "error: " + parsed.error()[0].code) << "\n"
                          << actual;
    return;
  }
  EXPECT_EQ(actual, g.expected);
}

INSTANTIATE_TEST_SUITE_P(Files, ParseGolden, testing::ValuesIn(goldens()), [](const auto& test) {
  std::string name = test.param.stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

TEST(ParseExpr, ReadsWhatIsPrinted) {
  Var i = make_var("i"), j = make_var("j", kInt64);
  for (const char* text : {"i",
                           "i + 1",
                           "(i + 1) * 2 - i // 4 % 3",
                           "i * -1",
                           "T.Add(2, 3)",
                           "T.min(i, 4) < 3 and not i == 2",
                           "j + T.int64(7)",
                           "T.Cast(\"float32\", i) * T.float32(0.1)",
                           "T.if_then_else(i < 2, i, 3)",
                           "T.Select(i < 2 or i > 5, 1, 0)",
                           "T.Ramp(i, 1, 4)",
                           "T.Broadcast(T.float16(-0.0), 8)",
                           "T.truncdiv(i, 3)",
                           "T.bitwise_and(i, 3)",
                           "T.shift_left(1, i)",
                           "T.exp(T.float32(\"inf\"))",
                           "T.isnan(T.float32(1))",
                           "(i < 2) == (i < 3)",
                           "i - (i - 1)",
                           "T.Let(x + 1, where={x: i})",
                           "T.uint64(18446744073709551615)",
                           "T.int8(-128)",
                           "T.bool(True) and i < 3",
                           "T.call_extern(\"float32\", \"f\", i, \"x\\n\")",
                           "T.reinterpret(\"uint32\", i)",
                           "T.fma(T.float32(1), T.float32(2), T.float32(3))",
                           "T.ldexp(T.float32(1), 3)"}) {
    auto e = parse_expr(text, {i, j});
    ASSERT_TRUE(e) << text << "\n" << render_text(e.error()[0]);
    EXPECT_EQ(print(*e), text);
  }
}

TEST(ParseExpr, TypesFollowTheOperands) {
  Var i = make_var("i"), j = make_var("j", kInt64), x = make_var("x", kFloat32), h = make_var("h", kBFloat16),
      u = make_var("u", DType{TypeCode::unsigned_integer, 32, 1});
  auto type = [&](const char* text) {
    auto e = parse_expr(text, {i, j, x, h, u});
    return e ? (*e)->dtype.str() : e.error()[0].code;
  };
  EXPECT_EQ(type("1"), "int32");
  EXPECT_EQ(type("3000000000"), "int64");
  EXPECT_EQ(type("0.5"), "float32");
  EXPECT_EQ(type("i + 1"), "int32");
  EXPECT_EQ(type("i + j"), "int64");
  EXPECT_EQ(type("i + u"), "uint32");
  EXPECT_EQ(type("x + 1"), "float32");
  EXPECT_EQ(type("h + 1.5"), "bfloat16");
  EXPECT_EQ(type("h + x"), "float32");
  EXPECT_EQ(type("i * 0.5"), "float32");
  EXPECT_EQ(type("i < 1"), "bool");
  EXPECT_EQ(type("i / 2"), "integer-division-ambiguous");
  EXPECT_EQ(type("x // 2"), "dtype-mismatch");
  EXPECT_EQ(type("i and 1"), "dtype-mismatch");
  EXPECT_EQ(type("T.int8(200)"), "literal-out-of-range");
  EXPECT_EQ(type("2 ** 10 + 7 // 2"), "int32");
  EXPECT_EQ(type("1 / 0"), "literal-out-of-range");
}

constexpr const char* kSymbolic = R"(@T.prim_func
def main(a: T.handle, b: T.handle):
    n = T.int32()
    m = T.int32()
    A = T.match_buffer(a, (n, m * 2), "float32")
    B = T.match_buffer(b, (n, m * 2), "float32")
    for i, j in T.grid(n, m * 2):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
)";

TEST(ParseProgram, ValuesForSymbolicExtents) {
  auto fixed = parse_program(kSymbolic, "f.py", {{"n", 8}, {"m", 3}});
  ASSERT_TRUE(fixed) << render_text(fixed.error()[0]);
  EXPECT_TRUE(fixed->program->main()->symbolic.empty());
  std::string text = print(*fixed->program);
  EXPECT_NE(text.find("T.grid(8, 6)"), std::string::npos) << text;
  auto half = parse_program(kSymbolic, "f.py", {{"m", 3}});
  ASSERT_TRUE(half);
  ASSERT_EQ(half->program->main()->symbolic.size(), 1u);
  EXPECT_EQ(half->program->main()->symbolic[0]->name, "n");
  auto unknown = parse_program(kSymbolic, "f.py", {{"nn", 3}});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error()[0].code, "extent-unknown");
  EXPECT_EQ(unknown.error()[0].help, "did you mean \"n\"?");
}

TEST(ParseExpr, Lambdas) {
  auto map = parse_lambda("lambda i, j: (i // 16, j % 16 + i,)", 2);
  ASSERT_TRUE(map);
  ASSERT_EQ(map->params.size(), 2u);
  ASSERT_EQ(map->results.size(), 2u);
  EXPECT_EQ(print(map->results[1][0]), "j % 16 + i");
  auto ranges = parse_lambda("lambda i: [(i - 1, i + 1)]", 1);
  ASSERT_TRUE(ranges);
  ASSERT_EQ(ranges->results[0].size(), 2u);
  auto starred = parse_lambda("lambda *i: (i[1], i[0], *i)", 2);
  ASSERT_TRUE(starred) << render_text(starred.error()[0]);
  ASSERT_EQ(starred->results.size(), 4u);
  EXPECT_EQ(starred->results[0][0].get(), starred->params[1].get());
  EXPECT_EQ(parse_lambda("lambda i: i", 2).error()[0].code, "wrong-argument-count");
  EXPECT_EQ(parse_lambda("i + 1", 1).error()[0].code, "wrong-argument-type");
  EXPECT_EQ(parse_lambda("lambda i: k", 1).error()[0].code, "undefined-name");
}

}  // namespace
}  // namespace tilewright
