// Programs compiled and run in process, against the interpreter.
#include <functional>

#include "tests/codegen/programs.h"

namespace tilewright::test {
namespace {

using enum ForKind;

Stmt matmul_block(const Buffer& a, const Buffer& b, const Buffer& c, int64_t m, int64_t n, int64_t k, Expr i, Expr j,
                  Expr r, Expr predicate = {}) {
  Var vi = var("vi"), vj = var("vj"), vk = var("vk");
  Expr product = load(a, {vi, vk}) * load(b, {vk, vj});
  return block("C", {{vi, m, i}, {vj, n, j}, {vk, k, r, IterType::reduction}}, {at(a, {vi, vk}), at(b, {vk, vj})},
               {at(c, {vi, vj})}, store(c, {vi, vj}, load(c, {vi, vj}) + product), store(c, {vi, vj}, float_imm(0)),
               predicate);
}

FunctionRef matmul(int64_t m, int64_t n, int64_t k) {
  Buffer a = buffer("A", {m, k}), b = buffer("B", {k, n}), c = buffer("C", {m, n});
  Var i = var("i"), j = var("j"), r = var("k");
  return function("matmul", {a, b, c},
                  root(loop(i, m, loop(j, n, loop(r, k, matmul_block(a, b, c, m, n, k, i, j, r))))));
}

FunctionRef mm_relu(int64_t m, int64_t n, int64_t k) {
  Buffer a = buffer("A", {m, k}), b = buffer("B", {k, n}), c = buffer("C", {m, n}), y = buffer("Y", {m, n});
  Var i = var("i"), j = var("j"), r = var("k"), i1 = var("i"), j1 = var("j"), vi = var("vi"), vj = var("vj");
  Stmt relu = block("Y", {{vi, m, i1}, {vj, n, j1}}, {at(c, {vi, vj})}, {at(y, {vi, vj})},
                    store(y, {vi, vj}, max_of(load(c, {vi, vj}), float_imm(0))));
  Stmt body = make_seq(
      {loop(i, m, loop(j, n, loop(r, k, matmul_block(a, b, c, m, n, k, i, j, r)))), loop(i1, m, loop(j1, n, relu))});
  return function("mm_relu", {a, b, y}, root(body, {c}));
}

TEST(Run, MatmulUnscheduled) { expect_same_as_interpreter(*matmul(17, 13, 9)); }
TEST(Run, MmReluUnscheduled) { expect_same_as_interpreter(*mm_relu(16, 12, 8)); }

TEST(Run, SharedObjectAndInProcessCodeAgree) {
  FunctionRef f = mm_relu(8, 8, 8);
  Compiled c = compile(*f);
  std::vector<Tensor> one = make_arguments(*f, InputSet::random, 1), two = one;
  c.run(one);
  std::string objects[] = {c.object.object};
  c.code = take(codegen::load_shared(take(codegen::link_shared(objects))));
  c.run(two);
  EXPECT_TRUE(expect_equal(one[2], two[2]));
  auto* workspace = static_cast<const int64_t*>(c.code->symbol("mm_relu_workspace"));
  ASSERT_NE(workspace, nullptr);
  EXPECT_EQ(workspace[0], c.object.workspace_bytes);
  EXPECT_EQ(c.code->symbol("no_such_symbol"), nullptr);
}

TEST(Run, NoUndefinedSymbols) { EXPECT_TRUE(compile(*matmul(4, 4, 4)).object.report.symbols.empty()); }

// --- vectors
// -----------------------------------------------------------------------------------------------------------

FunctionRef elementwise(int64_t n, const std::function<Expr(Expr)>& f, DType in = kFloat32, DType out = kFloat32,
                        ForKind kind = vectorized) {
  Buffer a = buffer("A", {n}, in), y = buffer("Y", {n}, out);
  Var i = var("i");
  return function("elementwise", {a, y}, loop(i, n, store(y, {i}, f(load(a, {i}))), kind));
}

TEST(Vectorize, EveryExtentAndTail) {
  for (int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 31, 33, 64, 100, 300})
    expect_same_as_interpreter(*elementwise(n, [](Expr x) { return x * x + x; }));
}

TEST(Vectorize, MathTableIsBitEqual) {
  for (const char* name :
       {"exp", "exp2", "log", "tanh", "erf", "sigmoid", "sqrt", "rsqrt", "floor", "ceil", "round", "fabs"}) {
    SCOPED_TRACE(name);
    expect_same_as_interpreter(*elementwise(37, [&](Expr x) { return call(name, {x}); }), InputSet::positive);
    expect_same_as_interpreter(*elementwise(37, [&](Expr x) { return call(name, {x * float_imm(-3)}); }),
                               InputSet::random);
  }
}

TEST(Vectorize, MinimumMaximumAndSelect) {
  expect_same_as_interpreter(
      *elementwise(19, [](Expr x) { return max_of(x, float_imm(0)) + min_of(x, float_imm(0.25)); }));
  expect_same_as_interpreter(
      *elementwise(19, [](Expr x) { return select(less(x, float_imm(0)), x * float_imm(0.1), x); }));
}

TEST(Vectorize, StorageTypesRoundOnce) {
  for (DType t : {kBFloat16, kFloat16}) {
    SCOPED_TRACE(t.str());
    expect_same_as_interpreter(*elementwise(37, [](Expr x) { return x * x + x; }, t, t));
    expect_same_as_interpreter(*elementwise(37, [&](Expr x) { return cast(t, x); }, kFloat32, t));
    expect_same_as_interpreter(*elementwise(37, [](Expr x) { return cast(kFloat32, x); }, t, kFloat32));
  }
}

TEST(Vectorize, Integers) {
  expect_same_as_interpreter(*elementwise(67, [](Expr x) { return cast(kInt32, x) * 3; }, kInt8, kInt32));
  expect_same_as_interpreter(
      *elementwise(67, [](Expr x) { return floor_div(x, 7) + floor_mod(x, 7); }, kInt32, kInt32));
  expect_same_as_interpreter(
      *elementwise(67, [](Expr x) { return floor_div(x, 8) + floor_mod(x, 8); }, kInt32, kInt32));
  expect_same_as_interpreter(*elementwise(67, [](Expr x) { return cast(kUInt8, x); }, kInt32, kUInt8));
}

TEST(Vectorize, TransposeRunsAndReversal) {
  Buffer a = buffer("A", {8, 16}), t = buffer("T", {16, 8}), r = buffer("R", {16}), g = buffer("G", {128}),
         d = buffer("D", {4, 12});
  Var i = var("i"), j = var("j"), k = var("k"), f = var("f"), h = var("h");
  Stmt transpose = loop(i, 16, loop(j, 8, store(t, {i, j}, load(a, {j, i})), vectorized));
  Stmt reverse = loop(k, 16, store(r, {k}, load(a, {int_imm(1), int_imm(15) - Expr(k)})), vectorized);
  Stmt fused = loop(f, 128, store(g, {f}, load(a, {floor_div(Expr(f), 16), floor_mod(Expr(f), 16)})), vectorized);
  Stmt rows = loop(h, 48,
                   store(d, {floor_div(Expr(h), 12), floor_mod(Expr(h), 12)},
                         load(a, {floor_div(Expr(h), 12), floor_mod(Expr(h), 12) + 2})),
                   vectorized);
  expect_same_as_interpreter(*function("moves", {a, t, r, g, d}, make_seq({transpose, reverse, fused, rows})));
}

TEST(Vectorize, GuardsMaskTheTail) {
  for (int64_t n : {5, 29, 32, 61}) {
    Buffer a = buffer("A", {n}), y = buffer("Y", {n});
    Var i = var("i"), j = var("j");
    Expr at = Expr(i) * 16 + Expr(j);
    Stmt body = make_stmt<If>(less(at, int_imm(n)), store(y, {at}, load(a, {at}) * float_imm(2)), Stmt());
    expect_same_as_interpreter(*function("tail", {a, y}, loop(i, (n + 15) / 16, loop(j, 16, body, vectorized))));
  }
}

TEST(Vectorize, PaddedReadTouchesOnlyTheInside) {
  Buffer a = buffer("A", {13}), y = buffer("Y", {16});
  Var i = var("i");
  Expr inside = and_of(less_equal(int_imm(1), Expr(i)), less(Expr(i), int_imm(14)));
  Stmt body = store(y, {i}, if_then_else(inside, load(a, {Expr(i) - 1}), float_imm(0)));
  expect_same_as_interpreter(*function("pad", {a, y}, loop(i, 16, body, vectorized)));
}

TEST(Vectorize, ReductionAlongTheLoopKeepsItsOrder) {
  Buffer a = buffer("A", {4, 32}), y = buffer("Y", {4});
  Var i = var("i"), k = var("k");
  Stmt body =
      make_seq({store(y, {i}, float_imm(0)), loop(k, 32, store(y, {i}, load(y, {i}) + load(a, {i, k})), vectorized)});
  expect_same_as_interpreter(*function("sum", {a, y}, loop(i, 4, body)));
}

// --- parallel, workspace, stack
// ----------------------------------------------------------------------------------------

struct Pool {
  uint32_t workers;
  bool reversed;
};
int32_t run_chunks(void* ctx, int64_t chunks, tw_body body, void* env) {
  auto* pool = static_cast<Pool*>(ctx);
  for (int64_t i = 0; i < chunks; ++i) {
    int64_t chunk = pool->reversed ? chunks - 1 - i : i;
    if (int32_t error = body(env, chunk, static_cast<uint32_t>(chunk % pool->workers))) return error;
  }
  return 0;
}

FunctionRef parallel_tiles(int64_t n) {
  // Each iteration fills a private 8 KB buffer twice as large as the stack share allows when three of them nest.
  Buffer a = buffer("A", {n, 2048}), y = buffer("Y", {n, 2048});
  Buffer t1 = buffer("t1", {2048}), t2 = buffer("t2", {2048}), t3 = buffer("t3", {2048});
  Var i = var("i"), j = var("j"), k = var("k"), l = var("l"), m = var("m");
  Stmt body = make_seq({loop(j, 2048, store(t1, {j}, load(a, {i, j}) + float_imm(1)), vectorized),
                        loop(k, 2048, store(t2, {k}, load(t1, {int_imm(2047) - Expr(k)})), vectorized),
                        loop(l, 2048, store(t3, {l}, load(t2, {l}) * load(t1, {l})), vectorized),
                        loop(m, 2048, store(y, {i, m}, load(t3, {m}) - load(t2, {m})), vectorized)});
  for (const Buffer& t : {t3, t2, t1}) body = make_stmt<Allocate>(t, AttrDict(), body);
  return function("tiles", {a, y}, loop(i, n, body, parallel));
}

TEST(Parallel, SameBitsForAnyNumberOfWorkersAndOrder) {
  FunctionRef f = parallel_tiles(11);
  std::vector<Tensor> expected = make_arguments(*f, InputSet::random, 3), args;
  ASSERT_TRUE(interpret(*f, expected));
  Compiled c = compile(*f);
  EXPECT_GT(c.object.workspace_slice_bytes, 0);
  for (uint32_t workers : {1u, 2u, 3u, 16u})
    for (bool reversed : {false, true}) {
      Pool pool{workers, reversed};
      tw_host host{TW_HOST_ABI, workers, &pool, nullptr, run_chunks};
      args = make_arguments(*f, InputSet::random, 3);
      c.run(args, &host);
      EXPECT_TRUE(expect_equal(expected[1], args[1])) << workers;
    }
  args = make_arguments(*f, InputSet::random, 3);
  c.run(args);  // no pool: serial
  EXPECT_TRUE(expect_equal(expected[1], args[1]));
}

TEST(Parallel, MoreIterationsThanChunks) {
  expect_same_as_interpreter(*elementwise(1000, [](Expr x) { return x + float_imm(1); }, kFloat32, kFloat32, parallel));
}

TEST(Parallel, ErrorOfABodyIsReturned) {
  Buffer a = buffer("A", {8}), y = buffer("Y", {8});
  Var i = var("i");
  Stmt body =
      make_seq({make_stmt<Assert>(less(Expr(i), int_imm(5)), std::string("too far")), store(y, {i}, load(a, {i}))});
  FunctionRef f = function("checked", {a, y}, loop(i, 8, body, parallel));
  Compiled c = compile(*f);
  Aligned x(32), z(32);
  void* buffers[] = {x.data.get(), z.data.get()};
  tw_host host{TW_HOST_ABI, 1, nullptr, nullptr, nullptr};
  EXPECT_EQ(c.code->entry("checked")(buffers, nullptr, &host), tw_error_assert);
  Pool pool{2, false};
  host = {TW_HOST_ABI, 2, &pool, nullptr, run_chunks};
  EXPECT_EQ(c.code->entry("checked")(buffers, nullptr, &host), tw_error_assert);
}

// --- schedules
// ---------------------------------------------------------------------------------------------------------

// C tile cached, k split, j vectorized, decomposed by hand; sizes that the tile does not divide are guarded.
FunctionRef tiled_matmul(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t tm = 6, tn = 16, tk = 4;
  Buffer a = buffer("A", {m, k}), b = buffer("B", {k, n}), c = buffer("C", {m, n}), cache = buffer("C_cache", {m, n});
  Var i0 = var("i0"), j0 = var("j0"), k0 = var("k0"), i1 = var("i1"), j1 = var("j1"), k1 = var("k1"), i2 = var("i2"),
      j2 = var("j2"), i3 = var("i3"), j3 = var("j3");
  auto guard = [&](Expr i, Expr j) {
    return and_of(m % tm ? less(i, int_imm(m)) : Expr(), n % tn ? less(j, int_imm(n)) : Expr());
  };
  auto row = [&](const Var& i) { return Expr(i0) * tm + Expr(i); };
  auto column = [&](const Var& j) { return Expr(j0) * tn + Expr(j); };
  Var vi = var("vi"), vj = var("vj"), vk = var("vk");
  Stmt init = block("C_init", {{vi, m, row(i1)}, {vj, n, column(j1)}}, {}, {at(cache, {vi, vj})},
                    store(cache, {vi, vj}, float_imm(0)), {}, guard(row(i1), column(j1)));
  Var ui = var("vi"), uj = var("vj"), uk = var("vk");
  Expr product = load(a, {ui, uk}) * load(b, {uk, uj});
  Stmt update =
      block("C_update", {{ui, m, row(i2)}, {uj, n, column(j2)}, {uk, k, Expr(k0) * tk + Expr(k1), IterType::reduction}},
            {at(cache, {ui, uj}), at(a, {ui, uk}), at(b, {uk, uj})}, {at(cache, {ui, uj})},
            store(cache, {ui, uj}, load(cache, {ui, uj}) + product), {},
            and_of(guard(row(i2), column(j2)), k % tk ? less(Expr(k0) * tk + Expr(k1), int_imm(k)) : Expr()));
  Var wi = var("vi"), wj = var("vj");
  Stmt copy = block("C_cache", {{wi, m, row(i3)}, {wj, n, column(j3)}}, {at(cache, {wi, wj})}, {at(c, {wi, wj})},
                    store(c, {wi, wj}, load(cache, {wi, wj})), {}, guard(row(i3), column(j3)));
  Stmt body = make_seq(
      {loop(i1, tm, loop(j1, tn, init, vectorized)),
       loop(k0, (k + tk - 1) / tk, loop(k1, tk, loop(i2, tm, loop(j2, tn, update, vectorized), unrolled), unrolled)),
       loop(i3, tm, loop(j3, tn, copy, vectorized))});
  return function("tiled", {a, b, c},
                  root(loop(i0, (m + tm - 1) / tm, loop(j0, (n + tn - 1) / tn, body), parallel), {cache}));
}

TEST(Schedule, TiledMatmulThatDivides) { expect_same_as_interpreter(*tiled_matmul(12, 32, 8)); }
TEST(Schedule, TiledMatmulThatDoesNotDivide) {
  expect_same_as_interpreter(*tiled_matmul(13, 37, 10));
  expect_same_as_interpreter(*tiled_matmul(5, 7, 3));
}

TEST(Schedule, CachedTileLivesInRegisters) {
  Compiled c = compile(*tiled_matmul(12, 32, 64));
  EXPECT_EQ(c.object.workspace_size(4), 0);
  EXPECT_LT(c.object.report.code_bytes, 16384);
}

TEST(Schedule, BufferDimAlignKeepsResults) {
  Buffer a = buffer("A", {9, 16}), t = buffer("T", {9, 16}), y = buffer("Y", {16, 9});
  Var i = var("i"), j = var("j"), k = var("k"), l = var("l"), vi = var("vi"), vj = var("vj"), wi = var("vi"),
      wj = var("vj");
  AttrDict pad{{"buffer_dim_align", AttrList{AttrList{0, 0, 32, 1}}}};
  Stmt copy = block("T", {{vi, 9, i}, {vj, 16, j}}, {at(a, {vi, vj})}, {at(t, {vi, vj})},
                    store(t, {vi, vj}, load(a, {vi, vj})), {}, {}, pad);
  Stmt out = block("Y", {{wi, 16, k}, {wj, 9, l}}, {at(t, {wj, wi})}, {at(y, {wi, wj})},
                   store(y, {wi, wj}, load(t, {wj, wi})));
  FunctionRef f = function(
      "padded", {a, y}, root(make_seq({loop(i, 9, loop(j, 16, copy, vectorized)), loop(k, 16, loop(l, 9, out))}), {t}));
  expect_same_as_interpreter(*f);
  Compiled c = compile(*f);
  EXPECT_TRUE(c.lowered.notes.empty());
}

TEST(Schedule, PrefetchChangesNothing) {
  Buffer a = buffer("A", {64, 16}), y = buffer("Y", {64, 16});
  Var i = var("i"), j = var("j");
  AttrDict notes{{"prefetch", AttrList{AttrList{"A", 4, 3}}}};
  expect_same_as_interpreter(*function(
      "copy", {a, y}, loop(i, 64, loop(j, 16, store(y, {i, j}, load(a, {i, j})), vectorized), serial, notes)));
}

// --- refusals
// ----------------------------------------------------------------------------------------------------------

std::string code_of(const Function& f, const lowering::LowerOptions& options = {}) {
  Result<lowering::LoweredFunction> lowered = lowering::lower(f, target(), options);
  if (!lowered) return std::string(lowered.error().code());
  Result<codegen::CompiledObject> object = codegen::compile(*lowered, target());
  return object ? "ok" : std::string(object.error().code());
}

TEST(Refusals, EachHasItsCode) {
  lowering::LowerOptions small;
  small.max_code = 8;
  EXPECT_EQ(
      code_of(*elementwise(100, [](Expr x) { return x; }, kFloat32, kFloat32, unrolled), small), "unroll-too-large");
  Buffer a = buffer("A", {8}), y = buffer("Y", {8});
  Var i = var("i"), t = var("t");
  auto bound = make_stmt<For>(t, int_imm(0), int_imm(8), Expr(), thread_binding, std::string("threadIdx.x"), AttrDict(),
                              store(y, {t}, load(a, {t})));
  EXPECT_EQ(code_of(*function("gpu", {a, y}, bound)), "codegen-unsupported");
  Stmt extern_call = store(y, {i}, call(kFloat32, operation("call_pure_extern"), {load(a, {i})}));
  EXPECT_EQ(code_of(*function("ext", {a, y}, loop(i, 8, extern_call))), "codegen-unsupported");
  AttrDict bad{{"prefetch", AttrList{3}}};
  EXPECT_EQ(code_of(*function("pf", {a, y}, loop(i, 8, store(y, {i}, load(a, {i})), serial, bad))),
            "prefetch-malformed");
  AttrDict gpu{{"tilewright.persistent", 4}};
  EXPECT_EQ(code_of(*function("ann", {a, y}, loop(i, 8, store(y, {i}, load(a, {i})), serial, gpu))),
            "annotation-not-on-target");
}

}  // namespace
}  // namespace tilewright::test
