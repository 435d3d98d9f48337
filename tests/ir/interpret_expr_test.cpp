// Expressions and lowered statements: exact arithmetic of every type, vectors, control flow, memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "ir/interpret/math_table.h"
#include "ir/interpret/small_float.h"
#include "ir/parse.h"
#include "support/rng.h"
#include "tests/ir/execution.h"
#include "tests/ir/small_programs.h"

namespace tilewright {
namespace {

DType type(const char* name) { return *DType::parse(name); }

/// out[i] = value(in1[i], in2[i]) over the given elements.
template <class In>
Tensor evaluate(DType in_type, DType out_type, const std::vector<In>& a, const std::vector<In>& b,
                const std::function<Expr(Expr, Expr)>& value) {
  const int64_t n = static_cast<int64_t>(a.size());
  Buffer x = make_buffer("X", in_type, shape_of({n})), y = make_buffer("Y", in_type, shape_of({n})),
         z = make_buffer("Z", out_type, shape_of({n}));
  Var i = make_var("i");
  FunctionRef f = make_function({x, y, z}, make_loop(i, int_imm(n), store(z, {i}, value(load(x, {i}), load(y, {i})))));
  std::vector<Tensor> args = {Tensor(in_type, {n}), Tensor(in_type, {n}), Tensor(out_type, {n})};
  for (int64_t e = 0; e < n; ++e) {
    if constexpr (std::is_integral_v<In>) {
      args[0].set_int(e, a[static_cast<size_t>(e)]);
      args[1].set_int(e, b[static_cast<size_t>(e)]);
    } else {
      args[0].set(e, a[static_cast<size_t>(e)]);
      args[1].set(e, b[static_cast<size_t>(e)]);
    }
  }
  Result<InterpretStats> stats = interpret(*f, args);
  EXPECT_TRUE(stats) << (stats ? "" : render_text(stats.error().diagnostic()));
  return args[2];
}
template <class In>
Tensor evaluate1(DType in_type, DType out_type, const std::vector<In>& a, const std::function<Expr(Expr)>& value) {
  return evaluate<In>(in_type, out_type, a, a, [&](Expr x, Expr) { return value(std::move(x)); });
}

TEST(InterpretExpr, IntegersWrapAndDivideTowardsMinusInfinity) {
  const std::vector<int64_t> a = {100, -100, 7, -7, -128, 127, 0, -1}, b = {100, 100, 3, 3, -1, -3, 5, -4};
  auto run = [&](BinaryOp op) {
    return evaluate<int64_t>(kInt8, kInt8, a, b, [&](Expr x, Expr y) { return binary(op, x, y); });
  };
  const Tensor add = run(BinaryOp::add), mul = run(BinaryOp::mul), fd = run(BinaryOp::floor_div),
               fm = run(BinaryOp::floor_mod), td = run(BinaryOp::trunc_div), tm = run(BinaryOp::trunc_mod);
  for (size_t i = 0; i < a.size(); ++i) {
    const int64_t e = static_cast<int64_t>(i);
    EXPECT_EQ(add.get_int(e), static_cast<int8_t>(a[i] + b[i]));
    EXPECT_EQ(mul.get_int(e), static_cast<int8_t>(a[i] * b[i]));
    EXPECT_EQ(
        fd.get_int(e),
        static_cast<int8_t>(static_cast<int64_t>(std::floor(static_cast<double>(a[i]) / static_cast<double>(b[i])))));
    EXPECT_EQ(fm.get_int(e),
              static_cast<int8_t>(a[i] - b[i] * static_cast<int64_t>(std::floor(static_cast<double>(a[i]) /
                                                                                static_cast<double>(b[i])))));
    EXPECT_EQ(td.get_int(e), static_cast<int8_t>(a[i] / b[i]));
    EXPECT_EQ(tm.get_int(e), static_cast<int8_t>(a[i] % b[i]));
  }
}

TEST(InterpretExpr, UnsignedSixtyFourBitIntegersAreUnsigned) {
  const std::vector<int64_t> a = {-1, 5, -2}, b = {2, 3, -1};  // bit patterns
  auto run = [&](BinaryOp op, DType out) {
    return evaluate<int64_t>(type("uint64"), out, a, b, [&](Expr x, Expr y) { return binary(op, x, y); });
  };
  EXPECT_EQ(run(BinaryOp::floor_div, type("uint64")).get_int(0), INT64_MAX);
  EXPECT_EQ(run(BinaryOp::max, type("uint64")).get_int(0), -1);
  EXPECT_EQ(run(BinaryOp::lt, kBool).get_int(2), 1);
  const Tensor f = evaluate<int64_t>(type("uint64"), kFloat64, a, b, [](Expr x, Expr) { return cast(kFloat64, x); });
  EXPECT_EQ(f.get(0), 0x1p64);
}

// Found by the random expressions of interpret_fuzz_test.cpp: bounds that are kept across a wrap order values wrongly.
TEST(InterpretExpr, BoundsDoNotSurviveAWrap) {
  const int64_t large = 3590176467218542804;  // · 8 wraps to a negative number
  const Tensor least = evaluate1<int64_t>(kInt64, kInt64, {0}, [&](Expr) {
    return make<Binary>(kInt64, BinaryOp::min,
                        make<Binary>(kInt64, BinaryOp::mul, int_imm(large, kInt64), int_imm(8, kInt64)),
                        int_imm(12, kInt64));
  });
  EXPECT_EQ(least.get_int(0), static_cast<int64_t>(static_cast<uint64_t>(large) * 8));
  // 3 · -7 and 3 as bit patterns of uint64: the product is the larger one.
  const DType u64 = type("uint64");
  Buffer out = make_buffer("out", u64, shape_of({4}));
  Var i = make_var("i");
  const Expr v = cast(u64, i);
  const Expr most = make<Binary>(u64, BinaryOp::max, make<Binary>(u64, BinaryOp::mul, v, int_imm(-7, u64)), v);
  FunctionRef f =
      make_function({out}, make_loop(i, int_imm(4), store(out, {i}, make<Binary>(u64, BinaryOp::mul, most, v))));
  std::vector<Tensor> args = {Tensor(u64, {4})};
  ASSERT_TRUE(interpret(*f, args));
  for (int64_t e = 0; e < 4; ++e) EXPECT_EQ(args[0].get_int(e), -7 * e * e);
}

TEST(InterpretExpr, EveryOperationOfANarrowFloatRounds) {
  Rng rng(5);
  std::vector<double> a, b;
  for (int i = 0; i < 500; ++i) a.push_back(8 * rng.uniform() - 4), b.push_back(8 * rng.uniform() - 4);
  for (const char* name : {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}) {
    const DType t = type(name);
    Tensor x(t, {500}), y(t, {500}), expected(t, {500});
    for (int i = 0; i < 500; ++i) {
      x.set(i, a[i]), y.set(i, b[i]);
      const float product = round_to_type(t.code, t.bits, static_cast<float>(x.get(i)) * static_cast<float>(y.get(i)));
      expected.set(i, product + static_cast<float>(x.get(i)));
    }
    const Tensor got = evaluate<double>(t, t, a, b, [](Expr p, Expr q) { return p * q + p; });
    EXPECT_TRUE(expect_equal(expected, got))
        << name << ": "
        << (expect_equal(expected, got) ? "" : expect_equal(expected, got).error().diagnostic().message);
  }
}

TEST(InterpretExpr, Float32IsNotContracted) {
  // x·x − 1 with x = 1 + 2^-12: a fused multiply-add would keep 2^-24.
  const Tensor z =
      evaluate<double>(kFloat32, kFloat32, {1 + 0x1p-12}, {-1.0}, [](Expr x, Expr y) { return x * x + y; });
  EXPECT_EQ(z.get(0), 0x1p-11);
  const Tensor fused = evaluate<double>(kFloat32, kFloat32, {1 + 0x1p-12}, {-1.0},
                                        [](Expr x, Expr y) { return call("fma", {x, x, y}); });
  EXPECT_EQ(fused.get(0), 0x1p-11 + 0x1p-24);
}

TEST(InterpretExpr, ConversionsTruncateRoundAndWrap) {
  const std::vector<double> values = {1.9, -1.9, 300, -300, 1e30, std::nan(""), 0.5};
  const Tensor i8 = evaluate1<double>(kFloat32, kInt8, values, [](Expr x) { return cast(kInt8, x); });
  EXPECT_EQ(i8.get_int(0), 1);
  EXPECT_EQ(i8.get_int(1), -1);
  EXPECT_EQ(i8.get_int(2), 44);
  EXPECT_EQ(i8.get_int(3), -44);
  EXPECT_EQ(i8.get_int(5), 0);
  const Tensor truth = evaluate1<double>(kFloat32, kBool, {0, -0.0, 0.25}, [](Expr x) { return cast(kBool, x); });
  EXPECT_EQ(truth.get_int(0), 0);
  EXPECT_EQ(truth.get_int(1), 0);
  EXPECT_EQ(truth.get_int(2), 1);
  // 2^24 + 1 rounds once on its way to float32, and to float16 through no float32.
  EXPECT_EQ(evaluate1<int64_t>(kInt32, kFloat32, {16777217}, [](Expr x) { return cast(kFloat32, x); }).get(0),
            16777216);
  EXPECT_EQ(evaluate1<int64_t>(kInt32, kFloat16, {2049}, [](Expr x) { return cast(kFloat16, x); }).get(0), 2048);
  EXPECT_EQ(evaluate1<int64_t>(kInt32, kUInt8, {-1}, [](Expr x) { return cast(kUInt8, x); }).get_int(0), 255);
}

TEST(InterpretExpr, MaximumPassesNaNOnAndOrdersZeros) {
  const double nan = std::nan("");
  const Tensor z = evaluate<double>(kFloat32, kFloat32, {nan, 1, -0.0, 0.0}, {1, nan, 0.0, -0.0},
                                    [](Expr x, Expr y) { return max_of(x, y); });
  EXPECT_TRUE(std::isnan(z.get(0)) && std::isnan(z.get(1)));
  EXPECT_FALSE(std::signbit(z.get(2)) || std::signbit(z.get(3)));
  const Tensor m = evaluate<double>(kFloat64, kFloat64, {-0.0, 0.0, 3}, {0.0, -0.0, -4},
                                    [](Expr x, Expr y) { return min_of(x, y); });
  EXPECT_TRUE(std::signbit(m.get(0)) && std::signbit(m.get(1)));
  EXPECT_EQ(m.get(2), -4);
}

TEST(InterpretExpr, BitOperations) {
  const std::vector<int64_t> a = {0x0f0f, -1, 1 << 30}, b = {4, 31, 2};
  auto run = [&](const char* op) {
    return evaluate<int64_t>(kInt32, kInt32, a, b, [&](Expr x, Expr y) { return call(op, {x, y}); });
  };
  EXPECT_EQ(run("shift_left").get_int(0), 0xf0f0);
  EXPECT_EQ(run("shift_left").get_int(2), 0) << "bits shifted out are lost";
  EXPECT_EQ(run("shift_right").get_int(1), -1);
  EXPECT_EQ(run("bitwise_and").get_int(0), 4);
  EXPECT_EQ(run("bitwise_or").get_int(2), (1 << 30) + 2);
  EXPECT_EQ(run("bitwise_xor").get_int(1), ~31);
  auto one = [&](const char* op) {
    return evaluate1<int64_t>(kInt32, kInt32, a, [&](Expr x) { return call(op, {x}); });
  };
  EXPECT_EQ(one("bitwise_not").get_int(0), ~0x0f0f);
  EXPECT_EQ(one("popcount").get_int(1), 32);
  EXPECT_EQ(one("clz").get_int(0), 20);
  EXPECT_EQ(one("abs").get_int(1), 1);
  const Tensor bits = evaluate1<double>(kFloat32, kInt32, {1.0, -0.0},
                                        [](Expr x) { return call(kInt32, operation("reinterpret"), {x}); });
  EXPECT_EQ(bits.get_int(0), 0x3f800000);
  EXPECT_EQ(bits.get_int(1), INT32_MIN);
  const Tensor dot = evaluate<int64_t>(kInt32, kInt32, {0x01ff7f80}, {0x02ff0102}, [](Expr x, Expr y) {
    return call(kInt32, operation("dp4a"), {x, y, int_imm(1000)});
  });
  EXPECT_EQ(dot.get_int(0), 1000 + 1 * 2 + 1 + 127 - 256);
  // 0.75 as a fixed-point factor: 1000 · (3·2^29) / 2^31 = 750.
  const Tensor q = evaluate1<int64_t>(kInt32, kInt32, {1000, -1000}, [](Expr x) {
    return call(kInt32, operation("q_multiply_shift"), {x, int_imm(int64_t{3} << 29), int_imm(31), int_imm(0)});
  });
  EXPECT_EQ(q.get_int(0), 750);
  EXPECT_EQ(q.get_int(1), -750);
}

TEST(InterpretExpr, MathFollowsTheTableAndLibm) {
  Rng rng(9);
  std::vector<double> values = {0,
                                -0.0,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity(),
                                std::nan(""),
                                1e-42,
                                88.8,
                                -104,
                                1};
  for (int i = 0; i < 2000; ++i)
    values.push_back(std::ldexp(2 * rng.uniform() - 1, static_cast<int>(rng.between(-20, 7))));
  static constexpr math::FloatArithmetic table;
  struct Row {
    const char* name;
    float (*exact)(float);
    double (*truth)(double);
    double ulps;
  };
  const Row rows[] = {
      {"exp", [](float x) { return math::exp(table, x); }, [](double x) { return std::exp(x); }, 1.03},
      {"exp2", [](float x) { return math::exp2(table, x); }, [](double x) { return std::exp2(x); }, 0.89},
      {"log", [](float x) { return math::log(table, x); }, [](double x) { return std::log(x); }, 0.87},
      {"tanh", [](float x) { return math::tanh(table, x); }, [](double x) { return std::tanh(x); }, 1.35},
      {"erf", [](float x) { return math::erf(table, x); }, [](double x) { return std::erf(x); }, 1.12},
      {"sigmoid", [](float x) { return math::sigmoid(table, x); }, [](double x) { return 1 / (1 + std::exp(-x)); },
       2.84},
      {"sqrt", [](float x) { return std::sqrt(x); }, [](double x) { return std::sqrt(x); }, 0.5},
      {"sin", [](float x) { return std::sin(x); }, [](double x) { return std::sin(x); }, 1},
      {"round", [](float x) { return std::nearbyint(x); }, [](double x) { return std::nearbyint(x); }, 0},
      {"floor", [](float x) { return std::floor(x); }, [](double x) { return std::floor(x); }, 0},
  };
  for (const Row& row : rows) {
    const Tensor z = evaluate1<double>(kFloat32, kFloat32, values, [&](Expr x) { return call(row.name, {x}); });
    for (size_t i = 0; i < values.size(); ++i) {
      const float x = static_cast<float>(values[i]), got = z.as<float>()[i];
      const float exact = row.exact(x);
      EXPECT_TRUE(std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(exact) ||
                  (std::isnan(got) && std::isnan(exact)))
          << row.name << " of " << x;
      const double truth = row.truth(x);
      if (!std::isfinite(static_cast<float>(truth))) {
        EXPECT_TRUE(std::isnan(truth) ? std::isnan(got) : got == static_cast<float>(truth))
            << row.name << " of " << x << " is " << got;
        continue;
      }
      int exponent = 0;
      std::frexp(truth, &exponent);
      EXPECT_LE(std::abs(got - truth), row.ulps * std::ldexp(1.0, std::max(exponent - 24, -149)))
          << row.name << " of " << x;
    }
  }
}

TEST(InterpretExpr, VectorsOfEveryForm) {
  // Y[0:4] = X[3 - lane] · broadcast(X[0]) through a ramp of stride -1; then a shuffle of two vectors.
  Buffer x = make_buffer("X", kFloat32, shape_of({8})), y = make_buffer("Y", kFloat32, shape_of({8}));
  Expr reversed = load(x, {ramp(int_imm(3), int_imm(-1), 4)});
  Stmt first = store(y, {ramp(int_imm(0), int_imm(1), 4)}, reversed * broadcast(load(x, {int_imm(0)}), 4));
  Expr high = load(x, {ramp(int_imm(4), int_imm(1), 4)});
  Expr shuffled = make<Shuffle>(kFloat32.with_lanes(4), std::vector<Expr>{reversed, high}, shape_of({7, 0, 4, 1}));
  Stmt second = store(y, {ramp(int_imm(4), int_imm(1), 4)}, shuffled);
  FunctionRef f = make_function({x, y}, make_seq({first, second}));
  std::vector<Tensor> args = make_arguments(*f, InputSet::random, 2);
  ASSERT_TRUE(interpret(*f, args));
  std::span<const float> in = args[0].as<float>(), out = args[1].as<float>();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], in[3 - i] * in[0]);
  const float expected[] = {in[7], in[3], in[4], in[2]};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[4 + i], expected[i]);
  // All lanes are read before any is written: an in-place rotation.
  FunctionRef rotate =
      make_function({y}, store(y, {ramp(int_imm(0), int_imm(1), 4)}, load(y, {ramp(int_imm(3), int_imm(-1), 4)})));
  std::vector<Tensor> one = {args[1]};
  ASSERT_TRUE(interpret(*rotate, one));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(one[0].as<float>()[i], out[3 - i]);
  // Lanes are checked one by one.
  FunctionRef outside = make_function({y}, store(y, {ramp(int_imm(6), int_imm(1), 4)}, broadcast(float_imm(0), 4)));
  Result<InterpretStats> r = interpret(*outside, one);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "access-out-of-bounds");
}

