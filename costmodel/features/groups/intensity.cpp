// Slots 147–156: arithmetic intensity (float operations per unique byte) along the loop nest, sampled at equal shares
// of the operations of the whole nest: growing nests of inner loops reuse more and more.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  double ops = site.ops.float_ops();
  if (ops <= 0 || site.loops.empty()) return;
  std::vector<double> work, intensity;  // of the loops i… , from the innermost outwards
  for (size_t i = site.loops.size(); i-- > 0;) {
    ops *= table.loop(site, i).extent;
    work.push_back(ops);
    // A nest always touches something; 1 byte guards programs whose loops never run.
    intensity.push_back(ops / (site.bytes_touched[i] > 0 ? site.bytes_touched[i] : 1));
  }
  size_t p = 0;
  for (size_t s = 0; s < slots.size(); ++s) {
    double at = static_cast<double>(s + 1) / static_cast<double>(slots.size()) * work.back();
    while (p + 1 < work.size() && work[p] < at - 1e-4) ++p;
    double value = intensity[p];
    if (p > 0 && work[p] > work[p - 1])
      value = intensity[p - 1] + (intensity[p] - intensity[p - 1]) / (work[p] - work[p - 1]) * (at - work[p - 1]);
    slots[s] = static_cast<float>(slog(value));
  }
}

std::vector<FeatureInfo> features() {
  std::vector<FeatureInfo> out;
  for (int i = 1; i <= 10; ++i)
    out.push_back(
        {"intensity-" + std::to_string(10 * i), 0, "log2(1+flop/byte)",
         "float operations per unique byte at " + std::to_string(10 * i) + " % of the operations of the nest"});
  return out;
}

Register<FeatureGroup> group{"intensity", "arithmetic intensity along the loop nest",
                             make_group(147, features(), fill)};

}  // namespace
}  // namespace tilewright
