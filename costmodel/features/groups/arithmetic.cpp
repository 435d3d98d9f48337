// Slots 0–15: operations of the stored value, the index expressions of its loads included, times the number of times it
// is computed (thread loops included). A multiply that feeds an add is not a mad here: the reference never fills those
// slots.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

void fill(const Site& site, const SiteTable&, std::span<float> slots) {
  for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<float>(slog(site.product * site.ops.n[i]));
}

const char* const unit = "log2(1+count)";
Register<FeatureGroup> group{"arithmetic", "operations of the stored value",
                             make_group(0,
                                        {{"float-mad", 0, unit, "float multiply-adds"},
                                         {"float-add", 0, unit, "float additions and subtractions"},
                                         {"float-mul", 0, unit, "float multiplications"},
                                         {"float-div", 0, unit, "float divisions and remainders"},
                                         {"float-compare", 0, unit, "float minima and maxima"},
                                         {"float-pure-call", 0, unit, "calls of pure functions with a float result"},
                                         {"float-other-call", 0, unit, "other calls with a float result"},
                                         {"int-mad", 0, unit, "integer multiply-adds"},
                                         {"int-add", 0, unit, "integer additions and subtractions"},
                                         {"int-mul", 0, unit, "integer multiplications"},
                                         {"int-div", 0, unit, "integer divisions and remainders"},
                                         {"int-compare", 0, unit, "integer minima and maxima, and all comparisons"},
                                         {"int-pure-call", 0, unit, "calls of pure functions with an integer result"},
                                         {"int-other-call", 0, unit, "other calls with an integer result"},
                                         {"logical", 0, unit, "and, or, not"},
                                         {"select", 0, unit, "selects that hold a load"}},
                                        fill)};

}  // namespace
}  // namespace tilewright
