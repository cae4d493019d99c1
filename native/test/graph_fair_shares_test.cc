// Max-min fair shares: closed forms, and a slow account of the same by plain progressive filling.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "base/random.h"
#include "graph/fair_shares.h"

namespace weir::test {
namespace {

using Way = std::vector<FairHop>;

Way over(std::vector<uint32_t> links) {
  Way way;
  for (const uint32_t link : links) way.push_back({link, 1});
  return way;
}

// All rates grow together in steps, each as large as the fullest link allows; flows on links that are full stop.
std::vector<double> filled(const std::vector<double>& capacity, const std::vector<Way>& ways, const std::vector<bool>& runs) {
  std::vector<double> rates(ways.size(), 0), left = capacity;
  std::vector<bool> grows = runs;
  while (std::ranges::find(grows, true) != grows.end()) {
    std::vector<double> weight(capacity.size(), 0);
    for (size_t flow = 0; flow < ways.size(); ++flow) {
      for (const FairHop& hop : ways[flow]) weight[hop.link] += grows[flow] ? hop.share : 0;
    }
    double step = std::numeric_limits<double>::infinity();
    for (size_t link = 0; link < capacity.size(); ++link) {
      if (weight[link] > 1e-9) step = std::min(step, left[link] / weight[link]);
    }
    for (size_t link = 0; link < capacity.size(); ++link) left[link] -= step * weight[link];
    for (size_t flow = 0; flow < ways.size(); ++flow) {
      if (!grows[flow]) continue;
      rates[flow] += step;
      const auto full = [&](const FairHop& hop) { return left[hop.link] <= capacity[hop.link] * 1e-9; };
      if (std::ranges::any_of(ways[flow], full)) grows[flow] = false;
    }
  }
  return rates;
}

TEST_CASE("fair shares: n flows over one link have an nth of it each") {
  for (const uint32_t count : {1u, 2u, 3u, 7u, 1'000u}) {
    FairShares shares({12e9});
    for (uint32_t flow = 0; flow < count; ++flow) shares.start(shares.add(over({0})));
    REQUIRE(shares.settle());
    for (uint32_t flow = 0; flow < count; ++flow) CHECK(shares.rate(flow) == doctest::Approx(12e9 / count).epsilon(1e-12));
    CHECK(shares.changed().size() == count);
    CHECK_FALSE(shares.settle());
  }
}

TEST_CASE("fair shares: a parking lot, in which the flow of the whole way has a half, as each of one link has") {
  FairShares shares({10, 10, 10, 10});
  const uint32_t whole = shares.add(over({0, 1, 2, 3}));
  shares.start(whole);
  for (uint32_t link = 0; link < 4; ++link) shares.start(shares.add(over({link})));
  shares.settle();
  for (uint32_t flow = 0; flow < 5; ++flow) CHECK(shares.rate(flow) == 5);
  shares.stop(whole);
  shares.settle();
  for (uint32_t flow = 1; flow < 5; ++flow) CHECK(shares.rate(flow) == 10);
}

TEST_CASE("fair shares: what a flow cannot use others have") {
  // Three flows share the first link; the third of them has but a quarter of the second, and leaves the others the rest.
  FairShares shares({1, 1, 1});
  const std::vector<Way> ways = {over({0}), over({0}), over({0, 1}), over({1, 2}), over({1}), over({1})};
  for (const Way& way : ways) shares.start(shares.add(way));
  shares.settle();
  CHECK(shares.rate(0) == doctest::Approx(0.375));
  CHECK(shares.rate(1) == doctest::Approx(0.375));
  for (uint32_t flow = 2; flow < 6; ++flow) CHECK(shares.rate(flow) == doctest::Approx(0.25));
}

TEST_CASE("fair shares: a flow that is spread over links takes its part of each, and one without limits has none") {
  FairShares shares({10, 4, 4, 0});
  const uint32_t spread = shares.add(Way{{0, 1}, {1, 0.5}, {2, 0.5}});
  const uint32_t single = shares.add(over({1}));
  const uint32_t free = shares.add(over({3}));
  for (const uint32_t flow : {spread, single, free}) shares.start(flow);
  shares.settle();
  CHECK(shares.rate(spread) == doctest::Approx(4 / 1.5));
  CHECK(shares.rate(single) == doctest::Approx(4 / 1.5));
  CHECK(shares.rate(free) == std::numeric_limits<double>::infinity());
  shares.stop(single);
  shares.settle();
  CHECK(shares.rate(spread) == 8);
}

TEST_CASE("fair shares: what shares no link with a change is not looked at") {
  FairShares shares(std::vector<double>(1'000, 8e9));
  for (uint32_t link = 0; link < 1'000; ++link) {
    for (int i = 0; i < 3; ++i) shares.start(shares.add(over({link})));
  }
  shares.settle();
  const uint64_t before = shares.opened();
  shares.stop(0);
  shares.settle();
  CHECK(shares.opened() - before == 2);
  std::vector changed(shares.changed().begin(), shares.changed().end());
  std::ranges::sort(changed);
  CHECK(changed == std::vector<uint32_t>{1, 2});
}

TEST_CASE(
    "fair shares: whatever starts and stops, all have what plain progressive filling says, and no link more than its rate") {
  Random random(7, 1, 1);
  const auto below = [&](uint64_t limit) { return static_cast<uint32_t>(random.next() % limit); };
  for (int network = 0; network < 60; ++network) {
    std::vector<double> capacity;
    for (uint32_t link = 0, count = 3 + below(20); link < count; ++link) capacity.push_back(1 + below(network % 2 == 0 ? 1 : 40));
    FairShares shares(capacity);
    std::vector<Way> ways;
    for (uint32_t flow = 0, count = 2 + below(40); flow < count; ++flow) {
      std::vector<uint32_t> links;
      for (uint32_t i = 0, hops = 1 + below(4); i < hops; ++i) links.push_back(below(capacity.size()));
      std::ranges::sort(links);
      links.erase(std::ranges::unique(links).begin(), links.end());
      Way way = over(links);
      if (network % 3 == 0) {
        for (FairHop& hop : way) hop.share = 1.0 / (1 + below(3));
      }
      ways.push_back(way);
      shares.add(way);
    }
    std::vector<bool> runs(ways.size());
    for (int change = 0; change < 60; ++change) {
      for (uint32_t i = 0, count = 1 + below(3); i < count; ++i) {
        const uint32_t flow = below(ways.size());
        runs[flow] = !runs[flow];
        if (runs[flow])
          shares.start(flow);
        else
          shares.stop(flow);
      }
      shares.settle();
      const std::vector<double> expected = filled(capacity, ways, runs);
      std::vector<double> carried(capacity.size(), 0);
      for (uint32_t flow = 0; flow < ways.size(); ++flow) {
        if (!runs[flow]) continue;
        CHECK(shares.rate(flow) == doctest::Approx(expected[flow]).epsilon(1e-8));
        for (const FairHop& hop : ways[flow]) carried[hop.link] += shares.rate(flow) * hop.share;
      }
      for (uint32_t link = 0; link < capacity.size(); ++link) CHECK(carried[link] <= capacity[link] * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace weir::test
