// Options of lowering and code generation, declared once (lowering.md §0.7). Their text enters the artifact key.
#pragma once

#include <map>
#include <string>

#include "support/reflect.h"
#include "support/result.h"

namespace tilewright::lowering {

TW_REFUSAL_CODE(lower_option_unknown, "lower-option-unknown", "lowering has no option of that name");
TW_REFUSAL_CODE(lower_option_invalid, "lower-option-invalid",
                "an option of lowering has a value that it does not take");

struct LowerOptions {
  bool fp_contract = true;          ///< a·b + c may become one fused operation; off: bit-equal to the interpreter
  bool keep_rounding = true;        ///< bf16, fp8: round after each source operation
  std::string denormals = "ieee";   ///< ieee, flush
  std::string math = "auto";        ///< auto, accurate, fast
  std::string index = "auto";       ///< auto, i64: width of index arithmetic
  bool async_copy = true;           ///< GPU: asynchronous copies
  std::string smem_reuse = "auto";  ///< GPU: auto, on, off
  std::string sync = "auto";        ///< GPU: auto, explicit
  bool check_bounds = false;        ///< every access is tested; a failed test returns tw_error_bounds
  int64_t max_code = 16384;         ///< statements of the lowered program; more is `unroll-too-large`
  TW_FIELDS(fp_contract, keep_rounding, denormals, math, index, async_copy, smem_reuse, sync, check_bounds, max_code)
  bool operator==(const LowerOptions&) const = default;

  /// "fp_contract=off,max_code=4096": only what differs from the defaults, in declaration order.
  std::string text() const;
  /// The default of one option, as text.
  static std::string fallback(std::string_view option);
  /// Values of one option, in words: "on or off", "a positive whole number".
  static std::string expected(std::string_view option);
  /// text() as a map for parse().
  static std::map<std::string, std::string> split(const std::string& text);
  static Result<LowerOptions> parse(const std::map<std::string, std::string>& options);
};

}  // namespace tilewright::lowering
