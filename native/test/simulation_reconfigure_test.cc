// Switches whose parameters change in the course of a simulation, and congestion notification through a simulated network.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/native_error.h"
#include "test/simulation_harness.h"
#include "wire/qcn.h"

namespace weir::test {
namespace {

constexpr Time kFrameTime = 8'848;  // time of a data frame at 1 Gb/s

uint64_t sent(Simulation& simulation, uint16_t port) { return simulation.fabric().switch_at(0).counters(port, 3).queue_packets; }

std::string refusal(Simulation& simulation, const SwitchParameters& parameters) {
  try {
    simulation.fabric().reconfigure_switch(0, parameters);
  } catch (const NativeError& e) {
    return e.code + " " + e.what();
  }
  return "";
}

SimulationConfig one_flow() {
  SimulationConfig config = star(2, kGigabit);
  without_congestion_control(config);
  config.flows.push_back(flow(0, 1));
  return config;
}

TEST_CASE("simulation: a queue's rate changes on a schedule") {
  SimulationConfig config = one_flow();
  Simulation simulation(config);
  SwitchParameters p = config.switches[0].parameters;
  finish(simulation, kMillisecond);
  const uint64_t full = sent(simulation, 1);
  CHECK(full == doctest::Approx(kMillisecond / kFrameTime).epsilon(0.02));
  p.ports[1].priority_rates[3] = kGigabit / 4;
  simulation.fabric().reconfigure_switch(0, p);
  finish(simulation, 5 * kMillisecond);
  const uint64_t slow = sent(simulation, 1) - full;
  CHECK(slow == doctest::Approx(kMillisecond / kFrameTime).epsilon(0.02));
  // The queue that grew leaves at the link's rate.
  p.ports[1].priority_rates[3] = 0;
  simulation.fabric().reconfigure_switch(0, p);
  finish(simulation, 6 * kMillisecond);
  CHECK(sent(simulation, 1) - full - slow == doctest::Approx(kMillisecond / kFrameTime).epsilon(0.02));
  // So does a link's rate.
  p.ports[1].rate = kGigabit / 10;
  const uint64_t before = sent(simulation, 1);
  simulation.fabric().reconfigure_switch(0, p);
  finish(simulation, 7 * kMillisecond);
  CHECK(sent(simulation, 1) - before == doctest::Approx(kMillisecond / kFrameTime / 10).epsilon(0.1));
}

TEST_CASE("simulation: a change takes effect at its time, to the nanosecond, however the run is cut") {
  SimulationConfig config = one_flow();
  config.switches[0].parameters.ports[1].priority_rates[3] = kGigabit / 100;
  config.taps = {{0, 1}};
  const Time change = 1'234'567;
  std::vector<Traced> first;
  for (const Time cut : {change, Time{1}, Time{1'000'000}, change - 1}) {
    Simulation simulation(config);
    finish(simulation, cut);
    finish(simulation, change);
    SwitchParameters p = config.switches[0].parameters;
    p.ports[1].priority_rates[3] = kGigabit / 10;
    simulation.fabric().reconfigure_switch(0, p);
    finish(simulation, 3 * kMillisecond);
    const std::vector<Traced> trace = read_trace(simulation.fabric().take_trace());
    if (first.empty()) first = trace;
    REQUIRE(trace.size() == first.size());
    for (size_t i = 0; i < trace.size(); ++i) CHECK(trace[i].at == first[i].at);
    // The rest of the gap passes ten times as fast.
    size_t next = 0;
    while (trace[next].at <= change) ++next;
    const Time release = trace[next - 1].at - kFrameTime + 100 * kFrameTime;
    CHECK(trace[next].at - kFrameTime == doctest::Approx(change + (release - change) / 10).epsilon(1e-6));
    CHECK(trace[next + 1].at - trace[next].at == 10 * kFrameTime);
  }
}

TEST_CASE("simulation: parameters that a running switch cannot change are refused") {
  SimulationConfig config = one_flow();
  Simulation simulation(config);
  finish(simulation, kMillisecond);
  const SwitchParameters present = config.switches[0].parameters;
  SwitchParameters p = present;
  std::string expected;
  SUBCASE("fewer ports") {
    p.ports.pop_back();
    expected = "the number of ports";
  }
  SUBCASE("another address") {
    ++p.ports[1].mac;
    expected = "the address of port 1";
  }
  SUBCASE("another MTU") {
    p.ports[0].mtu = 9'000;
    expected = "the MTU of port 0";
  }
  SUBCASE("more memory") {
    p.buffer.total += 1;
    expected = "the size of the buffer";
  }
  SUBCASE("learning") {
    p.learning = true;
    expected = "learning";
  }
  SUBCASE("a link faster than the schedule allows") {
    p.ports[1].rate = 100 * kGigabit;
    expected = "to so much the rate of port 1";
  }
  CHECK(refusal(simulation, p).starts_with("INVALID_CONFIG switch 0: " + expected + " cannot change"));
  CHECK(refusal(simulation, present).empty());
  REQUIRE_FALSE(simulation.run(2 * kMillisecond, 10));
  CHECK(refusal(simulation, present).starts_with("INVALID_STATE "));
  finish(simulation, 2 * kMillisecond);
  CHECK(refusal(simulation, present).empty());
}

// Hosts 0 and 1 at the first switch, host 2 at the second; port 2 of each leads to the other.
SimulationConfig two_switches() {
  SimulationConfig config;
  for (uint32_t i = 0; i < 3; ++i) config.nics.push_back(simulated_nic(i, kGigabit));
  for (uint64_t i = 0; i < 2; ++i) {
    SimulatedSwitch s = simulated_switch(i == 0 ? 3 : 2, kGigabit, i);
    s.groups = i == 0 ? std::vector<std::vector<uint16_t>>{{0}, {1}, {2}} : std::vector<std::vector<uint16_t>>{{1}, {1}, {0}};
    s.group_of_host = {0, 1, 2};
    for (SwitchParameters::Port& port : s.parameters.ports) port.cn_defence.fill(CnDefence::interior_ready);
    s.parameters.cn_priorities = 1 << 3;
    s.parameters.qcn.cp_sample_base = 10'000;
    config.switches.push_back(s);
  }
  const LinkEnd ends[4][2] = {{{2, 0}, {0, 0}}, {{3, 0}, {0, 1}}, {{4, 0}, {1, 0}}, {{0, 2}, {1, 1}}};
  for (const auto& [from, to] : ends) {
    SimulatedLink link;
    link.ends[0] = from;
    link.ends[1] = to;
    link.delay = kCable;
    config.links.push_back(link);
  }
  config.transport.window = kDefaultWindow;
  without_congestion_control(config);
  return config;
}

TEST_CASE("simulation: CNMs reach the senders, hop by hop") {
  SimulationConfig config = two_switches();
  config.flows = {flow(0, 2), flow(1, 2, 1)};
  // The first switch has its congestion point at the link between them, the second at host 2.
  config.switches[1].parameters.ports[0].priority_rates[3] = kGigabit / 2;
  config.switches[0].parameters.cp_min_header_octets = config.switches[1].parameters.cp_min_header_octets = 64;
  config.taps = {{0, 0}, {0, 1}, {1, 1}};
  Simulation simulation(config);
  finish(simulation, 5 * kMillisecond);
  simulation.settle();
  SoftSwitch& first = simulation.fabric().switch_at(0);
  SoftSwitch& second = simulation.fabric().switch_at(1);
  const uint64_t made[2] = {first.counters(2, 3).cn_cp_transmitted_cnms, second.counters(0, 3).cn_cp_transmitted_cnms};
  CHECK(made[0] > 10);
  CHECK(made[1] > 10);
  CHECK(first.counters(2, 3).cn_cp_transmitted_frames > first.counters(2, 3).queue_packets);
  uint64_t seen[2][2] = {};  // counts by congestion point and host
  uint64_t between = 0;
  for (const Traced& frame : read_trace(simulation.fabric().take_trace())) {
    CongestionNotification cnm;
    if (!parse_cnm(frame.bytes.data(), static_cast<uint32_t>(frame.bytes.size()), cnm)) continue;
    CHECK(frame.bytes.size() == frame.length);
    if (frame.tap == 2) {
      ++between;
      continue;
    }
    const bool by_second = cnm.congestion_point == (config.switches[1].parameters.ports[0].mac << 16 | 3);
    if (!by_second) CHECK(cnm.congestion_point == (config.switches[0].parameters.ports[2].mac << 16 | 2 << 3 | 3));
    ++seen[by_second ? 1 : 0][frame.tap];
    CHECK(load_be48(frame.bytes.data()) == config.nics[frame.tap].parameters.mac);
    CHECK(cnm.destination_mac == config.nics[2].parameters.mac);
    // The MSDU begins at the ethertype: IPv4 from the sender, whose UDP source port says which flow it is.
    REQUIRE(cnm.msdu.size() == 2 + 20 + 8 + 12);  // all that there is of a frame without payload
    CHECK(cnm.msdu[0] == 0x08);
    CHECK(load_be16(cnm.msdu.data() + 22) == 0xc000 + frame.tap);
  }
  CHECK(between == doctest::Approx(made[1]).epsilon(0.05));
  for (const int point : {0, 1}) {
    CHECK(seen[point][0] > 3);
    CHECK(seen[point][1] > 3);
    CHECK(seen[point][0] + seen[point][1] + 2 >= made[point]);
  }
}

}  // namespace
}  // namespace weir::test
