#include "costmodel/features/schema.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "support/elementary.h"

namespace tilewright {

double slog(double x) {
  if (x == 0) return 0;
  return portable_log2((x > 0 ? x : -x) + 1);
}

FeatureGroup make_group(int first_slot, std::vector<FeatureInfo> features, decltype(FeatureGroup::fill) fill) {
  for (size_t i = 0; i < features.size(); ++i) features[i].slot = first_slot + static_cast<int>(i);
  return {first_slot, std::move(features), fill};
}

namespace {

struct Preset {
  const char* name;
  std::vector<const char*> groups;
};
const std::vector<Preset>& presets() {
  static const std::vector<Preset> list = {
      {"tvm164", {"arithmetic", "annotated-loops", "gpu", "buffers", "intensity", "allocation", "outer"}},
  };
  return list;
}

FeatureSchema build(const Preset& preset) {
  FeatureSchema out;
  out.preset = preset.name;
  for (const char* name : preset.groups) {
    const FeatureGroup* group = Registry<FeatureGroup>::instance().find(name);
    TW_CHECK(group, "feature group {} is not registered", name);
    out.groups.push_back(group);
    for (const FeatureInfo& feature : group->features) {
      TW_CHECK(feature.slot == static_cast<int>(out.features.size()), "feature {} has slot {}, the next free one is {}",
               feature.name, feature.slot, out.features.size());
      out.features.push_back(feature);
      for (const std::string& part : {feature.name, feature.unit, feature.doc})
        out.hash = hash_combine(out.hash, hash_text(part));
    }
  }
  out.width = static_cast<int>(out.features.size());
  out.hash = hash_combine(out.hash, static_cast<Hash64>(out.width));
  return out;
}

}  // namespace

Result<const FeatureSchema*> feature_schema(std::string_view preset) {
  static const std::map<std::string, FeatureSchema, std::less<>> built = [] {
    std::map<std::string, FeatureSchema, std::less<>> all;
    for (const Preset& p : presets()) all.emplace(p.name, build(p));
    return all;
  }();
  if (auto it = built.find(preset); it != built.end()) return &it->second;
  std::vector<std::string> names;
  for (const auto& [name, schema] : built) names.push_back(name);
  Refusal refusal(unknown_feature_preset,
                  fmt::format("expected one of the feature presets {}, found \"{}\"", fmt::join(names, ", "), preset));
  std::string near = did_you_mean(preset, names);
  return refuse(near.empty() ? refusal : refusal.with_help(fmt::format("did you mean \"{}\"?", near)));
}

}  // namespace tilewright
