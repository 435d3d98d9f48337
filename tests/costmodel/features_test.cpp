// Feature vectors derived by hand from the definitions (search.md §9). L(x) = log2(1 + x). Matmul and GPU figures are
// also those of the reference's own feature tests.
#include "costmodel/features/extract.h"

#include <gtest/gtest.h>

#include <cmath>

#include "costmodel/features/collect.h"
#include "tests/costmodel/nests.h"

namespace tilewright {
namespace {

using namespace testing;

double L(double x) { return std::log2(1 + x); }
const double M = 1 << 20;

Target cpu() {
  Target t;
  t.kind = TargetKind::cpu;
  return t;
}
Target gpu() {
  Target t;
  t.kind = TargetKind::cuda;
  return t;
}

using Values = std::vector<double>;

void expect_slots(std::span<const float> row, int first, const Values& expected, const char* what) {
  const FeatureSchema& schema = *feature_schema("tvm164").value();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(row[static_cast<size_t>(first) + i], expected[i], 1e-5)
        << what << ": " << schema.features[static_cast<size_t>(first) + i].name;
}

/// 18 slots of one buffer. reuse: 0 loop, 1 serial, 2 none; kind: 0 read, 1 write, 2 both.
Values buffer_slots(int kind, double bytes, double unique, double lines, double unique_lines, int reuse,
                    double iterations, double reuse_bytes, double count, double stride) {
  Values out(18, 0.0);
  out[static_cast<size_t>(kind)] = 1;
  out[static_cast<size_t>(7 + reuse)] = 1;
  double per = count > 0 ? count : 0.5;
  const std::pair<size_t, double> logs[] = {{3, bytes},
                                            {4, unique},
                                            {5, lines},
                                            {6, unique_lines},
                                            {10, iterations},
                                            {11, reuse_bytes},
                                            {12, count},
                                            {13, bytes / per},
                                            {14, unique / per},
                                            {15, lines / per},
                                            {16, unique_lines / per},
                                            {17, stride}};
  for (auto [slot, value] : logs) out[slot] = L(value);
  return out;
}

void expect_no_loop_kinds(std::span<const float> row) {
  for (int first : {16, 27, 38}) expect_slots(row, first, {0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, "loop kinds");
}

struct Matmul {
  Buffer a, b, c;
  FunctionRef f;
};

/// C[i, j] += A[i, k] * B[k, j] with the bindings given over the axes.
Matmul matmul(int64_t m, int64_t n, int64_t k, const std::vector<Axis>& axes, Expr i, Expr j, Expr kk) {
  Matmul out{buffer("A", {m, k}), buffer("B", {k, n}), buffer("C", {m, n}), {}};
  Stmt body = block(
      "C", {{"vi", m, S, i}, {"vj", n, S, j}, {"vk", k, R, kk}},
      [&](const std::vector<Expr>& v) {
        return store(out.c, {v[0], v[1]},
                     load(out.c, {v[0], v[1]}) + load(out.a, {v[0], v[2]}) * load(out.b, {v[2], v[1]}));
      },
      [&](const std::vector<Expr>& v) { return store(out.c, {v[0], v[1]}, float_imm(0)); });
  out.f = function({out.a, out.b, out.c}, {}, nest(axes, body));
  return out;
}

TEST(Schema, CoversItsSlotsOnceAndHashesWhatItSays) {
  const FeatureSchema& schema = *feature_schema("tvm164").value();
  EXPECT_EQ(schema.width, 164);
  for (int i = 0; i < schema.width; ++i) {
    EXPECT_EQ(schema.features[static_cast<size_t>(i)].slot, i);
    EXPECT_FALSE(schema.features[static_cast<size_t>(i)].doc.empty());
    EXPECT_FALSE(schema.features[static_cast<size_t>(i)].unit.empty());
    for (int j = 0; j < i; ++j)
      EXPECT_NE(schema.features[static_cast<size_t>(i)].name, schema.features[static_cast<size_t>(j)].name);
  }
  EXPECT_EQ(schema.features[57].name, "buffer0.read");
  EXPECT_EQ(schema.features[163].name, "auto-unroll");
  auto refused = feature_schema("tvm146");
  EXPECT_EQ(refused.error().code(), "unknown-feature-preset");
  EXPECT_EQ(refused.error().diagnostic().help, "did you mean \"tvm164\"?");
}

TEST(Features, PlainMatmulByHand) {
  // for i 8, j 4, k 16: C[i, j] += A[i, k] * B[k, j]; 512 iterations
  Axis i = axis("i", 8), j = axis("j", 4), k = axis("k", 16);
  Matmul m = matmul(8, 4, 16, {i, j, k}, i.var, j.var, k.var);
  FeatureRows rows = extract_features(*m.f, cpu());
  ASSERT_EQ(rows.rows(), 1);
  auto row = rows.row(0);
  expect_slots(row, 0, {0, L(512), L(512), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "arithmetic");
  expect_no_loop_kinds(row);
  expect_slots(row, 49, {0, 1, 1, 1, 1, 1, 1, 1}, "gpu");
  // A: k moves it with stride 1: lines 512 · 4/64 = 32; all 8 × 16 touched whole; reuse: j stands still (count 4,
  // distance 16 iterations, bytes under k: (A 16 + B 16 + C 1) · 4). B: k moves it with stride 4 elements: lines 512 ·
  // 16/64 = 128; reuse: i (8 times, after 4 · 16, bytes under j: (A 16 + B 64 + C 4) · 4). Contiguous: rows of 4 · 4
  // bytes. C: k stands still inside j: lines 512/16 · 4/64 = 2; reuse: k (16 times, 1 iteration, 3 elements of 4
  // bytes).
  expect_slots(row, 57, buffer_slots(0, 2048, 256, 128, 256.0 / 16, 0, 64, 84 * 4, 8, 4), "B");
  expect_slots(row, 75, buffer_slots(0, 2048, 512, 32, 512.0 / 64, 0, 16, 33 * 4, 4, 1), "A");
  expect_slots(row, 93, buffer_slots(2, 2048, 128, 2, 128.0 / 16, 0, 1, 12, 16, 0), "C");
  expect_slots(row, 111, Values(36, 0.0), "padding");
  // Work and bytes of k: 32, 132; of j, k: 128, 336; of all: 1024, (128 + 64 + 32) · 4 = 896.
  auto between = [](double at, double w0, double b0, double w1, double b1) {
    return L(w0 / b0 + (w1 / b1 - w0 / b0) / (w1 - w0) * (at - w0));
  };
  Values curve;
  for (int s = 1; s <= 10; ++s) {
    double at = 102.4 * s;
    curve.push_back(s == 1 ? between(at, 32, 132, 128, 336) : between(at, 128, 336, 1024, 896));
  }
  expect_slots(row, 147, curve, "intensity");
  expect_slots(row, 157, {L(128), L(32), 1, L(512), L(512), L(3), 0}, "allocation, outer");
}

TEST(Features, TiledMatmulOnACpu) {
  // i = io·16 + ii, j = jo·8 + ji; loops io 32 parallel, jo 64 parallel, k 512 unrolled, ji 8 vectorized, ii 16
  Axis io = axis("io", 32, ForKind::parallel), jo = axis("jo", 64, ForKind::parallel),
       k = axis("k", 512, ForKind::unrolled), ji = axis("ji", 8, ForKind::vectorized), ii = axis("ii", 16);
  Matmul m = matmul(512, 512, 512, {io, jo, k, ji, ii}, Expr(io.var) * 16 + ii.var, Expr(jo.var) * 8 + ji.var, k.var);
  FeatureRows rows = extract_features(*m.f, cpu());
  ASSERT_EQ(rows.rows(), 1);
  auto row = rows.row(0);
  double n = 128 * M;
  // i stands in C and A, j in C and B: four additions and four multiplications of indices
  expect_slots(row, 0, {0, L(n), L(n), 0, 0, 0, 0, 0, L(4 * n), L(4 * n), 0, 0, 0, 0, 0, 0}, "arithmetic");
  expect_slots(row, 16, {1, L(8), L(8), 0, 0, 0, 0, 0, 0, 0, 1}, "vectorized");
  expect_slots(row, 27, {1, L(512), L(512), 0, 0, 0, 0, 0, 0, 0, 1}, "unrolled");
  expect_slots(row, 38, {L(2), L(2048), L(64), 0, 0, 0, 0, 0, 0, 0, 1}, "parallel");
  expect_slots(row, 49, {0, 1, 1, 1, 1, 1, 1, 1}, "gpu");
  // ii moves A and C by a row of 512; reuse of A: ji (8, after 16 iterations, under ii: A 16, B 1, C 16 elements), of
  // C: k (512, after 128, under ji: A 16, B 8, C 128), of B: ii (16, 1, three elements).
  expect_slots(row, 57, buffer_slots(0, 4 * n, M, n, 16384, 0, 16, 33 * 4, 8, 512), "A");
  expect_slots(row, 75, buffer_slots(2, 4 * n, M, n, 16384, 0, 128, 152 * 4, 512, 512), "C");
  expect_slots(row, 93, buffer_slots(0, 4 * n, M, n / 16 / 16, 16384, 0, 1, 12, 16, 0), "B");
  expect_slots(row, 111, Values(36, 0.0), "padding");
  expect_slots(row, 147,
               {3.812599, 4.464822, 4.912349, 5.253426, 5.529086, 5.76043, 5.959752, 6.134849, 6.290977, 6.431846},
               "intensity");
  expect_slots(row, 157, {L(M), L(M / 4), 1, L(n), L(n), L(5), 0}, "allocation, outer");
}

TEST(Features, ElementwiseByHand) {
  // for i 64 parallel (unroll limit 16), jo 4, ji 32 vectorized: B[i, jo·32 + ji] = max(A[…] · 2 + 1, 0)
  Axis i = axis("i", 64, ForKind::parallel), jo = axis("jo", 4), ji = axis("ji", 32, ForKind::vectorized);
  i.annotations["pragma_auto_unroll_max_step"] = Attr(int64_t{16});
  Buffer a = buffer("A", {64, 128}), b = buffer("B", {64, 128});
  Stmt body =
      block("B", {{"vi", 64, S, i.var}, {"vj", 128, S, Expr(jo.var) * 32 + ji.var}}, [&](const std::vector<Expr>& v) {
        return store(b, {v[0], v[1]}, max_of(load(a, {v[0], v[1]}) * float_imm(2) + float_imm(1), float_imm(0)));
      });
  FeatureRows rows = extract_features(*function({a, b}, {}, nest({i, jo, ji}, body)), cpu());
  ASSERT_EQ(rows.rows(), 1);
  auto row = rows.row(0);
  double n = 8192;
  expect_slots(row, 0, {0, L(n), L(n), 0, L(n), 0, 0, 0, L(n), L(n), 0, 0, 0, 0, 0, 0}, "arithmetic");
  expect_slots(row, 57, buffer_slots(0, 4 * n, 4 * n, 512, 512, 2, 0, 0, 0, 1), "A");
  expect_slots(row, 75, buffer_slots(1, 4 * n, 4 * n, 512, 512, 2, 0, 0, 0, 1), "B");
  // Three operations for eight bytes at every level.
  expect_slots(row, 147, Values(10, L(3.0 / 8)), "intensity");
  expect_slots(row, 157, {L(4 * n), L(n), 1, L(n), L(n), L(3), L(16)}, "allocation, outer");
}

TEST(Features, SerialReuseBetweenTwoStores) {
  // for i 64, j 32: B[i, j] = A[i, j]; C[i, j] = B[i, j]
  Axis i = axis("i", 64), j = axis("j", 32);
  Buffer a = buffer("A", {64, 32}), b = buffer("B", {64, 32}), c = buffer("C", {64, 32});
  auto copy = [&](const Buffer& to, const Buffer& from) {
    return block(to->name, {{"vi", 64, S, i.var}, {"vj", 32, S, j.var}},
                 [&](const std::vector<Expr>& v) { return store(to, {v[0], v[1]}, load(from, {v[0], v[1]})); });
  };
  FeatureRows rows =
      extract_features(*function({a, b, c}, {}, nest({i, j}, make_seq({copy(b, a), copy(c, b)}))), cpu());
  ASSERT_EQ(rows.rows(), 2);
  Values fresh = buffer_slots(0, 8192, 8192, 128, 128, 2, 0, 0, 0, 1),
         written = buffer_slots(1, 8192, 8192, 128, 128, 2, 0, 0, 0, 1);
  expect_slots(rows.row(0), 57, fresh, "A");
  expect_slots(rows.row(0), 75, written, "B");
  // Under j both stores touched one element of B: 1 use, 1/… iterations apart: min touch 32 over extent 32 = 1; bytes
  // under j: A, B twice, C once: 4 · 32 elements · 4 bytes over 32.
  expect_slots(rows.row(1), 57, buffer_slots(0, 8192, 8192, 128, 128, 1, 1, 16, 1, 1), "B");
  expect_slots(rows.row(1), 75, written, "C");
  for (int r : {0, 1}) {
    expect_slots(rows.row(r), 0, Values(16, 0.0), "arithmetic");
    expect_slots(rows.row(r), 147, Values(10, 0.0), "intensity");
    expect_slots(rows.row(r), 157, {L(8192), L(2048), 1, L(2048), L(2048), L(2), 0}, "allocation, outer");
  }
}

struct GpuMatmul {
  FunctionRef f;
  GpuMatmul() {
    Buffer a = buffer("A", {512, 512}), b = buffer("B", {512, 512}), c = buffer("C", {512, 512});
    Buffer a_shared = buffer("A_shared", {512, 512}, "shared"), b_shared = buffer("B_shared", {512, 512}, "shared"),
           c_local = buffer("C_local", {512, 512}, "local");
    Axis bx = thread_axis_of("bx", 8, "blockIdx.x"), vt = thread_axis_of("vt", 4, "vthread.x"),
         tx = thread_axis_of("tx", 16, "threadIdx.x");
    bx.annotations["pragma_auto_unroll_max_step"] = Attr(int64_t{1024});
    Axis k0 = axis("k0", 256);
    auto copy = [&](const Buffer& to, const Buffer& from, int64_t iterations, auto row, auto column) {
      Axis f0 = axis("f0", iterations), f1 = thread_axis_of("f1", 16, "threadIdx.x");
      Expr fused = Expr(f0.var) * 16 + f1.var;
      return nest({f0, f1},
                  block(to->name, {{"v0", 512, S, row(fused)}, {"v1", 512, S, column(fused)}},
                        [&](const std::vector<Expr>& v) { return store(to, {v[0], v[1]}, load(from, {v[0], v[1]})); }));
    };
    Stmt copy_a = copy(
        a_shared, a, 64, [&](Expr x) { return floor_div(x, 2); },
        [&](Expr x) { return Expr(k0.var) * 2 + floor_mod(x, 2); });
    Stmt copy_b = copy(
        b_shared, b, 8, [&](Expr x) { return Expr(k0.var) * 2 + floor_div(x, 64); },
        [&](Expr x) { return Expr(bx.var) * 64 + floor_mod(x, 64); });
    Axis k1 = axis("k1", 1), i3 = axis("i3", 32), j3 = axis("j3", 1), k2 = axis("k2", 2), i4 = axis("i4", 1),
         j4 = axis("j4", 16);
    Stmt update = nest(
        {k1, i3, j3, k2, i4, j4},
        block(
            "C",
            {{"vi", 512, S, Expr(tx.var) * 32 + i3.var + i4.var},
             {"vj", 512, S, Expr(bx.var) * 64 + Expr(vt.var) * 16 + Expr(j3.var) * 16 + j4.var},
             {"vk", 512, R, Expr(k0.var) * 2 + Expr(k1.var) * 2 + k2.var}},
            [&](const std::vector<Expr>& v) {
              return store(c_local, {v[0], v[1]},
                           load(c_local, {v[0], v[1]}) + load(a_shared, {v[0], v[2]}) * load(b_shared, {v[2], v[1]}));
            },
            [&](const std::vector<Expr>& v) { return store(c_local, {v[0], v[1]}, float_imm(0)); }));
    Axis ax0 = axis("ax0", 32), ax1 = axis("ax1", 16);
    Stmt write =
        nest({ax0, ax1},
             block("C_local",
                   {{"v0", 512, S, Expr(tx.var) * 32 + ax0.var},
                    {"v1", 512, S, Expr(bx.var) * 64 + Expr(vt.var) * 16 + ax1.var}},
                   [&](const std::vector<Expr>& v) { return store(c, {v[0], v[1]}, load(c_local, {v[0], v[1]})); }));
    Stmt body = nest({bx, vt, tx}, make_seq({nest({k0}, make_seq({copy_a, copy_b, update})), write}));
    f = function({a, b, c}, {a_shared, b_shared, c_local}, body);
  }
};

TEST(Features, SharedMemoryMatmulOnAGpu) {
  GpuMatmul m;
  FeatureRows rows = extract_features(*m.f, gpu());
  ASSERT_EQ(rows.rows(), 4);
  for (int r = 0; r < 4; ++r) {
    expect_no_loop_kinds(rows.row(r));
    expect_slots(rows.row(r), 49, {1, L(8), 1, 1, L(16), 1, 1, L(4)}, "gpu");
    expect_slots(rows.row(r), 163, {L(1024)}, "unroll");
  }
  // Reuse of A_shared: k0 stands still; under f0 rows 0, 8, … 504 of A and of A_shared are boxed by 505 elements each.
  // A_shared[512, 2] = A[f0·8 + tx/2, k0·2 + tx%2] under bx 8, vt 4, tx 16 (one loop for both bindings), k0 256, f0 64.
  auto row = rows.row(0);
  double n = 8 * M;
  expect_slots(row, 0, {0, 0, 0, 0, 0, 0, 0, 0, L(2 * n), L(2 * n), L(2 * n), 0, 0, 0, 0, 0}, "A_shared arithmetic");
  expect_slots(row, 57,
               {1, 0, 0, 25.00000004, 19.99718086, 23.00000017, 13.99726771, 1, 0, 0, 18.0000055, 20.00000138,
                2.32192809, 23.00000017, 17.997185, 21.00000069, 11.99753235, 12.00035218},
               "A");
  expect_slots(row, 75, buffer_slots(1, 4 * n, 2048, n, 2048.0 / 64, 0, 64, 2 * 505 * 4, 256, 16), "A_shared");
  expect_slots(row, 147, Values(10, 0.0), "intensity");
  expect_slots(row, 157, {L(4096), L(1024.0 * 131072), L(131072), L(64), L(n), L(5)}, "A_shared allocation");

  // B_shared[2, 64] = B[k0·2 + f0/4, bx·64 + f0%4·16 + tx]
  row = rows.row(1);
  n = M;
  expect_slots(row, 0, {0, 0, 0, 0, 0, 0, 0, 0, L(3 * n), L(3 * n), L(2 * n), 0, 0, 0, 0, 0}, "B_shared arithmetic");
  expect_slots(row, 57,
               {1, 0, 0, 22.00000034, 19.85798251, 20.00000138, 13.85807816, 1, 0, 0, 15.00004403, 20.04456622,
                2.32192809, 20.00000138, 17.85798707, 18.0000055, 11.8583696, 4.08746284},
               "B");
  expect_slots(row, 157, {L(512), L(128.0 * 131072), L(131072), L(8), L(n), L(5)}, "B_shared allocation");

  // C_local[32, 16] += A_shared[tx·32 + i3, k2] · B_shared[k2, vt·16 + j4] under bx, vt, tx, k0, i3, k2, j4
  row = rows.row(2);
  n = 128 * M;
  expect_slots(row, 0, {0, L(n), L(n), 0, 0, 0, 0, 0, L(2 * n), L(2 * n), 0, 0, 0, 0, 0, 0}, "C_local arithmetic");
  expect_slots(row, 57, buffer_slots(0, 4 * n, 512, n / 16, 512.0 / 64, 0, 32, (2 + 32 + 16) * 4, 32, 1), "B_shared");
  expect_slots(row, 75, buffer_slots(2, 4 * n, 2048, n / 16, 2048.0 / 64, 0, 16, 33 * 4, 2, 1), "C_local");
  expect_slots(row, 93, buffer_slots(0, 4 * n, 4096, n / 16 / 16, 4096.0 / 8, 0, 1, 12, 16, 0), "A_shared");
  expect_slots(
      row, 147,
      {11.98533, 12.977811, 13.562714, 13.977722, 14.299632, 14.562654, 14.785038, 14.977677, 15.147597, 15.299596},
      "intensity");
  expect_slots(row, 157, {L(2048), L(512.0 * 512), L(512), L(262144), L(n), L(7)}, "C_local allocation");

  // C[tx·32 + ax0, bx·64 + vt·16 + ax1] = C_local[ax0, ax1]
  row = rows.row(3);
  n = M / 4;
  expect_slots(row, 0, Values(16, 0.0), "C arithmetic");
  expect_slots(row, 57, buffer_slots(1, M, M, 16384, 16384, 2, 0, 0, 0, 1), "C");
  expect_slots(row, 75, buffer_slots(0, M, 2048, 16384, 32, 0, 512, 4096, 16, 1), "C_local");
  expect_slots(row, 157, {L(M), L(n), 1, L(n), L(n), L(5)}, "C allocation");
}

}  // namespace
}  // namespace tilewright
