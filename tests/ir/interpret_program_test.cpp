// Block programs: results, orders of execution, and the failures that execution finds.
#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <functional>

#include "ir/rewrite.h"
#include "tests/ir/execution.h"
#include "tests/ir/small_programs.h"

namespace tilewright {
namespace {

std::string failure(const Function& f, std::vector<Tensor> args, const InterpretOptions& options = {}) {
  Result<InterpretStats> r = interpret(f, args, options);
  return r ? "no failure" : render_text(r.error().diagnostic());
}
std::vector<Tensor> inputs_of(const Function& f, InputSet set = InputSet::random) { return make_arguments(f, set, 7); }

TEST(InterpretProgram, MatmulEqualsTheLoopNest) {
  FunctionRef f = matmul_program(5, 7, 9);
  std::vector<Tensor> args = inputs_of(*f);
  fill_bytes(args[2], 0xff);
  ASSERT_TRUE(interpret(*f, args));
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 7; ++j) {
      float sum = 0;
      for (int k = 0; k < 9; ++k) sum = sum + args[0].as<float>()[i * 9 + k] * args[1].as<float>()[k * 7 + j];
      EXPECT_EQ(args[2].as<float>()[i * 7 + j], sum);
    }
}

TEST(InterpretProgram, SplitReductionsAndPredicatesKeepTheResult) {
  expect_equal_by_execution(*matmul_program(4, 3, 12), *matmul_program(4, 3, 12, 4));
  expect_equal_by_execution(*matmul_program(4, 3, 11), *matmul_program(4, 3, 11, 4));
  for (const char* t : {"float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64"})
    expect_equal_by_execution(*matmul_program(4, 3, 11, 0, *DType::parse(t)),
                              *matmul_program(4, 3, 11, 4, *DType::parse(t)));
}

TEST(InterpretProgram, DifferentProgramsAreToldApart) {
  FunctionRef f = matmul_program(4, 3, 8);
  const Block* root = f->root();
  EXPECT_FALSE(equal_by_execution(
      *f, *with_body(*f, replace_buffers(root->body, {{f->params[0].buffer.get(), f->params[2].buffer}}))))
      << "reading C in place of A must show";
}

/// B[vi] = A[vi] for vi bound to `binding` of i in 0…n, with a loop of the given kind.
struct Copy {
  Buffer a, b;
  FunctionRef f;
  Copy(int64_t loop_extent, int64_t domain, std::function<Expr(Var)> binding, Expr predicate_limit = nullptr,
       ForKind kind = ForKind::serial) {
    a = make_buffer("A", kFloat32, shape_of({8})), b = make_buffer("B", kFloat32, shape_of({8}));
    Var i = make_var("i"), vi = make_var("vi");
    Expr bound = binding(i);
    Stmt block = make_block("copy", {make_iter(vi, domain, bound)}, store(b, {vi}, load(a, {vi})), nullptr,
                            predicate_limit ? less(bound, predicate_limit) : nullptr);
    f = make_function({a, b}, make_block("root", {}, make_loop(i, int_imm(loop_extent), block, kind)));
  }
};

TEST(InterpretProgram, ValuesOutsideTheDomainAreReported) {
  Copy copy(9, 8, [](Var i) { return i; });
  EXPECT_EQ(failure(*copy.f, inputs_of(*copy.f)),
            "error: iter vi is 8, expected a value from 0 to 7  [axis-value-outside-domain]\n"
            "note: in function main, block \"copy\", at i = 8, vi = 8\n");
  Copy guarded(9, 8, [](Var i) { return i; }, int_imm(8));
  EXPECT_EQ(failure(*guarded.f, inputs_of(*guarded.f)), "no failure") << "the predicate comes first";
}

TEST(InterpretProgram, AccessesOutsideTheBufferAreReported) {
  Copy copy(9, 16, [](Var i) { return i; });
  const std::string text = failure(*copy.f, inputs_of(*copy.f));
  EXPECT_NE(text.find("index 0 of A (read) is 8, expected a value from 0 to 7  [access-out-of-bounds]"),
            std::string::npos)
      << text;
  Copy negative(8, 8, [](Var i) { return i; });
  Var j = make_var("j");
  FunctionRef f = make_function({negative.a, negative.b},
                                make_loop(j, int_imm(8), store(negative.b, {Expr(j) - 1}, load(negative.a, {j}))));
  EXPECT_NE(failure(*f, inputs_of(*f)).find("index 0 of B (write) is -1"), std::string::npos);
}

TEST(InterpretProgram, ElementsThatWereNeverWrittenAreReported) {
  Buffer a = make_buffer("A", kFloat32, shape_of({8})), t = make_buffer("T", kFloat32, shape_of({8}));
  Var i = make_var("i"), j = make_var("j");
  auto program = [&](int64_t written) {
    Stmt fill_t = make_loop(i, int_imm(written), store(t, {i}, float_imm(1)));
    Stmt read_t = make_loop(j, int_imm(8), store(a, {j}, load(t, {j})));
    return make_function({a}, make_block("root", {}, make_seq({fill_t, read_t}), nullptr, nullptr, {t}));
  };
  EXPECT_EQ(failure(*program(8), inputs_of(*program(8))), "no failure");
  EXPECT_NE(failure(*program(7), inputs_of(*program(7)))
                .find("element 7 of T is read and was never written  [read-before-write]"),
            std::string::npos);
}

TEST(InterpretProgram, ReductionsMustBeginWithTheirFirstInstance) {
  Buffer a = make_buffer("A", kFloat32, shape_of({4, 4})), c = make_buffer("C", kFloat32, shape_of({4}));
  Var i = make_var("i"), k = make_var("k"), vi = make_var("vi"), vk = make_var("vk");
  auto program = [&](Expr bound, Expr predicate) {
    Stmt block = make_block("sum", {make_iter(vi, 4, i), make_iter(vk, 4, bound, IterType::reduction)},
                            store(c, {vi}, load(c, {vi}) + load(a, {vi, vk})), store(c, {vi}, float_imm(0)), predicate);
    return make_function({a, c}, make_loop(i, int_imm(4), make_loop(k, int_imm(4), block)));
  };
  FunctionRef backwards = program(int_imm(3) - Expr(k), nullptr), forwards = program(k, nullptr);
  EXPECT_EQ(failure(*forwards, inputs_of(*forwards)), "no failure");
  EXPECT_NE(failure(*backwards, inputs_of(*backwards)).find("[first-reduction-instance-not-first]"), std::string::npos);
  FunctionRef skipped = program(k, less(int_imm(0), k));  // the instance that initialises is predicated away
  EXPECT_NE(failure(*skipped, inputs_of(*skipped)).find("[first-reduction-instance-not-first]"), std::string::npos);
  FunctionRef late = program(k, less(k, int_imm(3)));
  EXPECT_EQ(failure(*late, inputs_of(*late)), "no failure");
}

TEST(InterpretProgram, OrdersRevealIterationsThatDepend) {
  // A[i + 1] = A[i] + 1, as a parallel loop: forward order hides the dependence.
  Buffer a = make_buffer("A", kFloat32, shape_of({9}));
  Var i = make_var("i");
  Stmt body = store(a, {Expr(i) + 1}, load(a, {i}) + float_imm(1));
  FunctionRef serial = make_function({a}, make_loop(i, int_imm(8), body));
  FunctionRef parallel = make_function({a}, make_loop(i, int_imm(8), body, ForKind::parallel));
  EXPECT_TRUE(equal_by_execution(*serial, *serial));
  EXPECT_FALSE(equal_by_execution(*serial, *parallel));
  // The same under a spatial iter: the author's claim is tested.
  Var vi = make_var("vi");
  Stmt claimed = make_block("step", {make_iter(vi, 8, i)}, store(a, {Expr(vi) + 1}, load(a, {vi}) + float_imm(1)));
  EXPECT_FALSE(equal_by_execution(*serial, *make_function({a}, make_loop(i, int_imm(8), claimed))));
}

TEST(InterpretProgram, EveryOrderVisitsEveryIteration) {
  FunctionRef serial = Copy(8, 8, [](Var i) { return i; }).f;
  for (Order order : {Order::forward, Order::reverse, Order::random})
    for (ForKind kind :
         {ForKind::serial, ForKind::parallel, ForKind::vectorized, ForKind::unrolled, ForKind::thread_binding}) {
      Copy copy(8, 8, [](Var i) { return i; }, nullptr, kind);
      std::vector<Tensor> args = inputs_of(*copy.f);
      fill_bytes(args[1], 0xff);
      ASSERT_TRUE(interpret(*copy.f, args, {.order = order, .seed = 3}));
      EXPECT_TRUE(expect_equal(args[0], args[1]));
    }
}

TEST(InterpretProgram, ReductionsOverThreadsStillInitialiseFirst) {
  Buffer a = make_buffer("A", kFloat32, shape_of({8})), c = make_buffer("C", kFloat32, {});
  Var k = make_var("k"), vk = make_var("vk");
  Stmt block = make_block("sum", {make_iter(vk, 8, k, IterType::reduction)}, store(c, {}, load(c, {}) + load(a, {vk})),
                          store(c, {}, float_imm(0)));
  FunctionRef serial = make_function({a, c}, make_loop(k, int_imm(8), block));
  Stmt threads = make_stmt<For>(k, Expr(int_imm(0)), Expr(int_imm(8)), Expr(), ForKind::thread_binding,
                                std::string("threadIdx.x"), AttrDict(), Stmt(block));
  expect_equal_by_execution(*serial, *make_function({a, c}, threads));
}

TEST(InterpretProgram, MatchBuffersAliasTheirRegion) {
  // The block doubles row vi of A through an alias of shape [4] with a bound stride variable.
  Buffer a = make_buffer("A", kFloat32, shape_of({3, 8}));
  Var i = make_var("i"), vi = make_var("vi"), j = make_var("j"), stride = make_var("s"), offset = make_var("o");
  Buffer row = derive_buffer(make_buffer("row", kFloat32, shape_of({4})), [&](BufferNode& b) {
    b.strides = {stride};
    b.elem_offset = offset;
  });
  auto program = [&](int64_t first) {
    Stmt body = make_loop(j, int_imm(4), store(row, {j}, load(row, {j}) * float_imm(2)));
    auto block = edit(*make_block("rows", {make_iter(vi, 3, i)}, body));
    block->matches = {{row, {a, {{vi, int_imm(1)}, {int_imm(first), int_imm(4)}}}}};
    return make_function({a}, make_loop(i, int_imm(3), finish(std::move(block))));
  };
  FunctionRef f = program(2);
  std::vector<Tensor> args = inputs_of(*f), before = args;
  ASSERT_EQ(failure(*f, args), "no failure");
  ASSERT_TRUE(interpret(*f, args));
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 8; ++c)
      EXPECT_EQ(args[0].get(r * 8 + c), before[0].get(r * 8 + c) * (c >= 2 && c < 6 ? 2 : 1)) << r << " " << c;
  EXPECT_NE(failure(*program(5), inputs_of(*f)).find("dimension 1 of the region of A that row stands for"),
            std::string::npos);
}

