#include <doctest/doctest.h>

#include <cmath>

#include "congestion/red_marker.h"

namespace {

using weir::Random;
using weir::red_probability;
using weir::RedMarker;
using weir::RedParameters;

// Marks `n` packets at a constant queue and checks the count against Binomial(n, p), 5 standard deviations either side.
void check_count(const RedParameters& parameters, uint64_t queue, double p) {
  CAPTURE(queue);
  constexpr int n = 200'000;
  RedMarker marker(parameters);
  Random random(queue);
  int marked = 0;
  for (int i = 0; i < n; ++i) marked += marker.mark(queue, random) ? 1 : 0;
  const double bound = 5 * std::sqrt(n * p * (1 - p));
  CHECK(std::abs(marked - n * p) <= bound);
}

}  // namespace

TEST_CASE("RED: equation (5)") {
  const RedParameters paper;  // 5 KB, 200 KB, 1%
  CHECK(red_probability(paper, 0) == 0);
  CHECK(red_probability(paper, 5'000) == 0);
  CHECK(red_probability(paper, 102'500) == doctest::Approx(0.005).epsilon(1e-12));  // half-way: 97.5 KB of 195 KB
  CHECK(red_probability(paper, 44'000) == doctest::Approx(0.002).epsilon(1e-12));   // a fifth: 39 KB of 195 KB
  CHECK(red_probability(paper, 200'000) == doctest::Approx(0.01).epsilon(1e-12));
  CHECK(red_probability(paper, 200'001) == 1);
}

TEST_CASE("RED: marks occur with that probability") {
  const RedParameters paper;
  check_count(paper, 0, 0);
  check_count(paper, 5'000, 0);
  check_count(paper, 44'000, 0.002);
  check_count(paper, 102'500, 0.005);
  check_count(paper, 200'000, 0.01);
  check_count(paper, 200'001, 1);
  RedParameters steep = paper;
  steep.pmax = 1;
  check_count(steep, 102'500, 0.5);
  check_count(steep, 200'000, 1);
}

TEST_CASE("RED: Kmin == Kmax is a cut-off") {
  RedParameters dctcp;
  dctcp.kmin = dctcp.kmax = 40'000;
  dctcp.pmax = 0.3;
  check_count(dctcp, 39'999, 0);
  check_count(dctcp, 40'000, 0);
  check_count(dctcp, 40'001, 1);
}

TEST_CASE("RED: draws only where the outcome is open, and the seed decides") {
  RedMarker marker;
  Random used(7);
  Random unused(7);
  marker.mark(5'000, used);
  marker.mark(300'000, used);
  CHECK(used.next() == unused.next());
  Random first(3);
  Random second(3);
  RedMarker again;
  for (int i = 0; i < 10'000; ++i) REQUIRE(marker.mark(190'000, first) == again.mark(190'000, second));
}

TEST_CASE("RED: averaged queue") {
  RedParameters p;
  p.kmin = p.kmax = 60'000;
  p.averaged = true;
  p.weight = 0.5;
  RedMarker marker(p);
  Random random(1);
  CHECK_FALSE(marker.mark(100'000, random));  // 50 000
  CHECK(marker.average() == 50'000);
  CHECK(marker.mark(100'000, random));  // 75 000
  CHECK(marker.average() == 75'000);
  CHECK_FALSE(marker.mark(0, random));  // 37 500
  CHECK(marker.average() == 37'500);
}
