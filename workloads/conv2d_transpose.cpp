// conv2d_transpose: the transposed convolution Y[i·stride − pad + k] += X[i]·W[k], as an ordinary convolution over the
// input with zeros between its elements. flop counts the terms that are not zero.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/contraction.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t n = args["n"], h = args["h"], w = args["w"], ci = args["ci"], co = args["co"];
  const int64_t kernel = args["kernel"], stride = args["stride"], pad = args["pad"];
  if (pad > kernel - 1) return args.invalid(fmt::format("pad must be below kernel {}, found {}", kernel, pad));
  const int64_t oh = (h - 1) * stride - 2 * pad + kernel, ow = (w - 1) * stride - 2 * pad + kernel;
  if (std::max(oh, ow) >= int64_t{1} << 30)
    return args.invalid(fmt::format("the output ({} x {}) is too large", oh, ow));
  if (oh < 1 || ow < 1) return args.invalid(fmt::format("pad {} leaves no output ({} x {})", pad, oh, ow));
  const ElementTypes& t = args.types();
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {n, h, w, ci}), weight = b.input("W", t.a, {kernel, kernel, ci, co});
  Buffer y = b.output("Y", t.out, {n, oh, ow, co});
  // Element (i, j) of the spread input holds X[(i − border) / stride], zero where that is no element.
  const int64_t border = kernel - 1 - pad;
  Buffer spread = b.temporary("X_spread", t.a, {n, oh + kernel - 1, ow + kernel - 1, ci});
  auto hits = [&](const Expr& index, int64_t extent) {
    const Expr inside = in_range(index, border, border + (extent - 1) * stride + 1);
    return stride == 1 ? inside : and_of(inside, equal(floor_mod(index - border, stride), int_imm(0)));
  };
  b.map("X_spread", spread, "nhwc", [&](const Point& p) {
    Expr source = load(x, {p[0], floor_div(p[1] - border, stride), floor_div(p[2] - border, stride), p[3]});
    return if_then_else(and_of(hits(p[1], h), hits(p[2], w)), source, zero_of(t.a));
  });
  contract_into(b, y, {n, oh, ow, co}, "nhwc", {{"rh", kernel}, {"rw", kernel}, {"rc", ci}}, t,
                [&](const Point& p, const Point& r) {
                  const Expr last = int_imm(kernel - 1);
                  return std::pair(load(spread, {p[0], p[1] + r[0], p[2] + r[1], r[2]}),
                                   load(weight, {last - r[0], last - r[1], r[2], p[3]}));
                });
  return BuiltOperator{b.finish(), 2.0 * n * oh * ow * co * kernel * kernel * ci / (stride * stride)};
}

const Register<Operator> conv2d_transpose{
    "conv2d_transpose",
    "transposed convolution (of generators): out = (in − 1)·stride − 2·pad + kernel",
    {.parameters = {size_parameter("n", "batch"), size_parameter("h", "extent of the input"),
                    size_parameter("w", "extent of the input"), size_parameter("ci", "input channels"),
                    size_parameter("co", "output channels"),
                    integer_parameter("kernel", 4, "extent of the kernel in both dimensions"),
                    integer_parameter("stride", 1, "step of the input in the output"),
                    integer_parameter("pad", 0, "rows and columns cut off on each side", 0),
                    choice_parameter("layout", {"NHWC"}, "of input and output"),
                    choice_parameter("weight_layout", {"HWIO"}, "of the weight")},
     .dtypes = kFloatTypes,
     .flop_formula = "2·outputs·kernel²·ci/stride²",
     .build = build}};

}  // namespace
}  // namespace tilewright
