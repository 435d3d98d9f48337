// The simplifier against evaluation: values are kept, the normal form is a fixed point, bounds and congruences hold.
#include <gtest/gtest.h>

#include "tests/ir/simplify_util.h"

namespace tilewright {
namespace {

using namespace test;

constexpr uint64_t kSeed = 20261130;

std::vector<VarRange> random_vars(Rng& rng) {
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 32};
  std::vector<VarRange> vars;
  const char* names[] = {"i", "j", "k", "l"};
  for (int n = 0; n < 4; ++n)
    vars.push_back(loop(names[n], kExtents[rng.below(10)], rng.chance(0.2) ? rng.between(-5, 5) : 0));
  return vars;
}

TEST(SimplifyProperty, ValuesAreKeptAndTheNormalFormIsAFixedPoint) {
  int64_t cases = 0;
  for (int program = 0; program < 12000; ++program) {
    Rng rng = Rng::keyed(kSeed, program);
    std::vector<VarRange> vars = random_vars(rng);
    RandomExpr random(rng, vars);
    Expr e = rng.chance(0.7) ? random.integer(1 + static_cast<int>(rng.below(4)))
                             : random.boolean(1 + static_cast<int>(rng.below(3)));
    Analyzer analyzer;
    analyzer.bind(vars);
    Expr s = analyzer.simplify(e);
    Expr again = analyzer.simplify(s);
    ASSERT_EQ(again->hash, s->hash) << "program " << program << "\n  " << text(e) << "\n  " << text(s) << "\n  "
                                    << text(again);
    Interval bounds = analyzer.const_bounds(e);
    ModularSet m = analyzer.modular(e);
    for (int n = 0; n < 10; ++n, ++cases) {
      Env env = random.assignment();
      int64_t before = eval(e, env);
      ASSERT_EQ(before, eval(s, env)) << "program " << program << "\n  " << text(e) << "\n  " << text(s);
      ASSERT_TRUE(bounds.contains(before))
          << "program " << program << " " << text(e) << " in [" << bounds.min << ", " << bounds.max << "]";
      if (e->dtype == kInt32) {
        int64_t residue = m.coefficient == 0 ? before : floor_mod(before, m.coefficient);
        ASSERT_EQ(residue, m.base) << "program " << program << " " << text(e) << " mod " << m.coefficient;
      }
    }
  }
  EXPECT_GE(cases, 100000);
}

TEST(SimplifyProperty, FactsAreUsedSoundly) {
  int64_t hits = 0;
  for (int program = 0; program < 4000; ++program) {
    Rng rng = Rng::keyed(kSeed, 77, program);
    std::vector<VarRange> vars = random_vars(rng);
    RandomExpr random(rng, vars);
    Expr fact = random.boolean(1 + static_cast<int>(rng.below(2)));
    if (rng.chance(0.5)) fact = and_of(fact, random.boolean(1));
    Expr e = rng.chance(0.4) ? random.integer(3) : random.boolean(2);
    Analyzer analyzer;
    analyzer.bind(vars);
    Expr outside = analyzer.simplify(e), inside;
    Interval bounds;
    {
      auto scope = analyzer.assume(fact);
      inside = analyzer.simplify(e);
      bounds = analyzer.const_bounds(e);
      Expr again = analyzer.simplify(inside);
      for (int n = 0; n < 10; ++n) {
        Env env = random.assignment();
        if (!eval(fact, env)) continue;
        ++hits;
        ASSERT_EQ(eval(e, env), eval(inside, env))
            << program << "\n  under " << text(fact) << "\n  " << text(e) << "\n  " << text(inside);
        ASSERT_EQ(eval(e, env), eval(again, env)) << program;
        ASSERT_TRUE(bounds.contains(eval(e, env))) << program << " under " << text(fact) << " " << text(e);
      }
    }
    ASSERT_EQ(analyzer.simplify(e)->hash, outside->hash) << "facts must end with their scope";
  }
  EXPECT_GT(hits, 10000);
}

TEST(SimplifyProperty, SplitsAndFusionsOfALoopNormaliseBack) {
  for (int program = 0; program < 3000; ++program) {
    Rng rng = Rng::keyed(kSeed, 99, program);
    // A loop split two to four ways, its digits fused again and taken apart again.
    std::vector<VarRange> vars;
    Expr index = int_imm(0);
    int64_t extent = 1;
    int parts = 2 + static_cast<int>(rng.below(3));
    for (int n = 0; n < parts; ++n) {
      int64_t e = rng.between(2, 6);
      vars.push_back(loop("i", e));
      index = index * e + Expr(vars.back().var);
      extent *= e;
    }
    Analyzer analyzer;
    analyzer.bind(vars);
    Expr back = index;
    for (int step = 0; step < 3; ++step) {
      int64_t d = *const_int(vars[rng.below(vars.size())].range.extent);
      back = rng.chance(0.5) ? floor_div(back, d) * d + floor_mod(back, d)
                             : floor_div(floor_div(back, d), 2) * (2 * d) + floor_mod(floor_div(back, d), 2) * d +
                                   floor_mod(back, d);
    }
    ASSERT_EQ(analyzer.simplify(back)->hash, analyzer.simplify(index)->hash)
        << program << " " << text(analyzer.simplify(back));
    // Each digit of the index is one loop again.
    int64_t lower = 1;
    for (size_t n = vars.size(); n-- > 0;) {
      int64_t e = *const_int(vars[n].range.extent);
      Expr digit = analyzer.simplify(floor_mod(floor_div(index, lower), e));
      ASSERT_EQ(digit->hash, vars[n].var->hash) << program << " " << text(digit);
      lower *= e;
    }
    EXPECT_TRUE(analyzer.can_prove(less(index, int_imm(extent))));
    EXPECT_FALSE(analyzer.can_prove(less(index, int_imm(extent - 1))));
  }
}

}  // namespace
}  // namespace tilewright
