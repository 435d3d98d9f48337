#include "costmodel/training_table.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace tilewright {

void TrainingTable::append(const Sample& sample, double label, double sample_weight) {
  if (width == 0) width = sample.rows.width;
  TW_CHECK(sample.rows.width == width && sample.rows.rows() > 0, "expected rows of width {}, found {} rows of width {}",
           width, sample.rows.rows(), sample.rows.width);
  values.insert(values.end(), sample.rows.values.begin(), sample.rows.values.end());
  offsets.push_back(offsets.back() + static_cast<uint32_t>(sample.rows.rows()));
  task.push_back(sample.task);
  key.push_back(sample.key);
  y.push_back(label);
  weight.push_back(sample_weight);
  seconds.push_back(sample.label == Label::invalid ? std::numeric_limits<double>::infinity() : sample.seconds);
  base.push_back(0);
}

void TrainingTable::copy_from(const TrainingTable& other, size_t i) {
  auto row = [&](size_t r) {
    return other.values.begin() + static_cast<std::ptrdiff_t>(r * static_cast<size_t>(width));
  };
  values.insert(values.end(), row(other.offsets[i]), row(other.offsets[i + 1]));
  offsets.push_back(offsets.back() + other.offsets[i + 1] - other.offsets[i]);
  task.push_back(other.task[i]);
  key.push_back(other.key[i]);
  y.push_back(other.y[i]);
  weight.push_back(other.weight[i]);
  seconds.push_back(other.seconds[i]);
  base.push_back(other.base[i]);
}

std::vector<double> TrainingTable::scores(std::span<const float> margins) const {
  std::vector<double> out(base);
  for (size_t i = 0; i < candidates(); ++i)
    for (uint32_t r = offsets[i]; r < offsets[i + 1]; ++r) out[i] += static_cast<double>(margins[r]);
  return out;
}

std::vector<ScoredCandidate> TrainingTable::scored(std::span<const double> candidate_scores) const {
  std::vector<ScoredCandidate> out(candidates());
  for (size_t i = 0; i < candidates(); ++i)
    out[i] = {task[i], key[i], candidate_scores[i], y[i], seconds[i], static_cast<int>(offsets[i + 1] - offsets[i])};
  return out;
}

size_t SampleStore::add(std::span<const Sample> batch) {
  size_t fresh = 0;
  for (const Sample& sample : batch) {
    TW_CHECK(sample.label == Label::invalid || sample.seconds > 0, "a valid sample needs a positive time, found {} s",
             sample.seconds);
    auto [it, inserted] = samples_.insert_or_assign({sample.task, sample.key}, sample);
    fresh += inserted;
    if (sample.label == Label::invalid) continue;
    double& best = (sample.label == Label::measured ? best_ : best_bound_)[sample.task];
    best = best == 0 ? sample.seconds : std::min(best, sample.seconds);
  }
  // A trial that was cut short counts: early in a task most are, and they tell what is slow.
  valid_ = static_cast<size_t>(
      std::count_if(samples_.begin(), samples_.end(), [](const auto& s) { return s.second.label != Label::invalid; }));
  return fresh;
}

double SampleStore::best(Hash64 task) const {
  if (auto it = best_.find(task); it != best_.end()) return it->second;
  auto it = best_bound_.find(task);
  return it == best_bound_.end() ? 0 : it->second;
}

double SampleStore::label(const Sample& sample) const {
  if (sample.label == Label::invalid) return 0;
  return std::min(1.0, best(sample.task) / sample.seconds);
}

Hash64 SampleStore::digest() const {
  Hash64 hash = samples_.size();
  for (const auto& [id, sample] : samples_)
    for (Hash64 part : {id.first, id.second, static_cast<Hash64>(sample.label), std::bit_cast<Hash64>(sample.seconds)})
      hash = hash_combine(hash, part);
  return hash;
}

}  // namespace tilewright
