// Slots 161–163: the loops around the store.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  double unroll = 0;
  for (size_t i = 0; i < site.loops.size(); ++i)
    if (table.loop(site, i).auto_unroll > 0) unroll = static_cast<double>(table.loop(site, i).auto_unroll);
  slots[0] = static_cast<float>(slog(site.product));
  slots[1] = static_cast<float>(slog(static_cast<double>(site.loops.size())));
  slots[2] = static_cast<float>(slog(unroll));
}

Register<FeatureGroup> group{
    "outer", "the loops around the store",
    make_group(161,
               {{"iterations", 0, "log2(1+iterations)", "product of all extents, thread loops included"},
                {"loops", 0, "log2(1+loops)", "number of loops"},
                {"auto-unroll", 0, "log2(1+steps)", "innermost automatic unroll limit"}},
               fill)};

}  // namespace
}  // namespace tilewright
