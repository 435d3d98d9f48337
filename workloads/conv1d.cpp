// conv1d: convolution over 1 spatial dimension; see convolution.h.
#include "workloads/convolution.h"

namespace tilewright {
namespace {

const Register<Operator> conv1d{"conv1d",
                                "convolution over 1 spatial dimension",
                                {.parameters = convolution_parameters("l"),
                                 .dtypes = kMatmulTypes,
                                 .second_dtype = true,
                                 .flop_formula = "2·outputs·kernel^1·ci/groups",
                                 .build = [](const OperatorArguments& args) { return build_convolution(args, "l"); }}};

}  // namespace
}  // namespace tilewright
