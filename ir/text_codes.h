// Codes of errors in program text, traces and programs (schedule-language §1.10). Each has a golden under
// tests/golden/parse.
#pragma once

#include "support/refusal.h"

namespace tilewright::text_code {

// text
TW_REFUSAL_CODE(unexpected_token, "unexpected-token", "the text is not Python at this place");
TW_REFUSAL_CODE(bad_indentation, "bad-indentation", "a line is indented more or less than its block");
TW_REFUSAL_CODE(tab_in_indentation, "tab-in-indentation", "indentation is written with spaces");
TW_REFUSAL_CODE(unterminated_string, "unterminated-string", "a string has no closing quote");
TW_REFUSAL_CODE(unknown_construct, "unknown-construct", "a name that the language does not have");
TW_REFUSAL_CODE(construct_not_supported, "construct-not-supported", "a construct of TVM or Python that is not read");
TW_REFUSAL_CODE(wrong_argument_count, "wrong-argument-count", "too few or too many arguments, or an unknown keyword");
TW_REFUSAL_CODE(wrong_argument_type, "wrong-argument-type", "an argument, target or value of the wrong kind");
TW_REFUSAL_CODE(literal_out_of_range, "literal-out-of-range", "a constant does not fit its type");
TW_REFUSAL_CODE(nesting_too_deep, "nesting-too-deep", "more than 200 levels of nesting");
TW_REFUSAL_CODE(not_expressible_in_dialect, "not-expressible-in-dialect", "the older text has no form for this");
// names and types
TW_REFUSAL_CODE(undefined_name, "undefined-name", "a name that is not defined here");
TW_REFUSAL_CODE(extent_unknown, "extent-unknown", "a value was given for a symbolic extent that the program has not");
TW_REFUSAL_CODE(duplicate_name, "duplicate-name", "a name is defined twice");
TW_REFUSAL_CODE(dtype_mismatch, "dtype-mismatch", "a value has another element type than its place needs");
TW_REFUSAL_CODE(rank_mismatch, "rank-mismatch", "another number of indices than the buffer has dimensions");
TW_REFUSAL_CODE(integer_division_ambiguous, "integer-division-ambiguous", "`/` on integers: floor or truncate");
TW_REFUSAL_CODE(dtype_not_computable, "dtype-not-computable", "no arithmetic on this element type");
TW_REFUSAL_CODE(extent_not_positive, "extent-not-positive", "an extent of a loop, axis or buffer is below 1");
TW_REFUSAL_CODE(buffer_too_large, "buffer-too-large", "a buffer has more bytes than can be addressed");
TW_REFUSAL_CODE(constant_division_by_zero, "constant-division-by-zero", "an integer is divided by the constant 0");
TW_REFUSAL_CODE(llvm_intrinsic_by_number, "llvm-intrinsic-by-number", "LLVM intrinsics are named by text");
// structure
TW_REFUSAL_CODE(axis_binding_mismatch, "axis-binding-mismatch", "an axis and its loop or binding do not fit");
TW_REFUSAL_CODE(axis_value_outside_domain, "axis-value-outside-domain",
                "a block iter was bound to a value outside its domain");
TW_REFUSAL_CODE(signature_missing, "signature-missing", "reads and writes cannot be derived here");
TW_REFUSAL_CODE(signature_does_not_cover_body, "signature-does-not-cover-body",
                "a block accesses more than its signature says");
TW_REFUSAL_CODE(variable_out_of_scope, "variable-out-of-scope", "a variable or buffer is used where it is not defined");
TW_REFUSAL_CODE(access_outside_buffer, "access-outside-buffer", "an index is outside the buffer's extent");
TW_REFUSAL_CODE(no_function, "no-function", "the text holds no function");
TW_REFUSAL_CODE(first_reduction_instance_not_first, "first-reduction-instance-not-first",
                "a reduction may run before its initialisation");
TW_REFUSAL_CODE(init_without_reduction, "init-without-reduction", "a block has an init and no reduction axis");
TW_REFUSAL_CODE(launch_extents_disagree, "launch-extents-disagree",
                "two launches give one thread axis different extents");
TW_REFUSAL_CODE(loop_step_not_positive, "loop-step-not-positive", "a loop step is below 1");

}  // namespace tilewright::text_code
