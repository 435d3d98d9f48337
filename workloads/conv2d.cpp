// conv2d: convolution over 2 spatial dimensions; see convolution.h.
#include "workloads/convolution.h"

namespace tilewright {
namespace {

const Register<Operator> conv2d{"conv2d",
                                "convolution over 2 spatial dimensions",
                                {.parameters = convolution_parameters("hw"),
                                 .dtypes = kMatmulTypes,
                                 .second_dtype = true,
                                 .flop_formula = "2·outputs·kernel^2·ci/groups",
                                 .build = [](const OperatorArguments& args) { return build_convolution(args, "hw"); }}};

}  // namespace
}  // namespace tilewright
