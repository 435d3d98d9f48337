// Tree index, dependences between blocks, block properties, reducers: on a matrix product with an element-wise
// consumer.
#include "ir/analysis/dependences.h"

#include <gtest/gtest.h>

#include "ir/analysis/reducers.h"
#include "ir/rewrite.h"
#include "tests/ir/simplify_util.h"

namespace tilewright {
namespace {

using namespace test;

Stmt block(std::string name, std::vector<Iter> iters, std::vector<BufferRegion> reads, std::vector<BufferRegion> writes,
           Stmt body, Stmt init = nullptr, Expr predicate = nullptr, std::vector<Buffer> allocs = {},
           std::vector<MatchBuffer> matches = {}) {
  return make_stmt<Block>(std::move(name), std::move(iters), predicate, std::move(reads), std::move(writes),
                          std::move(allocs), std::move(matches), AttrDict{}, init, body);
}
Iter spatial(const Var& v, int64_t extent, Expr binding) {
  return {v, {int_imm(0), int_imm(extent)}, IterType::spatial, std::move(binding)};
}
Iter reduction(const Var& v, int64_t extent, Expr binding) {
  return {v, {int_imm(0), int_imm(extent)}, IterType::reduction, std::move(binding)};
}
Stmt store(const Buffer& b, std::vector<Expr> at, Expr value) {
  return make_stmt<Store>(b, std::move(at), std::move(value));
}

struct Gemm : testing::Test {
  static constexpr int64_t N = 8;
  Buffer a = make_buffer("A", kFloat32, {int_imm(N), int_imm(N)}),
         b = make_buffer("B", kFloat32, {int_imm(N), int_imm(N)});
  Buffer c = make_buffer("C", kFloat32, {int_imm(N), int_imm(N)}),
         d = make_buffer("D", kFloat32, {int_imm(N), int_imm(N)});
  Var i = make_var("i"), j = make_var("j"), k = make_var("k"), vi = make_var("vi"), vj = make_var("vj"),
      vk = make_var("vk");
  Var p = make_var("p"), q = make_var("q"), wi = make_var("wi"), wj = make_var("wj");

