// Division into partitions, the threads that take them, and threads that do rounds of work together.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "simulation/crew.h"
#include "simulation/division.h"
#include "test/simulation_harness.h"

namespace weir::test {
namespace {

// `leaves` switches with `hosts` each, all joined by one more: the last.
SimulationConfig tree(uint32_t leaves, uint32_t hosts) {
  SimulationConfig config;
  for (uint32_t i = 0; i < leaves; ++i) config.switches.push_back(simulated_switch(hosts + 1, 10 * kGigabit, i));
  config.switches.push_back(simulated_switch(leaves, 10 * kGigabit, leaves));
  for (uint32_t i = 0; i < leaves * hosts; ++i) {
    config.nics.push_back(simulated_nic(i, 10 * kGigabit));
    SimulatedLink& link = config.links.emplace_back();
    link.ends[0] = {leaves + 1 + i, 0};
    link.ends[1] = {i / hosts, static_cast<uint16_t>(i % hosts)};
  }
  for (uint32_t i = 0; i < leaves; ++i) {
    SimulatedLink& link = config.links.emplace_back();
    link.ends[0] = {i, static_cast<uint16_t>(hosts)};
    link.ends[1] = {leaves, static_cast<uint16_t>(i)};
  }
  return config;
}

TEST_CASE("simulation division: no partition is empty or far larger than others, and hosts are with their switch") {
  const SimulationConfig config = tree(16, 8);
  for (const uint32_t wanted : {1u, 2u, 5u, 16u, 40u}) {
    CAPTURE(wanted);
    const std::vector<uint32_t> division = divide(config, wanted);
    REQUIRE(division.size() == 17 + 128);
    std::vector<uint32_t> weights(*std::ranges::max_element(division) + 1);
    CHECK(weights.size() <= wanted);
    CHECK(2 * weights.size() >= wanted);
    for (uint32_t device = 0; device < division.size(); ++device) {
      weights[division[device]] += device < 16 ? 9 : device == 16 ? 16 : 1;
    }
    const uint32_t total = std::accumulate(weights.begin(), weights.end(), 0u);
    CHECK(std::ranges::find(weights, 0u) == weights.end());
    // One switch may be in the way of equal pieces.
    CHECK(*std::ranges::max_element(weights) <= total / wanted + 16);
    uint32_t together = 0;
    for (uint32_t host = 0; host < 128; ++host) together += division[17 + host] == division[host / 8];
    if (wanted <= 16) CHECK(together >= 128 - 8 * wanted);
  }
  CHECK(divide(config, 100'000).size() == 145);
  CHECK(partitions_for(1) == 1);
  for (const uint32_t threads : {2u, 3u, 64u, kMostThreads}) CHECK(partitions_for(threads) >= threads);
}

TEST_CASE("simulation division: NICs of one machine are in one partition, wherever their switches are") {
  SimulationConfig config = tree(8, 16);
  PlacedGraph& graph = config.graph.emplace();
  // A machine has a NIC at each leaf.
  for (uint32_t host = 0; host < 128; ++host) graph.machine_of_nic.push_back(host % 16);
  for (const Time delay : {15, 1'000}) {
    for (SimulatedLink& link : config.links) link.delay = link.ends[0].device < 9 ? 1'000 : delay;
    for (const uint32_t wanted : {2u, 7u, 24u, 128u}) {
      CAPTURE(wanted);
      const std::vector<uint32_t> division = divide(config, wanted);
      for (uint32_t host = 0; host < 128; ++host) CHECK(division[9 + host] == division[9 + host % 16]);
      // 16 machines and 9 switches can be apart.
      const std::set<uint32_t> partitions(division.begin(), division.end());
      CHECK(partitions.size() >= std::min(wanted, 16u) / 2);
      CHECK(*partitions.rbegin() == partitions.size() - 1);
    }
  }
}

// Hosts 3 m from their switch, and 200 m between switches.
TEST_CASE("simulation division: short links stay within partitions, and rounds are as long as the others") {
  SimulationConfig config = tree(16, 8);
  for (SimulatedLink& link : config.links) link.delay = link.ends[0].device < 17 ? 1'000 : 15;
  const Time window = longest_window(config);
  CHECK(window == 15 + 67);  // 84 bytes at 10 Gb/s
  CHECK(lookahead_of(config, config.links.back()) == 1'067);
  const std::vector<uint32_t> division = divide(config, 16);
  for (uint32_t host = 0; host < 128; ++host) CHECK(division[17 + host] == division[host / 8]);
  CHECK(windows_of_round(config, division) == 1'000 / 82);
  // Two racks for each thread cannot be dealt out evenly any more.
  const std::vector<uint32_t> finer = divide(config, 128);
  CHECK(windows_of_round(config, finer) == 1);
  CHECK(*std::ranges::max_element(finer) > 60);
  // There is nobody to wait for.
  CHECK(windows_of_round(config, divide(config, 1)) == 1);
  // If all are as long, nothing is gained by keeping them together.
  for (SimulatedLink& link : config.links) link.delay = 1'000;
  CHECK(windows_of_round(config, divide(config, 16)) == 1);
}

TEST_CASE("simulation division: as many threads as hosts can send enough for in a round") {
  SimulationConfig config = tree(16, 8);
  for (SimulatedLink& link : config.links) link.delay = 15;
  CHECK(worthwhile_threads(config, 8) == 1);  // 1.28 Tb/s: 12 frames in 82 ns
  for (SimulatedLink& link : config.links) link.delay = link.ends[0].device < 17 ? 10'000 : 15;
  CHECK(worthwhile_threads(config, 2) == 2);
  for (SimulatedNic& nic : config.nics) nic.parameters.rate = 100 * kGigabit;
  CHECK(worthwhile_threads(config, 8) > 4);
  CHECK(worthwhile_threads(config, 3) == 3);
}

TEST_CASE("simulation division: each partition is taken once in a round, by whoever comes") {
  constexpr uint32_t kPartitions = 37, kThreads = 4;
  Shares shares(kPartitions, kThreads);
  for (uint32_t round = 1; round < 50; ++round) {
    shares.begin_round(round);
    std::vector<std::atomic<uint32_t>> taken(kPartitions);
    std::vector<std::thread> threads;
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (uint32_t i = shares.take(thread, round); i != Shares::kNone; i = shares.take(thread, round)) ++taken[i];
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::atomic<uint32_t>& times : taken) CHECK(times == 1);
  }
  // One alone does what the others do not come to.
  shares.begin_round(50);
  uint32_t count = 0;
  CHECK(shares.take(2, 49) == Shares::kNone);
  while (shares.take(2, 50) != Shares::kNone) ++count;
  CHECK(count == kPartitions);
}

TEST_CASE("simulation division: shares follow the load that was measured") {
  Shares shares(4, 2);
  const auto first_of = [&] {
    shares.begin_round(1);
    std::vector<uint32_t> taken{shares.take(0, 1), shares.take(1, 1)};
    while (shares.take(0, 1) != Shares::kNone) {
    }
    return taken;
  };
  CHECK(first_of() == std::vector<uint32_t>{0, 2});
  std::vector<uint64_t> loads{10, 20, 0, 0};
  shares.balance(loads);
  CHECK(loads == std::vector<uint64_t>{10, 20, 0, 0});  // too few to say anything
  CHECK(first_of() == std::vector<uint32_t>{0, 2});
  loads = {10'000, 90'000, 52'000, 50'000};
  shares.balance(loads);
  CHECK(loads == std::vector<uint64_t>(4));
  CHECK(first_of() == std::vector<uint32_t>{0, 2});  // even enough
  loads = {10'000, 190'000, 12'000, 11'000};
  shares.balance(loads);
  CHECK(first_of() == std::vector<uint32_t>{1, 2});
}

TEST_CASE("simulation crew: each item is done once in every round, which sees what was done in the last") {
  for (const uint32_t threads : {1u, 2u, 5u}) {
    CAPTURE(threads);
    constexpr uint32_t kItems = 11;
    std::vector<uint64_t> done(kItems), others(kItems);
    uint64_t rounds = 0, limit = 0;
    std::atomic<uint32_t> wrong = 0;
    Crew crew(threads, kItems, [&](uint32_t item) {
      if (done[item] != rounds) ++wrong;
      ++done[item];
      // This uses the neighbour's work of the last round.
      others[item] += done[item];
    });
    for (int run = 0; run < 20; ++run) {
      limit += run % 3 == 0 ? 1 : 200;
      crew.run([&] {
        ++rounds;
        for (const uint64_t count : done) REQUIRE(count == rounds);
        std::ranges::rotate(others, others.begin() + 1);
        return rounds < limit;
      });
      CHECK(rounds == limit);
      std::vector<uint64_t> loads(kItems, 1'000'000 + rounds);
      loads[rounds % kItems] = 50'000'000;
      crew.balance(loads);
      // They sleep by now.
      if (run % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    CHECK(wrong == 0);
    CHECK(std::ranges::all_of(others, [&](uint64_t sum) { return sum == rounds * (rounds + 1) / 2; }));
    CHECK(crew.times().taken > 0);
    CHECK(crew.times().waited <= crew.times().taken);
  }
}

TEST_CASE("simulation crew: what is thrown ends the run, and reaches the caller") {
  uint32_t failing = 0;
  Crew crew(3, 4, [&](uint32_t item) {
    if (item == failing) throw std::runtime_error("of work");
  });
  int rounds = 0;
  const auto more = [&] { return ++rounds < 10; };
  for (failing = 0; failing < 4; ++failing) {
    CHECK_THROWS_WITH(crew.run(more), "of work");
    CHECK(rounds == 0);
  }
  CHECK_THROWS_WITH(crew.run([]() -> bool { throw std::runtime_error("of next"); }), "of next");
  crew.run(more);
  CHECK(rounds == 10);
}

}  // namespace
}  // namespace weir::test
