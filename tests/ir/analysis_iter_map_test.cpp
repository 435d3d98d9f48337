// Iteration maps against brute force over small domains: what is called surjective or bijective is, inverses invert,
// divided spaces recombine.
#include "ir/analysis/iter_map.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/rewrite.h"
#include "tests/ir/simplify_util.h"

namespace tilewright {
namespace {

using namespace test;

constexpr uint64_t kSeed = 20261130;

/// Calls f for each point of the domains at which the predicate holds.
template <class F>
void for_points(const std::vector<VarRange>& domains, const Expr& predicate, F&& f) {
  Env env;
  std::function<void(size_t)> go = [&](size_t i) {
    if (i == domains.size()) {
      if (!predicate || eval(predicate, env)) f(env);
      return;
    }
    int64_t min = *const_int(domains[i].range.min), extent = *const_int(domains[i].range.extent);
    for (int64_t v = min; v < min + extent; ++v) {
      env[domains[i].var.get()] = v;
      go(i + 1);
    }
  };
  go(0);
}

std::vector<int64_t> values(const std::vector<Expr>& exprs, const Env& env) {
  std::vector<int64_t> out;
  for (const Expr& e : exprs) out.push_back(eval(e, env));
  return out;
}

/// Points reached, and whether the box of the map's extents is reached exactly (and once each).
void check_against_brute_force(const IterMap& map, const std::vector<Expr>& indices,
                               const std::vector<VarRange>& domains, const Expr& predicate, bool bijective,
                               const std::string& what) {
  std::set<std::vector<int64_t>> reached;
  int64_t points = 0, box = 1;
  for_points(domains, predicate, [&](const Env& env) {
    ++points;
    std::vector<int64_t> v = values(indices, env);
    for (size_t i = 0; i < v.size(); ++i) {
      int64_t base = *const_int(map.indices[i].base), extent = *const_int(map.extents[i]);
      ASSERT_TRUE(base <= v[i] && v[i] < base + extent) << what;
      ASSERT_EQ(v[i], eval(to_expr(map.indices[i]), env)) << what << " as " << text(to_expr(map.indices[i]));
    }
    reached.insert(std::move(v));
  });
  for (const Expr& e : map.extents) box *= *const_int(e);
  ASSERT_EQ(static_cast<int64_t>(reached.size()), box) << what;
  if (bijective) {
    ASSERT_EQ(points, box) << what;
  }
}

TEST(IterMap, AgreesWithBruteForceOnRandomMaps) {
  int accepted = 0;
  for (int program = 0; program < 4000; ++program) {
    Rng rng = Rng::keyed(kSeed, program);
    std::vector<VarRange> domains;
    const char* names[] = {"i", "j", "k"};
    for (int n = 0; n < 3; ++n) domains.push_back(loop(names[n], rng.between(1, 6)));
    auto extent = [&](int n) { return *const_int(domains[n].range.extent); };
    auto piece = [&]() -> Expr {
      int a = static_cast<int>(rng.below(3)), b = static_cast<int>(rng.below(3));
      Expr e = domains[a].var;
      if (rng.chance(0.6) && a != b) e = e * (rng.chance(0.8) ? extent(b) : rng.between(1, 6)) + Expr(domains[b].var);
      if (rng.chance(0.2)) e = e + rng.between(0, 4);
      int64_t c = rng.between(2, 6);
      if (rng.chance(0.3))
        e = floor_div(e, c);
      else if (rng.chance(0.3))
        e = floor_mod(e, c);
      return e;
    };
    std::vector<Expr> indices;
    for (int64_t n = rng.between(1, 3); n > 0; --n) indices.push_back(piece());
    Expr predicate;
    if (rng.chance(0.5)) predicate = less(piece(), int_imm(rng.between(2, 20)));
    if (rng.chance(0.1)) predicate = and_of(predicate, binary(BinaryOp::ge, piece(), int_imm(rng.between(0, 3))));
    std::string what = std::to_string(program) + ": ";
    for (const Expr& e : indices) what += text(e) + "; ";
    what += predicate ? "where " + text(predicate) : "";
    for (const VarRange& d : domains) what += " " + std::to_string(*const_int(d.range.extent));
    Analyzer analyzer;
    for (IterMapCheck check : {IterMapCheck::surjective, IterMapCheck::bijective}) {
      IterMap map = detect_iter_map(indices, domains, predicate, check, analyzer);
      if (!map) continue;
      ++accepted;
      check_against_brute_force(map, indices, domains, predicate, check == IterMapCheck::bijective, what);
      if (HasFatalFailure()) return;
      if (check != IterMapCheck::bijective) continue;
      std::vector<Expr> outputs;
      std::vector<Var> y;
      for (size_t i = 0; i < indices.size(); ++i) y.push_back(make_var("y"));
      auto inverse = inverse_map(map, domains, {y.begin(), y.end()}, analyzer);
      ASSERT_TRUE(inverse) << what;
      for_points(domains, predicate, [&](const Env& env) {
        Env out;
        for (size_t i = 0; i < indices.size(); ++i) out[y[i].get()] = eval(indices[i], env);
        for (size_t i = 0; i < domains.size(); ++i)
          ASSERT_EQ(eval((*inverse)[i], out), env.at(domains[i].var.get()))
              << what << " inverse " << text((*inverse)[i]);
      });
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(accepted, 800);
}

TEST(IterMap, SplitAndFusedLoopsAreAccepted) {
  // Two non-divisible splits of 30, then 8 into 3 x 3.
  VarRange i0 = loop("i0", 4), i10 = loop("i10", 3), i11 = loop("i11", 3), f = loop("f", 24);
  Expr inner = i10.var * 3 + Expr(i11.var), whole = i0.var * 8 + inner;
  Expr predicate = and_of(less(inner, int_imm(8)), less(whole, int_imm(30)));
  Analyzer analyzer;
  std::vector<VarRange> domains{i0, i10, i11, f};
  IterMap map = detect_iter_map({whole, floor_div(Expr(f.var), 6), floor_mod(Expr(f.var), 6)}, domains, predicate,
                                IterMapCheck::bijective, analyzer);
  ASSERT_TRUE(map) << map.failure;
  EXPECT_TRUE(is_const(map.extents[0], 30));
  EXPECT_TRUE(is_const(map.extents[1], 4));
  check_against_brute_force(map, {whole, floor_div(Expr(f.var), 6), floor_mod(Expr(f.var), 6)}, domains, predicate,
                            true, "splits");
}

TEST(IterMap, SymbolicExtents) {
  Var n = make_var("n");
  VarRange i{make_var("i"), {int_imm(0), n}}, j = loop("j", 4);
  Analyzer analyzer;
  auto positive = analyzer.assume(less(int_imm(0), Expr(n)));
  IterMap map = detect_iter_map({i.var * 4 + Expr(j.var)}, {i, j}, nullptr, IterMapCheck::bijective, analyzer);
  ASSERT_TRUE(map) << map.failure;
  EXPECT_TRUE(analyzer.can_prove_equal(map.extents[0], Expr(n) * 4));
  // ceil(n / 4) x 4 under a guard
  VarRange o{make_var("o"), {int_imm(0), floor_div(n + 3, 4)}};
  IterMap guarded = detect_iter_map({o.var * 4 + Expr(j.var)}, {o, j}, less(o.var * 4 + Expr(j.var), n),
                                    IterMapCheck::bijective, analyzer);
  ASSERT_TRUE(guarded) << guarded.failure;
  EXPECT_TRUE(analyzer.can_prove_equal(guarded.extents[0], n));
}

TEST(IterMap, Refusals) {
  VarRange i = loop("i", 8), j = loop("j", 4);
  Analyzer analyzer;
  auto fails = [&](std::vector<Expr> e, Expr predicate = nullptr) {
    return !detect_iter_map(e, {i, j}, predicate, IterMapCheck::surjective, analyzer);
  };
  EXPECT_TRUE(fails({i.var, i.var}));             // one loop twice
  EXPECT_TRUE(fails({i.var * 2}));                // gaps
  EXPECT_TRUE(fails({i.var * 3 + Expr(j.var)}));  // overlap
  EXPECT_TRUE(fails({i.var * Expr(j.var)}));
  EXPECT_TRUE(fails({i.var, j.var}, less(Expr(i.var), Expr(j.var))));
  EXPECT_TRUE(fails({i.var, j.var}, less(i.var * 4 + Expr(j.var), int_imm(30))));
  EXPECT_TRUE(fails({i.var}, less(make_var("x"), int_imm(3))));  // may be false
  EXPECT_FALSE(fails({i.var}));
  EXPECT_TRUE(!detect_iter_map({i.var}, {i, j}, nullptr, IterMapCheck::bijective, analyzer));
}

TEST(IterMap, SubspacesRecombine) {
  int divided = 0;
  for (int program = 0; program < 2000; ++program) {
    Rng rng = Rng::keyed(kSeed, 5, program);
    std::vector<VarRange> domains;
    for (int n = 0; n < 4; ++n) domains.push_back(loop("i", rng.between(1, 4)));
    auto extent = [&](int n) { return *const_int(domains[n].range.extent); };
    Expr a = domains[0].var * extent(1) + Expr(domains[1].var), b = domains[2].var * extent(3) + Expr(domains[3].var);
    std::vector<Expr> indices{a, b};
    if (rng.chance(0.3)) indices = {a * (extent(2) * extent(3)) + b};
    if (rng.chance(0.3)) {
      Expr fused = a * (extent(2) * extent(3)) + b;
      indices = {floor_div(fused, extent(3)), floor_mod(fused, extent(3))};
    }
    std::vector<Var> inner;
    for (const VarRange& d : domains)
      if (rng.chance(0.5)) inner.push_back(d.var);
    Analyzer analyzer;
    auto division = divide_subspace(indices, domains, inner, nullptr, analyzer);
    if (!division) continue;
    ++divided;
    auto is_inner = [&](const VarNode* v) {
      return std::any_of(inner.begin(), inner.end(), [&](const Var& x) { return x.get() == v; });
    };
    for (size_t i = 0; i < indices.size(); ++i) {
      const SubspacePart& p = division->parts[i];
      for (const Var& v : vars_of(p.outer)) ASSERT_FALSE(is_inner(v.get())) << text(p.outer);
      for (const Var& v : vars_of(p.inner)) ASSERT_TRUE(is_inner(v.get())) << text(p.inner);
      for_points(domains, nullptr, [&](const Env& env) {
        int64_t in = eval(p.inner, env), out = eval(p.outer, env);
        ASSERT_EQ(out * *const_int(p.inner_extent) + in, eval(indices[i], env)) << program << " " << text(indices[i]);
        ASSERT_TRUE(0 <= in && in < *const_int(p.inner_extent)) << program;
        ASSERT_TRUE(0 <= out && out < *const_int(p.outer_extent)) << program;
      });
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(divided, 300);
}

}  // namespace
}  // namespace tilewright
