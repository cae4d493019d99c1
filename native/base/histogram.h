// A log-linear histogram of non-negative integers: 32 buckets per octave, so a percentile is right to within 3.2%. Its figures
// are made of the buckets in src/native/histogram.ts.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "base/types.h"

namespace weir {

class Histogram {
 public:
  static constexpr int kSubBits = 5;
  static constexpr int kBuckets = (65 - kSubBits) << kSubBits;

  // `weight` is 1 for counts, or a duration in ns for a time-weighted distribution.
  void record(uint64_t value, uint64_t weight = 1) {
    counts_[bucket(value)] += weight;
    total_ += weight;
    weighted_sum_ += static_cast<double>(value) * static_cast<double>(weight);
    if (value > max_) max_ = value;
  }
  void reset() { *this = Histogram{}; }
  // Adds `part` / `whole` of what a histogram has come to since it was `before`, each count rounded down.
  void add(const Histogram& now, const Histogram& before, uint64_t part, uint64_t whole) {
    for (int i = 0; i < kBuckets; ++i) {
      const uint64_t more = portion(now.counts_[i] - before.counts_[i], part, whole);
      counts_[i] += more;
      total_ += more;
    }
    weighted_sum_ += (now.weighted_sum_ - before.weighted_sum_) * static_cast<double>(part) / static_cast<double>(whole);
  }
  // Takes away what another one has. Counts wrap where that is more; a difference from another such one is right again.
  void subtract(const Histogram& other) {
    for (int i = 0; i < kBuckets; ++i) counts_[i] -= other.counts_[i];
    total_ -= other.total_;
    weighted_sum_ -= other.weighted_sum_;
  }

  uint64_t total() const { return total_; }
  uint64_t max() const { return max_; }
  double weighted_sum() const { return weighted_sum_; }
  uint64_t count_at(int index) const { return counts_[index]; }
  // The lowest value that bucket `index` holds.
  static uint64_t lower_bound(int index) {
    if (index < (1 << kSubBits)) return static_cast<uint64_t>(index);
    const int octave = (index >> kSubBits) - 1;
    return (static_cast<uint64_t>(index & ((1 << kSubBits) - 1)) + (1u << kSubBits)) << octave;
  }

 private:
  static int bucket(uint64_t value) {
    if (value < (1u << kSubBits)) return static_cast<int>(value);
    const int octave = 63 - std::countl_zero(value) - kSubBits;
    return ((octave + 1) << kSubBits) + static_cast<int>((value >> octave) & ((1 << kSubBits) - 1));
  }
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t total_ = 0;
  uint64_t max_ = 0;
  double weighted_sum_ = 0;
};

}  // namespace weir
