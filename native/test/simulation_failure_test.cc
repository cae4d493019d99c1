// Links that fail in the course of a simulation, and routes that follow.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/native_error.h"
#include "test/simulation_outcome.h"

namespace weir::test {
namespace {

// A data frame at 1 Gb/s takes 8,848 ns, and 1,000 more to the other end.
SimulationConfig one_flow() {
  SimulationConfig config = star(2, kGigabit);
  without_congestion_control(config);
  config.flows.push_back(flow(0, 1));
  return config;
}

uint64_t link_down(Simulation& simulation, size_t link) {
  return simulation.fabric().link_counters(link, 0).link_down + simulation.fabric().link_counters(link, 1).link_down;
}

template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const NativeError& e) {
    return e.code + " " + e.what();
  }
  return "";
}

TEST_CASE("simulation failures: what is on a link and what is sent into it is lost, to the frame, and nothing else") {
  for (const uint32_t threads : {1u, 3u}) {
    SimulationConfig config = one_flow();
    config.threads = threads;
    Simulation simulation(config, {threads == 1 ? std::vector<uint32_t>{} : std::vector<uint32_t>{0, 1, 2}, 0});
    finish(simulation, 100'000);
    // 11 frames have arrived at 11 * 8,848 + 1,000 = 98,328; the 12th began at 97,328.
    CHECK(simulation.fabric().switch_at(0).counters(0).rx_packets == 11);
    simulation.fabric().set_link(0, false);
    CHECK(link_down(simulation, 0) == 1);
    check_balance(simulation);
    finish(simulation, 200'000);
    // Another 11 began, at 106,176 and up to 194,656.
    CHECK(link_down(simulation, 0) == 12);
    CHECK(simulation.fabric().switch_at(0).counters(0).rx_packets == 11);
    simulation.fabric().set_link(0, true);
    check_balance(simulation);
    finish(simulation, 300'000);
    CHECK(link_down(simulation, 0) == 12);
    CHECK(link_down(simulation, 1) == 0);
    // Frames count from 203,504 on; the last of those that have arrived did so at 300,000 at the latest.
    CHECK(simulation.fabric().switch_at(0).counters(0).rx_packets == 11 + (300'000 - 1'000 - 203'504) / 8'848);
    check_balance(simulation);
    const QpCounters& sender = simulation.counters(simulation.sender(0));
    const QpCounters& receiver = simulation.counters(simulation.receiver(0));
    CHECK(sender.tx_packets == receiver.rx_packets + 12 + simulation.fabric().packets());
  }
}

TEST_CASE("simulation failures: a link that is down already, or up, stays so") {
  SimulationConfig config = one_flow();
  Simulation twice(config), once(config);
  for (Simulation* simulation : {&twice, &once}) {
    finish(*simulation, 50'000);
    simulation->fabric().set_link(0, false);
    if (simulation == &twice) simulation->fabric().set_link(0, false);
    finish(*simulation, 90'000);
    simulation->fabric().set_link(0, true);
    if (simulation == &twice) simulation->fabric().set_link(0, true);
    finish(*simulation, 200'000);
  }
  check_same(outcome(twice), outcome(once));
}

TEST_CASE("simulation failures: a pause does not outlive its link, and begins anew with it") {
  SimulationConfig config = star(3, 10 * kGigabit);
  without_congestion_control(config);
  config.switches[0].parameters.ecn_priorities = 0;
  config.switches[0].parameters.buffer.total = 2'000'000;
  for (uint32_t i = 0; i < 2; ++i) config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
  Simulation simulation(config);
  SoftSwitch& device = simulation.fabric().switch_at(0);
  const auto sent = [&] { return simulation.counters(simulation.sender(0)).tx_packets; };
  Time now = 0;
  while (!device.pauses().stopped(0, 3)) finish(simulation, now += 1'000);
  const uint64_t stops = device.counters(0, 3).pfc_tx_transitions;
  finish(simulation, now += 3'000);  // the pause has come
  const uint64_t before = sent();
  finish(simulation, now += 1'000);
  REQUIRE(sent() <= before + 1);
  REQUIRE(device.pauses().stopped(0, 3));
  simulation.fabric().set_link(0, false);
  CHECK_FALSE(device.pauses().stopped(0, 3));
  CHECK(device.pauses().pausing_mask(0) == 0);
  // The sender goes on at line rate, into nothing: 884.8 ns a frame.
  const uint64_t at_failure = sent();
  const uint64_t lost = link_down(simulation, 0);
  finish(simulation, now += 88'480);
  CHECK(sent() - at_failure >= 99);
  CHECK(link_down(simulation, 0) - lost == sent() - at_failure);
  CHECK(device.counters(0, 3).pfc_tx_transitions == stops);
  simulation.fabric().set_link(0, true);
  while (!device.pauses().stopped(0, 3)) finish(simulation, now += 1'000);
  CHECK(device.counters(0, 3).pfc_tx_transitions == stops + 1);
  check_balance(simulation);
  CHECK(dropped(simulation) == 0);
}

// Hosts 0 and 1 on switches 0 and 1, which two links join.
SimulationConfig two_ways() {
  SimulationConfig config;
  for (uint16_t i = 0; i < 2; ++i) {
    SimulatedSwitch& s = config.switches.emplace_back(simulated_switch(3, kGigabit, i));
    s.groups = {{0}, {1, 2}};
    s.group_of_host.push_back(i == 0 ? 0 : 1);
    s.group_of_host.push_back(i == 0 ? 1 : 0);
    config.nics.push_back(simulated_nic(i, kGigabit));
  }
  const auto connect = [&](LinkEnd from, LinkEnd to) {
    SimulatedLink& link = config.links.emplace_back();
    link.ends[0] = from;
    link.ends[1] = to;
    link.delay = kCable;
  };
  for (uint16_t i = 0; i < 2; ++i) connect({2u + i, 0}, {i, 0});
  for (uint16_t way = 1; way < 3; ++way) connect({0, way}, {1, way});
  without_congestion_control(config);
  config.flows.push_back(flow(0, 1));
  config.transport.window = kDefaultWindow;
  return config;
}

TEST_CASE("simulation failures: with other routes frames take what is left, and without any they are counted") {
  SimulationConfig config = two_ways();
  config.switches[0].parameters.load_balancing = LoadBalancing::spray;
  Simulation simulation(config);
  SoftSwitch& first = simulation.fabric().switch_at(0);
  const auto by_way = [&](uint16_t port) { return first.counters(port).tx_packets; };
  finish(simulation, 10 * kMillisecond);
  const uint64_t all = by_way(1) + by_way(2);
  CHECK(by_way(1) > all / 3);  // 1128 in all: 564 expected, with a standard deviation of 17
  CHECK(by_way(2) > all / 3);
  simulation.fabric().set_link(2, false);
  finish(simulation, 11 * kMillisecond);
  const uint64_t lost = link_down(simulation, 2);
  CHECK(lost > 20);  // half of 113
  SimulatedRoutes routes = config.switches[0].routes();
  routes.groups[1] = {2};
  simulation.fabric().reroute(0, routes);
  const uint64_t before = by_way(1);
  finish(simulation, 12 * kMillisecond);
  CHECK(by_way(1) == before);
  CHECK(link_down(simulation, 2) == lost);
  CHECK(first.counters(0).drop_no_route == 0);
  routes.group_of_host[1] = Forwarding::kNoGroup;
  simulation.fabric().reroute(0, routes);
  finish(simulation, 13 * kMillisecond);
  CHECK(first.counters(0).drop_no_route == 113);
  check_balance(simulation);
}

TEST_CASE("simulation failures: only between two runs, and only to what there is") {
  SimulationConfig config = two_ways();
  Simulation simulation(config);
  REQUIRE_FALSE(simulation.run(kMillisecond, 10));
  const SimulatedRoutes routes = config.switches[0].routes();
  CHECK(refusal([&] { simulation.fabric().set_link(0, false); }).starts_with("INVALID_STATE"));
  CHECK(refusal([&] { simulation.fabric().reroute(0, routes); }).starts_with("INVALID_STATE"));
  finish(simulation, kMillisecond);
  SimulatedRoutes wrong = routes;
  wrong.groups[1] = {1, 3};
  CHECK(refusal([&] { simulation.fabric().reroute(0, wrong); }).starts_with("INVALID_CONFIG"));
  wrong = routes;
  wrong.group_of_host[0] = 2;
  CHECK(refusal([&] { simulation.fabric().reroute(0, wrong); }).starts_with("INVALID_CONFIG"));
  wrong = routes;
  wrong.pins = {{0, 2, 1}};
  CHECK(refusal([&] { simulation.fabric().reroute(0, wrong); }).starts_with("INVALID_CONFIG"));
  // Nothing has changed.
  finish(simulation, 10 * kMillisecond);
  Simulation untouched(config);
  finish(untouched, 10 * kMillisecond);
  check_same(outcome(simulation), outcome(untouched));
}

}  // namespace
}  // namespace weir::test
