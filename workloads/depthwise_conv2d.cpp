// depthwise_conv2d: one kernel for each channel.
#include "workloads/contraction.h"
#include "workloads/convolution.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  const int64_t n = args["n"], channels = args["c"], kernel = args["kernel"], stride = args["stride"],
                dilation = args["dilation"];
  const bool first = args.text("layout") == "NCHW";
  const std::string fitting = first ? "CHW" : "HWC";
  if (args.text("weight_layout") != "auto" && args.text("weight_layout") != fitting)
    return args.invalid("weight_layout must be " + fitting + " with layout " + args.text("layout"));
  Convolution c;  // the part that is the same: extents, padding, layout
  c.axes = "hw";
  c.n = n, c.ci = channels, c.co = channels, c.kernel = kernel, c.stride = stride, c.dilation = dilation,
  c.pad = args["pad"];
  c.groups = channels;
  c.channels_first = first;
  c.types = args.types();
  TW_TRY_VOID(c.set_extents(args));
  ProgramBuilder b;
  const std::vector<int64_t> shape = c.tensor(c.out, channels);
  Buffer x = c.add_input(b),
         w = b.input("W", c.types.a,
                     first ? std::vector{channels, kernel, kernel} : std::vector{kernel, kernel, channels});
  Buffer y = b.output("Y", c.types.out, shape);
  Buffer padded = c.padded(b, x);
  contract_into(b, y, shape, c.loops('c'), {{"rh", kernel}, {"rw", kernel}}, c.types,
                [&](const Point& p, const Point& r) {
                  const Expr& channel = first ? p[1] : p[3];
                  const size_t h = first ? 2 : 1;
                  const Expr row = p[h] * stride + r[0] * dilation, column = p[h + 1] * stride + r[1] * dilation;
                  return first ? std::pair(load(padded, {p[0], channel, row, column}), load(w, {channel, r[0], r[1]}))
                               : std::pair(load(padded, {p[0], row, column, channel}), load(w, {r[0], r[1], channel}));
                });
  return BuiltOperator{b.finish(), c.flop()};
}

const Register<Operator> depthwise_conv2d{
    "depthwise_conv2d",
    "convolution with one kernel for each channel",
    {.parameters = {size_parameter("n", "batch"), size_parameter("h", "extent of the input"),
                    size_parameter("w", "extent of the input"), size_parameter("c", "channels"),
                    integer_parameter("kernel", 3, "extent of the kernel in both dimensions"),
                    integer_parameter("stride", 1, "step of the output in the input"),
                    integer_parameter("pad", 0, "zeros added on each side", 0),
                    integer_parameter("dilation", 1, "step of the kernel in the input"),
                    choice_parameter("layout", {"NHWC", "NCHW"}, "of input and output"),
                    choice_parameter("weight_layout", {"auto", "HWC", "CHW"},
                                     "of the weight; auto = the one that goes with layout")},
     .dtypes = kMatmulTypes,
     .flop_formula = "2·outputs·kernel²",
     .build = build}};

}  // namespace
}  // namespace tilewright
