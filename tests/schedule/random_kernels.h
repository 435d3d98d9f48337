// Random kernels of the kinds that people tune, for the schedule fuzzer: chains of elementwise blocks, reductions with
// epilogues, matrix products, convolutions whose padding is an if_then_else or a predicate, pooling, scans, several
// consumers of one producer, in-place updates, match_buffer, dot products that tensor intrinsics fit, and symbolic
// extents. Extents are tiny: unit, prime and not divisible by the usual factors. (random_program.h draws programs
// without a purpose.)
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "support/rng.h"

namespace tilewright {

struct RandomKernel {
  std::string text;
  std::vector<std::pair<std::string, int64_t>> extents;  ///< of symbolic shapes
};

class RandomKernels {
 public:
  /// `integers`: no floating type, so that sums may be re-associated.
  RandomKernels(Rng rng, bool integers) : rng_(rng) {
    type_ = integers ? pick({"int32", "int8", "int64"}) : pick({"float32", "float32", "float16"});
  }

  RandomKernel draw() {
    switch (rng_.below(11)) {
      case 0:
        return chain();
      case 1:
        return matmul();
      case 2:
        return convolution();
      case 3:
        return pooling();
      case 4:
        return scan();
      case 5:
        return consumers();
      case 6:
        return softmax();
      case 7:
        return aliases();
      case 8:
        return dot();
      case 9:
        return scopes();
      default:
        return symbolic();
    }
  }

 private:
  std::string pick(std::vector<std::string> words) { return words[rng_.below(words.size())]; }
  int64_t extent() {
    static constexpr int64_t kExtents[] = {1, 2, 3, 4, 4, 5, 6, 7};
    return kExtents[rng_.below(std::size(kExtents))];
  }
  std::string buffer(const std::string& shape) const { return fmt::format("T.Buffer(({}), \"{}\")", shape, type_); }
  std::string alloc(const std::string& name, const std::string& shape) const {
    return fmt::format("    {} = T.sblock_alloc_buffer(({}), \"{}\")\n", name, shape, type_);
  }
  std::string number(int64_t n) const { return fmt::format("T.{}({})", type_, n); }
  static std::string header(const std::string& parameters) {
    return fmt::format("@T.prim_func(s_tir=True)\ndef main({}):\n", parameters);
  }
  /// An elementwise function of one value.
  std::string step(const std::string& x) {
    switch (rng_.below(4)) {
      case 0:
        return x + " + " + number(rng_.between(1, 3));
      case 1:
        return "T.max(" + x + ", " + number(0) + ")";
      case 2:
        return x + " * " + number(2);
      default:
        return x + " - " + x + " * " + number(3);
    }
  }
  /// A nest over loops of the extents around one block with bare bindings.
  static std::string nest(const std::string& name, const std::vector<std::string>& extents, const std::string& kinds,
                          const std::vector<std::string>& body, const std::string& indent = "    ") {
    std::string loops, vars;
    for (size_t i = 0; i < extents.size(); ++i) {
      loops += fmt::format("{}i{}", i ? ", " : "", i);
      vars += fmt::format("{}v{}", i ? ", " : "", i);
    }
    std::string out;
    if (extents.size() == 1)
      out = fmt::format("{}for i0 in range({}):\n", indent, extents[0]);
    else
      out = fmt::format("{}for {} in T.grid({}):\n", indent, loops, fmt::join(extents, ", "));
    out += fmt::format("{}    with T.sblock(\"{}\"):\n", indent, name);
    for (size_t i = 0; i < extents.size(); ++i)
      out += fmt::format("{}        v{} = T.axis.{}({}, i{})\n", indent, i,
                         kinds[i] == 'S'   ? "spatial"
                         : kinds[i] == 'R' ? "reduce"
                                           : "scan",
                         extents[i], i);
    for (const std::string& line : body) out += indent + "        " + line + "\n";
    return out;
  }
  static std::vector<std::string> reduction(const std::string& target, const std::string& init,
                                            const std::string& value) {
    return {"with T.init():", "    " + target + " = " + init, target + " = " + value};
  }
  static std::string n(int64_t x) { return std::to_string(x); }

  RandomKernel chain() {
    const int64_t rows = extent(), columns = extent();
    const std::string shape = fmt::format("{}, {}", rows, columns);
    std::string text = header("A: " + buffer(shape) + ", Z: " + buffer(shape)), from = "A", body;
    const int64_t length = rng_.between(2, 4);
    for (int64_t k = 0; k < length; ++k) {
      const std::string to = k + 1 == length ? "Z" : fmt::format("B{}", k);
      if (k + 1 < length) text += alloc(to, shape);
      body += nest(to, {n(rows), n(columns)}, "SS", {to + "[v0, v1] = " + step(from + "[v0, v1]")});
      from = to;
    }
    return {text + body, {}};
  }