  Stmt gemm(IterType k_type = IterType::reduction, bool with_init = true) {
    std::vector<Expr> at{vi, vj};
    Iter ik = reduction(vk, N, k);
    ik.type = k_type;
    Stmt body = store(c, at, load(c, at) + load(a, {vi, vk}) * load(b, {vk, vj}));
    Stmt inner = block("gemm", {spatial(vi, N, i), spatial(vj, N, j), ik},
                       {point_region(a, {vi, vk}), point_region(b, {vk, vj})}, {point_region(c, at)}, body,
                       with_init ? store(c, at, float_imm(0)) : Stmt());
    return make_loop(i, int_imm(N), make_loop(j, int_imm(N), make_loop(k, int_imm(N), inner)));
  }
  Stmt relu(int64_t extent = N, Expr shift = int_imm(0)) {
    std::vector<Expr> at{wi, wj};
    Expr from = wi + shift;
    Stmt body = store(d, at, binary(BinaryOp::max, load(c, {from, wj}), float_imm(0)));
    Stmt inner = block("relu", {spatial(wi, extent, p), spatial(wj, N, q)}, {point_region(c, {from, wj})},
                       {point_region(d, at)}, body);
    return make_loop(p, int_imm(extent), make_loop(q, int_imm(N), inner));
  }
  Stmt root(std::vector<Stmt> items) {
    return block("root", {}, {}, {}, make_seq(std::move(items)), nullptr, nullptr, {c});
  }
};

TEST_F(Gemm, TreeIndexFindsThings) {
  Stmt r = root({gemm(), relu()});
  TreeIndex tree(r);
  ASSERT_EQ(tree.blocks().size(), 3u);
  ASSERT_EQ(tree.loops().size(), 5u);
  Place g = tree.blocks_named("gemm").at(0), e = tree.blocks_named("relu").at(0);
  EXPECT_EQ(tree.find(tree.block(g)->id), g);
  EXPECT_EQ(tree.find(BlockId{~0ull}), kNoPlace);
  std::vector<Place> loops = tree.loops_above(g);
  ASSERT_EQ(loops.size(), 3u);
  EXPECT_EQ(tree.loop(loops[0])->var->name, "i");
  EXPECT_EQ(tree.find(tree.loop(loops[1])->id), loops[1]);
  EXPECT_EQ(tree.child_blocks(0), (std::vector<Place>{g, e}));
  EXPECT_EQ(tree.child_blocks(loops[0]), (std::vector<Place>{g}));
  EXPECT_EQ(tree.enclosing_block(g), 0);
  EXPECT_EQ(tree.enclosing_block(0), kNoPlace);
  EXPECT_TRUE(tree.before(g, e));
  EXPECT_FALSE(tree.before(e, g));
  EXPECT_TRUE(tree.contains(loops[0], g));
  EXPECT_FALSE(tree.contains(loops[0], e));
  EXPECT_EQ(tree.stmt(tree.common_ancestor(g, e))->kind, StmtKind::kSeq);
  EXPECT_TRUE(tree.is_only_descendant(loops[0], g));
  EXPECT_FALSE(tree.is_only_descendant(0, g));
  EXPECT_EQ(tree.loops_between(loops[0], g).size(), 2u);
  EXPECT_EQ(tree.loops_between(loops[0], g, true).size(), 3u);
}

TEST_F(Gemm, ProducerAndConsumer) {
  TreeIndex tree(root({gemm(), relu()}));
  AnalysisCache cache;
  BlockScope scope(tree, 0, &cache);
  Place g = scope.children()[0], e = scope.children()[1];
  ASSERT_EQ(scope.dependences().size(), 1u);
  EXPECT_EQ(scope.dependences()[0].kind, DependenceKind::raw);
  EXPECT_EQ(scope.producers(e), (std::vector<Place>{g}));
  EXPECT_EQ(scope.consumers(g), (std::vector<Place>{e}));
  EXPECT_TRUE(scope.affine_binding(g));
  EXPECT_TRUE(scope.region_cover(e));
  EXPECT_TRUE(scope.stage_pipeline());
  EXPECT_FALSE(scope.check_reduction(g));
  EXPECT_FALSE(scope.check_complete(e));
  EXPECT_EQ(scope.check_complete(g)->code, &codes::iter_not_spatial);
  EXPECT_EQ(scope.check_reduction(e)->code, &codes::block_has_no_init);
  EXPECT_FALSE(scope.check_either(g));
  EXPECT_FALSE(scope.check_compact(tree.loops_above(g)[0]));
  EXPECT_FALSE(scope.is_output(g));
  EXPECT_TRUE(scope.is_output(e));
  EXPECT_EQ(scope.output_blocks(), (std::vector<Place>{e}));
  // A second scope over the same content reads the flags that the first one left.
  EXPECT_EQ(cache.scopes.size(), 1u);
  EXPECT_EQ(cache.scopes.begin()->second.covered[1], 1);
  EXPECT_TRUE(BlockScope(tree, 0, &cache).stage_pipeline());
}

TEST_F(Gemm, UncoveredReaderBreaksThePipeline) {
  // relu of rows 1 … 8: row 8 is outside, but the clipped reads are covered; half a producer is not.
  Stmt half = gemm();
  const For* outer = as<For>(half);
  auto cut = edit(*outer);
  cut->extent = int_imm(N / 2);
  TreeIndex tree(root({Stmt(finish(std::move(cut))), relu()}));
  BlockScope scope(tree, 0);
  EXPECT_FALSE(scope.region_cover(scope.children()[1]));
  auto v = scope.check_stage_pipeline();
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, &codes::scope_not_a_stage_pipeline);
  EXPECT_EQ(v->block, scope.children()[1]);
  EXPECT_EQ(v->other, scope.children()[0]);
  EXPECT_NE(describe(*v, tree).find("relu"), std::string::npos);
}

TEST_F(Gemm, ConsumerBeforeItsWriterIsWar) {
  TreeIndex tree(root({relu(), gemm()}));
  BlockScope scope(tree, 0);
  ASSERT_EQ(scope.dependences().size(), 1u);
  EXPECT_EQ(scope.dependences()[0].kind, DependenceKind::war);
  EXPECT_FALSE(scope.stage_pipeline());
  EXPECT_TRUE(scope.producers(scope.children()[1]).empty());
}

TEST_F(Gemm, SoleWriterAndOtherViolations) {
  Stmt first = gemm();
  TreeIndex twice(root({first, refresh(first)}));
  BlockScope scope(twice, 0);
  EXPECT_EQ(scope.check_reduction(scope.children()[0])->code, &codes::block_not_sole_writer);
  EXPECT_EQ(scope.check_reduction(scope.children()[0])->other, scope.children()[1]);
  // within the first nest alone it is the sole writer
  EXPECT_FALSE(scope.check_reduction(scope.children()[0], twice.loops_above(scope.children()[0])[0]));
  EXPECT_EQ(scope.check_either(scope.children()[0])->code, &codes::block_neither_complete_nor_reduction);
  EXPECT_EQ(scope.check_either(scope.children()[0])->inner.size(), 2u);

  TreeIndex scan(root({gemm(IterType::scan)}));
  BlockScope scan_scope(scan, 0);
  EXPECT_EQ(scan_scope.check_reduction(scan_scope.children()[0])->code, &codes::iter_not_spatial_or_reduction);
  TreeIndex no_init(root({gemm(IterType::reduction, false)}));
  BlockScope no_init_scope(no_init, 0);
  EXPECT_EQ(no_init_scope.check_reduction(no_init_scope.children()[0])->code, &codes::block_has_no_init);
  EXPECT_EQ(no_init_scope.check_compact(no_init.loops()[0])->code, &codes::dataflow_not_compact);
}

TEST_F(Gemm, PiecesOfAPartitionedProducerCoverTogether) {
  auto piece = [&](int64_t from, int64_t extent) {
    Var x = make_var("x"), y = make_var("y"), u = make_var("u"), v = make_var("v");
    std::vector<Expr> at{u, v};
    Stmt inner = block("piece", {spatial(u, N, x + from), spatial(v, N, y)}, {}, {point_region(c, at)},
                       store(c, at, float_imm(1)));
    return make_loop(x, int_imm(extent), make_loop(y, int_imm(N), inner));
  };
  TreeIndex whole(root({piece(0, 3), piece(3, 5), relu()}));
  EXPECT_TRUE(BlockScope(whole, 0).region_cover(whole.blocks().back()));
  TreeIndex gap(root({piece(0, 3), piece(4, 4), relu()}));
  EXPECT_FALSE(BlockScope(gap, 0).region_cover(gap.blocks().back()));
}

TEST_F(Gemm, AliasesAreTheSameMemory) {
  Buffer alias = make_buffer("C_alias", kFloat32, {int_imm(N), int_imm(N)});
  Var x = make_var("x"), u = make_var("u");
  std::vector<Expr> at{u, int_imm(0)};
  Stmt writer = make_loop(
      x, int_imm(N), block("w", {spatial(u, N, x)}, {}, {point_region(alias, at)}, store(alias, at, float_imm(1))));
  Stmt r = block("root", {}, {}, {}, make_seq({writer, relu()}), nullptr, nullptr, {c}, {{alias, full_region(c)}});
  TreeIndex tree(r);
  BlockScope scope(tree, 0);
  ASSERT_EQ(scope.dependences().size(), 1u);
  EXPECT_EQ(scope.dependences()[0].kind, DependenceKind::raw);
  EXPECT_EQ(scope.writers(c).size(), 1u);
}

TEST_F(Gemm, LoopsThatDriveReductions) {
  TreeIndex tree(root({gemm(), relu()}));
  std::vector<Place> loops = tree.loops_above(tree.blocks_named("gemm")[0]);
  EXPECT_FALSE(find_non_parallel_iter(tree, loops[0]));
  auto v = find_non_parallel_iter(tree, loops[2]);
  ASSERT_TRUE(v);
  EXPECT_EQ(v->code, &codes::loop_drives_a_non_parallel_iter);
  EXPECT_EQ(v->iter->name, "vk");
  EXPECT_FALSE(find_non_parallel_iter(tree, loops[2],
                                      [](const Block&, const Iter& iter) { return iter.type == IterType::reduction; }));
  const Block& g = *tree.block(tree.blocks_named("gemm")[0]);
  EXPECT_EQ(iter_types_driven(g, k.get()), 1u << static_cast<unsigned>(IterType::reduction));
  EXPECT_EQ(iter_types_driven(g, i.get()), 1u << static_cast<unsigned>(IterType::spatial));
  EXPECT_EQ(iter_types_driven(g, p.get()), 0u);
}

TEST_F(Gemm, BindingsUnderPredicates) {
  Var i0 = make_var("i0"), i1 = make_var("i1"), v = make_var("v");
  Buffer x = make_buffer("X", kFloat32, {int_imm(30)});
  auto affine = [&](Expr binding, Expr predicate, int64_t domain) {
    Stmt inner = block("b", {spatial(v, domain, binding)}, {}, {point_region(x, {v})}, store(x, {v}, float_imm(1)),
                       nullptr, predicate);
    TreeIndex tree(block("root", {}, {}, {}, make_loop(i0, int_imm(8), make_loop(i1, int_imm(4), inner))));
    BlockScope scope(tree, 0);
    return scope.affine_binding(scope.children()[0]);
  };
  Expr whole = i0 * 4 + Expr(i1);
  EXPECT_TRUE(affine(whole, nullptr, 32));
  EXPECT_TRUE(affine(whole, less(whole, int_imm(30)), 30));
  EXPECT_FALSE(affine(whole, less(whole, int_imm(30)), 32));  // the last two are never reached
  EXPECT_FALSE(affine(i0 * 3 + Expr(i1), nullptr, 25));       // overlap
  EXPECT_FALSE(affine(whole, less(Expr(i0), Expr(i1)), 32));
}

struct Reducers : testing::Test {
  Buffer acc = make_buffer("acc", kFloat32, {int_imm(4)}), idx = make_buffer("idx", kInt32, {int_imm(4)});
  Buffer sum = make_buffer("sum", kFloat32, {int_imm(4)}), x = make_buffer("x", kFloat32, {int_imm(4), int_imm(9)});
  Var i = make_var("i"), k = make_var("k");
  std::vector<Expr> at{i};
  Expr value = load(x, {i, k});

