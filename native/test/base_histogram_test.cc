#include <doctest/doctest.h>

#include <cstdint>

#include "base/histogram.h"

using weir::Histogram;

TEST_CASE("histogram: values below 64 are exact, weights count as repetitions") {
  Histogram histogram;
  histogram.record(0, 50);
  histogram.record(31, 30);
  histogram.record(63, 20);
  CHECK(histogram.total() == 100);
  CHECK(histogram.weighted_sum() == 31 * 30 + 63 * 20);
  CHECK(histogram.count_at(0) == 50);
  CHECK(histogram.count_at(31) == 30);
  CHECK(histogram.count_at(63) == 20);
}

TEST_CASE("histogram: buckets tile the whole range of 64 bits") {
  for (int i = 0; i + 1 < Histogram::kBuckets; ++i) {
    REQUIRE(Histogram::lower_bound(i) < Histogram::lower_bound(i + 1));
    Histogram histogram;
    histogram.record(Histogram::lower_bound(i));
    REQUIRE(histogram.count_at(i) == 1);
    histogram.record(Histogram::lower_bound(i + 1) - 1);
    REQUIRE(histogram.count_at(i) == 2);
  }
  Histogram histogram;
  histogram.record(UINT64_MAX);
  CHECK(histogram.count_at(Histogram::kBuckets - 1) == 1);
  CHECK(histogram.max() == UINT64_MAX);
}

TEST_CASE("histogram: reset") {
  Histogram histogram;
  histogram.record(1'000'000, 5);
  histogram.reset();
  CHECK(histogram.total() == 0);
  CHECK(histogram.max() == 0);
  CHECK(histogram.weighted_sum() == 0);
  for (int i = 0; i < Histogram::kBuckets; ++i) CHECK(histogram.count_at(i) == 0);
}