  RandomKernel matmul() {
    const int64_t i = extent(), j = extent(), k = extent();
    const bool transposed = rng_.chance(0.3);
    std::string text =
        header(fmt::format("A: {}, B: {}, D: {}", buffer(fmt::format("{}, {}", i, k)),
                           buffer(transposed ? fmt::format("{}, {}", j, k) : fmt::format("{}, {}", k, j)),
                           buffer(fmt::format("{}, {}", i, j))));
    text += alloc("C", fmt::format("{}, {}", i, j));
    text += nest("C", {n(i), n(j), n(k)}, "SSR",
                 reduction("C[v0, v1]", number(0),
                           fmt::format("C[v0, v1] + A[v0, v2] * B[{}]", transposed ? "v1, v2" : "v2, v1")));
    text += nest("D", {n(i), n(j)}, "SS", {"D[v0, v1] = " + step("C[v0, v1]")});
    return {text, {}};
  }

  /// 1-D over channels: O[c, x] += P[k, x * stride + r] * W[c, k, r], P = A with zeros around.
  RandomKernel convolution() {
    const int64_t c = rng_.between(1, 3), k = rng_.between(1, 3), r = rng_.between(1, 3), pad = rng_.between(0, 2),
                  stride = rng_.between(1, 2), width = rng_.between(3, 6);
    const int64_t padded = width + 2 * pad, out = (padded - r) / stride + 1;
    std::string text =
        header(fmt::format("A: {}, W: {}, O: {}", buffer(fmt::format("{}, {}", k, width)),
                           buffer(fmt::format("{}, {}, {}", c, k, r)), buffer(fmt::format("{}, {}", c, out))));
    text += alloc("P", fmt::format("{}, {}", k, padded));
    if (rng_.chance(0.7)) {
      text += nest("P", {n(k), n(padded)}, "SS",
                   {fmt::format("P[v0, v1] = T.if_then_else({0} <= v1 and v1 < {1}, A[v0, v1 - {0}], {2})", pad,
                                width + pad, number(0))});
    } else {  // zeros, then the inside over them under a predicate
      text += nest("zeros", {n(k), n(padded)}, "SS", {"P[v0, v1] = " + number(0)});
      text += nest("P", {n(k), n(width + 1)}, "SS",
                   {fmt::format("T.where(i1 < {})", width), fmt::format("P[v0, v1 + {}] = A[v0, v1]", pad)});
    }
    text +=
        nest("O", {n(c), n(out), n(k), n(r)}, "SSRR",
             reduction("O[v0, v1]", number(0), fmt::format("O[v0, v1] + P[v2, v1 * {} + v3] * W[v0, v2, v3]", stride)));
    return {text, {}};
  }

