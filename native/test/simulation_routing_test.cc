// Ways that flows take through a fabric with several: by hash, each one way, unless pinned.
#include <doctest/doctest.h>

#include <map>
#include <set>
#include <vector>

#include "test/simulation_harness.h"

namespace weir::test {
namespace {

constexpr uint16_t kHosts = 4;  // hosts on each of two leaves
constexpr uint16_t kSpines = 4;
constexpr uint32_t kFlows = 64;

// Devices: leaves 0 and 1, spines 2..5, hosts 6..13. A leaf's ports: its hosts, then the spines. A spine's: the leaves.
SimulationConfig leaf_spine() {
  SimulationConfig config;
  const Rate rate = 100 * kGigabit;
  for (uint16_t leaf = 0; leaf < 2; ++leaf) {
    SimulatedSwitch s = simulated_switch(kHosts + kSpines, rate, leaf);
    s.groups.push_back({kHosts, kHosts + 1, kHosts + 2, kHosts + 3});
    for (uint16_t i = 0; i < kHosts; ++i) s.groups.push_back({i});
    for (uint16_t host = 0; host < 2 * kHosts; ++host) {
      s.group_of_host.push_back(static_cast<uint16_t>(host / kHosts == leaf ? 1 + host % kHosts : 0));
    }
    config.switches.push_back(s);
  }
  for (uint16_t spine = 0; spine < kSpines; ++spine) {
    SimulatedSwitch s = simulated_switch(2, rate, 2 + spine);
    s.groups = {{0}, {1}};
    for (uint16_t host = 0; host < 2 * kHosts; ++host) s.group_of_host.push_back(host / kHosts);
    config.switches.push_back(s);
  }
  const auto connect = [&](LinkEnd from, LinkEnd to) {
    SimulatedLink link;
    link.ends[0] = from;
    link.ends[1] = to;
    link.delay = kCable;
    config.links.push_back(link);
  };
  for (uint32_t host = 0; host < 2 * kHosts; ++host) {
    config.nics.push_back(simulated_nic(host, rate));
    connect({2 + kSpines + host, 0}, {host / kHosts, static_cast<uint16_t>(host % kHosts)});
  }
  for (uint16_t leaf = 0; leaf < 2; ++leaf) {
    for (uint16_t spine = 0; spine < kSpines; ++spine) {
      connect({leaf, static_cast<uint16_t>(kHosts + spine)}, {2u + spine, leaf});
    }
  }
  for (uint32_t i = 0; i < kFlows; ++i) {
    config.flows.push_back(flow(i % kHosts, kHosts + i / kHosts % kHosts, static_cast<uint16_t>(i)));
    config.flows.back().stream.total_bytes = 20 * 1'024;
    config.flows.back().rate_cap = 2 * kGigabit;
  }
  for (uint16_t spine = 0; spine < kSpines; ++spine) config.taps.push_back({0, static_cast<uint16_t>(kHosts + spine)});
  return config;
}

// Returns, by flow, the spine that it takes from leaf 0, each checked to be the only one.
std::vector<int> paths(const SimulationConfig& config) {
  Simulation simulation(config);
  finish(simulation, 10 * kMillisecond);
  CHECK(simulation.flows_ended() == kFlows);
  std::vector<int> taken(kFlows, -1);
  std::vector<uint32_t> frames(kFlows);
  for (const Traced& frame : read_trace(simulation.fabric().take_trace())) {
    const uint16_t port = load_be16(frame.bytes.data() + 34);
    const auto number = static_cast<size_t>(port - 0xc000);
    REQUIRE(number < kFlows);
    if (taken[number] < 0) taken[number] = static_cast<int>(frame.tap);
    REQUIRE(taken[number] == static_cast<int>(frame.tap));
    ++frames[number];
  }
  for (uint32_t i = 0; i < kFlows; ++i) CHECK(frames[i] == 20);
  for (uint16_t spine = 0; spine < kSpines; ++spine) {
    const auto flows = static_cast<uint64_t>(std::count(taken.begin(), taken.end(), spine));
    CHECK(simulation.fabric().switch_at(2u + spine).counters(1).tx_packets == 20 * flows);
  }
  return taken;
}

TEST_CASE("simulation: flows spread over the spines by hash, each on one of them") {
  const SimulationConfig config = leaf_spine();
  const std::vector<int> taken = paths(config);
  for (int spine = 0; spine < kSpines; ++spine) {
    CAPTURE(spine);
    const auto flows = std::count(taken.begin(), taken.end(), spine);
    // 16 expected, with a standard deviation of 3.5.
    CHECK(flows >= 4);
    CHECK(flows <= 30);
  }
  CHECK(paths(config) == taken);
}

TEST_CASE("simulation: another seed of the hash, another switch or another source port is another choice") {
  const std::vector<int> taken = paths(leaf_spine());
  const auto moved = [&](const SimulationConfig& config) {
    const std::vector<int> other = paths(config);
    int count = 0;
    for (uint32_t i = 0; i < kFlows; ++i) count += other[i] != taken[i];
    return count;
  };
  // Three in four choose another, 48 expected, with a standard deviation of 3.5.
  SimulationConfig config = leaf_spine();
  config.switches[0].parameters.hash_seed = 2;
  CHECK(moved(config) > 30);
  config = leaf_spine();
  config.switches[0].parameters.component = 77;
  CHECK(moved(config) > 30);
  // The seeds of links and of marks are other things, and so is how other switches choose.
  config = leaf_spine();
  config.seed = 99;
  config.switches[0].parameters.seed = 2;
  config.switches[1].parameters.hash_seed = 2;
  CHECK(moved(config) == 0);
  // The same hosts, priorities and times; only the source ports are reversed.
  config = leaf_spine();
  for (uint32_t i = 0; i < kFlows; ++i) config.flows[i].udp_source_port = static_cast<uint16_t>(0xc000 + kFlows - 1 - i);
  CHECK(moved(config) > 30);
}

TEST_CASE("simulation: a pin overrides the hash for its pair of hosts, and for no other") {
  const std::vector<int> taken = paths(leaf_spine());
  for (uint16_t spine = 0; spine < kSpines; ++spine) {
    SimulationConfig config = leaf_spine();
    config.switches[0].pins = {{1, kHosts + 2, static_cast<uint16_t>(kHosts + spine)}};
    const std::vector<int> pinned = paths(config);
    for (uint32_t i = 0; i < kFlows; ++i) {
      const bool of_pair = config.flows[i].from == 1 && config.flows[i].to == kHosts + 2;
      CHECK(pinned[i] == (of_pair ? spine : taken[i]));
    }
  }
}

TEST_CASE("simulation: hosts that cannot be reached are dropped for at the switch that does not know them") {
  SimulationConfig config = leaf_spine();
  config.taps.clear();
  config.switches[0].group_of_host[kHosts] = Forwarding::kNoGroup;
  Simulation simulation(config);
  finish(simulation, 10 * kMillisecond);
  uint64_t unreachable = 0;
  for (uint16_t port = 0; port < kHosts; ++port) unreachable += simulation.fabric().switch_at(0).counters(port).drop_no_route;
  CHECK(unreachable == 20 * kFlows / kHosts);
  CHECK(simulation.flows_ended() == kFlows - kFlows / kHosts);
  CHECK(simulation.fabric().packets() == 0);
}

}  // namespace
}  // namespace weir::test
