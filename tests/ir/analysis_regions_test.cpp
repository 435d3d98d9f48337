// Regions against the set of touched elements: relax contains it, lower_bound is exactly it.
#include "ir/analysis/regions.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/ir/simplify_util.h"

namespace tilewright {
namespace {

using namespace test;

constexpr uint64_t kSeed = 20261130;

TEST(Regions, RandomAccessesAgainstTouchedElements) {
  int exact = 0;
  for (int program = 0; program < 4000; ++program) {
    Rng rng = Rng::keyed(kSeed, program);
    std::vector<VarRange> loops;
    const char* names[] = {"o", "i", "j"};
    for (int n = 0; n < 3; ++n) loops.push_back(loop(names[n], rng.between(1, 5)));
    std::vector<VarRange> relaxed(loops.begin() + 1, loops.end());
    auto index = [&]() -> Expr {
      Expr e = loops[rng.below(3)].var;
      if (rng.chance(0.5)) e = e * rng.between(1, 5) + Expr(loops[rng.below(3)].var);
      if (rng.chance(0.3)) e = e + rng.between(-2, 4);
      if (rng.chance(0.2))
        e = floor_div(e, rng.between(2, 4));
      else if (rng.chance(0.2))
        e = floor_mod(e, rng.between(2, 4));
      else if (rng.chance(0.1))
        e = min_of(e, int_imm(rng.between(2, 6)));
      return e;
    };
    Buffer buffer = make_buffer("A", kFloat32, {int_imm(64), int_imm(64)});
    BufferRegion region{buffer, {}};
    for (int d = 0; d < 2; ++d) region.region.push_back({index(), int_imm(rng.chance(0.6) ? 1 : rng.between(1, 4))});
    Expr predicate;
    if (rng.chance(0.4)) predicate = less(index(), int_imm(rng.between(1, 12)));
    std::string what = std::to_string(program) + ": [" + text(region.region[0].min) + ", " +
                       text(region.region[1].min) + "] where " + text(predicate);
    Analyzer analyzer;
    analyzer.bind(loops[0].var, loops[0].range);
    BufferRegion above = relax(region, relaxed, predicate, analyzer);
    std::optional<BufferRegion> below = lower_bound(region, relaxed, predicate, analyzer);
    for (int64_t o = 0; o < *const_int(loops[0].range.extent); ++o) {
      Env env{{loops[0].var.get(), o}};
      std::set<std::pair<int64_t, int64_t>> touched;
      for (int64_t i = 0; i < *const_int(loops[1].range.extent); ++i)
        for (int64_t j = 0; j < *const_int(loops[2].range.extent); ++j) {
          env[loops[1].var.get()] = i;
          env[loops[2].var.get()] = j;
          if (predicate && !eval(predicate, env)) continue;
          int64_t x = eval(region.region[0].min, env), y = eval(region.region[1].min, env);
          for (int64_t a = 0; a < *const_int(region.region[0].extent); ++a)
            for (int64_t b = 0; b < *const_int(region.region[1].extent); ++b) touched.insert({x + a, y + b});
        }
      Env outer{{loops[0].var.get(), o}};
      auto inside = [&](const BufferRegion& r, int d, int64_t v) {
        int64_t min = eval(r.region[d].min, outer);
        return min <= v && v < min + eval(r.region[d].extent, outer);
      };
      for (auto [x, y] : touched) {
        ASSERT_TRUE(inside(above, 0, x) && inside(above, 1, y))
            << what << " touches " << x << ", " << y << " for o = " << o << " but is relaxed to "
            << text(above.region[0].min) << " + " << text(above.region[0].extent) << ", " << text(above.region[1].min)
            << " + " << text(above.region[1].extent);
        if (below) {
          ASSERT_TRUE(inside(*below, 0, x) && inside(*below, 1, y)) << what;
        }
      }
      if (below) {
        ++exact;
        int64_t size = std::max<int64_t>(eval(below->region[0].extent, outer), 0) *
                       std::max<int64_t>(eval(below->region[1].extent, outer), 0);
        ASSERT_EQ(size, static_cast<int64_t>(touched.size())) << what << " o = " << o;
      }
    }
  }
  EXPECT_GT(exact, 1000);
}

TEST(Regions, TilesOfALoop) {
  Analyzer analyzer;
  VarRange o = loop("o", 8), i = loop("i", 4);
  Buffer a = make_buffer("A", kFloat32, {int_imm(32)});
  analyzer.bind(o.var, o.range);
  BufferRegion tile = relax(point_region(a, {o.var * 4 + Expr(i.var)}), {i}, nullptr, analyzer);
  EXPECT_EQ(text(tile.region[0].min), "(o * 4)");
  EXPECT_EQ(text(tile.region[0].extent), "4");
  // A window of three around it, and the guard of a split that does not divide.
  BufferRegion halo = relax(BufferRegion{a, {{o.var * 4 + Expr(i.var), int_imm(3)}}}, {i}, nullptr, analyzer);
  EXPECT_EQ(text(halo.region[0].extent), "6");
  BufferRegion guarded =
      relax(point_region(a, {o.var * 4 + Expr(i.var)}), {o, i}, less(o.var * 4 + Expr(i.var), int_imm(30)), analyzer);
  EXPECT_EQ(text(guarded.region[0].extent), "30");
}

TEST(Regions, SetOperations) {
  Analyzer analyzer;
  Var n = make_var("n");
  auto symbolic = analyzer.assume(less(int_imm(8), Expr(n)));
  Buffer a = make_buffer("A", kFloat32, {n});
  auto region = [&](Expr min, Expr extent) { return BufferRegion{a, {{min, extent}}}; };
  BufferRegion low = region(int_imm(0), int_imm(8)), high = region(n - 4, int_imm(4)), all = full_region(a);
  EXPECT_TRUE(region_covers(all, low, analyzer));
  EXPECT_TRUE(region_covers(all, high, analyzer));
  EXPECT_FALSE(region_covers(low, all, analyzer));
  EXPECT_FALSE(region_covers(low, high, analyzer));
  EXPECT_TRUE(regions_disjoint(low, region(int_imm(8), int_imm(2)), analyzer));
  EXPECT_FALSE(regions_disjoint(low, region(int_imm(7), int_imm(2)), analyzer));
  EXPECT_EQ(text(region_union(low, region(int_imm(4), int_imm(10)), analyzer).region[0].extent), "14");
  EXPECT_EQ(text(region_intersection(low, region(int_imm(4), int_imm(10)), analyzer).region[0].extent), "4");
}

TEST(Regions, SignatureOfATiledReduction) {
  // C[i] = 0 first; C[i] += A[i, k] over a k loop of 4 inside: reads A only, the element written is not counted.
  Buffer a = make_buffer("A", kFloat32, {int_imm(16), int_imm(4)}), c = make_buffer("C", kFloat32, {int_imm(16)});
  Var vi = make_var("vi"), k = make_var("k");
  std::vector<Expr> at{vi};
  Stmt init = make_stmt<Store>(c, at, float_imm(0));
  Stmt update = make_loop(k, int_imm(4), make_stmt<Store>(c, at, load(c, at) + load(a, {vi, k})));
  auto block = make_stmt<Block>(std::string("b"),
                                std::vector<Iter>{{vi, {int_imm(0), int_imm(16)}, IterType::spatial, int_imm(0)}},
                                Expr(), std::vector<BufferRegion>{}, std::vector<BufferRegion>{}, std::vector<Buffer>{},
                                std::vector<MatchBuffer>{}, AttrDict{}, init, update);
  Signature s = derive_signature(*block);
  ASSERT_EQ(s.reads.size(), 1u);
  EXPECT_TRUE(s.reads[0].buffer.same_as(a));
  EXPECT_EQ(text(s.reads[0].region[0].min), "vi");
  EXPECT_EQ(text(s.reads[0].region[1].extent), "4");
  ASSERT_EQ(s.writes.size(), 1u);
  EXPECT_EQ(text(s.writes[0].region[0].extent), "1");
  EXPECT_FALSE(s.opaque);
}

TEST(Regions, ConditionsDoNotEnlargeWhatIsRead) {
  // if_then_else(1 <= i < 9, A[i - 1], 0) over i in [0, 10) reads A[0:8].
  Buffer a = make_buffer("A", kFloat32, {int_imm(8)}), b = make_buffer("B", kFloat32, {int_imm(10)});
  Var i = make_var("i");
  Expr inside = and_of(less_equal(int_imm(1), i), less(i, int_imm(9)));
  Stmt body = make_loop(
      i, int_imm(10), make_stmt<Store>(b, std::vector<Expr>{i}, if_then_else(inside, load(a, {i - 1}), float_imm(0))));
  Signature s = derive_signature(body);
  ASSERT_EQ(s.reads.size(), 1u);
  EXPECT_EQ(text(s.reads[0].region[0].min), "0");
  EXPECT_EQ(text(s.reads[0].region[0].extent), "8");
}

TEST(Regions, StorageSpan) {
  EXPECT_TRUE(in_storage_span("global", "blockIdx.x"));
  EXPECT_TRUE(in_storage_span("shared.dyn", "threadIdx.y"));
  EXPECT_FALSE(in_storage_span("shared", "blockIdx.x"));
  EXPECT_FALSE(in_storage_span("local", "threadIdx.x"));
  EXPECT_TRUE(in_storage_span("warp", "threadIdx.x"));
  EXPECT_FALSE(in_storage_span("warp", "threadIdx.y"));
}

}  // namespace
}  // namespace tilewright