  RandomKernel pooling() {
    const int64_t rows = extent(), out = rng_.between(1, 4), window = rng_.between(1, 3), stride = rng_.between(1, 3);
    const int64_t width = (out - 1) * stride + window;
    std::string text = header(fmt::format("A: {}, Z: {}", buffer(fmt::format("{}, {}", rows, width)),
                                          buffer(fmt::format("{}, {}", rows, out))));
    text += alloc("B", fmt::format("{}, {}", rows, width));
    text += nest("B", {n(rows), n(width)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    text += nest("Z", {n(rows), n(out), n(window)}, "SSR",
                 reduction("Z[v0, v1]", number(-100), fmt::format("T.max(Z[v0, v1], B[v0, v1 * {} + v2])", stride)));
    return {text, {}};
  }

  RandomKernel scan() {
    const int64_t rows = extent(), length = extent();
    const std::string shape = fmt::format("{}, {}", rows, length);
    std::string text = header("A: " + buffer(shape) + ", Z: " + buffer(shape));
    text += alloc("B", shape);
    text += alloc("S", shape);
    text += nest("B", {n(rows), n(length)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    text += nest("S", {n(rows), n(length)}, "SC",
                 {"T.reads(S[v0, v1 - 1], B[v0, v1])", "T.writes(S[v0, v1])",
                  fmt::format("S[v0, v1] = T.if_then_else(v1 > 0, S[v0, v1 - 1], {}) + B[v0, v1]", number(0))});
    text += nest("Z", {n(rows), n(length)}, "SS", {"Z[v0, v1] = " + step("S[v0, v1]")});
    return {text, {}};
  }

  RandomKernel consumers() {
    const int64_t rows = extent(), columns = extent();
    const std::string shape = fmt::format("{}, {}", rows, columns);
    std::string text = header(fmt::format("A: {0}, X: {0}, Y: {1}", buffer(shape), buffer(n(rows) + ",")));
    text += alloc("B", shape);
    text += nest("B", {n(rows), n(columns)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    text += nest(
        "X", {n(rows), n(columns)}, "SS",
        {fmt::format("X[v0, v1] = B[v0, v1] + T.if_then_else(v1 + 1 < {}, B[v0, v1 + 1], {})", columns, number(1))});
    text += nest("Y", {n(rows), n(columns)}, "SR", reduction("Y[v0]", number(0), "Y[v0] + B[v0, v1]"));
    if (rng_.chance(0.5)) text += nest("update", {n(rows)}, "S", {"Y[v0] = Y[v0] * " + number(2)});
    return {text, {}};
  }

  /// Two reductions of a row and what depends on both; without exp, so that integers do.
  RandomKernel softmax() {
    const int64_t rows = extent(), columns = extent();
    const std::string shape = fmt::format("{}, {}", rows, columns), row = n(rows) + ",";
    std::string text = header("A: " + buffer(shape) + ", Z: " + buffer(shape));
    text += alloc("M", row) + alloc("E", shape) + alloc("S", row);
    text += nest("M", {n(rows), n(columns)}, "SR", reduction("M[v0]", number(-100), "T.max(M[v0], A[v0, v1])"));
    text += nest("E", {n(rows), n(columns)}, "SS", {"E[v0, v1] = A[v0, v1] - M[v0]"});
    text += nest("S", {n(rows), n(columns)}, "SR", reduction("S[v0]", number(0), "S[v0] + E[v0, v1]"));
    text += nest("Z", {n(rows), n(columns)}, "SS", {"Z[v0, v1] = E[v0, v1] * S[v0]"});
    return {text, {}};
  }

  RandomKernel aliases() {
    const int64_t rows = extent(), columns = rng_.between(2, 6);
    const std::string shape = fmt::format("{}, {}", rows, columns);
    std::string text = header("A: " + buffer(shape) + ", Z: " + buffer(shape));
    text += alloc("B", shape);
    text += nest("B", {n(rows), n(columns)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    std::vector<std::string> body{
        fmt::format("T.reads(B[v0, 0:{}])", columns),
        fmt::format("T.writes(Z[v0, 0:{}])", columns),
        fmt::format("X = T.match_buffer(B[v0, 0:{0}], ({0},), \"{1}\", offset_factor=1)", columns, type_),
        fmt::format("for j in range({}):", columns),
        "    with T.sblock(\"Z\"):",
        fmt::format("        vj = T.axis.spatial({}, j)", columns),
        "        Z[v0, vj] = " + step("X[vj]")};
    text += nest("row", {n(rows)}, "S", body);
    return {text, {}};
  }

  /// Lanes and depth of the dot products of schedule/intrinsics/x86_dot.cpp.
  RandomKernel dot() {
    const int64_t rows = rng_.between(1, 3), depth = rng_.between(1, 2), lanes = rng_.chance(0.5) ? 8 : 16;
    std::string text = header(
        fmt::format("A: T.Buffer(({0}, {1}), \"uint8\"), B: T.Buffer(({2}, {3}, 4), \"int8\"), C: T.Buffer(({0}, "
                    "{3}), \"int32\")",
                    rows, depth * 4, depth, lanes));
    text += nest("C", {n(rows), n(depth), n(lanes), "4"}, "SRSR",
                 {"with T.init():", "    C[v0, v2] = 0",
                  "C[v0, v2] = C[v0, v2] + T.Cast(\"int32\", A[v0, v1 * 4 + v3]) * T.Cast(\"int32\", B[v1, v2, v3])"});
    return {text, {}};
  }

  /// Blocks inside a block.
  RandomKernel scopes() {
    const int64_t rows = rng_.between(1, 3), columns = rng_.between(2, 5);
    const std::string shape = fmt::format("{}, {}", rows, columns), in = "            ";
    std::string text = header("A: " + buffer(shape) + ", Z: " + buffer(shape));
    text += alloc("B", shape);
    text += nest("B", {n(rows), n(columns)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    text += fmt::format("    for r in range({0}):\n        with T.sblock(\"outer\"):\n", rows);
    text += fmt::format("{0}vr = T.axis.spatial({1}, r)\n{0}T.reads(B[vr, 0:{2}])\n{0}T.writes(Z[vr, 0:{2}])\n", in,
                        rows, columns);
    text += fmt::format("{}C = T.sblock_alloc_buffer(({},), \"{}\")\n", in, columns, type_);
    text += nest("C", {n(columns)}, "S", {"C[v0] = " + step("B[vr, v0]")}, in);
    text += nest("Z", {n(columns), n(columns)}, "SR",
                 reduction("Z[vr, v0]", number(0), "Z[vr, v0] + C[v0] * B[vr, v1]"), in);
    return {text, {}};
  }

  RandomKernel symbolic() {
    const int64_t rows = extent(), m = extent();
    std::string text = header("a: T.handle, z: T.handle");
    text += fmt::format("    n = T.int32()\n    A = T.match_buffer(a, (n, {0}), \"{1}\")\n", m, type_);
    text += fmt::format("    Z = T.match_buffer(z, (n,), \"{}\")\n", type_);
    text += fmt::format("    B = T.sblock_alloc_buffer((n, {}), \"{}\")\n", m, type_);
    text += nest("B", {"n", n(m)}, "SS", {"B[v0, v1] = " + step("A[v0, v1]")});
    text += nest("Z", {"n", n(m)}, "SR", reduction("Z[v0]", number(0), "Z[v0] + B[v0, v1]"));
    return {text, {{"n", rows}}};
  }

  Rng rng_;
  std::string type_;
};

}  // namespace tilewright
