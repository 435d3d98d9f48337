// conv2d_bn_relu: convolution, bias, batch normalisation (scale and offset of inference) and ReLU, one block each.
#include "workloads/contraction.h"
#include "workloads/convolution.h"

namespace tilewright {
namespace {

Result<BuiltOperator> build(const OperatorArguments& args) {
  TW_TRY(Convolution c, Convolution::read(args, "hw"));
  const ElementTypes& t = c.types;
  const std::vector<int64_t> shape = c.tensor(c.out, c.co);
  const std::string axes = c.loops('c');
  const size_t channel = c.channels_first ? 1 : 3;
  ProgramBuilder b;
  Buffer x = c.add_input(b), w = c.add_weight(b);
  Buffer bias = b.input("bias", t.out, {c.co}), scale = b.input("bn_scale", t.out, {c.co}),
         offset = b.input("bn_offset", t.out, {c.co});
  Buffer y = b.output("Y", t.out, shape);
  Buffer padded = c.padded(b, x);
  Buffer value = contract(b, "conv", shape, axes, c.reduced(), t,
                          [&](const Point& p, const Point& r) { return c.factors(padded, w, p, r); });
  auto step = [&](const char* name, const Buffer& vector, BinaryOp op) {
    Buffer next = b.temporary(name, t.acc, shape);
    b.map(name, next, axes,
          [&](const Point& p) { return binary(op, load(value, p), cast(t.acc, load(vector, {p[channel]}))); });
    value = next;
  };
  step("bias_add", bias, BinaryOp::add);
  step("bn_mul", scale, BinaryOp::mul);
  step("bn_add", offset, BinaryOp::add);
  b.map("Y", y, axes, [&](const Point& p) { return cast(t.out, max_of(load(value, p), zero_of(t.acc))); });
  return BuiltOperator{b.finish(), c.flop()};
}

const Register<Operator> conv2d_bn_relu{"conv2d_bn_relu",
                                        "convolution, bias, batch normalisation of inference and ReLU",
                                        {.parameters = convolution_parameters("hw"),
                                         .dtypes = kFloatTypes,
                                         .flop_formula = "2·outputs·kernel²·ci/groups (the contraction alone)",
                                         .build = build}};

}  // namespace
}  // namespace tilewright
