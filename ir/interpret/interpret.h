// The reference interpreter: what a program means, executed. It runs block programs and lowered host programs (flat
// buffers, vectors, allocations, while, calls); every other way of running a program is compared with it.
//
// A function is compiled once into a register code with resolved slots (compile.h, code.h) and then run (run.cpp);
// `Interpreter` keeps the code, `interpret` does both. Arithmetic is exact per type: float32 and float64 round after
// every operation (nothing is contracted), float16, bfloat16 and float8 compute in float32 and round after every
// operation, integers wrap; exp, log, tanh, erf, sigmoid and exp2 of float32 follow math_table.h to the bit, other
// functions libm.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/interpret/tensor.h"
#include "ir/program.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(axis_value_outside_domain, "axis-value-outside-domain",
                "a block iter was bound to a value outside its domain");
TW_REFUSAL_CODE(access_out_of_bounds, "access-out-of-bounds", "an executed access lies outside its buffer");
TW_REFUSAL_CODE(first_reduction_instance_not_first, "first-reduction-instance-not-first",
                "a reduction updated an element before the instance that initialises it");
TW_REFUSAL_CODE(read_before_write, "read-before-write", "an element of an allocated buffer was read and never written");
TW_REFUSAL_CODE(division_by_zero, "division-by-zero", "an integer was divided by zero");
TW_REFUSAL_CODE(assertion_failed, "assertion-failed", "an assert statement did not hold");
TW_REFUSAL_CODE(step_limit_reached, "step-limit-reached", "an execution took more loop iterations than it was allowed");
TW_REFUSAL_CODE(argument_mismatch, "argument-mismatch", "the arguments of a run do not fit the function's parameters");
TW_REFUSAL_CODE(not_interpretable, "not-interpretable", "the interpreter has no semantics for a construct");
TW_REFUSAL_CODE(not_demand_evaluable, "not-demand-evaluable",
                "single output elements of a program cannot be computed on demand");

/// In which order iterations without a promised order run: parallel, vectorized and thread-bound loops, and serial
/// loops that only move a block through independent (spatial) instances. A correct program gives equal results in each.
enum class Order : uint8_t { forward, reverse, random };

struct InterpretOptions {
  Order order = Order::forward;
  uint64_t seed = 0;                      ///< of Order::random
  int64_t step_limit = int64_t{1} << 40;  ///< loop iterations
};

struct InterpretStats {
  int64_t steps = 0;  ///< loop iterations
};

namespace interpreter {
struct InterpreterCode;
}

/// A function made ready to run many times. Holds no reference to the function.
class Interpreter {
 public:
  /// not-interpretable when it uses a construct without semantics here (GPU synchronisation, extern calls…).
  static Result<Interpreter> compile(const Function&, const InterpretOptions& = {});
  /// `args`: one tensor per parameter, in order; scalars have rank 0. Buffers are read and written in place. Shapes
  /// bind symbolic extents.
  Result<InterpretStats> run(std::span<Tensor> args) const;
  size_t instructions() const;  ///< length of the code
  std::string disassemble() const;

  Interpreter(Interpreter&&) noexcept;
  Interpreter& operator=(Interpreter&&) noexcept;
  ~Interpreter();

 private:
  explicit Interpreter(std::unique_ptr<const interpreter::InterpreterCode>);
  std::unique_ptr<const interpreter::InterpreterCode> code_;
};

Result<InterpretStats> interpret(const Function&, std::span<Tensor> args, const InterpretOptions& = {});

/// Demand mode: the elements `indices` (row-major linear) of the written parameter `parameter`, with only what they
/// need. Inputs are read from `args`, nothing is written. For block programs in which each buffer is written by one
/// block and each output index is a spatial iter. Values as `Tensor::get` gives them.
Result<std::vector<double>> interpret_elements(const Function&, std::span<const Tensor> args, int parameter,
                                               std::span<const int64_t> indices, const InterpretOptions& = {});

}  // namespace tilewright
