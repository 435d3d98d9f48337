// Compares outputs with the reference. Element i passes if
//   |found − r| ≤ 2·u_out·|r| + 8·u_acc·√K'·σ + 4·u_in·σ + e_fn·max(|r|, σ),   σ = root mean square of the reference;
// NaN and infinities must coincide; the `exact` set, integers and bool are bit-equal. Simulated sequential sums stay
// within 2.2·u_acc·√K·σ, while one missing term moves an element by 0.004σ or more: a fixed 1e-2 would miss it.
#pragma once

#include <string_view>

#include "measure/check/plan.h"
#include "measure/outcome.h"

namespace tilewright::measure {

struct Tolerance {
  double relative = 0;  ///< of |r|
  double absolute = 0;
  double function = 0;  ///< of max(|r|, σ)
  double sigma = 0;
  bool exact = false;

  double allowed(double r) const;
  std::string text() const;
};

/// Half the distance from 1 to the next value: 2⁻²⁴ for float32; 0 for integers and bool.
double unit_roundoff(DType dtype);
/// Root mean square of the finite elements.
double rms(const BufferPlan& buffer, std::string_view bytes);
Tolerance tolerance_of(const BufferPlan& buffer, CheckSet set, double sigma);

/// Adds the comparison of one output to `report`; returns whether it passed. A wrong element that still holds the
/// poison counts as unwritten too.
bool compare_output(const BufferPlan& buffer, const Tolerance& tolerance, std::string_view expected,
                    std::string_view found, CheckReport& report);

inline constexpr unsigned char poison_byte = 0xFF;  ///< outputs are filled with it before a check launch: NaN, −1
/// The bytes of an element that was most likely never written.
bool poisoned(std::string_view element);

}  // namespace tilewright::measure