TEST(InterpretExpr, OnlyTheChosenSideIsEvaluated) {
  Buffer x = make_buffer("X", kFloat32, shape_of({8})), y = make_buffer("Y", kFloat32, shape_of({8}));
  Var i = make_var("i");
  Expr shifted = Expr(i) - 3;
  const Expr inside = less_equal(int_imm(3), i), value = load(x, {shifted});
  for (const Expr& e : {if_then_else(inside, value, float_imm(0)), select(inside, value, float_imm(0))}) {
    FunctionRef f = make_function({x, y}, make_loop(i, int_imm(8), store(y, {i}, e)));
    std::vector<Tensor> args = make_arguments(*f, InputSet::random, 2);
    Result<InterpretStats> r = interpret(*f, args);
    ASSERT_TRUE(r) << render_text(r.error().diagnostic());
    for (int e2 = 0; e2 < 8; ++e2) EXPECT_EQ(args[1].get(e2), e2 < 3 ? 0 : args[0].get(e2 - 3));
  }
  // What one arm computes is not there for code after it.
  FunctionRef again = make_function({x, y}, make_loop(i, int_imm(8),
                                                      store(y, {i},
                                                            if_then_else(inside, value, float_imm(0)) +
                                                                if_then_else(not_of(inside), float_imm(1), value))));
  std::vector<Tensor> args = make_arguments(*again, InputSet::random, 2);
  ASSERT_TRUE(interpret(*again, args));
  for (int e = 0; e < 8; ++e) EXPECT_EQ(args[1].get(e), e < 3 ? 1 : 2 * args[0].get(e - 3));
}

