// Times of what schedule primitives ask for: simplification of index expressions, proofs, iteration maps, block flags.
#include <benchmark/benchmark.h>

#include "ir/analysis/dependences.h"

namespace tilewright {
namespace {

VarRange loop(const char* name, int64_t extent) { return {make_var(name), {int_imm(0), int_imm(extent)}}; }

struct Loops {
  VarRange i0 = loop("i0", 8), i1 = loop("i1", 4), i2 = loop("i2", 16), f = loop("f", 512);
  Expr index = i0.var * 64 + (i1.var * 16 + Expr(i2.var));
  Analyzer analyzer;
  Loops() { analyzer.bind({i0, i1, i2, f}); }
};

void construct_and_bind(benchmark::State& state) {
  Loops l;
  for (auto _ : state) {
    Analyzer a;
    a.bind(l.i0.var, l.i0.range);
    a.bind(l.i1.var, l.i1.range);
    a.bind(l.i2.var, l.i2.range);
    benchmark::DoNotOptimize(&a);
  }
}
BENCHMARK(construct_and_bind);

void simplify_expr(benchmark::State& state, Expr (*make_expr)(const Loops&)) {
  Loops l;
  Expr e = make_expr(l);
  for (auto _ : state) benchmark::DoNotOptimize(l.analyzer.simplify(e));
}
BENCHMARK_CAPTURE(simplify_expr, sum_of_three, [](const Loops& l) { return l.index; });
BENCHMARK_CAPTURE(simplify_expr, quotient_of_split, [](const Loops& l) { return floor_div(l.index, 64); });
BENCHMARK_CAPTURE(simplify_expr, middle_digit, [](const Loops& l) { return floor_mod(floor_div(l.index, 16), 4); });
BENCHMARK_CAPTURE(simplify_expr, fused_back, [](const Loops& l) {
  Expr f = l.f.var;
  return floor_div(f, 64) * 64 + floor_mod(floor_div(f, 16), 4) * 16 + floor_mod(f, 16);
});
BENCHMARK_CAPTURE(simplify_expr, guard_that_holds, [](const Loops& l) { return less(l.index, int_imm(512)); });
BENCHMARK_CAPTURE(simplify_expr, guard_that_stays, [](const Loops& l) { return less(l.index, int_imm(500)); });

void prove_under_guard(benchmark::State& state) {
  Loops l;
  Var n = make_var("n");
  Expr guard = less(l.index, n), goal = less(l.i0.var * 64, n);
  auto scope = l.analyzer.assume(guard);
  for (auto _ : state) benchmark::DoNotOptimize(l.analyzer.can_prove(goal));
}
BENCHMARK(prove_under_guard);

// A matrix product tiled as the search does, with its consumer under the outer tile.
struct Gemm {
  Stmt root;
  Gemm() {
    Buffer a = make_buffer("A", kFloat32, {int_imm(512), int_imm(512)}),
           b = make_buffer("B", kFloat32, {int_imm(512), int_imm(512)});
    Buffer c = make_buffer("C", kFloat32, {int_imm(512), int_imm(512)}),
           d = make_buffer("D", kFloat32, {int_imm(512), int_imm(512)});
    Var i[4], j[4], k[2];
    for (Var& v : i) v = make_var("i");
    for (Var& v : j) v = make_var("j");
    for (Var& v : k) v = make_var("k");
    Var vi = make_var("vi"), vj = make_var("vj"), vk = make_var("vk"), p = make_var("p"), q = make_var("q"),
        wi = make_var("wi"), wj = make_var("wj");
    auto digits = [](Var* v, int n) {
      Expr e = v[0];
      for (int x = 1; x < n; ++x) e = e * 4 + Expr(v[x]);
      return e;
    };
    auto iter = [](const Var& v, IterType type, Expr binding) {
      return Iter{v, {int_imm(0), int_imm(512)}, type, std::move(binding)};
    };
    std::vector<Expr> at{vi, vj}, out{wi, wj};
    Stmt body = make_stmt<Store>(c, at, load(c, at) + load(a, {vi, vk}) * load(b, {vk, vj}));
    Stmt gemm = make_stmt<Block>(
        std::string("gemm"),
        std::vector<Iter>{iter(vi, IterType::spatial, digits(i, 4)), iter(vj, IterType::spatial, digits(j, 4)),
                          iter(vk, IterType::reduction, digits(k, 2))},
        Expr(), std::vector<BufferRegion>{point_region(a, {vi, vk}), point_region(b, {vk, vj})},
        std::vector<BufferRegion>{point_region(c, at)}, std::vector<Buffer>{}, std::vector<MatchBuffer>{}, AttrDict{},
        make_stmt<Store>(c, at, float_imm(0)), body);
    auto nest = [](Stmt s, std::vector<std::pair<Var, int64_t>> loops) {
      for (size_t n = loops.size(); n-- > 0;) s = make_loop(loops[n].first, int_imm(loops[n].second), s);
      return s;
    };
    gemm = nest(gemm, {{i[1], 4}, {j[1], 4}, {k[0], 128}, {i[2], 4}, {j[2], 4}, {k[1], 4}, {i[3], 4}, {j[3], 4}});
    Stmt copy = make_stmt<Block>(
        std::string("copy"),
        std::vector<Iter>{iter(wi, IterType::spatial, i[0] * 64 + Expr(p)),
                          iter(wj, IterType::spatial, j[0] * 64 + Expr(q))},
        Expr(), std::vector<BufferRegion>{point_region(c, out)}, std::vector<BufferRegion>{point_region(d, out)},
        std::vector<Buffer>{}, std::vector<MatchBuffer>{}, AttrDict{}, Stmt(), make_stmt<Store>(d, out, load(c, out)));
    copy = nest(copy, {{p, 64}, {q, 64}});
    Stmt tiles = nest(make_seq({gemm, copy}), {{i[0], 8}, {j[0], 8}});
    root = make_stmt<Block>(std::string("root"), std::vector<Iter>{}, Expr(), std::vector<BufferRegion>{},
                            std::vector<BufferRegion>{}, std::vector<Buffer>{c}, std::vector<MatchBuffer>{}, AttrDict{},
                            Stmt(), tiles);
  }
};

void tree_index(benchmark::State& state) {
  Gemm g;
  for (auto _ : state) benchmark::DoNotOptimize(TreeIndex(g.root).size());
}
BENCHMARK(tree_index);

void affine_binding(benchmark::State& state) {
  Gemm g;
  TreeIndex tree(g.root);
  Place block = tree.blocks_named("gemm")[0];
  std::vector<const For*> loops = tree.loop_nodes_above(block);
  Analyzer a;
  for (auto _ : state) benchmark::DoNotOptimize(is_affine_binding(*tree.block(block), loops, a));
}
BENCHMARK(affine_binding);

void scope_without_flags(benchmark::State& state) {
  Gemm g;
  TreeIndex tree(g.root);
  for (auto _ : state) benchmark::DoNotOptimize(BlockScope(tree, 0).children().size());
}
BENCHMARK(scope_without_flags);

void stage_pipeline_cold(benchmark::State& state) {
  Gemm g;
  TreeIndex tree(g.root);
  for (auto _ : state) benchmark::DoNotOptimize(BlockScope(tree, 0).stage_pipeline());
}
BENCHMARK(stage_pipeline_cold);

void stage_pipeline_cached(benchmark::State& state) {
  Gemm g;
  TreeIndex tree(g.root);
  AnalysisCache cache;
  for (auto _ : state) benchmark::DoNotOptimize(BlockScope(tree, 0, &cache).stage_pipeline());
}
BENCHMARK(stage_pipeline_cached);

void simplify_function(benchmark::State& state) {
  Gemm g;
  for (auto _ : state) benchmark::DoNotOptimize(simplify(g.root));
}
BENCHMARK(simplify_function);

}  // namespace
}  // namespace tilewright