TEST(InterpretProgram, SymbolicExtentsAreBoundByTheArguments) {
  Var n = make_var("n"), i = make_var("i"), vi = make_var("vi");
  Buffer a = make_buffer("A", kFloat32, {n}), b = make_buffer("B", kFloat32, {Expr(n) * 2});
  Iter iter{vi, {int_imm(0), n}, IterType::spatial, i};
  FunctionRef f =
      make_function({a, b}, make_loop(i, n, make_block("b", {iter}, store(b, {Expr(vi) * 2}, load(a, {vi})))));
  std::vector<Tensor> args = {Tensor(kFloat32, {5}), Tensor(kFloat32, {10})};
  fill(args[0], InputSet::random, 1, 0);
  ASSERT_EQ(failure(*f, args), "no failure");
  ASSERT_TRUE(interpret(*f, args));
  for (int e = 0; e < 5; ++e) EXPECT_EQ(args[1].get(2 * e), args[0].get(e));
  args[1] = Tensor(kFloat32, {11});
  EXPECT_NE(failure(*f, args).find("extent 0 of B: expected 10, found 11  [argument-mismatch]"), std::string::npos)
      << failure(*f, args);
  args.pop_back();
  EXPECT_NE(failure(*f, args).find("main takes 2 arguments, found 1"), std::string::npos);
}