TEST(InterpretExpr, DivisionByZeroIsReported) {
  Buffer x = make_buffer("X", kInt32, shape_of({2}));
  FunctionRef f = make_function({x}, store(x, {int_imm(0)}, floor_div(int_imm(7), load(x, {int_imm(1)}))));
  std::vector<Tensor> args = {Tensor(kInt32, {2})};
  Result<InterpretStats> r = interpret(*f, args);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "division-by-zero");
}

TEST(InterpretExpr, WhatHasNoMeaningHereIsRefused) {
  Buffer x = make_buffer("X", kFloat32, shape_of({2}));
  Stmt s = make_stmt<Evaluate>(call(kInt32, operation("call_extern"), {make<StringImm>(kHandle, std::string("f"))}));
  std::vector<Tensor> args = {Tensor(kFloat32, {2})};
  Result<InterpretStats> r = interpret(*make_function({x}, s), args);
  ASSERT_FALSE(r);
  EXPECT_EQ(render_text(r.error().diagnostic()),
            "error: the interpreter has no meaning for operation call_extern  [not-interpretable]\n");
}

// --- lowered statements
// ----------------------------------------------------------------------------------------------------

TEST(InterpretLowered, WhileBreakContinueReturnAndAllocations) {
  // t = 0; while t < 10: t += 1; if t % 2: continue; if t > 6: break; X[t] = t; then return before the last store.
  Buffer x = make_buffer("X", kInt32, shape_of({10})), t = make_buffer("t", kInt32, shape_of({1}), "local");
  const Expr zero = int_imm(0), now = load(t, {zero});
  Stmt body = make_seq({store(t, {zero}, now + 1),
                        make_stmt<If>(equal(floor_mod(now, 2), int_imm(1)), make_stmt<Continue>(), Stmt()),
                        make_stmt<If>(less(int_imm(6), now), make_stmt<Break>(), Stmt()), store(x, {now}, now)});
  Stmt all = make_seq({store(t, {zero}, zero), make_stmt<While>(less(now, int_imm(10)), body),
                       store(x, {int_imm(1)}, now), make_stmt<Return>(Expr()), store(x, {int_imm(3)}, int_imm(99))});
  FunctionRef f = make_function({x}, make_stmt<Allocate>(t, AttrDict(), all));
  std::vector<Tensor> args = {Tensor(kInt32, {10})};
  Result<InterpretStats> r = interpret(*f, args);
  ASSERT_TRUE(r) << render_text(r.error().diagnostic());
  const int expected[] = {0, 8, 2, 0, 4, 0, 6, 0, 0, 0};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(args[0].get_int(i), expected[i]) << i;
  FunctionRef endless = make_function({x}, make_stmt<While>(bool_imm(true), store(x, {zero}, zero)));
  r = interpret(*endless, args, {.step_limit = 1000});
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().code(), "step-limit-reached");
}

