// Patterns of the emitted assembly for AVX2 and AVX-512, whatever this machine is: register tiles stay in registers.
#include <algorithm>
#include <sstream>

#include "tests/codegen/programs.h"

namespace tilewright::test {
namespace {

using enum ForKind;

// C[mr, nr] = A[mr, k] · B[k, nr] with the tile in a private buffer.
FunctionRef microkernel(int64_t mr, int64_t nr, int64_t k) {
  Buffer a = buffer("A", {mr, k}), b = buffer("B", {k, nr}), c = buffer("C", {mr, nr}), acc = buffer("acc", {mr, nr});
  Var i = var("i"), j = var("j"), r = var("k"), i1 = var("i"), j1 = var("j"), i2 = var("i"), j2 = var("j");
  Stmt init = loop(i1, mr, loop(j1, nr, store(acc, {i1, j1}, float_imm(0)), vectorized));
  Stmt update = loop(
      r, k,
      loop(i, mr, loop(j, nr, store(acc, {i, j}, load(acc, {i, j}) + load(a, {i, r}) * load(b, {r, j})), vectorized),
           unrolled));
  Stmt out = loop(i2, mr, loop(j2, nr, store(c, {i2, j2}, load(acc, {i2, j2})), vectorized));
  return function("micro", {a, b, c}, make_stmt<Allocate>(acc, AttrDict(), make_seq({init, update, out})));
}

std::string assembly(const Function& f, const char* target_text) {
  Target t = target(target_text);
  codegen::CodegenOptions options;
  options.keep_assembly = true;
  return take(codegen::compile(take(lowering::lower(f, t)), t, options)).assembly;
}

// The basic block that holds most FMAs and jumps back to its own label.
std::vector<std::string> hot_loop(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> best, current;
  std::string label;
  auto fmas = [](const std::vector<std::string>& b) {
    return std::count_if(b.begin(), b.end(),
                         [](const std::string& l) { return l.find("vfmadd") != std::string::npos; });
  };
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line[0] != '\t' && line.find(':') != std::string::npos) {
      label = line.substr(0, line.find(':'));
      current.clear();
      continue;
    }
    current.push_back(line);
    bool back = line.find("\tj") == 0 && !label.empty() && line.ends_with(label);
    if (back && fmas(current) > fmas(best)) best = current;
  }
  return best;
}

int64_t count(const std::vector<std::string>& lines, std::string_view part) {
  return std::count_if(lines.begin(), lines.end(),
                       [&](const std::string& l) { return l.find(part) != std::string::npos; });
}

struct Case {
  const char* target;
  int64_t mr, nr;
  const char* reg;
  int64_t fmas;
};

class Microkernel : public testing::TestWithParam<Case> {};

TEST_P(Microkernel, AccumulatorsStayInRegisters) {
  const Case& p = GetParam();
  std::string text = assembly(*microkernel(p.mr, p.nr, 64), p.target);
  std::vector<std::string> hot = hot_loop(text);
  EXPECT_EQ(count(hot, "vfmadd"), p.fmas) << text;
  EXPECT_GE(count(hot, p.reg), p.fmas) << text;
  EXPECT_EQ(count(hot, "(%rsp"), 0) << text;
  for (const std::string& l : hot) {
    bool store = l.find("vmov") != std::string::npos && l.ends_with(")");
    EXPECT_FALSE(store) << l;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiles, Microkernel,
    testing::Values(Case{"x86-64-v3:cores=1", 6, 16, "%ymm", 12}, Case{"x86-64-v3:cores=1", 4, 24, "%ymm", 12},
                    Case{"znver3:cores=1", 6, 16, "%ymm", 12}, Case{"x86-64-v4:cores=1", 14, 32, "%zmm", 28},
                    Case{"znver5:cores=1", 14, 32, "%zmm", 28}, Case{"sapphirerapids:cores=1", 8, 48, "%zmm", 24}),
    [](const auto& test_case) {
      std::string name = std::string(test_case.param.target) + "_" + std::to_string(test_case.param.mr) + "x" +
                         std::to_string(test_case.param.nr);
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      return name;
    });

TEST(Assembly, StrictModeFusesNothing) {
  lowering::LowerOptions o = strict();
  Target t = target("x86-64-v3:cores=1");
  codegen::CodegenOptions options;
  options.keep_assembly = true;
  std::string text = take(codegen::compile(take(lowering::lower(*microkernel(6, 16, 64), t, o)), t, options)).assembly;
  EXPECT_EQ(text.find("vfmadd"), std::string::npos);
  EXPECT_NE(text.find("vmulps"), std::string::npos);
}

TEST(Assembly, MaskedTailUsesMasks) {
  Buffer a = buffer("A", {29}), y = buffer("Y", {29});
  Var i = var("i"), j = var("j");
  Expr at = Expr(i) * 16 + Expr(j);
  Stmt body = make_stmt<If>(less(at, int_imm(29)), store(y, {at}, load(a, {at}) * float_imm(2)), Stmt());
  FunctionRef f = function("tail", {a, y}, loop(i, 2, loop(j, 16, body, vectorized)));
  EXPECT_NE(assembly(*f, "x86-64-v3:cores=1").find("vmaskmovps"), std::string::npos);
  EXPECT_NE(assembly(*f, "x86-64-v4:cores=1").find("{%k"), std::string::npos);
}

TEST(Assembly, SoftmaxExponentialIsVectorCode) {
  Buffer a = buffer("A", {256}), y = buffer("Y", {256});
  Var i = var("i");
  FunctionRef f = function("expo", {a, y}, loop(i, 256, store(y, {i}, call("exp", {load(a, {i})})), vectorized));
  std::string text = assembly(*f, "x86-64-v3:cores=1");
  EXPECT_EQ(text.find("expf"), std::string::npos);
  EXPECT_NE(text.find("vfmadd"), std::string::npos);
  EXPECT_NE(text.find("%ymm"), std::string::npos);
}

TEST(Assembly, PrefetchesAndNontemporalStores) {
  Buffer a = buffer("A", {64, 16}), y = buffer("Y", {64, 16});
  Var i = var("i"), j = var("j");
  AttrDict notes{{"prefetch", AttrList{AttrList{"A", 4, 3}}}};
  Stmt copy = loop(i, 64, loop(j, 16, store(y, {i, j}, load(a, {i, j})), vectorized), serial, notes);
  std::string text =
      assembly(*function("copy", {a, y}, make_stmt<AttrStmt>(Expr(), std::string("nontemporal"), int_imm(1), copy)),
               "x86-64-v3:cores=1");
  EXPECT_NE(text.find("prefetcht0"), std::string::npos);
  EXPECT_NE(text.find("vmovntps"), std::string::npos);
  EXPECT_NE(text.find("sfence"), std::string::npos);
}

}  // namespace
}  // namespace tilewright::test
