// conv3d: convolution over 3 spatial dimensions; see convolution.h.
#include "workloads/convolution.h"

namespace tilewright {
namespace {

const Register<Operator> conv3d{
    "conv3d",
    "convolution over 3 spatial dimensions",
    {.parameters = convolution_parameters("dhw"),
     .dtypes = kMatmulTypes,
     .second_dtype = true,
     .flop_formula = "2·outputs·kernel^3·ci/groups",
     .build = [](const OperatorArguments& args) { return build_convolution(args, "dhw"); }}};

}  // namespace
}  // namespace tilewright
