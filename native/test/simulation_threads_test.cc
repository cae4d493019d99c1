// A run is one and the same whatever the number of threads, the division into partitions, and the points where it is cut.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "link/serializer.h"
#include "test/simulation_outcome.h"

namespace weir::test {
namespace {

constexpr Time kEnd = 150 * kMicrosecond;

// Draws from one stream.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed, 77) {}
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(random_.next() % limit); }
  uint32_t within(uint32_t least, uint32_t most) { return least + below(most - least + 1); }
  bool chance(uint32_t of) { return below(of) == 0; }

 private:
  Random random_;
};

void connect(SimulationConfig& config, LinkEnd from, LinkEnd to, Dice& dice, uint32_t longer = 1) {
  SimulatedLink& link = config.links.emplace_back();
  link.ends[0] = from;
  link.ends[1] = to;
  link.delay = longer * dice.within(30, 2'500);
  if (!dice.chance(4)) return;
  link.impairment.emplace();
  link.impairment->loss = dice.below(3) * 0.003;
  link.impairment->duplicate = dice.below(2) * 0.01;
  link.impairment->corrupt = dice.below(2) * 0.002;
  link.impairment->jitter = dice.below(2) * 400;
  if (!dice.chance(2)) return;
  link.impairment->reorder = 0.01;
  link.impairment->reorder_delay = dice.within(1, 30'000);  // beyond the windows that are filled already, too
}

// Leaves and spines with delays, buffers, losses, flows, samples and taps as they come. Devices: leaves, spines, hosts.
SimulationConfig drawn(uint64_t seed) {
  Dice dice(seed);
  SimulationConfig config;
  config.seed = seed;
  const uint32_t leaves = dice.within(1, 4), spines = dice.within(1, 3), hosts = leaves * dice.within(2, 4);
  const uint32_t on_leaf = hosts / leaves;
  const Rate rate = dice.chance(2) ? 100 * kGigabit : 25 * kGigabit;
  for (uint32_t i = 0; i < leaves + spines; ++i) {
    const bool leaf = i < leaves;
    SimulatedSwitch& s = config.switches.emplace_back(simulated_switch(leaf ? on_leaf + spines : leaves, rate, i));
    s.parameters.seed = seed;
    s.parameters.red = {.kmin = 3'000, .kmax = 50'000, .pmax = 0.3};
    s.parameters.buffer.total = 1'000'000 + 100'000 * dice.below(10);
    if (dice.chance(3)) s.parameters.pfc_priorities = 0;
    const uint32_t down = leaf ? on_leaf : leaves;
    for (uint16_t port = 0; port < down; ++port) s.groups.push_back({port});
    std::vector<uint16_t>& up = s.groups.emplace_back();
    for (uint32_t spine = 0; leaf && spine < spines; ++spine) up.push_back(static_cast<uint16_t>(on_leaf + spine));
    for (uint32_t host = 0; host < hosts; ++host) {
      const uint32_t home = host / on_leaf;
      const uint32_t group = leaf ? (home == i ? host % on_leaf : down) : home;
      s.group_of_host.push_back(static_cast<uint16_t>(group));
    }
  }
  for (uint32_t host = 0; host < hosts; ++host) {
    config.nics.push_back(simulated_nic(host, rate));
    connect(config, {leaves + spines + host, 0}, {host / on_leaf, static_cast<uint16_t>(host % on_leaf)}, dice);
  }
  const uint32_t longer = dice.chance(2) ? 1 : 8;
  for (uint32_t leaf = 0; leaf < leaves; ++leaf) {
    for (uint32_t spine = 0; spine < spines; ++spine) {
      connect(config, {leaf, static_cast<uint16_t>(on_leaf + spine)}, {leaves + spine, static_cast<uint16_t>(leaf)}, dice,
              longer);
    }
  }
  const uint32_t flows = dice.within(hosts, 3 * hosts);
  for (uint32_t i = 0; i < flows; ++i) {
    const uint32_t from = dice.below(hosts);
    // Often to one of two, which are then congested.
    uint32_t to = dice.chance(2) ? dice.below(2) : dice.below(hosts);
    if (to == from) to = (to + 1) % hosts;
    NetworkFlow f = flow(from, to, static_cast<uint16_t>(i));
    f.reliable = dice.chance(2);
    f.stream.operation = dice.chance(2) ? Operation::write : f.reliable && dice.chance(2) ? Operation::read : Operation::send;
    f.stream.message_bytes = dice.within(64, 30'000);
    f.start = dice.below(20'000);
    if (dice.chance(2)) f.stream.total_bytes = f.stream.message_bytes * dice.within(1, 4);
    if (dice.chance(3)) f.rate_cap = dice.within(1, 20) * kGigabit;
    if (dice.chance(4)) f.stop = f.start + dice.below(40'000);
    config.flows.push_back(f);
    config.sampled_flows.push_back(i);
  }
  config.transport.window = kDefaultWindow;
  config.transport.timeout = 2;
  config.sample_interval = dice.chance(3) ? 0 : dice.within(500, 20'000);
  config.reset_after = dice.below(20'000);
  config.all_distributions = dice.chance(2);
  for (uint32_t i = 0; i < leaves; ++i) config.sampled_queues.push_back({i, 0, 3});
  for (uint32_t i = 0; i < leaves; ++i) config.taps.push_back({i, static_cast<uint16_t>(dice.below(on_leaf + spines))});
  config.taps.push_back({leaves + spines, 0});
  return config;
}

uint32_t devices_of(const SimulationConfig& config) { return static_cast<uint32_t>(config.switches.size() + config.nics.size()); }

// Each partition has a device.
std::vector<uint32_t> random_division(uint32_t devices, Dice& dice) {
  const uint32_t partitions = dice.within(1, devices);
  std::vector<uint32_t> division(devices);
  for (uint32_t i = 0; i < devices; ++i) division[i] = i < partitions ? i : dice.below(partitions);
  for (uint32_t i = devices; i > 1; --i) std::swap(division[i - 1], division[dice.below(i)]);
  return division;
}

// Frames of one port do not overlap on its link: none was sent before what had happened.
void check_links(const SimulationConfig& config, const std::vector<uint8_t>& trace) {
  std::map<uint32_t, Time> last;
  for (const Traced& frame : read_trace(trace)) {
    const LinkEnd& end = config.taps[frame.tap];
    const bool is_switch = end.device < config.switches.size();
    const Rate rate = is_switch ? config.switches[end.device].parameters.ports[end.port].rate : config.nics[0].parameters.rate;
    const Time takes = Serializer(rate).finish(0, wire_bytes(frame.length));
    REQUIRE(frame.at >= last[frame.tap] + takes - 1);
    last[frame.tap] = frame.at;
  }
}

// Cut at random, and looked at.
Outcome run_cut(const SimulationConfig& config, std::vector<uint32_t> division, Dice& dice) {
  // Always together, and now and then.
  Simulation simulation(config, {std::move(division), dice.below(2) * dice.within(5, 40)});
  for (Time at = 0; at < kEnd;) {
    at = std::min(kEnd, at + dice.below(15'000));
    while (!simulation.run(at, 1 + dice.below(2'000))) {
      if (dice.chance(3)) check_balance(simulation);
    }
    check_balance(simulation);
  }
  return outcome(simulation);
}

TEST_CASE("simulation threads: random networks run the same with any number of threads, cut anywhere") {
  uint64_t messages = 0, frames = 0, crossed = 0, long_rounds = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    SimulationConfig config = drawn(seed);
    check(config);
    Dice dice(seed + 1'000);
    Simulation alone(config);
    finish(alone, kEnd);
    CHECK(alone.fabric().work().crossed == 0);
    check_balance(alone);
    const Outcome reference = outcome(alone);
    check_links(config, reference.trace);
    messages += reference.messages.size();
    frames += alone.fabric().hops();
    for (const uint32_t threads : {2u, 3u, 7u}) {
      CAPTURE(threads);
      config.threads = threads;
      Simulation simulation(config, {{}, 0});
      finish(simulation, kEnd);
      check_balance(simulation);
      const Fabric::Work work = simulation.fabric().work();
      CHECK(work.threads == std::min(threads, devices_of(config)));
      CHECK(work.together <= work.rounds);
      CHECK(work.together + 16 >= work.rounds);
      crossed += work.crossed;
      long_rounds += work.round >= 2 * longest_window(config);
      check_same(reference, outcome(simulation));
      check_same(reference, run_cut(config, {}, dice));
    }
    for (int i = 0; i < 2; ++i) {
      config.threads = dice.within(1, 4);
      check_same(reference, run_cut(config, random_division(devices_of(config), dice), dice));
    }
  }
  CHECK(messages > 200);
  CHECK(frames > 40'000);
  CHECK(crossed > 20'000);
  CHECK(long_rounds > 3);
}

// Incident that befalls a network at a time.
struct Incident {
  Time at;
  uint32_t link;  // fails, or is there again
  bool up;
  uint32_t device;  // or else this switch gets other routes
  SimulatedRoutes routes;
};

// Links that fail and come back, switches that lose ways and hosts; in order of time.
std::vector<Incident> incidents(const SimulationConfig& config, Dice& dice) {
  std::vector<Incident> list;
  for (uint32_t i = dice.within(1, 4); i > 0; --i) {
    const auto link = dice.below(static_cast<uint32_t>(config.links.size()));
    const Time at = dice.below(100'000);
    list.push_back({at, link, false, UINT32_MAX, {}});
    if (!dice.chance(4)) list.push_back({at + dice.below(60'000), link, true, UINT32_MAX, {}});
  }
  for (uint32_t i = dice.within(1, 3); i > 0; --i) {
    const auto device = dice.below(static_cast<uint32_t>(config.switches.size()));
    SimulatedRoutes routes = config.switches[device].routes();
    if (routes.groups.back().size() > 1) routes.groups.back().pop_back();
    if (dice.chance(2)) routes.group_of_host[dice.below(static_cast<uint32_t>(config.nics.size()))] = Forwarding::kNoGroup;
    list.push_back({static_cast<Time>(dice.below(120'000)), 0, false, device, routes});
  }
  std::ranges::stable_sort(list, {}, &Incident::at);
  return list;
}

// `cut`: null: in one piece between incidents.
Outcome run_through(const SimulationConfig& config, const std::vector<Incident>& list, const Sharing& sharing, Dice* cut) {
  Simulation simulation(config, sharing);
  Time reached = 0;
  const auto run_to = [&](Time at) {
    while (cut != nullptr && reached < at) {
      reached = std::min(at, reached + cut->below(15'000));
      while (!simulation.run(reached, 1 + cut->below(2'000))) check_balance(simulation);
    }
    finish(simulation, at);
    check_balance(simulation);
  };
  for (const Incident& incident : list) {
    run_to(incident.at);
    if (incident.device == UINT32_MAX) {
      simulation.fabric().set_link(incident.link, incident.up);
    } else {
      simulation.fabric().reroute(incident.device, incident.routes);
    }
    check_balance(simulation);
  }
  run_to(kEnd);
  return outcome(simulation);
}

TEST_CASE("simulation threads: links that fail, other routes and any load balancing are the same for any number of threads") {
  uint64_t lost = 0, late = 0, unreachable = 0;
  for (uint64_t seed = 101; seed <= 112; ++seed) {
    CAPTURE(seed);
    Dice dice(seed);
    SimulationConfig config = drawn(seed);
    for (SimulatedSwitch& s : config.switches) {
      s.parameters.load_balancing = static_cast<LoadBalancing>(seed % 4);
      s.parameters.flowlet_gap = dice.below(3'000);
    }
    config.transport.recovery = dice.chance(2) ? LossRecovery::selective_repeat : LossRecovery::go_back_n;
    if (config.transport.recovery == LossRecovery::selective_repeat) config.transport.window = kMaxSelectiveWindow;
    check(config);
    const std::vector<Incident> list = incidents(config, dice);
    const Outcome reference = run_through(config, list, {}, nullptr);
    check_same(reference, run_through(config, list, {}, &dice));
    for (const uint32_t threads : {2u, 3u, 7u}) {
      CAPTURE(threads);
      config.threads = threads;
      check_same(reference, run_through(config, list, {{}, 0}, &dice));
      check_same(reference, run_through(config, list, {random_division(devices_of(config), dice), 0}, &dice));
    }
    Simulation once(config);
    for (const Incident& incident : list) {
      finish(once, incident.at);
      if (incident.device == UINT32_MAX) once.fabric().set_link(incident.link, incident.up);
      if (incident.device != UINT32_MAX) once.fabric().reroute(incident.device, incident.routes);
    }
    finish(once, kEnd);
    for (size_t link = 0; link < once.fabric().link_count(); ++link) {
      for (const size_t side : {0, 1}) lost += once.fabric().link_counters(link, side).link_down;
    }
    for (size_t nic = 0; nic < once.fabric().nic_count(); ++nic) {
      late += once.fabric().nic_at(nic).transport_counters().out_of_sequence;
    }
    unreachable += dropped(once);
  }
  CHECK(lost > 1'000);
  CHECK(late > 1'000);
  CHECK(unreachable > 100);
}

// Frames that leave a port at one time, of which there are many where it has no rate, arrive at one time far from now.
TEST_CASE("simulation threads: frames that leave together stay in order over a long link, with any number of threads") {
  constexpr uint32_t kHosts = 6;
  SimulationConfig config;
  for (uint32_t leaf = 0; leaf < 2; ++leaf) {
    SimulatedSwitch& s = config.switches.emplace_back(simulated_switch(kHosts + 1, 100 * kGigabit, leaf));
    s.parameters.ports[kHosts].rate = 0;
    for (uint16_t port = 0; port <= kHosts; ++port) s.groups.push_back({port});
    for (uint16_t host = 0; host < 2 * kHosts; ++host) {
      s.group_of_host.push_back(host / kHosts == leaf ? static_cast<uint16_t>(host % kHosts) : static_cast<uint16_t>(kHosts));
    }
  }
  for (uint32_t host = 0; host < 2 * kHosts; ++host) {
    config.nics.push_back(simulated_nic(host, 100 * kGigabit));
    config.links.push_back(
        {.ends = {{2 + host, 0}, {host / kHosts, static_cast<uint16_t>(host % kHosts)}}, .delay = 200, .impairment = {}});
  }
  config.links.push_back({.ends = {{0, kHosts}, {1, kHosts}}, .delay = 20'000, .impairment = {}});
  for (uint32_t host = 0; host < kHosts; ++host) {
    config.flows.push_back(flow(host, kHosts, static_cast<uint16_t>(host)));
    config.flows[host].stream.total_bytes = 20'480;
  }
  config.taps = {{0, kHosts}, {1, 0}};
  without_congestion_control(config);
  Simulation alone(config);
  finish(alone, kEnd);
  const Outcome reference = outcome(alone);
  // One queue: what leaves the other end of the long link is in the order in which it came.
  std::vector<std::vector<uint8_t>> in, out;
  for (Traced& frame : read_trace(reference.trace)) (frame.tap == 0 ? in : out).push_back(std::move(frame.bytes));
  CHECK(in.size() == kHosts * 20);
  CHECK(in == out);
  for (const uint32_t threads : {2u, 5u}) {
    CAPTURE(threads);
    config.threads = threads;
    Simulation simulation(config, {{}, 0});
    finish(simulation, kEnd);
    check_same(reference, outcome(simulation));
  }
}

TEST_CASE("simulation threads: there are no more than partitions, and one that is alone has no other") {
  SimulationConfig config = star(3, 40 * kGigabit);
  config.threads = 100;
  CHECK(Simulation(config).fabric().work().threads <= 4);
  CHECK(Simulation(config, {{0, 0, 1, 1}}).fabric().work().threads == 2);
  CHECK(Simulation(config, {{0, 0, 0, 0}}).fabric().work().threads == 1);
  for (const uint32_t threads : {0u, kMostThreads + 1}) {
    config.threads = threads;
    CHECK_THROWS_WITH_AS(check(config), doctest::Contains("simulation.threads"), NativeError);
  }
  config.threads = kMostThreads;
  CHECK_NOTHROW(check(config));
}

// Packets belong to whoever frees them, which is mostly not who sends.
TEST_CASE("simulation threads: traffic that goes one way for long needs no more packets than what is under way") {
  for (const uint32_t threads : {1u, 3u}) {
    CAPTURE(threads);
    SimulationConfig config = star(2, 100 * kGigabit);
    without_congestion_control(config);
    config.threads = threads;
    config.flows.push_back(flow(0, 1));
    config.flows[0].stream.message_bytes = 64;
    config.flows[0].stream.total_bytes = 64 * 600'000;
    Simulation simulation(config, {{}, 0});
    const uint32_t room = simulation.fabric().room();
    finish(simulation, 20 * kMillisecond);
    CHECK(simulation.counters(simulation.receiver(0)).rx_packets == 600'000);
    CHECK(simulation.fabric().room() == room);
    CHECK(simulation.fabric().packets() == 0);
  }
}

TEST_CASE("simulation threads: who runs short of packets in a window goes on in it when there are more") {
  std::vector<uint64_t> counters;
  for (const uint32_t threads : {1u, 2u, 3u}) {
    CAPTURE(threads);
    SimulationConfig config = star(3, 400 * kGigabit);
    without_congestion_control(config);
    for (SimulatedLink& link : config.links) link.delay = 4 * kMillisecond;
    for (uint32_t i = 0; i < 2; ++i) {
      config.flows.push_back(flow(i, 2, static_cast<uint16_t>(i)));
      config.flows[i].stream.message_bytes = 64;
      config.flows[i].stream.total_bytes = 64 * 300'000;
    }
    config.threads = threads;
    Simulation simulation(config, {{}, 0});
    const uint32_t room = simulation.fabric().room();
    finish(simulation, 3'500'000);
    CHECK(simulation.fabric().room() > room);
    CHECK(simulation.fabric().packets() > room);
    check_balance(simulation);
    finish(simulation, 40 * kMillisecond);
    CHECK(simulation.fabric().packets() == 0);
    const Fabric::Work work = simulation.fabric().work();
    CHECK(work.together <= work.rounds);
    const std::vector<uint64_t> all = everything(simulation);
    if (threads == 1) counters = all;
    CHECK(all == counters);
  }
}

}  // namespace
}  // namespace weir::test
