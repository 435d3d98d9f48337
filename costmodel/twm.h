// .twm: one trained model in one file. Layout: "TWM1", u32 length of the header (little endian), JSON header, zstd
// frame of the boosters' JSON texts one after the other. Samples are not inside; rows are recomputed from decisions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "costmodel/metrics.h"
#include "support/result.h"

namespace tilewright {

struct TwmFile {
  Hash64 schema = 0;  ///< FeatureSchema::hash of the rows it was trained on
  std::string target_kind, dtype_class;
  std::string parameters;  ///< name of the training parameters
  Hash64 samples = 0;      ///< SampleStore::digest of what it was trained on
  size_t sample_count = 0;
  std::vector<MetricValue> held_out;
  struct State {  ///< counters that decide when to train next (resume)
    size_t fresh = 0, last_size = 0;
    int trainings = 0;
    bool rank = false;
    bool operator==(const State&) const = default;
  } state;
  struct Booster {
    std::string role;  ///< "mu", "valid" or "bagged"
    double weight = 1;
    std::string json;
  };
  std::vector<Booster> boosters;
};

std::string write_twm(const TwmFile&);
/// Refuses model-file-damaged, with what was expected and found.
Result<TwmFile> read_twm(std::string_view bytes);

}  // namespace tilewright
