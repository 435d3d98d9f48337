// How close generated code comes to OpenBLAS in float32 matrix products on one core: a hand-tiled loop program (B
// packed in panels, register tile, prefetches) through lowering and LLVM, timed alternately with cblas_sgemm in one
// process.
//
//   gemm_codegen_bench [n] [mr nr kc mc unroll prefetch_rows] [rounds] [pack_a prefetch_c]
//
// Prints compile times, GFLOP/s of both and the median of the pairwise ratios. Asserts nothing.
#include <cblas.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "codegen/codegen.h"
#include "ir/build.h"

using namespace tilewright;

namespace {

struct Plan {
  int64_t n = 512, mr = 6, nr = 16, kc = 256, mc = 96, unroll = 4, prefetch = 8, pack_a = 0, prefetch_c = 0;
};

Stmt loop(const Var& v, int64_t extent, Stmt body, ForKind kind = ForKind::serial, AttrDict annotations = {}) {
  return make_stmt<For>(v, int_imm(0), int_imm(extent), Expr(), kind, std::string(), std::move(annotations),
                        std::move(body));
}
Stmt put(const Buffer& b, std::vector<Expr> i, Expr v) { return make_stmt<Store>(b, std::move(i), std::move(v)); }
Stmt alloc(const Buffer& b, Stmt body) { return make_stmt<Allocate>(b, AttrDict(), std::move(body)); }
Var var(const char* name) { return make_var(name); }

struct Buffers {
  Buffer a, b, c, packed, packed_a;
};

// One mr × nr tile of C at (row, column), k from k0·kc: accumulators in registers.
// `a_tile`: index of the tile in the packed block of A, or null. `first`: C is written, else added to.
Stmt tile(const Plan& p, const Buffers& t, int64_t mr, int64_t nr, Expr row, Expr column, Expr panel, Expr a_tile,
          Expr k0, bool first) {
  Buffer acc = make_buffer("acc", kFloat32, {int_imm(mr), int_imm(nr)});
  Var i = var("i"), j = var("j"), ko = var("ko"), ki = var("ki"), i1 = var("i"), j1 = var("j"), i2 = var("i"),
      j2 = var("j");
  Stmt init = loop(i, mr, loop(j, nr, put(acc, {i, j}, float_imm(0)), ForKind::vectorized), ForKind::unrolled);
  Expr k = Expr(ko) * p.unroll + Expr(ki);
  Expr left = a_tile ? load(t.packed_a, {a_tile, k, i1}) : load(t.a, {row + Expr(i1), k0 * p.kc + k});
  Expr product = left * load(t.packed, {panel, k, j1});
  Stmt update = loop(i1, mr, loop(j1, nr, put(acc, {i1, j1}, load(acc, {i1, j1}) + product), ForKind::vectorized),
                     ForKind::unrolled);
  AttrDict notes;
  if (p.prefetch) notes["prefetch"] = AttrList{AttrList{"packed", std::max<int64_t>(1, p.prefetch / p.unroll), 3}};
  Stmt main = loop(ko, p.kc / p.unroll, loop(ki, p.unroll, update, ForKind::unrolled), ForKind::serial, notes);
  Expr old = load(t.c, {row + Expr(i2), column + Expr(j2)});
  Expr sum = load(acc, {i2, j2});
  Stmt add = put(t.c, {row + Expr(i2), column + Expr(j2)}, first ? sum : old + sum);
  Stmt finish = loop(i2, mr, loop(j2, nr, add, ForKind::vectorized), ForKind::unrolled);
  return alloc(acc, make_seq({init, main, finish}));
}

FunctionRef gemm(const Plan& p) {
  int64_t n = p.n;
  Buffers t{make_buffer("A", kFloat32, {int_imm(n), int_imm(n)}),
            make_buffer("B", kFloat32, {int_imm(n), int_imm(n)}),
            make_buffer("C", kFloat32, {int_imm(n), int_imm(n)}),
            {}};
  int64_t panels = (n + p.nr - 1) / p.nr, last = n - (panels - 1) * p.nr;
  t.packed = make_buffer("packed", kFloat32, {int_imm(panels), int_imm(p.kc), int_imm(p.nr)});
  int64_t block_rows = std::min(p.mc, n);
  t.packed_a =
      make_buffer("packed_a", kFloat32, {int_imm((block_rows + p.mr - 1) / p.mr), int_imm(p.kc), int_imm(p.mr)});
  int64_t full = last == p.nr ? panels : panels - 1;
  AttrDict notes;
  if (p.prefetch_c) notes["prefetch"] = AttrList{AttrList{"C", 0, 3}};

  auto pack_b = [&](Expr panel, int64_t width, Expr column, Expr k0) {
    Var k = var("k"), j = var("j");
    return loop(k, p.kc,
                loop(j, width, put(t.packed, {panel, k, j}, load(t.b, {k0 * p.kc + Expr(k), column + Expr(j)})),
                     ForKind::vectorized));
  };
  auto pack_a = [&](Expr index, int64_t rows, Expr row, Expr k0) {
    Var k = var("k"), i = var("i");
    return loop(k, p.kc,
                loop(i, rows, put(t.packed_a, {index, k, i}, load(t.a, {row + Expr(i), k0 * p.kc + Expr(k)})),
                     ForKind::unrolled));
  };
  // All panels for `count` rows from `base`.
  auto rows = [&](Expr base, int64_t count, Expr k0, bool first) {
    int64_t tiles = count / p.mr, rest = count % p.mr;
    std::vector<Stmt> parts;
    Var ip = var("ip"), jr = var("jr");
    if (p.pack_a && tiles) parts.push_back(loop(ip, tiles, pack_a(ip, p.mr, base + Expr(ip) * p.mr, k0)));
    if (p.pack_a && rest) parts.push_back(pack_a(int_imm(tiles), rest, base + tiles * p.mr, k0));
    auto column = [&](Expr panel, int64_t width, Expr col) {
      std::vector<Stmt> inner;
      Var i = var("ir");
      auto one = [&](Expr index, int64_t height) {
        return tile(p, t, height, width, base + index * p.mr, col, panel, p.pack_a ? index : Expr(), k0, first);
      };
      if (tiles) inner.push_back(loop(i, tiles, one(i, p.mr), ForKind::serial, notes));
      if (rest) inner.push_back(one(int_imm(tiles), rest));
      return make_seq(std::move(inner));
    };
    parts.push_back(loop(jr, full, column(jr, p.nr, Expr(jr) * p.nr)));
    if (full < panels) parts.push_back(column(int_imm(full), last, int_imm(full * p.nr)));
    return make_seq(std::move(parts));
  };
  auto step = [&](Expr k0, bool first) {
    std::vector<Stmt> parts;
    Var pj = var("jp"), ic = var("ic");
    parts.push_back(loop(pj, full, pack_b(pj, p.nr, Expr(pj) * p.nr, k0)));
    if (full < panels) parts.push_back(pack_b(int_imm(full), last, int_imm(full * p.nr), k0));
    int64_t blocks = n / p.mc, tail = n % p.mc;
    if (blocks) parts.push_back(loop(ic, blocks, rows(Expr(ic) * p.mc, p.mc, k0, first)));
    if (tail) parts.push_back(rows(int_imm(blocks * p.mc), tail, k0, first));
    return make_seq(std::move(parts));
  };
  Var k0 = var("k0");
  std::vector<Stmt> body{step(int_imm(0), true)};
  if (n > p.kc) body.push_back(loop(k0, n / p.kc - 1, step(Expr(k0) + 1, false)));
  auto f = std::make_unique<Function>();
  f->name = "gemm";
  f->schedulable = false;
  for (const Buffer& b : {t.a, t.b, t.c}) f->params.push_back({b->data, b, false});
  f->body = alloc(t.packed, p.pack_a ? alloc(t.packed_a, make_seq(std::move(body))) : make_seq(std::move(body)));
  return FunctionRef(f.release());
}

double seconds(const std::function<void()>& f) {
  auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
T value(Result<T> r) {
  if (r) return std::move(*r);
  fmt::print(stderr, "{}", render_text(r.error().diagnostic()));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  Plan p;
  auto arg = [&](int i, int64_t otherwise) { return argc > i ? std::atoll(argv[i]) : otherwise; };
  p.n = arg(1, 512), p.mr = arg(2, 6), p.nr = arg(3, 16), p.kc = arg(4, 256), p.mc = arg(5, 96), p.unroll = arg(6, 4),
  p.prefetch = arg(7, 8);
  p.pack_a = arg(9, 0), p.prefetch_c = arg(10, 0);
  int rounds = static_cast<int>(arg(8, 15));
  if (p.n % p.kc || p.kc % p.unroll) return fmt::print(stderr, "kc must divide n, unroll must divide kc\n"), 2;
  Target target = value(parse_target("native"));
  FunctionRef f = gemm(p);
  lowering::LoweredFunction lowered = value(lowering::lower(*f, target));
  double pass_ms = 0;
  for (const auto& t : lowered.times) pass_ms += t.ms;
  codegen::CodegenOptions options;
  options.keep_assembly = options.keep_llvm_ir = options.keep_llvm_ir_raw = std::getenv("DUMP") != nullptr;
  codegen::CompiledObject object = value(codegen::compile(lowered, target, options));
  if (const char* prefix = std::getenv("DUMP")) {
    std::ofstream(std::string(prefix) + ".s") << object.assembly;
    std::ofstream(std::string(prefix) + ".ll") << object.llvm_ir;
    std::ofstream(std::string(prefix) + ".raw.ll") << object.llvm_ir_raw;
  }
  std::string objects[] = {object.object};
  double link_ms = 0;
  std::string library;
  link_ms = 1e3 * seconds([&] { library = value(codegen::link_shared(objects)); });
  auto code = value(codegen::load_shared(library));
  fmt::print("{} passes {:.1f} ms, emit {:.1f} ms, LLVM {:.1f} + {:.1f} ms, link {:.1f} ms, code {} bytes\n",
             target.text(), pass_ms, object.report.emit_ms, object.report.optimise_ms, object.report.machine_ms,
             link_ms, object.report.code_bytes);

  auto buffer = [&] {
    return std::unique_ptr<float[], decltype(&std::free)>(
        static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(p.n * p.n * 4))), &std::free);
  };
  auto a = buffer(), b = buffer(), c = buffer(), reference = buffer();
  for (int64_t i = 0; i < p.n * p.n; ++i)
    a[i] = static_cast<float>((i * 7919) % 1009) / 1009 - 0.5f,
    b[i] = static_cast<float>((i * 104729) % 997) / 997 - 0.5f;
  std::unique_ptr<void, decltype(&std::free)> workspace(
      std::aligned_alloc(4096, static_cast<size_t>((object.workspace_size(1) + 4095) / 4096 * 4096 + 4096)),
      &std::free);
  tw_host host{TW_HOST_ABI, 1, nullptr, workspace.get(), nullptr};
  void* buffers[] = {a.get(), b.get(), c.get()};
  tw_entry entry = code->entry(object.entry);
  openblas_set_num_threads(1);
  auto ours = [&] { entry(buffers, nullptr, &host); };
  auto theirs = [&] {
    int n = static_cast<int>(p.n);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a.get(), n, b.get(), n, 0, reference.get(), n);
  };
  ours();
  theirs();
  double worst = 0;
  for (int64_t i = 0; i < p.n * p.n; ++i) worst = std::max(worst, std::abs(static_cast<double>(c[i]) - reference[i]));
  std::vector<double> ratios, mine, other;
  int repeat = static_cast<int>(std::max<int64_t>(1, (int64_t{1} << 29) / (p.n * p.n * p.n)));
  auto times = [&](const std::function<void()>& run) {
    return seconds([&] {
             for (int i = 0; i < repeat; ++i) run();
           }) /
           repeat;
  };
  for (int r = 0; r < rounds; ++r) {
    double first = times(ours), second = times(theirs);
    mine.push_back(first), other.push_back(second), ratios.push_back(second / first);
  }
  std::sort(ratios.begin(), ratios.end()), std::sort(mine.begin(), mine.end()), std::sort(other.begin(), other.end());
  double flop = 2.0 * static_cast<double>(p.n * p.n * p.n);
  fmt::print(
      "n {} tile {}x{} kc {} mc {} unroll {} prefetch {} pack A {} prefetch C {}: {:.1f} GFLOP/s (best {:.1f}), "
      "OpenBLAS {} {:.1f} (best {:.1f}), ratio {:.3f}, difference {:.1e}\n",
      p.n, p.mr, p.nr, p.kc, p.mc, p.unroll, p.prefetch, p.pack_a, p.prefetch_c, flop / mine[mine.size() / 2] * 1e-9,
      flop / mine[0] * 1e-9, openblas_get_corename(), flop / other[other.size() / 2] * 1e-9, flop / other[0] * 1e-9,
      ratios[ratios.size() / 2], worst);
  return worst < 1e-3 ? 0 : 1;
}
