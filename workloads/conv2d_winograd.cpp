// conv2d_winograd: 3 × 3 convolution of stride 1 by Winograd's minimal filtering F(tile, 3). The weight comes
// transformed, U[eps,nu,co,ci] = (G·W·Gᵀ)[eps,nu] for each pair of channels; per tile V = Bᵀ·d·B, M = Σ U·V, Y =
// Aᵀ·M·A.
#include <string>

#include "workloads/contraction.h"
#include "workloads/convolution.h"

namespace tilewright {
namespace {

using Matrix = std::vector<std::vector<double>>;

// Interpolation points 0, ±1 (and ±2 for tile 4) and infinity.
const Matrix kInput2 = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
const Matrix kOutput2 = {{1, 1, 1, 0}, {0, 1, -1, -1}};
const Matrix kInput4 = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                        {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
const Matrix kOutput4 = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

/// matrix[row][column] for iters row and column, as a chain of selects over its entries that are not zero.
Expr entry(const Matrix& matrix, const Expr& row, const Expr& column, DType t) {
  Expr value = zero_of(t);
  for (size_t r = 0; r < matrix.size(); ++r)
    for (size_t c = 0; c < matrix[r].size(); ++c)
      if (matrix[r][c] != 0)
        value = select(
            and_of(equal(row, int_imm(static_cast<int64_t>(r))), equal(column, int_imm(static_cast<int64_t>(c)))),
            float_imm(matrix[r][c], t), value);
  return value;
}

Result<BuiltOperator> build(const OperatorArguments& args) {
  Convolution c;
  c.axes = "hw";
  c.n = args["n"], c.ci = args["ci"], c.co = args["co"], c.pad = args["pad"], c.kernel = args["kernel"],
  c.stride = args["stride"];
  c.types = args.types();
  if (c.kernel != 3 || c.stride != 1) return args.invalid("kernel must be 3 and stride 1");
  TW_TRY_VOID(c.set_extents(args));
  const int64_t tile = std::stoll(args.text("tile")), alpha = tile + c.kernel - 1;
  const Matrix& input = tile == 2 ? kInput2 : kInput4;
  const Matrix& output = tile == 2 ? kOutput2 : kOutput4;
  const int64_t rows = (c.out[0] + tile - 1) / tile, columns = (c.out[1] + tile - 1) / tile,
                tiles = c.n * rows * columns;
  if (tiles >= int64_t{1} << 30) return args.invalid("there are too many tiles");
  const ElementTypes& t = c.types;

  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {c.n, c.in[0], c.in[1], c.ci}), u = b.input("U", t.a, {alpha, alpha, c.co, c.ci});
  Buffer y = b.output("Y", t.out, {c.n, c.out[0], c.out[1], c.co});
  // Tiles overlap by two and may stick out of the padded input.
  const int64_t h = rows * tile + 2, w = columns * tile + 2;
  Buffer padded = b.temporary("X_pad", t.a, {c.n, h, w, c.ci});
  b.map("X_pad", padded, "nhwc", [&](const Point& p) {
    Expr inside;
    auto bound = [&](const Expr& index, int64_t extent, int64_t whole) {
      if (c.pad) inside = and_of(inside, less_equal(int_imm(c.pad), index));
      if (c.pad + extent < whole) inside = and_of(inside, less(index, int_imm(c.pad + extent)));
    };
    bound(p[1], c.in[0], h);
    bound(p[2], c.in[1], w);
    const Expr value = load(x, {p[0], p[1] - c.pad, p[2] - c.pad, p[3]});
    return inside ? if_then_else(inside, value, zero_of(t.a)) : value;
  });
  auto tile_of = [&](const Expr& p) {  // image, row and column of tile p
    return Point{floor_div(p, rows * columns), floor_div(floor_mod(p, rows * columns), columns), floor_mod(p, columns)};
  };
  Buffer d = b.temporary("input_tile", t.a, {alpha, alpha, tiles, c.ci});
  b.map("input_tile", d, "uvpc", [&](const Point& p) {
    const Point at = tile_of(p[2]);
    return load(padded, {at[0], at[1] * tile + p[0], at[2] * tile + p[1], p[3]});
  });
  const std::vector<Axis> square = {{"ra", alpha}, {"rb", alpha}};
  Buffer v = b.temporary("data_pack", t.acc, {alpha, alpha, tiles, c.ci});
  b.reduce("data_pack", v, "uvpc", square, 0, [&](Expr current, const Point& p, const Point& r) {
    return current + cast(t.acc, load(d, {r[0], r[1], p[2], p[3]})) * entry(input, p[0], r[0], t.acc) *
                         entry(input, p[1], r[1], t.acc);
  });
  Buffer m =
      contract(b, "bgemm", {alpha, alpha, tiles, c.co}, "uvpo", {{"ci", c.ci}}, t, [&](const Point& p, const Point& r) {
        return std::pair(load(v, {p[0], p[1], p[2], r[0]}), load(u, {p[0], p[1], p[3], r[0]}));
      });
  Buffer inverse = b.temporary("inverse", t.acc, {tile, tile, tiles, c.co});
  b.reduce("inverse", inverse, "hwpo", square, 0, [&](Expr current, const Point& p, const Point& r) {
    return current +
           load(m, {r[0], r[1], p[2], p[3]}) * entry(output, p[0], r[0], t.acc) * entry(output, p[1], r[1], t.acc);
  });
  b.map("Y", y, "nhwo", [&](const Point& p) {
    const Expr at = p[0] * (rows * columns) + floor_div(p[1], tile) * columns + floor_div(p[2], tile);
    return cast(t.out, load(inverse, {floor_mod(p[1], tile), floor_mod(p[2], tile), at, p[3]}));
  });
  return BuiltOperator{b.finish(), c.flop()};
}

const Register<Operator> conv2d_winograd{
    "conv2d_winograd",
    "3 × 3 convolution of stride 1 by Winograd's algorithm, with a weight that was transformed beforehand",
    {.parameters = {size_parameter("n", "batch"), size_parameter("h", "extent of the input"),
                    size_parameter("w", "extent of the input"), size_parameter("ci", "input channels"),
                    size_parameter("co", "output channels"), integer_parameter("kernel", 3, "only 3"),
                    integer_parameter("stride", 1, "only 1"),
                    integer_parameter("pad", 0, "zeros added on each side", 0),
                    choice_parameter("tile", {"4", "2"}, "output tile"),
                    choice_parameter("layout", {"NHWC"}, "of input and output"),
                    choice_parameter("weight_layout", {"HWOI-transformed"}, "[tile+2, tile+2, co, ci]")},
     .dtypes = kFloatTypes,
     .flop_formula = "2·outputs·9·ci (the direct form)",
     .build = build}};

}  // namespace
}  // namespace tilewright
