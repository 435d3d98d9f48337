// FeatureRows (one candidate) and FeatureBlock (many candidates): plain row-major float32 tables, the only form in
// which features travel from the extractor to models. A candidate has one row per store of its program; a model sums
// its rows (model.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "support/check.h"
#include "support/hash.h"

namespace tilewright {

/// Rows of one candidate, `width` values each, all finite.
struct FeatureRows {
  int width = 0;
  std::vector<float> values;

  int rows() const { return width == 0 ? 0 : static_cast<int>(values.size()) / width; }
  std::span<const float> row(int i) const {
    return {values.data() + static_cast<size_t>(i) * width, static_cast<size_t>(width)};
  }
  std::span<float> append() {
    values.resize(values.size() + width);
    return {values.data() + values.size() - width, static_cast<size_t>(width)};
  }
  bool operator==(const FeatureRows&) const = default;
};

/// Rows of many candidates: candidate c owns rows [offsets[c], offsets[c + 1]) and has the content key keys[c].
struct FeatureBlock {
  int width = 0;
  std::vector<float> values;
  std::vector<uint32_t> offsets{0};
  std::vector<Hash64> keys;

  size_t candidates() const { return keys.size(); }
  size_t rows() const { return offsets.back(); }
  void append(Hash64 key, const FeatureRows& rows) {
    if (width == 0) width = rows.width;
    TW_CHECK(rows.width == width, "a block of width {} cannot take rows of width {}", width, rows.width);
    values.insert(values.end(), rows.values.begin(), rows.values.end());
    offsets.push_back(offsets.back() + static_cast<uint32_t>(rows.rows()));
    keys.push_back(key);
  }
  void clear() {
    values.clear();
    offsets.assign(1, 0);
    keys.clear();
  }
};

}  // namespace tilewright
