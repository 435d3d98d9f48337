#include "measure/check/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/interpret/small_float.h"
#include "ir/interpret/tensor.h"
#include "support/check.h"

namespace tilewright::measure {

bool poisoned(std::string_view element) {
  return !element.empty() && std::all_of(element.begin(), element.end(),
                                         [](char c) { return static_cast<unsigned char>(c) == poison_byte; });
}

namespace {

/// Error of one element over its tolerance (> 1 fails): infinite where NaN or infinities do not coincide.
double excess(const Tolerance& t, double r, double x) {
  if (std::isnan(r) || std::isnan(x)) return std::isnan(r) == std::isnan(x) ? 0 : HUGE_VAL;
  if (r == x) return 0;
  if (t.exact || std::isinf(r) || std::isinf(x)) return HUGE_VAL;
  double allowed = t.allowed(r);
  return allowed > 0 ? std::fabs(x - r) / allowed : HUGE_VAL;
}

/// The common case without a call per element. False: some element needs the slow path's judgement (also every NaN).
bool all_float32_pass(const Tolerance& t, const float* r, const float* x, size_t n, CheckReport& report) {
  double worst_abs = 0, worst_rel = 0;
  for (size_t i = 0; i < n; ++i) {
    double error = std::fabs(static_cast<double>(x[i]) - r[i]), allowed = t.allowed(r[i]);
    if (!(error <= allowed)) return false;
    worst_abs = std::max(worst_abs, error);
    worst_rel = std::max(worst_rel, error * (1 / allowed));
  }
  report.max_abs = std::max(report.max_abs, worst_abs);
  report.max_rel = std::max(report.max_rel, worst_rel);
  return true;
}

Tensor as_tensor(const BufferPlan& buffer, std::string_view bytes) {
  Tensor t(buffer.dtype, buffer.shape);
  std::memcpy(t.bytes.data(), bytes.data(), bytes.size());
  return t;
}

}  // namespace

double Tolerance::allowed(double r) const {
  if (exact) return 0;
  return relative * std::fabs(r) + absolute + function * std::max(std::fabs(r), sigma);
}

std::string Tolerance::text() const {
  if (exact) return "bit-equal";
  return fmt::format("{:.3g}*|r| + {:.3g} + {:.3g}*max(|r|, {:.3g})", relative, absolute, function, sigma);
}

double unit_roundoff(DType t) {
  switch (t.code) {
    case TypeCode::ieee_float:
      return t.bits == 64 ? 0x1p-53 : t.bits == 32 ? 0x1p-24 : std::ldexp(0.5, -kFloat16Format.mantissa);
    case TypeCode::bfloat:
      return std::ldexp(0.5, -kBFloat16Format.mantissa);
    case TypeCode::float8_e4m3fn:
      return std::ldexp(0.5, -kE4M3Format.mantissa);
    case TypeCode::float8_e5m2:
      return std::ldexp(0.5, -kE5M2Format.mantissa);
    default:
      return 0;
  }
}

double rms(const BufferPlan& buffer, std::string_view bytes) {
  double sum = 0;
  int64_t finite = 0, n = buffer.elements();
  auto add = [&](double x) {
    if (!std::isfinite(x)) return;
    sum += x * x;
    ++finite;
  };
  if (buffer.dtype == kFloat32) {
    auto* data = reinterpret_cast<const float*>(bytes.data());
    for (int64_t i = 0; i < n; ++i) add(data[i]);
  } else {
    Tensor t = as_tensor(buffer, bytes);
    for (int64_t i = 0; i < n; ++i) add(t.get(i));
  }
  return finite ? std::sqrt(sum / static_cast<double>(finite)) : 0;
}

Tolerance tolerance_of(const BufferPlan& buffer, CheckSet set, double sigma) {
  Tolerance t;
  double u_out = unit_roundoff(buffer.dtype);
  t.sigma = sigma;
  t.exact = set == CheckSet::exact || u_out == 0;
  t.relative = 2 * u_out;
  // Rounding errors of a sum behave like a random walk until terms of one sign fall below the sum's last place: a
  // serial float32 sum of 4 million squares is off by 0.15 %, always to the same side.
  const double terms = std::max(1.0, buffer.reduction), growth = std::max(std::sqrt(terms), terms / 256);
  t.absolute = (8 * buffer.u_acc * growth + 4 * buffer.u_in) * sigma;
  t.function = buffer.e_fn;
  return t;
}

bool compare_output(const BufferPlan& buffer, const Tolerance& tolerance, std::string_view expected,
                    std::string_view found, CheckReport& report) {
  TW_CHECK(expected.size() == buffer.bytes() && found.size() == buffer.bytes(), "buffer {}: {} and {} bytes, not {}",
           buffer.name, expected.size(), found.size(), buffer.bytes());
  auto n = static_cast<size_t>(buffer.elements());
  report.elements += n;
  report.tolerance = tolerance.text();
  if (std::memcmp(expected.data(), found.data(), expected.size()) == 0) return true;
  if (buffer.dtype == kFloat32 && !tolerance.exact &&
      all_float32_pass(tolerance, reinterpret_cast<const float*>(expected.data()),
                       reinterpret_cast<const float*>(found.data()), n, report))
    return true;

  Tensor reference = as_tensor(buffer, expected), output = as_tensor(buffer, found);
  auto width = static_cast<size_t>(buffer.dtype.element_bytes());
  bool packed = buffer.bytes() != n * width;  // sub-byte elements: the bytes of one element are not its own
  uint64_t before = report.mismatches;
  for (size_t i = 0; i < n; ++i) {
    auto at = static_cast<int64_t>(i);
    if (!packed && std::memcmp(expected.data() + i * width, found.data() + i * width, width) == 0) continue;
    double r = reference.get(at), x = output.get(at), ratio;
    if (buffer.dtype.is_integer_like())
      ratio = reference.get_int(at) == output.get_int(at) ? 0 : HUGE_VAL;
    else
      ratio = excess(tolerance, r, x);
    if (std::isfinite(r) && std::isfinite(x)) report.max_abs = std::max(report.max_abs, std::fabs(x - r));
    report.max_rel = std::max(report.max_rel, ratio);
    if (ratio <= 1) continue;
    ++report.mismatches;
    if (!packed && poisoned(found.substr(i * width, width))) ++report.unwritten;
    if (report.first.size() < 8) report.first.push_back({buffer.name, i, r, x, tolerance.allowed(r)});
  }
  return report.mismatches == before;
}

}  // namespace tilewright::measure
