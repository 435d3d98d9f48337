// Features are registered in groups, one group a file (groups/*.cpp): each feature with name, slot, unit and doc. A
// preset is a set of groups; its schema hash covers everything about its features and is stored with models.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "costmodel/features/sites.h"
#include "support/registry.h"
#include "support/result.h"

namespace tilewright {

TW_REFUSAL_CODE(unknown_feature_preset, "unknown-feature-preset", "no feature preset has that name");

struct FeatureInfo {
  std::string name;  ///< "float-mul", "buffer0.lines"
  int slot = 0;
  std::string unit;  ///< "log2(1+count)", "log2(1+bytes)", "flag", …
  std::string doc;
};

/// Slots [first_slot, first_slot + features.size()) of a row.
struct FeatureGroup {
  static constexpr const char* registry_name = "feature group";
  int first_slot = 0;
  std::vector<FeatureInfo> features;
  /// Fills the group's slots (all zero before) of the row of one store.
  void (*fill)(const Site&, const SiteTable&, std::span<float> slots) = nullptr;
};

/// Helps a group's file: appends a feature, slots in order.
FeatureGroup make_group(int first_slot, std::vector<FeatureInfo> features, decltype(FeatureGroup::fill) fill);

struct FeatureSchema {
  std::string preset;
  int width = 0;
  std::vector<FeatureInfo> features;        ///< by slot
  std::vector<const FeatureGroup*> groups;  ///< by first slot
  Hash64 hash = 0;
};

/// Presets: "tvm164" (164 base features with the reference's semantics).
Result<const FeatureSchema*> feature_schema(std::string_view preset);

/// log2(|x| + 1).
double slog(double x);

}  // namespace tilewright
