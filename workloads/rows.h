// Parameters of the operators on the rows of an m × n matrix.
#pragma once

#include "workloads/builder.h"
#include "workloads/operator.h"

namespace tilewright {

inline std::vector<OperatorParameter> row_parameters() {
  return {size_parameter("m", "rows"), size_parameter("n", "elements of a row"),
          choice_parameter("layout", {"row"}, "row-major")};
}

}  // namespace tilewright
