#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/histogram.h"
#include "base/random.h"

using weir::Histogram;

TEST_CASE("histogram: percentiles are within 3.2% of the sorted samples', the mean is exact") {
  weir::Random random(7);
  for (const int bits : {4, 10, 20, 40, 52}) {
    Histogram histogram;
    std::vector<uint64_t> samples;
    double sum = 0;
    for (int i = 0; i < 20'000; ++i) {
      const uint64_t value = random.next() >> (64 - bits) >> (random.next() % static_cast<uint64_t>(bits));
      histogram.record(value);
      samples.push_back(value);
      sum += static_cast<double>(value);
    }
    std::sort(samples.begin(), samples.end());
    CHECK(histogram.total() == 20'000);
    CHECK(histogram.max() == samples.back());
    CHECK(histogram.mean() == doctest::Approx(sum / 20'000).epsilon(1e-12));
    for (const double quantile : {0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const size_t rank = static_cast<size_t>(std::max(1.0, std::ceil(quantile * 20'000)));
      const double expected = static_cast<double>(samples[rank - 1]);
      const double got = static_cast<double>(histogram.percentile(quantile));
      CAPTURE(bits);
      CAPTURE(quantile);
      CHECK(std::abs(got - expected) <= 0.032 * expected);
      CHECK(histogram.percentile(quantile) <= histogram.max());
    }
  }
}

TEST_CASE("histogram: values below 64 are exact, weights count as repetitions") {
  Histogram histogram;
  histogram.record(0, 50);
  histogram.record(31, 30);
  histogram.record(63, 20);
  CHECK(histogram.total() == 100);
  CHECK(histogram.mean() == (31 * 30 + 63 * 20) / 100.0);
  CHECK(histogram.percentile(0.5) == 0);
  CHECK(histogram.percentile(0.51) == 31);
  CHECK(histogram.percentile(0.8) == 31);
  CHECK(histogram.percentile(0.81) == 63);
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

TEST_CASE("histogram: empty and reset") {
  Histogram histogram;
  CHECK(histogram.percentile(0.5) == 0);
  CHECK(histogram.mean() == 0);
  histogram.record(1'000'000, 5);
  histogram.reset();
  CHECK(histogram.total() == 0);
  CHECK(histogram.max() == 0);
  CHECK(histogram.mean() == 0);
  CHECK(histogram.percentile(0.99) == 0);
  histogram.record(3);
  CHECK(histogram.percentile(1) == 3);
}