  std::string match(Stmt init, Stmt update) {
    auto m = match_reducer(init, update);
    return m ? m->reducer->name : "none";
  }
  std::string scalar(double identity, Expr combined) {
    return match(store(acc, at, float_imm(identity)), store(acc, at, combined));
  }
};

TEST_F(Reducers, Scalars) {
  Expr c = load(acc, at);
  EXPECT_EQ(scalar(0, c + value), "sum");
  EXPECT_EQ(scalar(0, value * value + c), "sum");
  EXPECT_EQ(scalar(1, c * value), "product");
  EXPECT_EQ(scalar(-3.4028234663852886e38, max_of(value, c)), "max");
  EXPECT_EQ(scalar(-std::numeric_limits<double>::infinity(), max_of(c, value)), "max");
  EXPECT_EQ(scalar(3.4028234663852886e38, min_of(c, value)), "min");
  EXPECT_EQ(scalar(1, c + value), "none");  // wrong identity
  EXPECT_EQ(scalar(0, c - value), "none");
  EXPECT_EQ(scalar(0, c + c), "none");  // the value reads the accumulator
  EXPECT_EQ(scalar(0, load(acc, {i + 1}) + value), "none");
  Expr y;
  const Reducer* r = match_combine(c, value + c, &y);
  ASSERT_TRUE(r);
  EXPECT_EQ(r->name, "sum");
  EXPECT_EQ(y->hash, value->hash);
}

TEST_F(Reducers, ArgMax) {
  Expr old_index = load(idx, at), old_value = load(acc, at);
  Stmt init = make_seq({store(idx, at, int_imm(-1)), store(acc, at, float_imm(-3.4028234663852886e38))});
  Expr keep = binary(BinaryOp::ge, old_value, value);
  Var a = make_var("a"), b = make_var("b", kFloat32);
  Stmt stores = make_seq({store(idx, at, a), store(acc, at, b)});
  Stmt update =
      make_stmt<Bind>(a, select(keep, old_index, k), make_stmt<Bind>(b, select(keep, old_value, value), stores));
  auto m = match_reducer(init, update);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->reducer->name, "argmax");
  EXPECT_TRUE(m->buffers[0].same_as(idx));
  EXPECT_EQ(m->values[0]->hash, k->hash);
  EXPECT_EQ(m->values[1]->hash, value->hash);
  // Stores without binds: the second one would see the changed accumulator.
  Stmt racy = make_seq({store(acc, at, select(keep, old_value, value)), store(idx, at, select(keep, old_index, k))});
  EXPECT_EQ(match(init, racy), "none");
}

TEST_F(Reducers, OnlineSoftmax) {
  Stmt init = make_seq({store(acc, at, float_imm(-3.4028234663852886e38)), store(sum, at, float_imm(0))});
  Expr m = max_of(load(acc, at), value);
  Expr s = load(sum, at) * call("exp", {binary(BinaryOp::sub, load(acc, at), m)}) +
           call("exp", {binary(BinaryOp::sub, value, m)});
  Var a = make_var("a", kFloat32), b = make_var("b", kFloat32);
  Stmt update = make_stmt<Bind>(a, m, make_stmt<Bind>(b, s, make_seq({store(acc, at, a), store(sum, at, b)})));
  auto matched = match_reducer(init, update);
  ASSERT_TRUE(matched);
  EXPECT_EQ(matched->reducer->name, "softmax_pair");
  EXPECT_EQ(matched->values[0]->hash, value->hash);
}

}  // namespace
}  // namespace tilewright