TEST(InterpretProgram, ArgumentsMustFit) {
  FunctionRef f = matmul_program(4, 4, 4);
  std::vector<Tensor> args = inputs_of(*f);
  args[1] = Tensor(kFloat16, {4, 4});
  EXPECT_NE(failure(*f, args).find("argument 1 (B) of main: expected float32, found float16"), std::string::npos);
  args[1] = Tensor(kFloat32, {4, 5});
  EXPECT_NE(failure(*f, args).find("expected extent 4 in dimension 1, found 5"), std::string::npos);
  args[1] = Tensor(kFloat32, {16});
  EXPECT_NE(failure(*f, args).find("expected rank 2, found rank 1"), std::string::npos);
}

TEST(InterpretProgram, RunsStopAtTheStepLimit) {
  FunctionRef f = matmul_program(8, 8, 8);
  std::vector<Tensor> args = inputs_of(*f);
  EXPECT_NE(failure(*f, args, {.step_limit = 100}).find("[step-limit-reached]"), std::string::npos);
  Result<InterpretStats> stats = interpret(*f, args, {.step_limit = 1000});
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->steps, 8 + 64 + 512);
}

// Not an assertion: the figure that decides how large tests may be.
TEST(InterpretProgram, Speed) {
  for (const char* t : {"float32", "bfloat16", "int8"}) {
    FunctionRef f = matmul_program(64, 64, 64, 0, *DType::parse(t));
    std::vector<Tensor> args = inputs_of(*f);
    Result<Interpreter> program = Interpreter::compile(*f);
    ASSERT_TRUE(program);
    const std::clock_t start = std::clock();  // processor time: the machine may be busy
    ASSERT_TRUE(program->run(args));
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%s matmul 64x64x64: %.1f ms, %.0f M multiply-adds/s, %zu instructions\n", t, seconds * 1e3,
                64.0 * 64 * 64 / seconds / 1e6, program->instructions());
  }
}

}  // namespace
}  // namespace tilewright
