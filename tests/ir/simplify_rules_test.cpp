// What the simplifier must resolve: the index arithmetic that schedule primitives produce.
#include <gtest/gtest.h>

#include "ir/rewrite.h"
#include "tests/ir/simplify_util.h"

namespace tilewright {
namespace {

using namespace test;

struct Rules : testing::Test {
  Rules() {
    analyzer.bind({i0, i1, x, y, f});
    analyzer.bind(i.var, i.range);
  }
  void expect(const Expr& from, const Expr& to) {
    Expr s = analyzer.simplify(from);
    EXPECT_EQ(text(s), text(to)) << "from " << text(from);
  }
  void expect_true(const Expr& e) { EXPECT_TRUE(analyzer.can_prove(e)) << text(analyzer.simplify(e)); }
  void expect_unknown(const Expr& e) { EXPECT_FALSE(const_int(analyzer.simplify(e)).has_value()) << text(e); }

  VarRange i0 = loop("i0", 8), i1 = loop("i1", 4), x = loop("x", 100), y = loop("y", 7, -3), f = loop("f", 96);
  Var n = make_var("n"), m = make_var("m");
  VarRange i{make_var("i"), {int_imm(0), n}};
  Expr split = i0.var * 4 + Expr(i1.var);
  Analyzer analyzer;
};

TEST_F(Rules, SplitLoops) {
  expect(floor_div(split, 4), i0.var);
  expect(floor_mod(split, 4), i1.var);
  expect(floor_div(split, 8), floor_div(Expr(i0.var), 2));
  expect(floor_mod(split, 8), floor_mod(Expr(i0.var), 2) * 4 + Expr(i1.var));
  expect(floor_div(floor_mod(split, 8), 2), floor_mod(Expr(i0.var), 2) * 2 + floor_div(Expr(i1.var), 2));
  expect(floor_div(split + 32, 4), i0.var + 8);
  expect(floor_mod(split, 32), split);
  expect(floor_div(split, 32), int_imm(0));
}

TEST_F(Rules, FusedLoops) {
  Expr e = f.var;
  expect(floor_div(e, 8) * 8 + floor_mod(e, 8), e);
  expect(floor_div(e, 24) * 24 + floor_mod(floor_div(e, 8), 3) * 8 + floor_mod(e, 8), e);
  expect(e - floor_div(e, 8) * 8, floor_mod(e, 8));
  expect(floor_div(e, 2) * 12 - floor_div(e, 8) * 48 + 1, floor_mod(floor_div(e, 2), 4) * 12 + 1);
  expect(floor_div(e, 8) * 8 - e, floor_mod(e, 8) * -1);
  expect(e - floor_div(e, 8) * 4, e - floor_div(e, 8) * 4);
  expect(floor_div(floor_div(e, 4), 6), floor_div(e, 24));
  expect(floor_div(floor_mod(e, 24), 8), floor_mod(floor_div(e, 8), 3));
  expect(floor_mod(floor_mod(e, 24), 8), floor_mod(e, 8));
  expect(floor_mod(floor_div(e, 8), 12), floor_div(e, 8));  // f < 96
  expect(floor_div(e, 96), int_imm(0));
}

TEST_F(Rules, SymbolicExtents) {
  Expr e = i.var;
  expect_true(less(e, n));
  expect_true(less(e, n + 1));
  expect_true(less_equal(int_imm(0), e));
  expect(floor_div(e, n), int_imm(0));
  expect(floor_mod(e, n), e);
  expect(floor_div(Expr(i0.var) * n + e, n), i0.var);
  expect(floor_mod(Expr(i0.var) * n + e, n), e);
  expect(floor_div(Expr(x.var), m) * m + floor_mod(Expr(x.var), m), x.var);
  expect((Expr(x.var) + 1) * n - n, analyzer.simplify(Expr(x.var) * n));
  expect(min_of(e, n), e);
  expect_unknown(less(e, m));
  // ceil(n / 4) loops of 4: guarded
  VarRange o{make_var("o"), {int_imm(0), floor_div(n + 3, 4)}};
  analyzer.bind(o.var, o.range);
  expect_true(less(Expr(o.var) * 4, n + 3));
  expect_true(less(o.var * 4, n));
  expect_unknown(less(o.var * 4 + Expr(i1.var), n));
  auto scope = analyzer.assume(less(o.var * 4 + Expr(i1.var), n));
  expect_true(less(o.var * 4 + Expr(i1.var), n));
  expect_true(less(o.var * 4, n));
}

TEST_F(Rules, Comparisons) {
  expect_true(less(split, int_imm(32)));
  expect_unknown(less(split, int_imm(30)));
  expect(less(split, int_imm(16)), less(i0.var, int_imm(4)));
  expect(less(i0.var * 4, int_imm(15)), less(i0.var, int_imm(4)));
  expect(binary(BinaryOp::ge, x.var, int_imm(1)), less(int_imm(0), x.var));
  expect(binary(BinaryOp::gt, int_imm(5), x.var), less(x.var, int_imm(5)));
  expect(less(x.var + 1, y.var + 3), less(x.var, y.var + 2));
  expect(less(floor_div(Expr(x.var), 4), int_imm(3)), less(x.var, int_imm(12)));
  expect(equal(i0.var * 4, int_imm(6)), bool_imm(false));
  expect(equal(split, int_imm(40)), bool_imm(false));
  expect(equal(Expr(x.var) + Expr(y.var), Expr(y.var) + 3), equal(x.var, int_imm(3)));
  expect(not_of(less(x.var, int_imm(5))), less(int_imm(4), x.var));
  expect(binary(BinaryOp::ne, x.var, int_imm(100)), bool_imm(true));
}

TEST_F(Rules, Logic) {
  Expr a = less(x.var, int_imm(50)), b = less(x.var, int_imm(60));
  expect(binary(BinaryOp::logical_and, a, b), a);
  expect(binary(BinaryOp::logical_and, b, a), a);
  expect(binary(BinaryOp::logical_or, a, b), b);
  expect(binary(BinaryOp::logical_and, a, less(int_imm(70), x.var)), bool_imm(false));
  expect(binary(BinaryOp::logical_or, b, less(int_imm(40), x.var)), bool_imm(true));
}

TEST_F(Rules, MinimaAndConditions) {
  expect(min_of(split, int_imm(31)), split);
  expect(max_of(Expr(x.var), int_imm(0)), x.var);
  expect(min_of(min_of(Expr(x.var), int_imm(5)), int_imm(3)), min_of(Expr(x.var), int_imm(3)));
  expect(min_of(Expr(x.var) + 4, Expr(x.var) + 8), x.var + 4);
  expect(select(less(x.var, int_imm(200)), x.var, y.var), x.var);
  expect(select(less(x.var, int_imm(8)), floor_div(Expr(x.var), 8), int_imm(0)), int_imm(0));
}

TEST_F(Rules, FactsOfNonDivisibleSplits) {
  auto scope = analyzer.assume(less(split, int_imm(30)));
  expect_true(less(split, int_imm(30)));
  expect_true(less(split, int_imm(31)));
  expect(min_of(split + 1, int_imm(30)), split + 1);
  auto inner = analyzer.assume(equal(i0.var, int_imm(7)));
  expect_true(less(i1.var, int_imm(2)));
  expect(i0.var * 4, int_imm(28));
}

TEST_F(Rules, FactsOfSeveralVariables) {
  auto scope = analyzer.assume(binary(BinaryOp::logical_and, less(Expr(m), Expr(n)), less_equal(Expr(x.var), Expr(m))));
  expect_true(less(x.var, n));
  expect_unknown(less(x.var + 1, n));
}

TEST_F(Rules, Divisibility) {
  EXPECT_TRUE(analyzer.can_prove_divisible(x.var * 12 + 8, int_imm(4)));
  EXPECT_FALSE(analyzer.can_prove_divisible(x.var * 12 + 6, int_imm(4)));
  EXPECT_FALSE(analyzer.can_prove_divisible(n, int_imm(8)));
  auto scope = analyzer.assume(equal(floor_mod(Expr(n), 8), int_imm(0)));
  EXPECT_TRUE(analyzer.can_prove_divisible(n, int_imm(8)));
  EXPECT_TRUE(analyzer.can_prove_divisible(Expr(n) * 3 + 16, int_imm(4)));
  EXPECT_EQ(analyzer.modular(Expr(n) * 2 + 3), (ModularSet{16, 3}));
}

TEST_F(Rules, NarrowAndUnsignedIntegersWrap) {
  Var u = make_var("u", kUInt8);
  Expr e = less(Expr(u), Expr(u) + 1);  // false for 255
  expect_unknown(e);
  Var w = make_var("w", DType{TypeCode::unsigned_integer, 32, 1});
  expect_unknown(less(w - 1, Expr(w)));  // false for 0
}

TEST_F(Rules, FloatsChangeOnlyExactly) {
  Var a = make_var("a", kFloat32);
  expect(Expr(a) * float_imm(1.0), a);
  expect(Expr(a) - float_imm(0.0), a);
  Expr plus_zero = make<Binary>(kFloat32, BinaryOp::add, Expr(a), float_imm(0.0));  // -0.0 + 0.0 is +0.0
  EXPECT_EQ(analyzer.simplify(plus_zero)->hash, plus_zero->hash);
  Expr eq = equal(a, a);  // false for NaN
  EXPECT_EQ(analyzer.simplify(eq)->hash, eq->hash);
}

TEST_F(Rules, Vectors) {
  Expr lanes = ramp(i0.var * 4, int_imm(1), 4);
  expect(floor_div(lanes, broadcast(int_imm(4), 4)), broadcast(i0.var, 4));
  expect(floor_mod(lanes, broadcast(int_imm(4), 4)), ramp(int_imm(0), int_imm(1), 4));
  expect(lanes + broadcast(int_imm(3), 4), ramp(i0.var * 4 + 3, int_imm(1), 4));
  expect(lanes * broadcast(int_imm(2), 4), ramp(i0.var * 8, int_imm(2), 4));
  expect(less(lanes, broadcast(int_imm(32), 4)), broadcast(bool_imm(true), 4));
}

TEST_F(Rules, OverflowingCoefficientsLeaveTheExpressionAlone) {
  Expr big = x.var * 2000000000;
  Expr e = make<Binary>(kInt32, BinaryOp::mul, big, int_imm(2000000000));
  EXPECT_NO_THROW(analyzer.simplify(e));
  Var w = make_var("w", kInt64);
  Expr huge = Expr(w) * Interval::kMax;
  EXPECT_NO_THROW(analyzer.simplify(make<Binary>(kInt64, BinaryOp::mul, huge, int_imm(4, kInt64))));
}

TEST_F(Rules, DivisionByZeroIsLeftAlone) {
  Expr e = make<Binary>(kInt32, BinaryOp::floor_div, Expr(x.var), int_imm(0));
  EXPECT_EQ(analyzer.simplify(e)->hash, e->hash);
}

TEST(SimplifyStmt, DropsWhatNeverRunsAndKeepsIds) {
  Buffer a = make_buffer("A", kFloat32, {int_imm(32)});
  Var i0 = make_var("i0"), i1 = make_var("i1");
  Expr index = i0 * 4 + Expr(i1);
  Stmt store = make_stmt<Store>(a, std::vector<Expr>{floor_div(index, 4) * 4 + floor_mod(index, 4)}, float_imm(1));
  Stmt dead = make_stmt<Store>(a, std::vector<Expr>{int_imm(0)}, float_imm(2));
  Stmt guarded = make_stmt<If>(less(index, int_imm(32)), store, Stmt());
  Stmt never = make_stmt<If>(less(int_imm(40), index), dead, Stmt());
  Stmt loops = make_loop(i0, int_imm(8), make_loop(i1, int_imm(4), make_seq({guarded, never})));
  Stmt s = simplify(loops);
  const For* outer = as<For>(s);
  ASSERT_TRUE(outer);
  EXPECT_EQ(outer->id, as<For>(loops)->id);
  const For* inner = as<For>(outer->body);
  ASSERT_TRUE(inner);
  const Store* left = as<Store>(inner->body);
  ASSERT_TRUE(left) << "the guard and the dead branch are gone";
  EXPECT_EQ(text(left->indices[0]), "((i0 * 4) + i1)");
  EXPECT_TRUE(simplify(s).same_as(s));
}

TEST(SimplifyStmt, PredicatesOfBlocksAreFacts) {
  Buffer a = make_buffer("A", kFloat32, {int_imm(30)});
  Var i0 = make_var("i0"), i1 = make_var("i1"), v = make_var("v");
  Expr index = i0 * 4 + Expr(i1);
  auto block = [&](Expr predicate, int64_t domain) {
    Stmt body = make_stmt<Store>(a, std::vector<Expr>{min_of(Expr(v), int_imm(29))}, float_imm(1));
    Stmt b = make_stmt<Block>(std::string("b"),
                              std::vector<Iter>{{v, {int_imm(0), int_imm(domain)}, IterType::spatial, index}},
                              predicate, std::vector<BufferRegion>{}, std::vector<BufferRegion>{},
                              std::vector<Buffer>{}, std::vector<MatchBuffer>{}, AttrDict{}, Stmt(), body);
    return make_loop(i0, int_imm(8), make_loop(i1, int_imm(4), b));
  };
  auto block_of = [](const Stmt& s) { return as<Block>(as<For>(as<For>(s)->body)->body); };
  Stmt kept = simplify(block(less(index, int_imm(30)), 30));
  EXPECT_TRUE(block_of(kept)->predicate);
  EXPECT_EQ(text(as<Store>(block_of(kept)->body)->indices[0]), "v");
  Stmt dropped = simplify(block(less(index, int_imm(32)), 32));
  EXPECT_FALSE(block_of(dropped)->predicate);
  EXPECT_EQ(text(as<Store>(block_of(dropped)->body)->indices[0]), "min(v, 29)");
}

}  // namespace
}  // namespace tilewright
