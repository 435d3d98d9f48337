// Slots 49–56: launch shape.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  slots[0] = table.gpu ? 1 : 0;
  for (int axis = static_cast<int>(ThreadAxis::block_x); axis <= static_cast<int>(ThreadAxis::vthread); ++axis) {
    double extent = 1;
    for (size_t i = 0; table.gpu && i < site.loops.size(); ++i)
      if (static_cast<int>(table.loop(site, i).axis) == axis) {
        extent = table.loop(site, i).extent;
        break;
      }
    slots[static_cast<size_t>(axis)] = static_cast<float>(slog(extent));
  }
}

std::vector<FeatureInfo> features() {
  std::vector<FeatureInfo> out{{"is-gpu", 0, "flag", "the target is a GPU"}};
  for (std::string axis : {"block-x", "block-y", "block-z", "thread-x", "thread-y", "thread-z", "virtual-thread"})
    out.push_back({axis, 0, "log2(1+iterations)", "extent of the outermost loop on this axis, 1 if there is none"});
  return out;
}

Register<FeatureGroup> group{"gpu", "launch shape", make_group(49, features(), fill)};

}  // namespace
}  // namespace tilewright