TEST(InterpretLowered, BindsLetsStepsAndScalarParameters) {
  Buffer x = make_buffer("X", kInt32, shape_of({12}));
  Var n = make_var("n"), i = make_var("i"), a = make_var("a"), b = make_var("b");
  Expr value = make<Let>(kInt32, b, Expr(a) * 10, Expr(b) + n);
  Stmt body = make_stmt<Bind>(a, Expr(i) + 1, store(x, {i}, value));
  Stmt loop =
      make_stmt<For>(i, Expr(int_imm(1)), Expr(n), Expr(int_imm(3)), ForKind::serial, std::string(), AttrDict(), body);
  FunctionRef f = make_function({x}, loop, {n});
  for (Order order : {Order::forward, Order::reverse}) {
    std::vector<Tensor> args = {Tensor(kInt32, {12}), Tensor::scalar(kInt32, 8)};  // i in 1, 4, 7 (below 1 + 8)
    ASSERT_TRUE(interpret(*f, args, {.order = order}));
    for (int e = 0; e < 12; ++e) EXPECT_EQ(args[0].get_int(e), e == 1 || e == 4 || e == 7 ? 10 * (e + 1) + 8 : 0) << e;
  }
}

TEST(InterpretLowered, ViewsShareTheirPointer) {
  // A byte arena; a float view of it at an offset: writes through one are seen through the other.
  Buffer arena = make_buffer("arena", kUInt8, shape_of({16})), out = make_buffer("out", kUInt8, shape_of({4}));
  Buffer view = derive_buffer(make_buffer("view", kFloat32, shape_of({2})), [&](BufferNode& b) {
    b.data = arena->data;
    b.elem_offset = int_imm(1);
  });
  Var i = make_var("i");
  Stmt use = make_seq(
      {store(view, {int_imm(0)}, float_imm(1)), make_loop(i, int_imm(4), store(out, {i}, load(arena, {Expr(i) + 4})))});
  FunctionRef f = make_function({out}, make_stmt<Allocate>(arena, AttrDict(), make_stmt<DeclBuffer>(view, use)));
  std::vector<Tensor> args = {Tensor(kUInt8, {4})};
  Result<InterpretStats> r = interpret(*f, args);
  ASSERT_TRUE(r) << render_text(r.error().diagnostic());
  EXPECT_EQ(args[0].get_int(2), 0x80);
  EXPECT_EQ(args[0].get_int(3), 0x3f);
  // A view that sticks out of its memory is caught where it does.
  Buffer wide = derive_buffer(view, [&](BufferNode& b) { b.shape = shape_of({4}); });
  FunctionRef bad = make_function(
      {out},
      make_stmt<Allocate>(arena, AttrDict(), make_stmt<DeclBuffer>(wide, store(wide, {int_imm(3)}, float_imm(0)))));
  r = interpret(*bad, args);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostic().message, "element 4 of view lies outside its memory of 16 bytes");
}

