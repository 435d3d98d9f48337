// The operator library: named operators with parameters that build block programs. Each operator is one file that
// registers itself; `make_workload("gemm:m=512,n=512,k=512")` looks it up. Read next: gemm.cpp (the shortest operator),
// builder.h.
//
// Conventions of the figures: a multiply-add counts two operations; min_bytes is every parameter of the program once,
// in its stored type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/program.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(unknown_operator, "unknown-operator", "no operator of that name is registered");
TW_REFUSAL_CODE(unknown_parameter, "unknown-parameter", "an operator has no parameter of that name");
TW_REFUSAL_CODE(parameter_missing, "parameter-missing", "an operator was not given a parameter that has no default");
TW_REFUSAL_CODE(parameter_invalid, "parameter-invalid", "the value of an operator's parameter is not possible");
TW_REFUSAL_CODE(workload_malformed, "workload-malformed", "a workload's text is not NAME:key=value,…");

struct OperatorParameter {
  enum class Kind : uint8_t { size, integer, choice, dtype };
  std::string name;
  Kind kind = Kind::size;  ///< sizes have no default and make up the canonical name
  std::string doc;
  std::string fallback;  ///< the default's text; "" for sizes (none) and for element types that derive from others
  std::vector<std::string> choices;  ///< of a choice; of an element type: those allowed
  int64_t min = 1;                   ///< of sizes and integers
};

OperatorParameter size_parameter(std::string name, std::string doc);
OperatorParameter integer_parameter(std::string name, int64_t fallback, std::string doc, int64_t min = 1);
OperatorParameter choice_parameter(std::string name, std::vector<std::string> choices,
                                   std::string doc);  ///< default: the first

/// Element types of an operator's inputs, its accumulation and its stored result.
struct ElementTypes {
  DType a, b, acc, out;
};

/// Parameters with defaults filled in and values checked one by one.
class OperatorArguments {
 public:
  explicit OperatorArguments(std::string op) : op_(std::move(op)) {}
  int64_t operator[](std::string_view name) const;  ///< of a size or integer; InternalError when the operator has none
  const std::string& text(std::string_view name) const;  ///< of any parameter
  const ElementTypes& types() const { return types_; }
  const std::string& op() const { return op_; }
  /// A refusal parameter-invalid in the operator's name.
  tl::unexpected<Refusal> invalid(const std::string& message) const;

 private:
  friend struct ArgumentReader;
  std::string op_;
  std::map<std::string, int64_t, std::less<>> integers_;
  std::map<std::string, std::string, std::less<>> texts_;
  ElementTypes types_{};
};

struct BuiltOperator {
  FunctionRef function;
  double flop = 0;
};

struct Operator {
  static constexpr const char* registry_name = "operator";
  std::vector<OperatorParameter> parameters;  ///< without element types, see `types`
  /// dtype (inputs), acc and out are parameters of every operator; dtype_b where the second operand may differ.
  std::vector<std::string> dtypes;  ///< allowed values of dtype, the first is the default
  bool second_dtype = false;
  std::string flop_formula;
  Result<BuiltOperator> (*build)(const OperatorArguments&);

  std::vector<OperatorParameter> all_parameters() const;
};

struct Workload {
  std::string op;
  std::string name;  ///< canonical: gemm_512x512x512_float32; equal names, equal programs
  std::vector<std::pair<std::string, std::string>> parameters;  ///< all of them, in the operator's order
  ProgramRef program;
  double flop = 0;
  int64_t min_bytes = 0;
};

using ParameterList = std::vector<std::pair<std::string, std::string>>;
Result<Workload> make_workload(std::string_view op, const ParameterList&);
/// "gemm:m=512,n=512,k=512,dtype=float32".
Result<Workload> make_workload(std::string_view text);

/// The element types that float operators take, and those of matrix products.
inline const std::vector<std::string> kFloatTypes = {"float32", "float64", "float16", "bfloat16"};
inline const std::vector<std::string> kMatmulTypes = {"float32",     "float64", "float16", "bfloat16", "float8_e4m3fn",
                                                      "float8_e5m2", "int8",    "uint8",   "int16",    "int32"};

}  // namespace tilewright
