// Figures of a distribution in tests; the product's own figures are made in src/native/histogram.ts.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/histogram.h"

namespace weir::test {

inline double mean(const Histogram& histogram) {
  return histogram.total() == 0 ? 0 : histogram.weighted_sum() / static_cast<double>(histogram.total());
}

// The middle of the bucket where so much of the weight lies at or below; never above the maximum.
inline uint64_t percentile(const Histogram& histogram, double quantile) {
  double seen = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    seen += static_cast<double>(histogram.count_at(i));
    if (histogram.count_at(i) > 0 && seen >= quantile * static_cast<double>(histogram.total())) {
      const uint64_t low = Histogram::lower_bound(i);
      return std::min(low + (i + 1 < Histogram::kBuckets ? (Histogram::lower_bound(i + 1) - low) / 2 : 0), histogram.max());
    }
  }
  return histogram.max();
}

}  // namespace weir::test
