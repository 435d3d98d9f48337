// SampleStore keeps every sample of a run; TrainingTable is the part of it that one training sees, with labels and
// weights. Labels: y = best/time within the task, recomputed for the whole table, so a new best rescales its task. A
// trial that was cut short counts with its lower bound (y is then an upper bound); an invalid one has y = 0.
#pragma once

#include <map>
#include <utility>

#include "costmodel/metrics.h"
#include "costmodel/model.h"

namespace tilewright {

/// Candidates in (task, key) order; candidate c owns rows [offsets[c], offsets[c + 1]) of `values`.
struct TrainingTable {
  int width = 0;
  std::vector<float> values;
  std::vector<uint32_t> offsets{0};
  std::vector<Hash64> task, key;
  std::vector<double> y, weight, seconds;
  std::vector<double> base;  ///< score that is given in advance (a transferred model); trees learn the rest

  size_t candidates() const { return task.size(); }
  size_t rows() const { return offsets.back(); }
  void append(const Sample&, double label, double sample_weight);
  /// Candidates for which keep(index) holds, in the same order.
  template <class Keep>
  TrainingTable filtered(Keep keep) const;
  /// Sums the margins of each candidate's rows onto its base.
  std::vector<double> scores(std::span<const float> margins) const;
  std::vector<ScoredCandidate> scored(std::span<const double> candidate_scores) const;

 private:
  void copy_from(const TrainingTable&, size_t index);
};

class SampleStore {
 public:
  /// Returns the number of samples that were not there before.
  size_t add(std::span<const Sample>);
  size_t size() const { return samples_.size(); }
  /// Samples with a time, whole or cut short.
  size_t valid() const { return valid_; }
  /// Smallest measured time; the smallest lower bound while all trials were cut short; 0 if none was valid.
  double best(Hash64 task) const;
  double label(const Sample&) const;
  const std::map<std::pair<Hash64, Hash64>, Sample>& samples() const { return samples_; }
  /// Hash of (task, key, label, seconds) of all samples.
  Hash64 digest() const;

 private:
  std::map<std::pair<Hash64, Hash64>, Sample> samples_;
  std::map<Hash64, double> best_, best_bound_;  ///< by task: of whole measurements, of those cut short
  size_t valid_ = 0;
};

template <class Keep>
TrainingTable TrainingTable::filtered(Keep keep) const {
  TrainingTable out;
  out.width = width;
  for (size_t i = 0; i < candidates(); ++i)
    if (keep(i)) out.copy_from(*this, i);
  return out;
}

}  // namespace tilewright