TEST(InterpretLowered, SubByteElementsInMemory) {
  Buffer x = make_buffer("X", type("int4"), shape_of({6})), y = make_buffer("Y", type("int4"), shape_of({6}));
  Var i = make_var("i");
  FunctionRef f = make_function(
      {x, y}, make_loop(i, int_imm(6), store(y, {int_imm(5) - Expr(i)}, load(x, {i}) + int_imm(1, type("int4")))));
  std::vector<Tensor> args = make_arguments(*f, InputSet::random, 4);
  ASSERT_TRUE(interpret(*f, args));
  for (int e = 0; e < 6; ++e) EXPECT_EQ(args[1].get_int(5 - e), args[0].get_int(e) == 7 ? -8 : args[0].get_int(e) + 1);
}

TEST(InterpretLowered, StridedParametersAndAsserts) {
  Buffer x = derive_buffer(make_buffer("X", kFloat32, shape_of({2, 3})),
                           [](BufferNode& b) { b.strides = {int_imm(4), int_imm(1)}; });
  Var i = make_var("i"), j = make_var("j");
  FunctionRef f = make_function(
      {x},
      make_loop(i, int_imm(2), make_loop(j, int_imm(3), store(x, {i, j}, cast(kFloat32, Expr(i) * 10 + Expr(j))))));
  std::vector<Tensor> args = {Tensor(kFloat32, {2, 3})};
  Result<InterpretStats> r = interpret(*f, args);
  ASSERT_FALSE(r) << "the rows need 7 elements, the compact tensor has 6";
  args[0].bytes.resize(7 * 4);
  ASSERT_TRUE(interpret(*f, args));
  EXPECT_EQ(args[0].as<float>()[4], 10);
  FunctionRef asserts = make_function(
      {x}, make_stmt<Assert>(less(load(x, {int_imm(0), int_imm(0)}), float_imm(-1)), std::string("X is below -1")));
  r = interpret(*asserts, args);
  ASSERT_FALSE(r);
  EXPECT_EQ(render_text(r.error().diagnostic()),
            "error: X is below -1 does not hold  [assertion-failed]\nnote: in function main\n");
}

