// Slots 16–48: vectorized, unrolled and parallel loops around the store, eleven slots each.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

constexpr size_t slots_per_kind = 11;
enum Offset : size_t { number, product, innermost, position_none, position_mixed = 10 };

void fill_kind(const Site& site, const SiteTable& table, ForKind kind, std::span<float> slots) {
  double count = 0, total = 1, last = 0;
  for (size_t i = 0; i < site.loops.size(); ++i) {
    const SiteLoop& loop = table.loop(site, i);
    if (loop.kind != kind) continue;
    ++count;
    total *= loop.extent;
    last = loop.extent;
  }
  slots[number] = static_cast<float>(slog(count));
  slots[product] = static_cast<float>(slog(count == 0 ? 0 : total));
  slots[innermost] = static_cast<float>(slog(last));
  slots[count == 0 ? position_none : position_mixed] = 1;
}

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  fill_kind(site, table, ForKind::vectorized, slots.subspan(0, slots_per_kind));
  fill_kind(site, table, ForKind::unrolled, slots.subspan(slots_per_kind, slots_per_kind));
  fill_kind(site, table, ForKind::parallel, slots.subspan(2 * slots_per_kind, slots_per_kind));
}

std::vector<FeatureInfo> features() {
  std::vector<FeatureInfo> out;
  for (std::string kind : {"vectorized", "unrolled", "parallel"}) {
    out.push_back({kind + "-number", 0, "log2(1+loops)", "number of " + kind + " loops"});
    out.push_back({kind + "-product", 0, "log2(1+iterations)", "product of their extents, 0 if there is none"});
    out.push_back({kind + "-innermost", 0, "log2(1+iterations)", "extent of the innermost of them"});
    out.push_back({kind + "-position-none", 0, "flag", "there is no " + kind + " loop"});
    for (std::string place :
         {"inner-spatial", "middle-spatial", "outer-spatial", "inner-reduction", "middle-reduction", "outer-reduction"})
      out.push_back({kind + "-position-" + place, 0, "flag", "never set: the reference leaves every position mixed"});
    out.push_back({kind + "-position-mixed", 0, "flag", "there is a " + kind + " loop"});
  }
  return out;
}

Register<FeatureGroup> group{"annotated-loops", "vectorized, unrolled and parallel loops",
                             make_group(16, features(), fill)};

}  // namespace
}  // namespace tilewright
