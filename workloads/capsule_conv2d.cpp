// capsule_conv2d: a convolution whose elements are capsule × capsule matrices that are multiplied.
#include "workloads/contraction.h"
#include "workloads/convolution.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  Convolution c;
  c.axes = "hw";
  c.n = args["n"], c.ci = args["ci"], c.co = args["co"], c.kernel = args["kernel"], c.stride = args["stride"],
  c.pad = args["pad"];
  c.types = args.types();
  TW_TRY_VOID(c.set_extents(args));
  const int64_t capsule = args["capsule"], h = c.in[0], w = c.in[1], oh = c.out[0], ow = c.out[1];
  const ElementTypes& t = c.types;
  ProgramBuilder b;
  Buffer x = b.input("X", t.a, {c.n, h, w, capsule, capsule, c.ci});
  Buffer weight = b.input("W", t.a, {c.kernel, c.kernel, capsule, capsule, c.ci, c.co});
  Buffer y = b.output("Y", t.out, {c.n, oh, ow, capsule, capsule, c.co});
  Buffer padded = x;
  if (c.pad) {
    padded = b.temporary("X_pad", t.a, {c.n, h + 2 * c.pad, w + 2 * c.pad, capsule, capsule, c.ci});
    b.map("X_pad", padded, "nhwijc", [&](const Point& p) {
      const Expr inside = and_of(in_range(p[1], c.pad, c.pad + h), in_range(p[2], c.pad, c.pad + w));
      return if_then_else(inside, load(x, {p[0], p[1] - c.pad, p[2] - c.pad, p[3], p[4], p[5]}), zero_of(t.a));
    });
  }
  contract_into(
      b, y, {c.n, oh, ow, capsule, capsule, c.co}, "nhwijc",
      {{"rh", c.kernel}, {"rw", c.kernel}, {"rk", capsule}, {"rc", c.ci}}, t, [&](const Point& p, const Point& r) {
        return std::pair(load(padded, {p[0], p[1] * c.stride + r[0], p[2] * c.stride + r[1], p[3], r[2], r[3]}),
                         load(weight, {r[0], r[1], r[2], p[4], r[3], p[5]}));
      });
  return BuiltOperator{b.finish(), c.flop() * capsule * capsule * capsule};
}

const Register<Operator> capsule_conv2d{
    "capsule_conv2d",
    "convolution of capsules: every element is a capsule × capsule matrix",
    {.parameters = {size_parameter("n", "batch"), size_parameter("h", "extent of the input"),
                    size_parameter("w", "extent of the input"), size_parameter("ci", "input channels"),
                    size_parameter("co", "output channels"),
                    integer_parameter("capsule", 4, "rows and columns of a capsule"),
                    integer_parameter("kernel", 3, "extent of the kernel in both dimensions"),
                    integer_parameter("stride", 1, "step of the output in the input"),
                    integer_parameter("pad", 0, "zeros added on each side", 0),
                    choice_parameter("layout", {"NHWijC"}, "of input and output"),
                    choice_parameter("weight_layout", {"HWijIO"}, "of the weight")},
     .dtypes = kFloatTypes,
     .flop_formula = "2·n·oh·ow·co·kernel²·ci·capsule³",
     .build = build}};

}  // namespace
}  // namespace tilewright
