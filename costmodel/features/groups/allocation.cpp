// Slots 157–160: the allocation of the stored buffer. Parameters are allocated outside all loops.
#include "costmodel/features/schema.h"

namespace tilewright {
namespace {

void fill(const Site& site, const SiteTable& table, std::span<float> slots) {
  const SiteMemory& memory = table.memories[static_cast<size_t>(site.memory)];
  double outer = memory.placed ? memory.outer_product : 1;
  slots[0] = static_cast<float>(slog(memory.placed ? memory.numel() * memory.bytes : 0));
  slots[1] = static_cast<float>(slog(memory.placed ? memory.numel() * outer : 0));
  slots[2] = static_cast<float>(slog(outer));
  slots[3] = static_cast<float>(slog(site.product / outer));
}

Register<FeatureGroup> group{
    "allocation", "the allocation of the stored buffer",
    make_group(
        157,
        {{"allocation-bytes", 0, "log2(1+bytes)", "size of the stored buffer"},
         {"allocation-elements", 0, "log2(1+elements)",
          "its elements times the iterations of the loops around its allocation"},
         {"allocation-outer", 0, "log2(1+iterations)", "product of the loops around its allocation, 1 for a parameter"},
         {"allocation-inner", 0, "log2(1+iterations)", "iterations of the store over that product"}},
        fill)};

}  // namespace
}  // namespace tilewright
