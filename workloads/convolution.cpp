#include "workloads/convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "workloads/contraction.h"

namespace tilewright {

namespace {

/// "NHWC" and "HWIO", or "NCHW" and "OIHW".
std::vector<std::string> data_layouts(const std::string& axes) {
  std::string spatial = axes;
  std::transform(spatial.begin(), spatial.end(), spatial.begin(), [](unsigned char c) { return std::toupper(c); });
  return {"N" + spatial + "C", "NC" + spatial};
}
std::vector<std::string> weight_layouts(const std::string& axes) {
  const std::string spatial = data_layouts(axes)[0].substr(1, axes.size());
  return {"auto", spatial + "IO", "OI" + spatial};
}

}  // namespace

std::vector<OperatorParameter> convolution_parameters(const std::string& axes) {
  std::vector<OperatorParameter> out = {size_parameter("n", "batch")};
  for (char axis : axes) out.push_back(size_parameter(std::string(1, axis), "extent of the input"));
  out.push_back(size_parameter("ci", "input channels"));
  out.push_back(size_parameter("co", "output channels"));
  out.push_back(integer_parameter("kernel", 3, "extent of the kernel in every spatial dimension"));
  out.push_back(integer_parameter("stride", 1, "step of the output in the input"));
  out.push_back(integer_parameter("pad", 0, "zeros added on each side", 0));
  out.push_back(integer_parameter("dilation", 1, "step of the kernel in the input"));
  out.push_back(integer_parameter("groups", 1, "channel groups that do not mix; divides ci and co"));
  out.push_back(choice_parameter("layout", data_layouts(axes), "of input and output"));
  out.push_back(
      choice_parameter("weight_layout", weight_layouts(axes), "of the weight; auto = the one that goes with layout"));
  return out;
}

Result<Convolution> Convolution::read(const OperatorArguments& args, const std::string& axes) {
  Convolution c;
  c.axes = axes;
  c.n = args["n"], c.ci = args["ci"], c.co = args["co"];
  c.kernel = args["kernel"], c.stride = args["stride"], c.pad = args["pad"];
  c.dilation = args["dilation"], c.groups = args["groups"];
  c.channels_first = args.text("layout") == data_layouts(axes)[1];
  c.types = args.types();
  const std::string& weight = args.text("weight_layout");
  const std::string fitting = weight_layouts(axes)[c.channels_first ? 2 : 1];
  if (weight != "auto" && weight != fitting)
    return args.invalid(
        fmt::format("weight_layout must be {} with layout {}, found {}", fitting, args.text("layout"), weight));
  if (c.ci % c.groups || c.co % c.groups)
    return args.invalid(
        fmt::format("groups must divide ci and co, found groups {} with ci {} and co {}", c.groups, c.ci, c.co));
  TW_TRY_VOID(c.set_extents(args));
  return c;
}

Status Convolution::set_extents(const OperatorArguments& args) {
  for (char axis : axes) {
    const int64_t extent = args[std::string(1, axis)], room = extent + 2 * pad - reach();
    if (room < 0)
      return args.invalid(
          fmt::format("the kernel must fit the padded input, found a kernel that spans {} and {} = {} with pad {}",
                      reach(), axis, extent, pad));
    in.push_back(extent);
    out.push_back(room / stride + 1);
  }
  return {};
}

std::vector<int64_t> Convolution::tensor(const std::vector<int64_t>& spatial, int64_t channels) const {
  std::vector<int64_t> shape = {n};
  if (channels_first) shape.push_back(channels);
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  if (!channels_first) shape.push_back(channels);
  return shape;
}

std::vector<int64_t> Convolution::weight_shape() const {
  std::vector<int64_t> taps(axes.size(), kernel);
  if (channels_first)
    taps.insert(taps.begin(), {co, ci / groups});
  else
    taps.insert(taps.end(), {ci / groups, co});
  return taps;
}

std::string Convolution::loops(char channel) const {
  return channels_first ? "n" + std::string(1, channel) + axes : "n" + axes + std::string(1, channel);
}

double Convolution::flop() const {
  double total = 2.0 * n * co * (ci / groups);
  for (int64_t extent : out) total *= extent * kernel;
  return total;
}

Buffer Convolution::add_input(ProgramBuilder& b) const { return b.input("X", types.a, tensor(in, ci)); }
Buffer Convolution::add_weight(ProgramBuilder& b) const { return b.input("W", types.b, weight_shape()); }

Buffer Convolution::padded(ProgramBuilder& b, const Buffer& input) const {
  if (pad == 0) return input;
  std::vector<int64_t> wide = in;
  for (int64_t& extent : wide) extent += 2 * pad;
  Buffer out_buffer = b.temporary("X_pad", input->dtype, tensor(wide, ci));
  b.map("X_pad", out_buffer, loops('c'), [&](const Point& p) {
    Point source = p;
    Expr inside;
    for (size_t d = 0; d < axes.size(); ++d) {
      Expr& index = source[d + (channels_first ? 2 : 1)];
      inside = and_of(inside, in_range(index, pad, pad + in[d]));
      index = index - pad;
    }
    return if_then_else(inside, load(input, source), zero_of(input->dtype));
  });
  return out_buffer;
}

std::vector<Axis> Convolution::reduced() const {
  std::vector<Axis> out_axes;
  for (char axis : axes) out_axes.push_back({std::string("r") + axis, kernel});
  out_axes.insert(channels_first ? out_axes.begin() : out_axes.end(), {"rc", ci / groups});
  return out_axes;
}

std::pair<Expr, Expr> Convolution::factors(const Buffer& x, const Buffer& w, const Point& p, const Point& r) const {
  const size_t rank = axes.size(), first = channels_first ? 2 : 1;
  const Expr& channel = channels_first ? p[1] : p.back();
  const Expr& rc = channels_first ? r[0] : r[rank];
  Point source = {p[0]}, taps;
  for (size_t d = 0; d < rank; ++d) {
    const Expr& tap = r[d + (channels_first ? 1 : 0)];
    source.push_back(p[first + d] * stride + tap * dilation);
    taps.push_back(tap);
  }
  const Expr in_channel = groups == 1 ? rc : floor_div(channel, co / groups) * (ci / groups) + rc;
  source.insert(channels_first ? source.begin() + 1 : source.end(), in_channel);
  if (channels_first)
    taps.insert(taps.begin(), {channel, rc});
  else
    taps.insert(taps.end(), {rc, channel});
  return {load(x, source), load(w, taps)};
}

Result<BuiltOperator> build_convolution(const OperatorArguments& args, const std::string& axes) {
  TW_TRY(Convolution c, Convolution::read(args, axes));
  ProgramBuilder b;
  Buffer x = c.add_input(b), w = c.add_weight(b), y = b.output("Y", c.types.out, c.tensor(c.out, c.co));
  Buffer padded = c.padded(b, x);
  contract_into(b, y, c.tensor(c.out, c.co), c.loops('c'), c.reduced(), c.types,
                [&](const Point& p, const Point& r) { return c.factors(padded, w, p, r); });
  return BuiltOperator{b.finish(), c.flop()};
}

}  // namespace tilewright
