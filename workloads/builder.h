// Builds block programs stage by stage: each stage is one loop nest around one block that computes a tensor, element by
// element or by a reduction.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/build.h"
#include "ir/program.h"

namespace tilewright {

using Point = std::vector<Expr>;

struct Axis {
  std::string name;
  int64_t extent;
};

class ProgramBuilder {
 public:
  Buffer input(const std::string& name, DType, const std::vector<int64_t>& shape);
  Buffer output(const std::string& name, DType, const std::vector<int64_t>& shape);
  Buffer temporary(const std::string& name, DType, const std::vector<int64_t>& shape);

  /// out[point] = value(point). `axes` names the loops, one character each ("nhwc"), one per dimension of `out`.
  void map(const std::string& block, const Buffer& out, const std::string& axes,
           const std::function<Expr(const Point&)>& value);
  /// out[point] starts at `init` and becomes update(out[point], point, reduced) for each point of the reduction axes.
  void reduce(const std::string& block, const Buffer& out, const std::string& axes, const std::vector<Axis>& reduced,
              double init, const std::function<Expr(Expr current, const Point&, const Point& reduced)>& update);
  FunctionRef finish();

 private:
  void stage(const std::string& block, const Buffer& out, const std::string& axes, const std::vector<Axis>& reduced,
             const double* init, const std::function<Expr(const Point&, const Point&)>& value);

  std::vector<Param> params_;
  std::vector<Buffer> temporaries_;
  std::vector<Stmt> stages_;
};

/// low <= value < high for integers; constant sides that always hold are the caller's to leave out.
Expr in_range(const Expr& value, int64_t low, int64_t high);

}  // namespace tilewright
