#include "costmodel/features/extract.h"

#include <cmath>

#include "costmodel/features/collect.h"

namespace tilewright {

FeatureRows rows_of_sites(const SiteTable& table, const FeatureSchema& schema) {
  std::vector<const Site*> last(table.memories.size(), nullptr);
  std::vector<int> order;  // stored memories by first store
  for (const Site& site : table.sites) {
    const Site*& seen = last[static_cast<size_t>(site.memory)];
    if (!seen) order.push_back(site.memory);
    seen = &site;
  }
  FeatureRows rows;
  rows.width = schema.width;
  for (int memory : order) {
    std::span<float> row = rows.append();
    for (const FeatureGroup* group : schema.groups)
      group->fill(*last[static_cast<size_t>(memory)], table,
                  row.subspan(static_cast<size_t>(group->first_slot), group->features.size()));
    for (size_t slot = 0; slot < row.size(); ++slot)
      TW_CHECK(std::isfinite(row[slot]), "feature {} of buffer {} is not finite", schema.features[slot].name,
               table.memories[static_cast<size_t>(memory)].name);
  }
  return rows;
}

FeatureRows extract_features(const Function& function, const Target& target, const FeatureSchema& schema) {
  return rows_of_sites(collect_sites(function, target.is_cuda()), schema);
}

FeatureRows extract_features(const Function& function, const Target& target) {
  static const FeatureSchema& schema = *feature_schema("tvm164").value();
  return extract_features(function, target, schema);
}

}  // namespace tilewright
