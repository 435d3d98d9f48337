// Convolutions of one to three spatial dimensions, channels last or first, with stride, padding, dilation and groups.
// Kernel, stride, padding and dilation are the same in every spatial dimension.
#pragma once

#include <string>
#include <vector>

#include "workloads/builder.h"
#include "workloads/operator.h"

namespace tilewright {

struct Convolution {
  std::string axes;              ///< of the spatial dimensions: "l", "hw", "dhw"
  std::vector<int64_t> in, out;  ///< spatial extents
  int64_t n = 1, ci = 1, co = 1, kernel = 1, stride = 1, pad = 0, dilation = 1, groups = 1;
  bool channels_first = false;
  ElementTypes types{};

  /// Reads the arguments; refuses groups that do not divide the channels and kernels wider than the padded input.
  static Result<Convolution> read(const OperatorArguments&, const std::string& axes);
  /// Fills in and out from the arguments named as the axes; the other fields are set.
  Status set_extents(const OperatorArguments&);
  /// Span of the kernel in the input.
  int64_t reach() const { return dilation * (kernel - 1) + 1; }
  std::vector<int64_t> tensor(const std::vector<int64_t>& spatial, int64_t channels) const;
  std::vector<int64_t> weight_shape() const;
  std::string loops(char channel) const;  ///< "nhwc" or "nchw" with the given letter for channels
  double flop() const;                    ///< of the contraction

  Buffer add_input(ProgramBuilder&) const;
  Buffer add_weight(ProgramBuilder&) const;
  /// Zero-padded input, or the input itself when pad is 0.
  Buffer padded(ProgramBuilder&, const Buffer& input) const;
  /// The factors of the sum over a padded input.
  std::pair<Expr, Expr> factors(const Buffer& padded, const Buffer& weight, const Point&, const Point& reduced) const;
  std::vector<Axis> reduced() const;
};

/// n, spatial extents, ci, co; kernel, stride, pad, dilation, groups; layouts.
std::vector<OperatorParameter> convolution_parameters(const std::string& axes);
/// The whole operator: input, weight, output "Y".
Result<BuiltOperator> build_convolution(const OperatorArguments&, const std::string& axes);

}  // namespace tilewright