// --- demand mode
// ---------------------------------------------------------------------------------------------------------

TEST(InterpretElements, AgreeWithTheWholeProgram) {
  FunctionRef f = matmul_program(9, 11, 13);
  std::vector<Tensor> args = make_arguments(*f, InputSet::random, 7), whole = args;
  ASSERT_TRUE(interpret(*f, whole));
  const std::vector<int64_t> wanted = {0, 98, 50, 7};
  Result<std::vector<double>> some = interpret_elements(*f, args, 2, wanted);
  ASSERT_TRUE(some) << render_text(some.error().diagnostic());
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ((*some)[i], whole[2].get(wanted[i]));
  EXPECT_TRUE(expect_equal(args[2], make_arguments(*f, InputSet::random, 7)[2])) << "nothing is written";
}

TEST(InterpretElements, ProgramsThatCannotBeCutAreRefused) {
  FunctionRef split = matmul_program(4, 4, 8, 4);
  std::vector<Tensor> args = make_arguments(*split, InputSet::random, 7);
  const std::vector<int64_t> wanted = {0};
  Result<std::vector<double>> r = interpret_elements(*split, args, 2, wanted);
  ASSERT_FALSE(r);
  EXPECT_EQ(render_text(r.error().diagnostic()),
            "error: elements cannot be computed on demand: block \"C\" has an iter that is not a loop over its domain  "
            "[not-demand-evaluable]\n");
  r = interpret_elements(*matmul_program(4, 4, 4), make_arguments(*matmul_program(4, 4, 4), InputSet::random, 1), 0,
                         wanted);
  ASSERT_FALSE(r);
  EXPECT_EQ(r.error().diagnostic().message, "elements cannot be computed on demand: no block writes parameter 0");

  auto refused = [&](const std::string& body) {
    auto parsed = parse_program("@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((4, 8)), B: T.Buffer((8,))):\n" + body,
                                "program");
    if (!parsed) return render_text(parsed.error()[0]);
    const Function& f = *parsed->program->main();
    auto values = interpret_elements(f, make_arguments(f, InputSet::random, 1), 1, wanted);
    return values ? "not refused" : values.error().diagnostic().message;
  };
  EXPECT_EQ(refused(R"(
    for i in range(8):
        with T.sblock("in_place"):
            vi = T.axis.spatial(8, i)
            B[vi] = B[vi] + A[0, vi]
)"),
            "elements cannot be computed on demand: block \"in_place\" updates its buffer in place");
  EXPECT_EQ(refused(R"(
    for i, k in T.grid(8, 4):
        with T.sblock("last"):
            vi, vk = T.axis.remap("SS", [i, k])
            B[vi] = A[vk, vi]
)"),
            "elements cannot be computed on demand: block \"last\" writes an element in several instances");
  EXPECT_EQ(refused(R"(
    for i in range(4):
        with T.sblock("half"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[0, vi]
)"),
            "elements cannot be computed on demand: block \"half\" writes a part of its buffer");
}

}  // namespace
}  // namespace tilewright
